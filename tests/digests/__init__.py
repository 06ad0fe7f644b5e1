"""Kept numbers of twelve seeded runs: whoever moves code shows with them that nothing changed."""

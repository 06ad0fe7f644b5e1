"""Stored numbers of twelve seeded runs, which show that moving code changed nothing."""

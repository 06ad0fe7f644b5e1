"""Searches for good settings that account for themselves: every trial counted, or only the best of them released."""

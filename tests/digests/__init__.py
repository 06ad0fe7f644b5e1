"""The kept numbers of seeded runs, which show that a change of code changed no number."""

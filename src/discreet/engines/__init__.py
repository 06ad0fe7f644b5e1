"""Ways to gather a cohort's sum: all do the same, and a test holds them equal."""

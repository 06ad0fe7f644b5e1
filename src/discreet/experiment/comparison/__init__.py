"""Several experiments, swept values and seeds, run and kept as one table."""

"""PFL (Bhaskar et al. 2025): its tables, cell by cell."""

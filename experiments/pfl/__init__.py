"""Paper 000 (PFL): its tables, cell by cell."""

"""Paper 003: how many iterations, and how many of them between two uploads, when every client adds its own noise."""

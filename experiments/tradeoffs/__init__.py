"""Paper 001: privacy, utility and transmission rate together, and clients who differ."""

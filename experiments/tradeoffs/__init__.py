"""Kim, Günlü & Schaefer 2021: privacy, utility and transmission rate together, and clients who differ."""

"""Heikkilä 2025: noise in shares, for sums that nobody sees the parts of; what it claims beside what is certified."""

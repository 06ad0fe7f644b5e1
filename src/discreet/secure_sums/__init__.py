"""Sums of integer vectors of which the server learns nothing but the sum."""

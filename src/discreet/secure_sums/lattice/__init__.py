"""Encode vectors on a lattice (rotate, scale, round), sum them in a ring, and decode the sum."""

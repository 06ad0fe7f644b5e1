"""Secure aggregation: the server learns a sum of integer vectors and who is in it. No network, no torch."""

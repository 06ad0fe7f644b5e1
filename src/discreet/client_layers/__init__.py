"""Convolutions and linear layers whose weights differ by client, on a GPU's tensor cores, for any network."""

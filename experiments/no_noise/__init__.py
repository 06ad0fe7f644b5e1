"""Heikkilä (2025): the noise that its public code draws, and its Fashion-MNIST setting with and without noise."""

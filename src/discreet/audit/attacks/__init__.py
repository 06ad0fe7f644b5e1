"""Attacks that people know, as numbers and pictures: membership inference, gradient inversion and label inference."""

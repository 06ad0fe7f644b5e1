"""Differentially private federated learning whose ε you can believe."""

__version__ = "0.1.0"

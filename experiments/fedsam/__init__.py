"""Paper 004: DP-FedSAM and its baselines at one certified ε."""

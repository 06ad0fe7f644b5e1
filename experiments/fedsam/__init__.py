"""DP-FedSAM (Shi et al. 2023) and its baselines at one certified ε."""

"""The embedded engine's blocks, played by workers on a Ray cluster. Only ray_cluster.py imports ray."""

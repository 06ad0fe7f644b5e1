"""The embedded engine's blocks, played by workers on a Ray cluster. Only crew.py imports ray."""

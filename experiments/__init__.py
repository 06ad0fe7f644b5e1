"""The papers' experiments: a folder for each paper, and what they share in `common`."""

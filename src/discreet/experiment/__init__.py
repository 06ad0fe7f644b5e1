"""One experiment from its file to its run directory."""

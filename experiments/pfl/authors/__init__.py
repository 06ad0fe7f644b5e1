"""The settings of the authors' code, as files that can be run, and its networks."""

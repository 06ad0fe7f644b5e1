"""From a run directory to a page that a person reads."""

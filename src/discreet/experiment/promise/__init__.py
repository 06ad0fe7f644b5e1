"""From a promise to the noise that keeps it, and what a run has spent of it."""

"""From a promise to the noise that keeps it, and to the guarantees that a run may state."""

"""Named streams of random numbers for simulated and for real clients."""

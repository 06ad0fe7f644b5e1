"""Features that a fixed network computes once, and the cache that keeps them."""

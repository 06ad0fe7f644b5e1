"""Paper 003's Theorem 3 beside what really happens on a strongly convex task."""

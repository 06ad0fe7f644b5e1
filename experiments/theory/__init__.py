"""Theorem 3 of Fu et al. 2021 beside what really happens on a strongly convex task."""

"""Faults that would break a guarantee, each a small patch, with the test that must fail on it. See docs/mutants.md."""

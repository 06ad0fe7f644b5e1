"""Fixtures of the small experiment, for all tests of this folder."""

from tests.small_experiment import prepared, small, state

__all__ = ["prepared", "small", "state"]

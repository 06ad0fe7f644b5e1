"""Fixtures of the small experiment, for all tests of this folder."""

from tests.small_experiment import prepare, small, state

__all__ = ["prepare", "small", "state"]

"""Checks that a part keeps its contract: the contract tests that our own parts pass, for any part."""

from discreet.testing.mechanism_check import check_mechanism
from discreet.testing.part_failure import PartFailed

__all__ = ["PartFailed", "check_mechanism"]

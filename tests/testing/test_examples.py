"""The examples in the docstrings of the checks print what they say."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["aggregation", "mechanism", "sampler", "server_optimizer", "sparsifier", "trainer"])
def test_the_examples_of_a_check_are_true(module: str) -> None:
    results = doctest.testmod(importlib.import_module(f"discreet.testing.{module}_check"))
    assert results.attempted > 0
    assert results.failed == 0

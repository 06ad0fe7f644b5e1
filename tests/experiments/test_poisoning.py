"""Runs with hostile clients: what the server refuses, and the table of the guide."""

from statistics import fmean
from typing import Any

import pytest

from experiments.poisoning import reproduce
from experiments.poisoning.hostile_runs import ATTACKS, DEFENCES, HOSTILE, SEEDS, run


def test_the_table_is_what_the_results_say() -> None:
    page = reproduce.GUIDE.read_text(encoding="utf-8")
    assert reproduce.insert_table(page, reproduce.read_results()) == page


def test_every_cell_has_all_seeds() -> None:
    found = reproduce.read_results()
    for defence in DEFENCES:
        for attack in ATTACKS:
            for hostile in HOSTILE:
                assert len(reproduce.accuracies(found, defence.name, attack, hostile)) == len(SEEDS)
    assert {each["epsilon"] for each in found} == {8.0}


@pytest.mark.parametrize(("attack", "refused"), [("ten times", 2), ("at the limit", 0)])
def test_a_long_lie_is_refused_in_each_round_and_one_at_the_limit_is_not(attack: Any, refused: int) -> None:
    assert run(DEFENCES[1], attack, hostile=1, seed=1, rounds=2)["refused"] == refused


def test_what_the_guide_says_of_the_results_is_so() -> None:
    """Two clients at the limit ruin the mean, and cost a median or a trimmed mean less than five points."""
    found = reproduce.read_results()

    def accuracy(name: str, hostile: int) -> float:
        return fmean(reproduce.accuracies(found, name, "at the limit", hostile))

    assert accuracy("mean", 2) < 20
    assert all(accuracy(name, 2) > accuracy(name, 0) - 5 for name in ("median", "trimmed mean, 0.2"))

"""A ledger pays for truncated batches, allocations, answers and zCDP bounds, and refuses what has no price."""

from pathlib import Path

import pytest

from discreet.errors import BudgetRefused
from discreet.privacy.events import (
    Event,
    GaussianNoise,
    RandomAllocation,
    RandomisedResponse,
    TruncatedPoissonSampled,
    ZeroConcentrated,
)
from discreet.privacy.ledger import Budget, Ledger, Mode
from discreet.privacy.release import Relation, Release

NOISE = GaussianNoise(noise_multiplier=2.0)
ANSWER = RandomisedResponse(categories=3, random_share=0.5)
ALLOCATION = RandomAllocation(bins=20, event=NOISE)


def reserve(folder: Path, event: Event, relation: Relation, budgeted: Relation, mode: Mode) -> None:
    budget = Budget(unit="example", view="server", relation=budgeted, epsilon=20.0, delta=1e-5)
    ledger = Ledger.create(folder / "ledger.jsonl", (budget,), mode=mode)
    ledger.reserve("first", [Release(unit="example", relation=relation, view="server", event=event)])


@pytest.mark.parametrize("mode", ["plan", "filter"])
@pytest.mark.parametrize(
    ("event", "relation"),
    [
        (TruncatedPoissonSampled(sampling_rate=0.1, max_batch_size=20, population=100, event=NOISE), "zero_out"),
        (ALLOCATION, "zero_out"),
        (ANSWER, "replace"),
        (ZeroConcentrated(rho=0.1), "zero_out"),
    ],
    ids=lambda value: getattr(value, "kind", value),
)
def test_a_release_within_the_budget_is_reserved(event: Event, relation: Relation, mode: Mode, tmp_path: Path) -> None:
    reserve(tmp_path, event, relation, relation, mode)
    assert Ledger.open(tmp_path / "ledger.jsonl").verify()


@pytest.mark.parametrize("mode", ["plan", "filter"])
def test_what_has_no_price_under_the_budgets_relation_is_refused(mode: Mode, tmp_path: Path) -> None:
    unpriced: list[tuple[Event, Relation]] = [(ALLOCATION, "replace"), (ANSWER, "zero_out")]
    for event, budgeted in unpriced:
        folder = tmp_path / event.kind
        folder.mkdir()
        with pytest.raises(BudgetRefused, match="epsilon to inf"):
            reserve(folder, event, "zero_out", budgeted, mode)

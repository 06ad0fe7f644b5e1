"""A question to the accountants that can't be answered is refused in a sentence, and so is one to the ledger."""

import math
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import InvalidInput, LedgerDamaged
from discreet.privacy import accountant, calibration
from discreet.privacy.calibration import AttackTarget, EpsilonTarget
from discreet.privacy.events import GaussianNoise
from discreet.privacy.ledger import Ledger
from discreet.privacy.question_checks import check_count, check_release

from .ledger.helpers import budget, release

NOISE = GaussianNoise(noise_multiplier=1.0)


@pytest.mark.parametrize(
    ("event", "delta", "relation", "said"),
    [
        ("gaussian", 1e-5, "add_or_remove", "event must be an event, and got 'gaussian'"),
        (NOISE, 1e-5, "neighbours", "relation must be one of"),
        (NOISE, True, "add_or_remove", "delta must be a number"),
        (NOISE, math.nan, "add_or_remove", "delta must be a number"),
        (NOISE, 10**400, "add_or_remove", "delta must be a floating-point number"),
        (NOISE, 1.5, "add_or_remove", "delta must be at least 0 and at most 1"),
    ],
)
def test_a_question_without_an_answer_is_refused(event: Any, delta: Any, relation: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        accountant.epsilon(event, delta, relation)


@pytest.mark.parametrize("count", [0, True, 1.5, 10**31])
def test_a_count_is_a_whole_number_that_somebody_can_hold(count: Any) -> None:
    with pytest.raises(InvalidInput, match="steps must be a whole number"):
        check_count("steps", count)


def test_what_is_released_is_a_release() -> None:
    with pytest.raises(InvalidInput, match="release must be a Release"):
        check_release("a model")


@pytest.mark.parametrize(
    ("events", "target", "said"),
    [
        (NOISE, 2.0, "target must be an EpsilonTarget or an AttackTarget"),
        ([], EpsilonTarget(epsilon=2.0, delta=1e-5), "events must name the event of each client"),
    ],
)
def test_a_target_for_nobody_or_of_another_kind_is_refused(events: Any, target: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        calibration.log_excess(events, target, "add_or_remove")


def test_noise_is_found_for_a_function_only_and_for_both_kinds_of_target() -> None:
    target = AttackTarget(true_positive_rate=0.5, false_positive_rate=0.1)
    assert calibration.log_excess(NOISE, target, "add_or_remove") < math.inf
    with pytest.raises(InvalidInput, match="event_at must be a function"):
        calibration.calibrate_noise(NOISE, target)  # type: ignore[arg-type]


def test_a_ledger_is_made_of_budgets_and_asked_for_lists_of_releases(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="budgets must be a list of budgets"):
        Ledger.create(tmp_path / "wrong.jsonl", budget(1.0))  # type: ignore[arg-type]
    ledger = Ledger.create(tmp_path / "ledger.jsonl", [budget(8.0)])
    with pytest.raises(InvalidInput, match="releases must be a list of releases"):
        ledger.reserve("run-1", "all")  # type: ignore[arg-type]


def test_a_ledger_says_whether_it_is_as_long_as_was_known_and_has_a_known_head(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.jsonl", [budget(8.0)])
    ledger.commit(ledger.reserve("run-1", [release()]), [release()])
    found = ledger.verify()
    assert ledger.verify(head=found["head"], records=found["records"]) == found
    with pytest.raises(LedgerDamaged, match="its end was cut"):
        ledger.verify(records=found["records"] + 1)
    with pytest.raises(LedgerDamaged, match="must have the hash"):
        ledger.verify(head="0" * 64)
    with pytest.raises(InvalidInput, match="64 hexadecimal digits"):
        ledger.verify(head="head")

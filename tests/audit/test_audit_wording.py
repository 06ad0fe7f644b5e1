"""An audit in words: counts in good English, and a hint that fits what was done already."""

from typing import Any

import pytest

from discreet.audit.audit_record import AuditRecord
from discreet.audit.audit_wording import audit_lines


def lines(**changes: Any) -> dict[str, str]:
    """The lines of an audit that measured 0.4 of a certified 2."""
    stated: dict[str, Any] = {
        "lower_bound": 0.4,
        "confidence": 0.95,
        "delta": 1e-5,
        "certified_epsilon": 2.0,
        "estimator": "one-run",
        "canaries": 650,
        "present": 322,
        "runs": 1,
        "rounds": 10,
        "unit": "example",
        "view": "server",
        "relation": "zero_out",
    }
    return dict(audit_lines(AuditRecord(**stated | changes)))


@pytest.mark.parametrize(("made", "suggested"), [(1, "10"), (12, "120"), (60, "600")])
def test_ten_times_as_many_runs_are_suggested(made: int, suggested: str) -> None:
    assert f"(--runs {suggested})" in lines(runs=made)["More"]


def test_no_more_runs_are_suggested_where_even_the_upper_end_of_the_interval_is_far_below() -> None:
    hint = lines(details={"reach": 0.61})["More"]
    assert "--runs" not in hint
    assert "would not bring it above about ε = 0.61" in hint
    assert "(--runs 10)" in lines(details={"reach": 1.9})["More"]


def test_no_more_runs_are_suggested_where_the_noise_does_not_look_as_stated() -> None:
    shown = lines(lower_bound=0.0, details={"looks_as_stated": False, "reach": None})
    assert "More" not in shown
    assert "--estimator one-run" in shown["Warning"]


def test_a_bound_near_the_card_has_no_hint() -> None:
    assert "More" not in lines(lower_bound=1.5)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({}, "650 (322 present), in one training of 10 rounds"),
        ({"canaries": 1, "present": 1, "rounds": 1}, "1 (1 present), in one training of one round"),
        ({"runs": 3, "rounds": 1200}, "650 (322 present), in 3 trainings of 1,200 rounds"),
    ],
)
def test_numbers_of_one_and_of_many_read_well(counts: dict[str, int], said: str) -> None:
    assert lines(**counts)["Canaries"] == said

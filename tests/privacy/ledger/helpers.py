"""Small ledgers, and reference numbers that are computed without the code under test."""

import json
import math
import os
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest

from discreet.errors import BudgetRefused
from discreet.privacy.events import Event, GaussianNoise
from discreet.privacy.ledger import Budget, Ledger
from discreet.privacy.release import Release

DELTA = 1e-5


def budget(epsilon: float = 8.0, **fields: Any) -> Budget:
    usual: dict[str, Any] = {"unit": "example", "relation": "add_or_remove", "view": "server", "delta": DELTA}
    return Budget(epsilon=epsilon, **usual | fields)


def release(event: Event | float = 10.0, **fields: Any) -> Release:
    """A release of this event; a number is the noise multiplier of a Gaussian."""
    usual: dict[str, Any] = {"unit": "example", "relation": "add_or_remove", "view": "server"}
    paid = GaussianNoise(noise_multiplier=event) if isinstance(event, float) else event
    return Release(event=paid, **usual | fields)


def gaussian_epsilon(mu: float, delta: float = DELTA) -> float:
    """ε of Gaussian noise at sensitivity ÷ deviation = mu (Balle & Wang 2018, Thm 8), by bisection.

    T releases at noise multiplier z are one at mu = √T/z.
    """
    cdf = NormalDist().cdf
    low, high = 0.0, mu * mu / 2 + mu * 40
    for _ in range(200):
        middle = (low + high) / 2
        too_low = cdf(mu / 2 - middle / mu) - math.exp(middle) * cdf(-mu / 2 - middle / mu) > delta
        low, high = (middle, high) if too_low else (low, middle)
    return high


def filter_epsilon(order: float, divergence: float, delta: float = DELTA) -> float:
    """Canonne, Kamath, Steinke 2020, Prop. 12."""
    return divergence + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the complete lines; a torn one is left out."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def spent_epsilon(summary: dict[str, Any]) -> float:
    (only,) = summary["budgets"]
    return float(only["spent"])


def spend_all(ledger: Ledger, made: Release, run: str = "") -> tuple[int, BudgetRefused]:
    """Reserve and commit the same release until it is refused: return how often that worked, and the refusal."""
    for number in range(10_000):
        try:
            ledger.commit(ledger.reserve(f"{run}/{number}", [made]), [made])
        except BudgetRefused as refusal:
            return number, refusal
    raise AssertionError("never refused")


def no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip fsync, for tests that write thousands of times and don't test durability."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


def in_a_process(work: Callable[..., None], *args: Any) -> Any:
    """Start `work(*args)` in a separate process, which can be killed."""
    process = get_context("fork").Process(target=work, args=args)
    process.start()
    return process

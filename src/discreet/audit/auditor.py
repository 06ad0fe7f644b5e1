"""Audit one guarantee of an experiment: plant canaries, train, look, and bound ε from below."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from discreet.algorithms.mechanisms import IntegerNoise
from discreet.audit.attack_plan import AttackPlan, plan_attack
from discreet.audit.audit_record import AuditRecord, CurvePoint
from discreet.audit.audit_setup import AuditSetup
from discreet.audit.audited_run import AuditedRun, play_run
from discreet.audit.canary_scores import collect_entries, score_canaries
from discreet.audit.estimators.estimate import Estimate, check_levels
from discreet.audit.estimators.gaussian_estimator import CURVE_DELTAS, estimate_by_gaussian, measured_points
from discreet.audit.estimators.one_run_estimator import estimate_by_guesses
from discreet.audit.estimators.repeated_estimator import check_run_count, estimate_by_repetition
from discreet.audit.estimators.trade_off_estimator import estimate_by_trade_off
from discreet.code_version import read_code_version
from discreet.errors import DiscreetError, InvalidInput
from discreet.part import Count, Real, WholeNumber, check_value
from discreet.privacy import accountant
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger.charges import ENOUGH_FOR
from discreet.privacy.release import View
from discreet.privacy.wording import unit_name
from discreet.randomness.streams import RunKey

Estimator: TypeAlias = Literal["gaussian", "one-run", "one-run-fdp", "repeated"]
Watch: TypeAlias = Callable[[int, int], None]

OPTION_KINDS: dict[str, Any] = {
    "canaries": Count | None,
    "estimator": Estimator,
    "confidence": Real,
    "runs": Count | None,
    "unit": Literal["example", "person", "client"] | None,
    "against": View | None,
    "seed": WholeNumber | None,
}
ENOUGH_CANARIES = 200  # in all runs together; more runs are made where one has fewer
REPEATED_RUNS = 200


@dataclass(frozen=True)
class AuditOptions:
    """How to audit.

    Attributes:
        canaries: Number of canaries in a run; None for as many as fit, up to 1,000.
        estimator: How scores become a bound.
        confidence: The probability that the bound holds.
        runs: Number of trainings; None for one, or as many as bring 200 canaries; 200 for repeated runs.
        unit: What to audit: the unit of a guarantee; None for the promised one.
        against: Who attacks; None for the promised observer.
        seed: Makes the audit repeatable.
    """

    canaries: int | None = None
    estimator: Estimator = "gaussian"
    confidence: float = 0.95
    runs: int | None = None
    unit: str | None = None
    against: View | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        for name, kind in OPTION_KINDS.items():
            check_value(name, kind, getattr(self, name))


def audit_experiment(setup: AuditSetup, options: AuditOptions, watch: Watch = lambda done, total: None) -> AuditRecord:
    """Audit one guarantee of an experiment on stand-in data.

    Args:
        setup: The experiment without its data.
        options: What to audit, and how.
        watch: Called with the number of rounds done, and of all.

    Raises:
        InvalidInput: There is no such guarantee, or an option is out of range.
        Unsupported: No attack of this kind knows how a canary enters.
    """
    began = time.perf_counter()
    card, view = choose_guarantee(setup.cards, options.unit, options.against)
    check_levels(card.delta, options.confidence)
    _check_repeated(options)
    plan = plan_attack(
        setup.algorithm,
        setup.population,
        card,
        view=view,
        rounds=setup.rounds,
        params=setup.params,
        canaries=1 if options.estimator == "repeated" else options.canaries,
    )
    runs = play_runs(setup, plan, _count_runs(options, plan), options.seed, watch)
    estimate = bound_epsilon(runs, plan, options.estimator, delta=card.delta, confidence=options.confidence)
    measured = measured_points(estimate, plan.design) if options.estimator == "gaussian" else estimate.points
    return AuditRecord(
        lower_bound=estimate.lower_bound,
        confidence=estimate.confidence,
        delta=estimate.delta,
        certified_epsilon=card.epsilon,
        estimator=estimate.estimator,
        canaries=estimate.canaries,
        present=estimate.present,
        runs=len(runs),
        rounds=setup.rounds,
        unit=card.unit,
        view=view,
        relation=card.relation,
        assumes=estimate.assumes + _integer_noise_note(setup.algorithm.mechanism, estimate.assumes),
        measured=tuple(CurvePoint(epsilon=epsilon, delta=delta) for epsilon, delta in measured),
        certified=_certified_points(card),
        details=dict(estimate.details),
        seconds=round(time.perf_counter() - began, 3),
        seeded=options.seed is not None,
        code=read_code_version().stamp,
        sees_sum=setup.algorithm.aggregation.is_secure,
    )


def _integer_noise_note(mechanism: Any, assumes: str) -> str:
    """Return what is said of integer noise where an estimator takes it for normal noise."""
    if not assumes or not isinstance(mechanism, IntegerNoise):
        return ""
    name = mechanism.kind.replace("_", " ")
    return f"; the noise is integer ({name}), and nearly normal where its variance is large"


def choose_guarantee(cards: tuple[Guarantee, ...], unit: str | None, against: View | None) -> tuple[Guarantee, View]:
    """Return the guarantee to audit, and who attacks: of clients that differ, the one that is protected least.

    A guarantee against the server also holds against the public, which sees less.

    Raises:
        InvalidInput: There is no such guarantee.
    """
    if not cards:
        raise InvalidInput("An audit tests a guarantee, and this experiment has none.", fix="Give it privacy first.")
    named = unit or unit_name(cards[0].unit)
    about = [card for card in cards if unit_name(card.unit) == named]
    view = against or (cards[0].view if unit is None else about[0].view if about else "server")
    for wanted in ENOUGH_FOR[view]:
        if found := [card for card in about if card.view == wanted]:
            return max(found, key=lambda card: card.epsilon), view
    known = ", ".join(dict.fromkeys(f"{unit_name(card.unit)} against {card.view}" for card in cards))
    raise InvalidInput(f"There is no guarantee for one {named} against the {view} to audit.", fix=f"There is: {known}.")


def play_runs(setup: AuditSetup, plan: AttackPlan, count: int, seed: int | None, watch: Watch) -> list[AuditedRun]:
    """Train as often as asked, each time with new coins, directions and noise."""
    total, done = count * setup.rounds, 0
    runs = []
    for number in range(count):
        key = RunKey.generate() if seed is None else RunKey.from_seed(seed * 1_000_003 + number)
        runs.append(play_run(setup, plan, key, lambda round, done=done: watch(done + round, total)))  # type: ignore[misc]
        done += setup.rounds
    return runs


def _check_repeated(options: AuditOptions) -> None:
    """Refuse before any training what repeated runs can't use."""
    if options.estimator != "repeated":
        return
    if options.canaries not in (None, 1):
        raise InvalidInput(
            f"Repeated runs have one canary each, and got {options.canaries} canaries.",
            fix="Leave out the number of canaries, and give more --runs.",
        )
    check_run_count(options.runs or REPEATED_RUNS)


def _count_runs(options: AuditOptions, plan: AttackPlan) -> int:
    if options.runs is not None:
        return options.runs
    return REPEATED_RUNS if options.estimator == "repeated" else math.ceil(ENOUGH_CANARIES / len(plan.slots))


def bound_epsilon(
    runs: list[AuditedRun], plan: AttackPlan, estimator: Estimator, *, delta: float, confidence: float
) -> Estimate:
    """Return a lower confidence bound on ε from what was seen in audited runs."""
    levels = {"delta": delta, "confidence": confidence}
    if estimator == "gaussian":
        return estimate_by_gaussian(collect_entries(runs, plan.design), plan.design, **levels)
    scored = score_canaries(runs, plan.design)
    if estimator == "one-run":
        return estimate_by_guesses(scored, **levels)
    if estimator == "one-run-fdp":
        return estimate_by_trade_off(scored, is_gaussian=plan.design.is_normal_shift, **levels)
    return estimate_by_repetition(scored, **levels)


def _certified_points(card: Guarantee) -> tuple[CurvePoint, ...]:
    """Return points of the certified curve, as far as an accountant knows them."""
    points = []
    for delta in sorted({card.delta, *CURVE_DELTAS} - {0.0}):
        try:
            epsilon = card.epsilon if delta == card.delta else accountant.epsilon(card.event, delta, card.relation)
        except DiscreetError:
            continue
        if math.isfinite(epsilon):
            points.append(CurvePoint(epsilon=epsilon, delta=delta))
    return tuple(points)

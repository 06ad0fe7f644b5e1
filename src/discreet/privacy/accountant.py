"""Turn events into ε, δ and attack rates; every number is computed by two accountants that must agree."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from discreet.errors import EnginesDisagree
from discreet.privacy import classical, pld, rdp, second_engine
from discreet.privacy.dominating_gaussians import has_integer_noise, replace_unpaired_noise
from discreet.privacy.events import Event, steps
from discreet.privacy.question_checks import check_question
from discreet.privacy.release import Relation
from discreet.privacy.second_engine import SecondOpinion

BASIC = classical.METHODS["basic"]
FEW_STEPS = 3  # up to which basic composition may be tighter than a grid
AGREEMENT = 5e-4  # by which two PLDs of one event may differ, since each has a grid: absolute above 1, else relative


@dataclass(frozen=True)
class Account:
    """The ε of one event by every accountant. `epsilon` is the smallest certified one."""

    epsilon: float
    delta: float
    relation: Relation
    certified_by: str
    accountants: dict[str, float]
    notes: dict[str, str]


def account(event: Event, delta: float, relation: Relation = "add_or_remove") -> Account:
    """Compute the event's ε by every accountant of this package.

    Guarantee: `epsilon` is the least of the bounds that may be reported: PLD, RDP, and basic composition of a few
    steps. RDP was checked to be no smaller than PLD, both of the noise for which PLD has a pair.

    Raises:
        EnginesDisagree: RDP is below PLD by more than the grids explain.
    """
    check_question(event, relation, delta=delta)
    epsilons: dict[str, float] = {}
    notes: dict[str, str] = {}
    by_rdp = looser = rdp.epsilon(event, delta, relation)
    if pld.supports(event, relation):
        epsilons["pld"] = pld.epsilon(event, delta, relation)
        if (counted := replace_unpaired_noise(event, relation)) != event:
            notes["pld"] = "of Gaussian noise with slightly less variance, which dominates this noise"
            looser = rdp.epsilon(counted, delta, relation)
        _check_order(epsilons["pld"], looser, "our PLD", "our RDP")
    else:
        notes["pld"] = "no dominating pair is proven for this noise on vectors, so RDP is what is certified"
    epsilons["rdp"] = by_rdp
    if _has_tight_basic(event, relation):
        epsilons["basic"] = BASIC.epsilon(steps(event), delta, relation)
    certified_by = min(epsilons, key=lambda name: epsilons[name])
    certified = epsilons[certified_by]
    for name, method in classical.METHODS.items():
        if name in epsilons:
            continue
        if method.supports(steps(event), relation):
            epsilons[name] = method.epsilon(steps(event), delta, relation)
        else:
            notes[name] = "does not cover this event"
    return Account(certified, delta, relation, certified_by, epsilons, notes)


def account_with_second_engine(
    event: Event, delta: float, relation: Relation = "add_or_remove"
) -> tuple[Account, SecondOpinion]:
    """Return the account, and the ε of the same event by an independent engine (dp-accounting).

    Raises:
        EnginesDisagree: The two can't both be right.
    """
    ours = account(event, delta, relation)
    counted = replace_unpaired_noise(event, relation)  # dp-accounting has Gaussian noise, and no Skellam noise
    theirs = second_engine.epsilon(counted, delta, relation)
    if theirs.epsilon is not None:
        _check_order(ours.epsilon, theirs.epsilon, f"our {ours.certified_by.upper()}", theirs.engine)
        if theirs.same_method and "pld" in ours.accountants:
            _check_order(theirs.epsilon - theirs.tolerance, ours.accountants["pld"], theirs.engine, "our PLD")
    return ours, theirs


def epsilon(event: Event, delta: float, relation: Relation = "add_or_remove") -> float:
    """Return the smallest certified ε: by PLD where every step has a dominating pair, else by RDP.

    Of a few steps basic composition is tried too: of a single one it is exact, where PLD has a grid.

    Raises:
        InvalidInput: An argument is no event, no number or no relation.
    """
    check_question(event, relation, delta=delta)
    return _epsilon(event, delta, relation)


@lru_cache(maxsize=4096)
def _epsilon(event: Event, delta: float, relation: Relation) -> float:
    found = min(accountant.epsilon(event, delta, relation) for accountant in _accountants(event, relation))
    return min(found, BASIC.epsilon(steps(event), delta, relation)) if _has_tight_basic(event, relation) else found


def holds(event: Event, epsilon_: float, delta: float, relation: Relation = "add_or_remove") -> bool:
    """Return whether (ε, δ) is certified: as `epsilon` at this δ decides, but in one evaluation where that suffices."""
    check_question(event, relation, epsilon=epsilon_, delta=delta)
    if pld.supports(event, relation) and pld.holds(event, epsilon_, delta, relation):
        return True
    return epsilon(event, delta, relation) <= epsilon_  # NaN is not


def delta(event: Event, epsilon: float, relation: Relation = "add_or_remove") -> float:
    """Return the smallest certified δ at this ε."""
    check_question(event, relation, epsilon=epsilon)
    return _delta(event, epsilon, relation)


@lru_cache(maxsize=4096)
def _delta(event: Event, epsilon: float, relation: Relation) -> float:
    return min(accountant.delta(event, epsilon, relation) for accountant in _accountants(event, relation))


def true_positive_rate(event: Event, false_positive_rate: float, relation: Relation = "add_or_remove") -> float:
    """Return an upper bound on how often the best attack detects the unit at this false positive rate."""
    check_question(event, relation, false_positive_rate=false_positive_rate)
    return _true_positive_rate(event, false_positive_rate, relation)


@lru_cache(maxsize=4096)
def _true_positive_rate(event: Event, false_positive_rate: float, relation: Relation) -> float:
    accountants = _accountants(event, relation)
    return min(accountant.true_positive_rate(event, false_positive_rate, relation) for accountant in accountants)


def forget_results() -> None:
    """Forget what was computed for earlier questions, for measurements of time."""
    for cached in (_epsilon, _delta, _true_positive_rate):
        cached.cache_clear()


class _Bounds(Protocol):
    """What a module bounds from above, for any event that it covers."""

    def epsilon(self, event: Event, delta: float, relation: Relation) -> float: ...
    def delta(self, event: Event, epsilon: float, relation: Relation) -> float: ...
    def true_positive_rate(self, event: Event, false_positive_rate: float, relation: Relation) -> float: ...


def _accountants(event: Event, relation: Relation) -> tuple[_Bounds, ...]:
    """Return those of which the least value counts: PLD alone where each step has its own pair, which is the tightest.

    Where Gaussian noise is counted in place of integer noise, published bounds of that noise may be tighter.
    """
    if not pld.supports(event, relation):
        return (rdp,)
    return (pld, rdp) if has_integer_noise(event) else (pld,)


def _has_tight_basic(event: Event, relation: Relation) -> bool:
    """Return whether basic composition covers the event, and has so few steps that it may be the tightest."""
    counts = steps(event)
    return 0 < sum(counts.values()) <= FEW_STEPS and BASIC.supports(counts, relation)


def _check_order(tighter: float, looser: float, tighter_name: str, looser_name: str) -> None:
    """Raise EnginesDisagree if the tighter bound is the larger one by more than the grids explain."""
    if not tighter <= looser + AGREEMENT * max(1.0, looser):
        raise EnginesDisagree(
            f"{tighter_name} gives ε = {tighter:.6g} and {looser_name} gives {looser:.6g}, which can't both be right.",
            fix="Please report the event; no ε is certified for it until this is understood.",
        )

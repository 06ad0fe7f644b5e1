"""Turn events into ε, δ and attack rates; every number is computed by two accountants that must agree."""

from dataclasses import dataclass
from functools import lru_cache

from discreet.errors import EnginesDisagree
from discreet.privacy import classical, pld, rdp, second_engine, skellam
from discreet.privacy.events import Composed, Event, Repeated, SkellamNoise, replace_noise, step_noise, steps
from discreet.privacy.release import Relation
from discreet.privacy.second_engine import SecondOpinion

TIGHT = "tight (numerical certificate)"
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

    Guarantee: `epsilon` is by PLD or RDP, whichever is smaller, and RDP was checked to be no smaller than PLD.

    Raises:
        EnginesDisagree: RDP is below PLD by more than the grids explain.
    """
    epsilons: dict[str, float] = {}
    notes: dict[str, str] = {}
    if pld.supports(event, relation):
        epsilons["pld"] = pld.epsilon(event, delta, relation)
    else:
        notes["pld"] = "no dominating pair is proven for this noise on vectors, so RDP is what is certified"
    epsilons["rdp"] = rdp.epsilon(event, delta, relation)
    _check_order(epsilons.get("pld", 0.0), epsilons["rdp"], "our PLD", "our RDP")
    certified_by = min(epsilons, key=lambda name: epsilons[name])
    certified = epsilons[certified_by]
    if any(isinstance(step_noise(step), SkellamNoise) for step in steps(event)):
        _add_certificate(event, delta, relation, epsilons, notes)
    for name, method in classical.METHODS.items():
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
    theirs = second_engine.epsilon(event, delta, relation)
    if theirs.epsilon is not None:
        _check_order(ours.epsilon, theirs.epsilon, f"our {ours.certified_by.upper()}", theirs.engine)
        if theirs.same_method and ours.certified_by == "pld":
            _check_order(theirs.epsilon - theirs.tolerance, ours.epsilon, theirs.engine, "our PLD")
    return ours, theirs


@lru_cache(maxsize=4096)
def epsilon(event: Event, delta: float, relation: Relation = "add_or_remove") -> float:
    """Return the smallest certified ε: by PLD where every step has a dominating pair, else by RDP."""
    if pld.supports(event, relation):
        return pld.epsilon(event, delta, relation)
    return rdp.epsilon(event, delta, relation)


@lru_cache(maxsize=4096)
def delta(event: Event, epsilon: float, relation: Relation = "add_or_remove") -> float:
    """Return the smallest certified δ at this ε."""
    if pld.supports(event, relation):
        return pld.delta(event, epsilon, relation)
    return rdp.delta(event, epsilon, relation)


@lru_cache(maxsize=4096)
def true_positive_rate(event: Event, false_positive_rate: float, relation: Relation = "add_or_remove") -> float:
    """Return an upper bound on how often the best attack detects the unit at this false positive rate."""
    if pld.supports(event, relation):
        return pld.true_positive_rate(event, false_positive_rate, relation)
    return rdp.true_positive_rate(event, false_positive_rate, relation)


def _add_certificate(
    event: Event, delta: float, relation: Relation, epsilons: dict[str, float], notes: dict[str, str]
) -> None:
    """Add to Skellam's published bound the ε of Gaussian noise that was checked to be no better than this noise."""
    stand_ins = []
    for step, count in steps(event).items():
        noise, stand_in = step_noise(step), step
        if isinstance(noise, SkellamNoise):
            certificate = skellam.certificate(noise.variance, noise.l2_sensitivity)
            if certificate.noise is None:
                notes[TIGHT] = f"none: {certificate.reason}"
                return
            stand_in = replace_noise(step, certificate.noise)
        stand_ins.append(Repeated(count=count, event=stand_in))
    epsilons[TIGHT] = epsilon(Composed(events=tuple(stand_ins)), delta, relation)
    notes[TIGHT] = (
        "Gaussian noise of slightly less variance, found by a numerical check to be no better than this noise"
    )


def _check_order(tighter: float, looser: float, tighter_name: str, looser_name: str) -> None:
    """Raise EnginesDisagree if the tighter bound is the larger one by more than the grids explain."""
    if not tighter <= looser + AGREEMENT * max(1.0, looser):
        raise EnginesDisagree(
            f"{tighter_name} gives ε = {tighter:.6g} and {looser_name} gives {looser:.6g}, which can't both be right.",
            fix="Please report the event; no ε is certified for it until this is understood.",
        )

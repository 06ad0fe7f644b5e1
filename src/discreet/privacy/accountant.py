"""From events to ε, δ and attack rates: every number by two engines, which must agree."""

from dataclasses import dataclass
from functools import lru_cache

from discreet.errors import EnginesDisagree
from discreet.privacy import classical, pld, rdp, second_engine, skellam
from discreet.privacy.events import Composed, Event, Repeated, SkellamNoise, replace_noise, step_noise, steps
from discreet.privacy.release import Relation
from discreet.privacy.second_engine import SecondOpinion

TIGHT = "tight (numerical certificate)"
AGREEMENT = 5e-4  # two PLDs of one event: each grid may add its share, absolutely above 1 and relatively below


@dataclass(frozen=True)
class Account:
    """What every accountant says of one event; `epsilon` is the smallest that is certified."""

    epsilon: float
    delta: float
    relation: Relation
    certified_by: str
    accountants: dict[str, float]
    notes: dict[str, str]


def account(event: Event, delta: float, relation: Relation = "add_or_remove") -> Account:
    """Count the event by every accountant of ours.

    Guarantee: `epsilon` is by PLD or RDP, whichever is smaller, and RDP was found no smaller than PLD.
    """
    found: dict[str, float] = {}
    notes: dict[str, str] = {}
    if pld.supports(event, relation):
        found["pld"] = pld.epsilon(event, delta, relation)
    else:
        notes["pld"] = "no dominating pair is proven for this noise on vectors, so RDP is what is certified"
    found["rdp"] = rdp.epsilon(event, delta, relation)
    _check_order(found.get("pld", 0.0), found["rdp"], "our PLD", "our RDP")
    certified_by = min(found, key=lambda name: found[name])
    certified = found[certified_by]
    if any(isinstance(step_noise(step), SkellamNoise) for step in steps(event)):
        _add_certificate(event, delta, relation, found, notes)
    for name, method in classical.METHODS.items():
        if method.supports(steps(event), relation):
            found[name] = method.epsilon(steps(event), delta, relation)
        else:
            notes[name] = "does not cover this event"
    return Account(certified, delta, relation, certified_by, found, notes)


def account_with_second_engine(
    event: Event, delta: float, relation: Relation = "add_or_remove"
) -> tuple[Account, SecondOpinion]:
    """The account, and what an engine that others wrote says of the same event.

    Raises EnginesDisagree when the two can't both be right.
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
    """The smallest certified ε: by PLD where every step has a dominating pair, else by RDP."""
    if pld.supports(event, relation):
        return pld.epsilon(event, delta, relation)
    return rdp.epsilon(event, delta, relation)


@lru_cache(maxsize=4096)
def delta(event: Event, epsilon: float, relation: Relation = "add_or_remove") -> float:
    """The smallest certified δ."""
    if pld.supports(event, relation):
        return pld.delta(event, epsilon, relation)
    return rdp.delta(event, epsilon, relation)


@lru_cache(maxsize=4096)
def true_positive_rate(event: Event, false_positive_rate: float, relation: Relation = "add_or_remove") -> float:
    """How often the best attack finds the unit, at this rate of false alarms."""
    if pld.supports(event, relation):
        return pld.true_positive_rate(event, false_positive_rate, relation)
    return rdp.true_positive_rate(event, false_positive_rate, relation)


def _add_certificate(
    event: Event, delta: float, relation: Relation, found: dict[str, float], notes: dict[str, str]
) -> None:
    """Beside Skellam's published bound: the ε of Gaussian noise that was checked to be no better than this noise."""
    stand_ins = []
    for step, count in steps(event).items():
        noise, stand_in = step_noise(step), step
        if isinstance(noise, SkellamNoise):
            checked = skellam.certificate(noise.variance, noise.l2_sensitivity)
            if checked.noise is None:
                notes[TIGHT] = f"none: {checked.reason}"
                return
            stand_in = replace_noise(step, checked.noise)
        stand_ins.append(Repeated(count=count, event=stand_in))
    found[TIGHT] = epsilon(Composed(events=tuple(stand_ins)), delta, relation)
    notes[TIGHT] = (
        "Gaussian noise of slightly less variance, found by a numerical check to be no better than this noise"
    )


def _check_order(tighter: float, looser: float, tighter_name: str, looser_name: str) -> None:
    """Raise when a bound that can't be the larger one is, by more than the grids explain."""
    if not tighter <= looser + AGREEMENT * max(1.0, looser):
        raise EnginesDisagree(
            f"{tighter_name} gives ε = {tighter:.6g} and {looser_name} gives {looser:.6g}, which can't both be right.",
            fix="Please report the event; no ε is certified for it until this is understood.",
        )

"""Parallel composition over clients: a unit is affected only by the releases of the clients that hold it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from discreet.errors import InvalidInput
from discreet.privacy import accountant, rdp
from discreet.privacy.events import Composed, Event, GaussianNoise, PoissonSampled, Repeated, steps
from discreet.privacy.question_checks import check_count, check_question
from discreet.privacy.release import Relation
from discreet.validation_errors import describe_value

MOST_SELECTIONS = 256  # of clients that may hold one unit; beyond it the Rényi bound is used


def epsilon(
    events: Sequence[Event], delta: float, relation: Relation = "add_or_remove", *, max_multiplicity: int = 1
) -> float:
    """Return the largest ε of any unit, where `events[i]` is everything that client i released.

    With disjoint clients (`max_multiplicity` 1) the worst client decides. If up to m clients may hold a unit, the worst
    m of them compose (Algorithm 1 of PFL draws 10 % of the data for each client, and the draws overlap).
    """
    check_count("max_multiplicity", max_multiplicity)
    if not isinstance(events, Sequence) or isinstance(events, str):
        raise InvalidInput(f"events must be a list with the event of each client, and got {describe_value(events)}.")
    for event in events:
        check_question(event, relation, delta=delta)
    clients = _drop_dominated(Counter(events), max_multiplicity)
    if not clients:
        return 0.0
    if max_multiplicity == 1:
        return _worst_epsilon(clients, delta, relation)
    if comb(len(clients) + max_multiplicity - 1, max_multiplicity) > MOST_SELECTIONS:
        return _renyi_epsilon(clients, delta, relation, max_multiplicity)
    return _worst_epsilon(_selections(clients, max_multiplicity), delta, relation)


@dataclass(frozen=True)
class _RankedClient:
    """One client's only kind of step: an event is dominated by another with no more noise, no lower rate, no fewer."""

    noise: float
    rate: float
    count: int
    event: Event

    def is_dominated_by(self, other: "_RankedClient") -> bool:
        return other.noise <= self.noise and other.rate >= self.rate and other.count >= self.count


def _drop_dominated(clients: Counter[Event], size: int) -> Counter[Event]:
    """Drop the clients that are dominated by `size` other clients: less noise, a higher rate, more steps.

    Guarantee: the largest ε of any `size` clients stays. Of `size` clients that compose, one that is dominated by
    `size` others can be replaced by one of these that is not among them, since only size − 1 others are. Each of its
    steps is then replaced by one whose pair dominates, and steps are added, so the composition's δ(ε) is no smaller at
    any ε: less noise dominates, since noise can be added; a higher rate q' by joint convexity, since P_q and Q_q are
    (1 − q/q')·Q₀ + (q/q')·P_q' and the same with Q_q'; and composition keeps the order (Zhu, Dong & Wang 2022).
    This ends, since a replacement comes earlier in the order by which clients are sorted.

    Of thousands of different clients only a few remain. Clients with several kinds of steps are all kept.
    """
    kept: Counter[Event] = Counter()
    ranked: list[_RankedClient] = []
    for event, number in clients.items():
        match list(steps(event).items()):
            case [(GaussianNoise(noise_multiplier=z), count)]:
                ranked.append(_RankedClient(z, 1.0, count, event))
            case [(PoissonSampled(sampling_rate=rate, event=GaussianNoise(noise_multiplier=z)), count)]:
                ranked.append(_RankedClient(z, rate, count, event))
            case _:
                kept[event] = number
    front: list[_RankedClient] = []
    for candidate in sorted(ranked, key=lambda entry: (entry.noise, -entry.rate, -entry.count)):
        above = sum(min(size, clients[other.event]) for other in front if candidate.is_dominated_by(other))
        if above < size:
            front.append(candidate)
            kept[candidate.event] = min(clients[candidate.event], size - above)
    return kept


def _worst_epsilon(candidates: Iterable[Event], delta: float, relation: Relation) -> float:
    """Return the largest ε among the candidates. RDP is quick and never smaller, so most need no PLD."""
    bounds = sorted(
        ((rdp.epsilon(event, delta, relation), i, event) for i, event in enumerate(candidates)), reverse=True
    )
    worst = 0.0
    for bound, _, event in bounds:
        if bound <= worst:
            break
        worst = max(worst, accountant.epsilon(event, delta, relation))
    return worst


def _selections(clients: Counter[Event], size: int) -> list[Event]:
    """Return one event for every choice of `size` clients that hold a unit (of all clients, if there are fewer)."""
    size = min(size, clients.total())
    selections = [Counter(chosen) for chosen in combinations_with_replacement(clients, size)]
    possible = [choice for choice in selections if all(choice[event] <= clients[event] for event in choice)]
    return [
        Composed(events=tuple(Repeated(count=n, event=event) for event, n in choice.items())) for choice in possible
    ]


def _renyi_epsilon(clients: Counter[Event], delta: float, relation: Relation, size: int) -> float:
    """Return the Rényi bound: at each order the `size` largest divergences of any clients add up."""
    curves = np.array([rdp.curve(event, rdp.ORDERS, relation) for event in clients])
    repeated = np.repeat(curves, [min(size, n) for n in clients.values()], axis=0)
    largest = np.sort(repeated, axis=0)[-size:].sum(axis=0)
    return float(rdp.to_epsilon(rdp.ORDERS, largest, delta).min())

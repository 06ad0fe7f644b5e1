"""Parallel composition over clients: a unit is affected only by the releases of the clients that hold it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from discreet.privacy import accountant, rdp
from discreet.privacy.events import Composed, Event, GaussianNoise, PoissonSampled, Repeated, steps
from discreet.privacy.release import Relation

MOST_SELECTIONS = 256  # of clients that may hold one unit; beyond it the Rényi bound is used


def epsilon(
    events: Sequence[Event], delta: float, relation: Relation = "add_or_remove", *, max_multiplicity: int = 1
) -> float:
    """Return the largest ε of any unit, where `events[i]` is everything that client i released.

    With disjoint clients (`max_multiplicity` 1) the worst client decides. If up to m clients may hold a unit, the worst
    m of them compose (Algorithm 1 of PFL draws 10 % of the data for each client, and the draws overlap).
    """
    clients = Counter(events)
    if not clients:
        return 0.0
    if comb(len(clients) + max_multiplicity - 1, max_multiplicity) > MOST_SELECTIONS and max_multiplicity > 1:
        return _renyi_epsilon(clients, delta, relation, max_multiplicity)
    if max_multiplicity == 1:
        return _worst_epsilon(_drop_dominated(clients), delta, relation)
    return _worst_epsilon(_selections(clients, max_multiplicity), delta, relation)


def _drop_dominated(events: Iterable[Event]) -> list[Event]:
    """Drop the events that another one exceeds in every respect: less noise, a higher rate, more steps.

    Of thousands of different clients only a few remain. Events with several kinds of steps are all kept.
    """
    kept: list[Event] = []
    ranked: list[tuple[float, float, int, Event]] = []
    for event in events:
        match list(steps(event).items()):
            case [(GaussianNoise(noise_multiplier=z), count)]:
                ranked.append((z, 1.0, count, event))
            case [(PoissonSampled(sampling_rate=rate, event=GaussianNoise(noise_multiplier=z)), count)]:
                ranked.append((z, rate, count, event))
            case _:
                kept.append(event)
    front: list[tuple[float, float, int, Event]] = []
    for candidate in sorted(ranked, key=lambda entry: (entry[0], -entry[1], -entry[2])):
        if not any(rate >= candidate[1] and count >= candidate[2] for _, rate, count, _ in front):
            front.append(candidate)
    return kept + [event for *_, event in front]


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

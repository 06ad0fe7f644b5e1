"""Composition over clients: whoever's data lies in one client is touched by that client's releases only."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from discreet.privacy import accountant, rdp
from discreet.privacy.events import Composed, Event, GaussianNoise, PoissonSampled, Repeated, steps
from discreet.privacy.release import Relation

MOST_SELECTIONS = 256  # of clients that one unit may lie in; beyond it the Rényi bound is taken


def epsilon(
    events: Sequence[Event], delta: float, relation: Relation = "add_or_remove", *, max_multiplicity: int = 1
) -> float:
    """The largest ε of any unit, where `events[i]` is all that client i released and a unit lies in few clients.

    Disjoint clients have multiplicity 1: the worst client decides. Where a unit may lie in up to m clients, the
    worst m of them compose (Algorithm 1 of PFL draws 10 % for each client, and draws overlap).
    """
    clients = Counter(events)
    if not clients:
        return 0.0
    if comb(len(clients) + max_multiplicity - 1, max_multiplicity) > MOST_SELECTIONS and max_multiplicity > 1:
        return _by_order(clients, delta, relation, max_multiplicity)
    if max_multiplicity == 1:
        return _worst(_undominated(clients), delta, relation)
    return _worst(_selections(clients, max_multiplicity), delta, relation)


def _undominated(events: Iterable[Event]) -> list[Event]:
    """Without the events that another outdoes in every respect: less noise, a higher rate, more steps.

    Of thousands of unlike clients a few are left. Events of several kinds of steps stay as they are.
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
    for each in sorted(ranked, key=lambda found: (found[0], -found[1], -found[2])):
        if not any(rate >= each[1] and count >= each[2] for _, rate, count, _ in front):
            front.append(each)
    return kept + [event for *_, event in front]


def _worst(candidates: Iterable[Event], delta: float, relation: Relation) -> float:
    """The largest ε among the candidates. RDP is quick and never smaller, so most need no PLD."""
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
    """Every way for a unit to lie in `size` clients (or in all, where they are fewer), as one event."""
    size = min(size, clients.total())
    selections = [Counter(chosen) for chosen in combinations_with_replacement(clients, size)]
    possible = [each for each in selections if all(each[event] <= clients[event] for event in each)]
    return [Composed(events=tuple(Repeated(count=n, event=event) for event, n in each.items())) for each in possible]


def _by_order(clients: Counter[Event], delta: float, relation: Relation, size: int) -> float:
    """The Rényi bound: at each order the `size` largest divergences add up, whoever's they are."""
    curves = np.array([rdp.curve(event, rdp.ORDERS, relation) for event in clients])
    repeated = np.repeat(curves, [min(size, n) for n in clients.values()], axis=0)
    largest = np.sort(repeated, axis=0)[-size:].sum(axis=0)
    return float(rdp.to_epsilon(rdp.ORDERS, largest, delta).min())

"""How many neighbours a client needs, and how many shares open a secret, for stated chances of failure.

Bell et al. (2020, §3) ask three things of a random graph. The chances here are exact tails of the hypergeometric
distribution and a union over the clients, so no constant of a theorem is trusted. They are about a server that keeps
the rules: one that lies names the leavers itself, and can try lists of keys until the places suit it.
"""

import math
from bisect import bisect_left
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from discreet.errors import UnsoundCombination
from discreet.part import Count, Positive, Rate, part

MOST_NEIGHBOURS = 1000  # on a graph, whose chances are computed exactly whenever terms are read


@part
class Assumptions:
    """What the graph must withstand: shares of the cohort, and the probabilities 2^−bits that it does not.

    `colluding` clients share everything they know with the server; `leaving` ones drop out. Both are chosen before the
    places on the circle, and independently of them.
    """

    colluding: Rate = 0.2
    leaving: Rate = 0.2
    security_bits: Positive = 40.0
    correctness_bits: Positive = 30.0

    @property
    def chance(self) -> float:
        """The probability that some client is not protected."""
        return float(2**-self.security_bits)


@part
class Degree:
    """So many neighbours for each client, so many shares of the `neighbours` + 1 holders open a secret, and so many
    clients must be left: on a graph, those that don't belong to the share that is assumed to leave.
    """

    neighbours: Count
    threshold: Count
    minimum: Count
    assumptions: Assumptions | None = None  # all pairs assume nothing


def plan_degree(
    clients: int, *, colluding: int = 0, leaving: int = 0, signed: bool = False, assumptions: Assumptions | None = None
) -> Degree:
    """Return the degree for a cohort of which `colluding` clients may collude and `leaving` may drop out.

    A graph is made for a larger share where `assumptions` says so: for a plan that expects nobody to collude, too.
    """
    least = assumptions or Assumptions()
    both = replace(
        least,
        colluding=max(least.colluding, min(1.0, colluding / clients)),
        leaving=max(least.leaving, min(1.0, leaving / clients)),
    )
    degree = degree_for(clients, both)
    if degree.assumptions is not None:
        return degree
    return all_pairs(clients, _all_pairs_threshold(clients, colluding, leaving, signed=signed))


@lru_cache(maxsize=64)
def degree_for(clients: int, assumptions: Assumptions) -> Degree:
    """Return the fewest neighbours that suffice, or all pairs unless a graph saves half of them.

    With all pairs, whose threshold is two thirds, nothing depends on chance.
    """
    most = min(MOST_NEIGHBOURS, (clients - 1) // 2) // 2 * 2
    if not most or _find_threshold(clients, most, assumptions) is None:  # fewer are hardly worth the search
        return all_pairs(clients, _two_thirds(clients))
    for neighbours in range(2, most + 1, 2):
        lowest = _find_threshold(clients, neighbours, assumptions)
        if lowest is not None:
            return Degree(
                neighbours=neighbours,
                threshold=lowest,
                minimum=fewest_survivors(clients, assumptions),
                assumptions=assumptions,
            )
    return all_pairs(clients, _two_thirds(clients))


def all_pairs(clients: int, threshold: int) -> Degree:
    """Return the complete graph, whose threshold refers to the whole cohort."""
    return Degree(neighbours=clients - 1, threshold=threshold, minimum=threshold)


def insecurity_probability(clients: int, neighbours: int, threshold: int, assumptions: Assumptions) -> float:
    """Return a bound on the probability that colluders can open a mask key, or see a part of the sum.

    The first takes `threshold` of one client's neighbours. It is likeliest when all who leave do so before they send
    their keys: the colluders, who stay, are then among fewer. For the second, the honest clients that answer must fall
    apart on the circle, and for that half a neighbourhood in a row must be missing from it.
    """
    colluding = _client_count(clients, assumptions.colluding)
    missing = _client_count(clients, assumptions.colluding + assumptions.leaving)
    others = fewest_survivors(clients, assumptions) - 1
    opened = clients * _tail_probability(threshold, others, min(colluding, others), min(neighbours, others))
    in_a_row = (Fraction(max(0, missing - place), clients - place) for place in range(neighbours // 2))
    return min(1.0, float(opened + clients * math.prod(in_a_row, start=Fraction(1))))


def fewest_survivors(clients: int, assumptions: Assumptions) -> int:
    """Return how many clients are left if all drop out that are assumed to."""
    return clients - _client_count(clients, assumptions.leaving)


def failure_probability(clients: int, neighbours: int, threshold: int, assumptions: Assumptions) -> float:
    """Return a bound on the probability that some client keeps fewer than `threshold` of its neighbours."""
    leaving = _client_count(clients, assumptions.leaving)
    return min(1.0, float(clients * _tail_probability(neighbours - threshold + 1, clients - 1, leaving, neighbours)))


def _all_pairs_threshold(clients: int, colluding: int, leaving: int, *, signed: bool) -> int:
    """Return the threshold of all pairs: about two thirds, above the colluders, at most those who stay.

    In a signed session it is also one that a lying server with these clients on its side can't reach with two lists.
    """
    least = max(clients // 2, colluding, (clients + colluding) // 2 if signed else 0) + 1
    most = clients - leaving
    if least > most:
        raise UnsoundCombination(
            f"Of {clients} clients in a secure sum {colluding} may collude and {leaving} leave. Its threshold must be "
            f"at least {least}, above a half and what colluders reach, and at most the {most} who are sure to stay.",
            fix="Allow for fewer colluding clients and drop-outs, or for a larger cohort.",
        )
    return min(max(_two_thirds(clients), least), most)


def _two_thirds(clients: int) -> int:
    return math.ceil(2 * clients / 3)


def _find_threshold(clients: int, neighbours: int, assumptions: Assumptions) -> int | None:
    """Return the lowest secure threshold above one half, or None if it fails too often. Higher ones fail more often."""
    lowest = (neighbours + 1) // 2 + 1

    def too_high(threshold: int) -> bool:
        return failure_probability(clients, neighbours, threshold, assumptions) > 2**-assumptions.correctness_bits

    def secure(threshold: int) -> bool:
        return insecurity_probability(clients, neighbours, threshold, assumptions) <= assumptions.chance

    highest = lowest + bisect_left(range(lowest, neighbours + 1), True, key=too_high) - 1
    if highest < lowest or not secure(highest):
        return None
    return lowest + bisect_left(range(lowest, highest), True, key=secure)


def _client_count(clients: int, share: float) -> int:
    return min(clients - 1, math.ceil(share * clients))


@lru_cache(maxsize=4096)
def _tail_probability(wanted: int, others: int, marked: int, drawn: int) -> Fraction:
    """Return the probability that at least `wanted` of `drawn` others, without replacement, are `marked`."""
    ways = sum(
        math.comb(marked, hits) * math.comb(others - marked, drawn - hits) for hits in range(max(wanted, 0), drawn + 1)
    )
    return Fraction(ways, math.comb(others, drawn))

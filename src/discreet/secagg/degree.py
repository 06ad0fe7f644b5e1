"""How many neighbours a client needs, and how many shares open a secret, for stated chances of failure.

Bell et al. (2020, §3) ask three things of a random graph. The chances here are exact tails of the hypergeometric
distribution and a union over the clients, so no constant of a theorem is trusted.
"""

import math
from fractions import Fraction
from functools import lru_cache

from discreet.part import Count, Positive, Rate, part


@part
class Assumed:
    """What the graph must withstand: shares of the cohort, and the chances 2^−bits that it does not.

    `colluding` clients tell the server all they know; `leaving` ones don't answer. Both are chosen before, and
    independently of, the places on the circle.
    """

    colluding: Rate = 0.2
    leaving: Rate = 0.2
    security_bits: Positive = 40.0
    correctness_bits: Positive = 30.0


@part
class Degree:
    """So many neighbours for each client, so many shares of the `neighbours` + 1 holders open a secret, and so many
    clients must be left: on a graph, those that don't belong to the share that was assumed to leave.
    """

    neighbours: Count
    threshold: Count
    minimum: Count


def degree_for(clients: int, assumed: Assumed) -> Degree:
    """The fewest neighbours that suffice; all pairs, with two thirds as the threshold, unless half the pairs are saved.

    All pairs leave nothing to chance, so they are not given up for little.
    """
    for neighbours in range(2, (clients - 1) // 2 + 1, 2):
        found = _threshold(clients, neighbours, assumed)
        if found is not None:
            left = clients - _count(clients, assumed.leaving)
            return Degree(neighbours=neighbours, threshold=found, minimum=left)
    return all_pairs(clients, math.ceil(2 * clients / 3))


def all_pairs(clients: int, threshold: int) -> Degree:
    """Everybody is everybody's neighbour, and the threshold is about the whole cohort."""
    return Degree(neighbours=clients - 1, threshold=threshold, minimum=threshold)


def insecurity(clients: int, neighbours: int, threshold: int, assumed: Assumed) -> float:
    """At most this is the chance that colluders can open a mask key, or see a part of the sum.

    The first takes `threshold` of one client's neighbours. For the second, the honest clients that answer must fall
    apart on the circle, and for that half a neighbourhood in a row must be missing from it.
    """
    colluding, missing = _count(clients, assumed.colluding), _count(clients, assumed.colluding + assumed.leaving)
    opened = clients * _at_least(threshold, clients - 1, colluding, neighbours)
    run = neighbours // 2
    apart = (
        clients * Fraction(math.comb(clients - run, missing - run), math.comb(clients, missing))
        if missing >= run
        else 0
    )
    return min(1.0, float(opened + apart))


def failure(clients: int, neighbours: int, threshold: int, assumed: Assumed) -> float:
    """At most this is the chance that some client keeps fewer than `threshold` of its neighbours."""
    leaving = _count(clients, assumed.leaving)
    return min(1.0, float(clients * _at_least(neighbours - threshold + 1, clients - 1, leaving, neighbours)))


def _threshold(clients: int, neighbours: int, assumed: Assumed) -> int | None:
    """The lowest threshold above one half that is secure, if it is correct too."""
    for threshold in range((neighbours + 1) // 2 + 1, neighbours + 1):
        if failure(clients, neighbours, threshold, assumed) > 2**-assumed.correctness_bits:
            return None  # a higher one fails more often
        if insecurity(clients, neighbours, threshold, assumed) <= 2**-assumed.security_bits:
            return threshold
    return None


def _count(clients: int, share: float) -> int:
    return min(clients - 1, math.ceil(share * clients))


@lru_cache(maxsize=4096)
def _at_least(wanted: int, others: int, marked: int, drawn: int) -> Fraction:
    """The chance that of `drawn` others, drawn without replacement, at least `wanted` are among the `marked`."""
    ways = sum(
        math.comb(marked, hits) * math.comb(others - marked, drawn - hits) for hits in range(max(wanted, 0), drawn + 1)
    )
    return Fraction(ways, math.comb(others, drawn))

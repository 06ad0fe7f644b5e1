"""What a secure sum must withstand: as many colluding clients and drop-outs as its noise was sized for."""

from typing import NamedTuple

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.engines.engine import MIN_SECURE_CLIENTS
from discreet.errors import InvalidInput
from discreet.secure_sums.secagg import degree
from discreet.secure_sums.secagg.degree import Degree


class SessionPlan(NamedTuple):
    """How many clients of a cohort may collude with the server, may leave, and must be in the sum."""

    colluding: int = 0
    leaving: int = 0
    needed: int = 0


def plan_session(algorithm: Algorithm, cohort: int) -> SessionPlan:
    """Return what the algorithm's noise assumes about a cohort of this size."""
    integers = algorithm.mechanism.integer_shares
    if integers is None:
        return SessionPlan()
    needed = integers.fewest_clients
    # in a cohort that is smaller than planned, fewer clients may leave
    return SessionPlan(integers.colluding, max(0, min(integers.dropouts, cohort - needed)), needed)


def check_cohort_size(clients: int, fix: str) -> None:
    """Refuse a secure sum of so few clients that one of them could find out another's update."""
    if clients < MIN_SECURE_CLIENTS:
        raise InvalidInput(
            f"A secure sum needs at least {MIN_SECURE_CLIENTS} clients, and {clients} are in this round.", fix=fix
        )


def plan_degree(algorithm: Algorithm, population: Population, *, signed: bool) -> Degree:
    """Return how many neighbours a client shares masks with. Refuse a plan for which no secure sum is possible."""
    cohort = algorithm.sampling.cohort_bounds(population)[0]
    asked = plan_session(algorithm, cohort)
    return degree.plan_degree(cohort, colluding=asked.colluding, leaving=asked.leaving, signed=signed)

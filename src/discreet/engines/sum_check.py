"""Refuse a secure sum that honest clients can't have sent: the round is lost, and nobody can be named."""

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.honest_upload import SUM_ALARM
from discreet.algorithms.population import Population
from discreet.algorithms.upload_limits import oversized_sum
from discreet.engines.engine import CohortSum
from discreet.secure_sums.secagg.session_errors import RoundOver


class ImplausibleSum(RoundOver):
    """A secure sum is longer than honest clients' can be. The server has seen it, so the round counts."""


def check_sum(algorithm: Algorithm, broadcast: Broadcast, gathered: CohortSum, population: Population) -> None:
    """Refuse a secure sum that honest clients can't have sent. Sums in clear pass: uploads are looked at one by one.

    The sum is released to the server before it is judged, so the judgement is post-processing of it.

    Raises:
        ImplausibleSum: The sum's norm is above that of honest clients' with all their noise.
    """
    found = oversized_sum(algorithm, broadcast, gathered.total, gathered.contributors, population)
    if found is None:
        return
    length, limit = found
    raise ImplausibleSum(
        f"The sum of {len(gathered.contributors)} clients has a norm of {length:.4g} lattice steps, and a sum of "
        f"honest clients has more than {limit:.4g} with a probability of at most {2 * SUM_ALARM:g}. A client sent what "
        "it must not, or the sum wrapped around. Nobody can be named: the server sees masked vectors and their sum.",
        fix="If it happens again, leave clients out by turns until it stops.",
        revealed=True,
    )

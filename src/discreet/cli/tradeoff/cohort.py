"""`discreet tradeoff cohort`: the size of a cohort whose clients share the noise (Heikkilä 2025)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from discreet.cli.options import COUNT, RATE, number_option
from discreet.cli.tradeoff import tradeoff_options
from discreet.cli.tradeoff.tradeoff_options import COUNTS, INDEX, SCALE, build_record
from discreet.errors import InvalidInput
from discreet.planning.curves.tradeoff import Tradeoff

MOST_CLIENTS = 10**6


def _check_rings(bits: Sequence[int]) -> Sequence[int]:
    """Refuse a ring that no secure sum has before anything is computed."""
    from discreet.secure_sums.lattice.ring import MOST_BITS
    from discreet.secure_sums.ring_bits import LEAST_BITS

    for ring in bits:
        if not LEAST_BITS <= ring <= MOST_BITS:
            raise InvalidInput(f"--bits must be {LEAST_BITS} to {MOST_BITS}, and got {ring:,}.")
    return bits


def _check_ring_clients(clients: int) -> int:
    """Refuse a cohort too large to list: a lattice asks each of its clients."""
    if clients > MOST_CLIENTS:
        raise InvalidInput(f"--ring-clients must be at most {MOST_CLIENTS:,}, and got {clients:,}.")
    return clients


@dataclass(frozen=True, kw_only=True)
class CohortOptions:
    """A cohort whose clients share the noise (Heikkilä 2025).

    A client's share, the noise of the mean, and epsilon when some clients collude or drop out; what Theorem 4.6 claims
    for several local steps beside what is certified; and what a ring of a few bits costs. The defaults are the paper's
    for Fashion-MNIST, except for colluding clients and drop-outs, of which it has none.
    """

    clients: tradeoff_options.ClientCounts = (3, 5, 10, 20, 50, 100, 200, 500, 1000)
    colluding: Annotated[int, number_option(INDEX, "C", "Clients assumed to share their noise with the server.")] = 1
    dropouts: Annotated[int, number_option(INDEX, "D", "Clients that may drop out of a round.")] = 1
    epsilon: tradeoff_options.TotalEpsilon = 1.0
    share: Annotated[
        float | None,
        number_option(SCALE, "Z", "Noise multiplier of each client, instead of the one that epsilon takes."),
    ] = None
    delta: tradeoff_options.Delta = 1e-5
    sampling_rate: Annotated[
        float, number_option(RATE, "Q", "Rate at which each step samples a client's examples.", default="1/11")
    ] = 1 / 11
    steps: tradeoff_options.LocalSteps = 11
    rounds: tradeoff_options.Rounds = 20
    bits: Annotated[
        Sequence[int], number_option(COUNTS, "B,...", "Bits of the rings to compare.", callback=_check_rings)
    ] = (20, 22, 24, 28, 32, 40)
    ring_clients: Annotated[
        int,
        number_option(COUNT, "N", "Clients of the cohort that rings are compared for.", callback=_check_ring_clients),
    ] = 10
    examples: tradeoff_options.Examples = 5600
    dimension: tradeoff_options.Dimension = 26_010

    def compute(self) -> Tradeoff:
        from discreet.planning.curves.cohort_tradeoff import CohortTradeoff
        from discreet.planning.theory.heikkila_cohorts import ClientWork

        work = build_record(ClientWork, self)
        return build_record(CohortTradeoff, self, work=work, sizes=self.clients)

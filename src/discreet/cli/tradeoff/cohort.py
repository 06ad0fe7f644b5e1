"""`discreet tradeoff cohort`: the size of a cohort whose clients share the noise (Heikkilä 2025)."""

from collections.abc import Sequence
from typing import Annotated, TypeAlias

from discreet.cli.options import COUNT
from discreet.cli.output import Json
from discreet.cli.tradeoff import tradeoff_options
from discreet.cli.tradeoff.tradeoff_options import COUNTS, INDEX, SCALE, number_option
from discreet.cli.tradeoff.tradeoff_output import PictureFile, show_tradeoff
from discreet.errors import InvalidInput

MOST_CLIENTS = 10**6


def _check_rings(bits: Sequence[int]) -> Sequence[int]:
    """Refuse a ring that no secure sum has before anything is computed."""
    from discreet.secure_sums.lattice.ring import MOST_BITS
    from discreet.secure_sums.secagg.ring_vectors import LEAST_BITS

    for ring in bits:
        if not LEAST_BITS <= ring <= MOST_BITS:
            raise InvalidInput(f"--bits must be {LEAST_BITS} to {MOST_BITS}, and got {ring:,}.")
    return bits


def _check_ring_clients(clients: int) -> int:
    """Refuse a cohort too large to list: a lattice asks each of its clients."""
    if clients > MOST_CLIENTS:
        raise InvalidInput(f"--ring-clients must be at most {MOST_CLIENTS:,}, and got {clients:,}.")
    return clients


Colluding: TypeAlias = Annotated[
    int, number_option(INDEX, "C", "Clients assumed to share their noise with the server.")
]
Dropouts: TypeAlias = Annotated[int, number_option(INDEX, "D", "Clients that may drop out of a round.")]
Share: TypeAlias = Annotated[
    float | None, number_option(SCALE, "Z", "Noise multiplier of each client, instead of the one that epsilon takes.")
]
Bits: TypeAlias = Annotated[
    Sequence[int], number_option(COUNTS, "B,...", "Bits of the rings to compare.", callback=_check_rings)
]
RingClients: TypeAlias = Annotated[
    int, number_option(COUNT, "N", "Clients of the cohort that rings are compared for.", callback=_check_ring_clients)
]


def cohort(
    clients: tradeoff_options.ClientCounts = (3, 5, 10, 20, 50, 100, 200, 500, 1000),
    colluding: Colluding = 1,
    dropouts: Dropouts = 1,
    epsilon: tradeoff_options.TotalEpsilon = 1.0,
    share: Share = None,
    delta: tradeoff_options.Delta = 1e-5,
    sampling_rate: tradeoff_options.SamplingRate = 1 / 11,
    steps: tradeoff_options.LocalSteps = 11,
    rounds: tradeoff_options.Rounds = 20,
    bits: Bits = (20, 22, 24, 28, 32, 40),
    ring_clients: RingClients = 10,
    examples: tradeoff_options.Examples = 5600,
    dimension: tradeoff_options.Dimension = 26_010,
    picture: PictureFile = None,
    as_json: Json = False,
) -> None:
    """A cohort whose clients share the noise (Heikkilä 2025).

    A client's share, the noise of the mean, and epsilon when some clients collude or drop out; what Theorem 4.6 claims
    for several local steps beside what is certified; and what a ring of a few bits costs. The defaults are the paper's
    for Fashion-MNIST, except for colluding clients and drop-outs, of which it has none.
    """
    from discreet.planning.curves.cohort_tradeoff import compute_cohort_tradeoff
    from discreet.planning.theory.heikkila_cohorts import ClientWork

    tradeoff = compute_cohort_tradeoff(
        ClientWork(sampling_rate=sampling_rate, steps=steps, rounds=rounds),
        clients,
        colluding=colluding,
        dropouts=dropouts,
        epsilon=epsilon,
        delta=delta,
        share=share,
        bits=bits,
        ring_clients=ring_clients,
        examples=examples,
        dimension=dimension,
    )
    show_tradeoff(tradeoff, picture, as_json=as_json)

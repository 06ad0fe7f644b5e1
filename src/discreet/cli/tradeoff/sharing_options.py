"""What is asked of a cohort that shares its noise; each default is paper 002's, for Fashion-MNIST."""

from collections.abc import Sequence
from typing import Annotated, TypeAlias

from typer import Option

from discreet.cli.options import COUNT, PROBABILITY, RATE
from discreet.cli.tradeoff.sweep_rows import COUNTS, INDEX, SCALE
from discreet.errors import InvalidInput

MOST_CLIENTS = 10**6


def _rings(bits: Sequence[int]) -> Sequence[int]:
    """Refuses a ring that no secure sum has before anything is computed for it."""
    from discreet.secure_sums.lattice.ring import MOST_BITS
    from discreet.secure_sums.secagg.ring_vectors import LEAST_BITS

    for each in bits:
        if not LEAST_BITS <= each <= MOST_BITS:
            raise InvalidInput(f"--bits must be {LEAST_BITS} to {MOST_BITS}, and got {each:,}.")
    return bits


def _listable(clients: int) -> int:
    """Refuses a cohort whose clients can't all be held: a lattice asks each of them."""
    if clients > MOST_CLIENTS:
        raise InvalidInput(f"--ring-clients must be at most {MOST_CLIENTS:,}, and got {clients:,}.")
    return clients


Sizes: TypeAlias = Annotated[
    Sequence[int],
    Option("--clients", click_type=COUNTS, metavar="N,...", show_default=False, help="Cohorts; 3 to 1000 by default."),
]
Colluding: TypeAlias = Annotated[
    int,
    Option(click_type=INDEX, metavar="C", show_default=False, help="May tell their noise; 1 by default."),
]
Dropouts: TypeAlias = Annotated[
    int, Option(click_type=INDEX, metavar="D", show_default=False, help="May not deliver; 1 by default.")
]
Epsilon: TypeAlias = Annotated[
    float, Option(click_type=SCALE, metavar="E", show_default=False, help="Of the sums; 1 by default.")
]
Share: TypeAlias = Annotated[
    float | None, Option(click_type=SCALE, metavar="Z", help="A client's noise multiplier, instead of found.")
]
Delta: TypeAlias = Annotated[
    float,
    Option(click_type=PROBABILITY, metavar="D", show_default=False, help="What epsilon is for; 1e-5 by default."),
]
SamplingRate: TypeAlias = Annotated[
    float, Option(click_type=RATE, metavar="Q", show_default=False, help="Of a batch; 1/11 by default.")
]
Steps: TypeAlias = Annotated[
    int, Option(click_type=COUNT, metavar="S", show_default=False, help="Local ones a round; 11 by default.")
]
Rounds: TypeAlias = Annotated[
    int, Option(click_type=COUNT, metavar="T", show_default=False, help="How many; 20 by default.")
]
Bits: TypeAlias = Annotated[
    Sequence[int],
    Option(
        click_type=COUNTS,
        metavar="B,...",
        show_default=False,
        callback=_rings,
        help="Of a ring; 20 to 40 by default.",
    ),
]
RingClients: TypeAlias = Annotated[
    int,
    Option(
        click_type=COUNT,
        metavar="N",
        show_default=False,
        callback=_listable,
        help="Cohort for the bits; 10 by default.",
    ),
]
Examples: TypeAlias = Annotated[
    int, Option(click_type=COUNT, metavar="N", show_default=False, help="Of each client; 5600 by default.")
]
Dimension: TypeAlias = Annotated[
    int, Option(click_type=COUNT, metavar="N", show_default=False, help="Of the model; 26010 by default.")
]

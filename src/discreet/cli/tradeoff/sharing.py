"""What is asked of a cohort that shares its noise; each default is paper 002's, for Fashion-MNIST."""

from collections.abc import Sequence
from typing import Annotated, TypeAlias

from typer import Option

from discreet.cli.options import COUNT, POSITIVE, PROBABILITY, RATE
from discreet.cli.tradeoff.rows import COUNTS, INDEX

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
    float, Option(click_type=POSITIVE, metavar="E", show_default=False, help="Of the sums; 1 by default.")
]
Share: TypeAlias = Annotated[
    float | None, Option(click_type=POSITIVE, metavar="Z", help="A client's noise multiplier, instead of found.")
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
    Option(click_type=COUNTS, metavar="B,...", show_default=False, help="Of a ring; 20 to 40 by default."),
]
RingClients: TypeAlias = Annotated[
    int,
    Option(click_type=COUNT, metavar="N", show_default=False, help="Cohort for the bits; 10 by default."),
]
Examples: TypeAlias = Annotated[
    int, Option(click_type=COUNT, metavar="N", show_default=False, help="Of each client; 5600 by default.")
]
Dimension: TypeAlias = Annotated[
    int, Option(click_type=COUNT, metavar="N", show_default=False, help="Of the model; 26010 by default.")
]

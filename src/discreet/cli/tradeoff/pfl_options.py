"""What is asked of paper 000's training on a command line; each default is the paper's, for MNIST."""

from typing import Annotated, TypeAlias

from typer import Option

from discreet.cli.options import COUNT, PROBABILITY
from discreet.cli.tradeoff.sweep_rows import SCALE

Epsilon: TypeAlias = Annotated[
    float,
    Option(click_type=SCALE, metavar="E", show_default=False, help="What all epochs may cost; 2.93 by default."),
]
Delta: TypeAlias = Annotated[
    float,
    Option(click_type=PROBABILITY, metavar="D", show_default=False, help="What epsilon is for; 1e-5 by default."),
]
Epochs: TypeAlias = Annotated[
    int, Option(click_type=COUNT, metavar="T", show_default=False, help="In all, E times R; 20 by default.")
]
Examples: TypeAlias = Annotated[
    int, Option(click_type=COUNT, metavar="N", show_default=False, help="Of each client; 6000 by default.")
]
BatchSize: TypeAlias = Annotated[
    int, Option(click_type=COUNT, metavar="B", show_default=False, help="Examples in a batch; 256 by default.")
]
Clip: TypeAlias = Annotated[
    float,
    Option(
        "--clip", click_type=SCALE, metavar="C", show_default=False, help="Norm of a clipped gradient; 1 by default."
    ),
]
LearningRate: TypeAlias = Annotated[
    float, Option(click_type=SCALE, metavar="A", show_default=False, help="Of local steps; 0.3 by default.")
]
Dimension: TypeAlias = Annotated[
    int, Option(click_type=COUNT, metavar="N", show_default=False, help="Of the model; 26010 by default.")
]
Lipschitz: TypeAlias = Annotated[
    float,
    Option(click_type=SCALE, metavar="B", show_default=False, help="Of the loss: no gradient is longer; 1 by default."),
]

"""`discreet account`: ε for a mechanism described on the line, or what meets an ε."""

from collections.abc import Callable
from typing import Annotated, TypeAlias

import typer

from discreet.cli.account.answer import solve
from discreet.cli.account.averaging import averaging
from discreet.cli.account.question import Question, with_question_options
from discreet.cli.options import COUNT, POSITIVE, needed
from discreet.cli.output import emit
from discreet.privacy.events import DiscreteGaussianNoise, GaussianNoise, LaplaceNoise, Noise, SkellamNoise

TARGET_EPILOG = """\b
With a target (--epsilon, or --attack-tpr with --fpr), leave out what you want
to know: the noise, else --steps, else --sampling-rate is found for it.
"""

EPILOG = """\b
Examples:
  What it costs, by every accountant:
    discreet account gaussian --noise-multiplier 1 --sampling-rate 0.1 \\
        --steps 1000 --delta 1e-5
  The noise that meets epsilon 2:
    discreet account gaussian --epsilon 2 --sampling-rate 0.01 --steps 1000
  How many steps are affordable:
    discreet account gaussian --epsilon 2 --noise-multiplier 1 \\
        --sampling-rate 0.01
  The sampling rate that is affordable:
    discreet account gaussian --epsilon 2 --noise-multiplier 1 --steps 1000
  The noise under which no attack finds more than 5 in 100 at 1 false alarm:
    discreet account gaussian --attack-tpr 0.05 --fpr 0.01 --steps 10
"""

app = typer.Typer(
    help="What a mechanism costs in epsilon, or what meets an epsilon.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
)

Variance: TypeAlias = Annotated[
    float | None,
    typer.Option(click_type=POSITIVE, metavar="V", help="Variance of the noise in the sum (lattice units)."),
]
L2: TypeAlias = Annotated[
    float | None,
    typer.Option(click_type=POSITIVE, metavar="S", help="Most a unit moves the sum (L2, lattice units)."),
]


@app.command(epilog=TARGET_EPILOG)
@with_question_options
def gaussian(
    question: Question,
    noise_multiplier: Annotated[
        float | None, typer.Option(click_type=POSITIVE, metavar="Z", help="Standard deviation over L2 sensitivity.")
    ] = None,
) -> None:
    """Gaussian noise on a sum of bounded L2 norm."""
    _print_answer(question, "noise_multiplier", noise_multiplier, lambda z: GaussianNoise(noise_multiplier=z))


@app.command(epilog=TARGET_EPILOG)
@with_question_options
def laplace(
    question: Question,
    noise_multiplier: Annotated[
        float | None, typer.Option(click_type=POSITIVE, metavar="B", help="Scale over L1 sensitivity.")
    ] = None,
) -> None:
    """Laplace noise on a sum of bounded L1 norm."""
    _print_answer(question, "noise_multiplier", noise_multiplier, lambda b: LaplaceNoise(noise_multiplier=b))


@app.command(epilog=TARGET_EPILOG)
@with_question_options
def skellam(
    question: Question,
    variance: Variance = None,
    l2_sensitivity: L2 = None,
    dimension: Annotated[
        int | None, typer.Option(click_type=COUNT, metavar="N", help="How many coordinates the sum has.")
    ] = None,
) -> None:
    """Skellam noise on a sum of integers, for secure sums."""
    l2, coordinates = needed("--l2-sensitivity", l2_sensitivity), needed("--dimension", dimension)
    _print_answer(
        question,
        "variance",
        variance,
        lambda v: SkellamNoise(variance=v, l2_sensitivity=l2, dimension=coordinates),
    )


@app.command(epilog=TARGET_EPILOG)
@with_question_options
def discrete_gaussian(question: Question, variance: Variance = None, l2_sensitivity: L2 = None) -> None:
    """Discrete Gaussian noise on a sum of integers."""
    l2 = needed("--l2-sensitivity", l2_sensitivity)
    _print_answer(question, "variance", variance, lambda v: DiscreteGaussianNoise(variance=v, l2_sensitivity=l2))


app.command()(averaging)


def _print_answer(question: Question, name: str, noise: float | None, noise_at: Callable[[float], Noise]) -> None:
    answered = solve(question, name, noise, noise_at)
    emit(answered.data, answered.page, as_json=question.as_json)

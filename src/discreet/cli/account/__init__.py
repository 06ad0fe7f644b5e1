"""`discreet account`: compute the epsilon of a mechanism, or the noise, steps or sampling rate for an epsilon."""

from dataclasses import replace
from typing import Annotated, TypeAlias

from discreet.cli.account.answer import NoiseAt, solve
from discreet.cli.account.averaging import averaging
from discreet.cli.account.question import Question
from discreet.cli.help_page import command_group
from discreet.cli.options import CATEGORY, COUNT, POSITIVE, RATE, expand_records, number_option
from discreet.cli.output import emit
from discreet.privacy.events import (
    DiscreteGaussianNoise,
    GaussianNoise,
    LaplaceNoise,
    RandomisedResponse,
    SkellamNoise,
    ZeroConcentrated,
)

TARGET_EPILOG = """\b
With a target (--epsilon, or --attack-tpr with --fpr), leave out the value to
find: the noise, or else --steps, or else --sampling-rate.
"""

EPILOG = """\b
Examples:
  Epsilon of a mechanism, by every accountant:
    discreet account gaussian --noise-multiplier 1 --sampling-rate 0.1 \\
        --steps 1000 --delta 1e-5
  Noise for epsilon 2:
    discreet account gaussian --epsilon 2 --sampling-rate 0.01 --steps 1000
  Number of steps that epsilon 2 affords:
    discreet account gaussian --epsilon 2 --noise-multiplier 1 \\
        --sampling-rate 0.01
  Sampling rate that epsilon 2 affords:
    discreet account gaussian --epsilon 2 --noise-multiplier 1 --steps 1000
  Batches of at most 350 out of 50,000 (truncated Poisson sampling):
    discreet account gaussian --noise-multiplier 1 --sampling-rate 0.005 \\
        --sampling truncated-poisson --max-batch-size 350 \\
        --population 50000 --steps 1000 --relation zero-out
  Ten passes, in each of which a unit joins one of 200 sums:
    discreet account gaussian --noise-multiplier 1 --sampling allocation \\
        --bins 200 --steps 10
  Noise so that an attack with 1 % false alarms recognises at most 5 %:
    discreet account gaussian --attack-tpr 0.05 --fpr 0.01 --steps 10
"""

app = command_group("Compute a mechanism's epsilon, or the noise for an epsilon.", EPILOG)

GaussianMultiplier: TypeAlias = Annotated[
    float | None, number_option(POSITIVE, "Z", "Standard deviation divided by the L2 sensitivity.")
]
LaplaceMultiplier: TypeAlias = Annotated[
    float | None, number_option(POSITIVE, "B", "Scale divided by the L1 sensitivity.")
]
Variance: TypeAlias = Annotated[
    float | None, number_option(POSITIVE, "V", "Variance of the noise in the sum, in lattice units.")
]
L2Sensitivity: TypeAlias = Annotated[
    float, number_option(POSITIVE, "S", "Largest change by one unit, as L2 norm in lattice units.")
]


@app.command(epilog=TARGET_EPILOG)
@expand_records
def gaussian(*, noise_multiplier: GaussianMultiplier = None, question: Question) -> None:
    """Gaussian noise on a sum of bounded L2 norm."""
    _print_answer(question, "noise_multiplier", noise_multiplier, lambda z: GaussianNoise(noise_multiplier=z))


@app.command(epilog=TARGET_EPILOG)
@expand_records
def laplace(*, noise_multiplier: LaplaceMultiplier = None, question: Question) -> None:
    """Laplace noise on a sum of bounded L1 norm."""
    _print_answer(question, "noise_multiplier", noise_multiplier, lambda b: LaplaceNoise(noise_multiplier=b))


@app.command(epilog=TARGET_EPILOG)
@expand_records
def skellam(
    *,
    variance: Variance = None,
    l2_sensitivity: L2Sensitivity,
    dimension: Annotated[int, number_option(COUNT, "N", "Number of coordinates of the sum.")],
    question: Question,
) -> None:
    """Skellam noise on a secure sum of integers."""
    _print_answer(
        question,
        "variance",
        variance,
        lambda v: SkellamNoise(variance=v, l2_sensitivity=l2_sensitivity, dimension=dimension),
    )


@app.command(epilog=TARGET_EPILOG)
@expand_records
def discrete_gaussian(*, variance: Variance = None, l2_sensitivity: L2Sensitivity, question: Question) -> None:
    """Discrete Gaussian noise on a sum of integers."""
    _print_answer(
        question, "variance", variance, lambda v: DiscreteGaussianNoise(variance=v, l2_sensitivity=l2_sensitivity)
    )


@app.command(epilog=TARGET_EPILOG)
@expand_records
def zcdp(
    *,
    rho: Annotated[
        float | None, number_option(POSITIVE, "R", "Bound of the mechanism: its curve is rho·alpha.")
    ] = None,
    question: Question,
) -> None:
    """Any mechanism that is rho-zCDP."""
    _print_answer(question, "rho", rho, lambda r: ZeroConcentrated(rho=r))


@app.command(epilog=TARGET_EPILOG)
@expand_records
def randomised_response(
    *,
    categories: Annotated[int, number_option(CATEGORY, "K", "Number of possible answers.")],
    random_share: Annotated[
        float | None, number_option(RATE, "P", "Probability of an answer drawn uniformly from all categories.")
    ] = None,
    question: Question,
) -> None:
    """Randomised response: each unit answers for itself."""
    _print_answer(
        replace(question, relation=question.relation or "replace"),
        "random_share",
        random_share,
        lambda share: RandomisedResponse(categories=categories, random_share=share),
    )


app.command()(averaging)


def _print_answer(question: Question, name: str, noise: float | None, noise_at: NoiseAt) -> None:
    answer = solve(question, name, noise, noise_at)
    if question.curve is not None:
        from discreet.privacy.privacy_curves import compute_curves
        from discreet.report.privacy_picture import save_curves

        event = answer.solution.event
        save_curves(compute_curves(event, question.neighbours, question.delta), question.curve)
    emit(answer.data, answer.page, as_json=question.as_json)

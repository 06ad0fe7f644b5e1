"""`discreet tradeoff iterations`: how many iterations, and how many between uploads, by paper 003's Theorem 3."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from typer import Option

from discreet.cli.options import COUNT, PROBABILITY
from discreet.cli.output import Json, emit
from discreet.cli.tradeoff.iterations_answer import Answer
from discreet.cli.tradeoff.picture_option import PictureFile, drawn
from discreet.cli.tradeoff.sweep_rows import AMOUNT, SCALE
from discreet.errors import InvalidInput

if TYPE_CHECKING:
    from discreet.planning.theory.fu_convergence import Constants

LARGEST = 2 * 10**7  # numbers that a pilot draws
WITHOUT_NOISE = "G is the longest gradient that a pilot met without noise, which may lead to longer ones"
EXAMPLES = 80  # of each client of a pilot, as the paper has it; more for more parameters

Noise: TypeAlias = Annotated[
    Literal["laplace", "gaussian"],
    Option(metavar="KIND", show_default=False, help="Of each client's own: laplace (default) or gaussian."),
]
Epsilon: TypeAlias = Annotated[
    float, Option(click_type=SCALE, metavar="E", show_default=False, help="Over all uploads; 3 by default.")
]
Delta: TypeAlias = Annotated[
    float,
    Option(click_type=PROBABILITY, metavar="D", show_default=False, help="Of Gaussian noise; 1e-4 by default."),
]
Clients: TypeAlias = Annotated[
    int, Option(click_type=COUNT, metavar="N", show_default=False, help="How many; 5000 by default.")
]
Cohort: TypeAlias = Annotated[
    int, Option(click_type=COUNT, metavar="B", show_default=False, help="Who joins a round; 500 by default.")
]
Parameters: TypeAlias = Annotated[
    int, Option(click_type=COUNT, metavar="P", show_default=False, help="Of the model; 11 by default.")
]
Iterations: TypeAlias = Annotated[
    int, Option(click_type=COUNT, metavar="T", show_default=False, help="Local ones, in all; 120 by default.")
]
LocalIterations: TypeAlias = Annotated[
    int, Option(click_type=COUNT, metavar="E", show_default=False, help="Between two uploads; 1 by default.")
]
Clip: TypeAlias = Annotated[
    float,
    Option(click_type=SCALE, metavar="Z", show_default=False, help="Of gradients (L1, L2); 150 by default."),
]
Convexity: TypeAlias = Annotated[float | None, Option(click_type=SCALE, metavar="M", help="Of each loss: mu.")]
Smoothness: TypeAlias = Annotated[float | None, Option(click_type=SCALE, metavar="L", help="Of each: lambda.")]
GradientBound: TypeAlias = Annotated[
    float | None, Option(click_type=SCALE, metavar="G", help="Longest gradient met, in L2.")
]
Heterogeneity: TypeAlias = Annotated[
    float | None, Option(click_type=AMOUNT, metavar="H", help="Gamma: the loss that own models would save.")
]
Start: TypeAlias = Annotated[
    float | None, Option(click_type=AMOUNT, metavar="Y", help="Squared distance to the best model.")
]
Pilot: TypeAlias = Annotated[bool, Option("--pilot", help="Find them on as many synthetic clients and parameters.")]


def iterations(
    noise: Noise = "laplace",
    epsilon: Epsilon = 3.0,
    delta: Delta = 1e-4,
    clients: Clients = 5000,
    cohort: Cohort = 500,
    parameters: Parameters = 11,
    iterations: Iterations = 120,
    local_iterations: LocalIterations = 1,
    clip: Clip = 150.0,
    convexity: Convexity = None,
    smoothness: Smoothness = None,
    gradient_bound: GradientBound = None,
    heterogeneity: Heterogeneity = None,
    start: Start = None,
    pilot: Pilot = False,
    picture: PictureFile = None,
    as_json: Json = False,
) -> None:
    """How long to train, how often to upload (paper 003).

    Theorem 3's bound as printed and corrected, the E and T at which it is least, and whether it converges. The defaults
    are the paper's for Lending Club; mu, lambda, G, Gamma and Y_0, which it doesn't give, are from synthetic clients.
    """
    from discreet.planning.theory.fu_best_iterations import allowed_local_iterations
    from discreet.planning.theory.fu_client_noise import ClientNoise
    from discreet.planning.theory.fu_convergence import Setting

    found, source = _piloted(clients, parameters) if pilot else _written()
    given = {
        "convexity": convexity,
        "smoothness": smoothness,
        "gradient_bound": gradient_bound,
        "heterogeneity": heterogeneity,
        "start": start,
    }
    told = {name: value for name, value in given.items() if value is not None}
    setting = Setting(
        noise=ClientNoise(kind=noise, epsilon=epsilon, delta=delta),
        clients=clients,
        cohort=cohort,
        parameters=parameters,
        clip_norm=clip,
        constants=replace(found, **told),
    )
    allowed = allowed_local_iterations(setting, iterations)
    if local_iterations not in allowed:
        raise InvalidInput(
            f"Of {iterations:,} iterations every client has as many turns only with {_listed(allowed)} between two "
            f"uploads, and got {local_iterations:,}."
        )
    answer = Answer(setting, iterations, local_iterations, _source(source, told, given))
    drawn(answer.picture, picture)
    emit(answer.data, answer.page, as_json=as_json)


def _written() -> "tuple[Constants, str]":
    from discreet.planning.theory.fu_convergence import SYNTHETIC_CONSTANTS

    return (
        SYNTHETIC_CONSTANTS,
        "from a pilot on 5,000 synthetic clients with 11 parameters (--pilot makes them for yours)",
    )


def _piloted(clients: int, parameters: int) -> "tuple[Constants, str]":
    examples = max(EXAMPLES, 8 * parameters)
    if clients * examples * parameters > LARGEST:
        raise InvalidInput(
            f"A pilot of {clients:,} clients with {parameters:,} parameters draws more than {LARGEST:,} numbers.",
            fix="Leave --pilot out, or give the constants that you know.",
        )
    from discreet.planning.pilot import NOT_COVERED, pilot, synthetic  # torch

    found = pilot(synthetic(clients, parameters, examples=examples)).constants
    made = f"from a pilot on {clients:,} synthetic clients of {examples:,} examples with {parameters:,} parameters"
    return found, f"{made}. {NOT_COVERED.rstrip('.')}"


def _source(source: str, told: dict[str, float], given: dict[str, float | None]) -> str:
    if len(told) == len(given):
        return "given"
    said = f"{', '.join(name.replace('_', ' ') for name in told)} given, others {source}" if told else source
    return said if "gradient_bound" in told else f"{said}. {WITHOUT_NOISE}"


def _listed(allowed: list[int]) -> str:
    *others, last = map(str, allowed)
    return f"{', '.join(others)} or {last}" if others else last

"""`discreet tradeoff iterations`: how long to train and how often to upload (Fu et al. 2021)."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Option

from discreet.cli.options import COUNT, PROBABILITY, number_option
from discreet.cli.tradeoff import tradeoff_options
from discreet.cli.tradeoff.tradeoff_options import AMOUNT, SCALE, build_record
from discreet.errors import InvalidInput
from discreet.planning.curves.tradeoff import Tradeoff

if TYPE_CHECKING:
    from discreet.planning.theory.fu_convergence import Constants

MOST_NUMBERS = 2 * 10**7  # that a pilot generates
MIN_EXAMPLES = 80  # of each client in a pilot, as in the paper; more for more parameters
WITHOUT_NOISE_NOTE = "G is the longest gradient that a pilot met without noise; noise may lead to longer ones"

KNOWN_CONSTANTS = ("convexity", "smoothness", "gradient_bound", "heterogeneity", "start")  # fields of Constants


@dataclass(frozen=True, kw_only=True)
class IterationsOptions:
    """How long to train, how often to upload (Fu and others, 2021).

    Theorem 3's bound as printed and corrected, the E and T at which it is least, and whether it converges. The defaults
    are the paper's for Lending Club; the constants mu, lambda, G, Gamma and Y_0, which the paper doesn't give, are
    measured on synthetic clients.
    """

    noise: Annotated[
        Literal["laplace", "gaussian"],
        Option(metavar="KIND", help="Noise that each client adds to its upload: laplace or gaussian."),
    ] = "laplace"
    epsilon: Annotated[float, number_option(SCALE, "E", "Epsilon of all uploads of a client together.")] = 3.0
    delta: Annotated[float, number_option(PROBABILITY, "D", "Delta of the guarantee, with Gaussian noise only.")] = 1e-4
    clients: tradeoff_options.Clients = 5000
    cohort: tradeoff_options.Cohort = 500
    parameters: Annotated[int, number_option(COUNT, "P", "Number of model parameters.")] = 11
    iterations: Annotated[int, number_option(COUNT, "T", "Local iterations of all rounds together.")] = 120
    local_iterations: Annotated[int, number_option(COUNT, "E", "Local iterations between two uploads.")] = 1
    clip_norm: Annotated[
        float,
        number_option(
            SCALE, "Z", "Largest norm of a clipped gradient: L1 with Laplace noise, L2 with Gaussian.", "--clip"
        ),
    ] = 150.0
    convexity: Annotated[float | None, number_option(SCALE, "M", "Strong convexity mu of every client's loss.")] = None
    smoothness: Annotated[float | None, number_option(SCALE, "L", "Smoothness lambda of every client's loss.")] = None
    gradient_bound: Annotated[
        float | None, number_option(SCALE, "G", "Largest L2 norm of a gradient during training.")
    ] = None
    heterogeneity: Annotated[
        float | None, number_option(AMOUNT, "H", "Gamma: the loss that clients would save with models of their own.")
    ] = None
    start: Annotated[
        float | None, number_option(AMOUNT, "Y", "Squared distance of the first model to the best model.")
    ] = None
    pilot: Annotated[
        bool, Option("--pilot", help="Measure these constants on synthetic clients with your numbers.")
    ] = False

    def compute(self) -> Tradeoff:
        from discreet.planning.curves.iterations_tradeoff import IterationsTradeoff
        from discreet.planning.theory.fu_best_iterations import allowed_local_iterations
        from discreet.planning.theory.fu_client_noise import ClientNoise
        from discreet.planning.theory.fu_convergence import Setting

        default, source = _measure_constants(self.clients, self.parameters) if self.pilot else _default_constants()
        given = {name: getattr(self, name) for name in KNOWN_CONSTANTS if getattr(self, name) is not None}
        noise = ClientNoise(kind=self.noise, epsilon=self.epsilon, delta=self.delta)
        setting = build_record(Setting, self, noise=noise, constants=replace(default, **given))
        allowed = allowed_local_iterations(setting, self.iterations)
        if self.local_iterations not in allowed:
            raise InvalidInput(
                f"With {self.iterations:,} iterations all clients join equally often only with "
                f"{_list_numbers(allowed)} between two uploads, and got {self.local_iterations:,}."
            )
        source = "given" if len(given) == len(KNOWN_CONSTANTS) else _describe_source(source, given)
        return IterationsTradeoff(setting, self.iterations, self.local_iterations, source)


def _default_constants() -> "tuple[Constants, str]":
    from discreet.planning.theory.fu_convergence import SYNTHETIC_CONSTANTS

    source = "from a pilot on 5,000 synthetic clients with 11 parameters (--pilot measures them for your numbers)"
    return SYNTHETIC_CONSTANTS, source


def _measure_constants(clients: int, parameters: int) -> "tuple[Constants, str]":
    examples = max(MIN_EXAMPLES, 8 * parameters)
    if clients * examples * parameters > MOST_NUMBERS:
        raise InvalidInput(
            f"A pilot of {clients:,} clients with {parameters:,} parameters draws more than {MOST_NUMBERS:,} numbers.",
            fix="Leave --pilot out, or give the constants that you know.",
        )
    from discreet.planning.pilot import PILOT_NOT_COVERED, run_pilot, synthetic_clients  # torch

    constants = run_pilot(synthetic_clients(clients, parameters, examples=examples)).constants
    source = f"from a pilot on {clients:,} synthetic clients of {examples:,} examples with {parameters:,} parameters"
    return constants, f"{source}. {PILOT_NOT_COVERED.rstrip('.')}"


def _describe_source(source: str, given: dict[str, float]) -> str:
    names = ", ".join(name.replace("_", " ") for name in given)
    text = f"{names} given, others {source}" if given else source
    return text if "gradient_bound" in given else f"{text}. {WITHOUT_NOISE_NOTE}"


def _list_numbers(numbers: list[int]) -> str:
    *others, last = map(str, numbers)
    return f"{', '.join(others)} or {last}" if others else last

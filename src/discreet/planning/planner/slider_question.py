"""The planner's question: a promise and an algorithm, in the few numbers that decide what privacy costs."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.recipes.ddp_fedavg import ddp_fedavg, ddp_fedavg_client
from discreet.algorithms.recipes.dp_fedavg import dp_fedavg
from discreet.algorithms.recipes.ldp_fedavg import ldp_fedavg
from discreet.algorithms.recipes.pfl import pfl
from discreet.algorithms.sampling import RoundRobin
from discreet.errors import InvalidInput
from discreet.part import Count, Positive, Probability, Rate, part
from discreet.privacy.release import View

Mechanism: TypeAlias = Literal[
    "experiment", "dp_sgd", "gaussian", "local_gaussian", "local_laplace", "skellam", "skellam_clients"
]

MECHANISMS: Mapping[str, str] = {  # short labels for a narrow box; the recipe of `discreet plan` in brackets
    "experiment": "As in the experiment",
    "dp_sgd": "Gaussian, in training (pfl)",
    "skellam": "Skellam (ddp_fedavg)",
    "gaussian": "Gaussian (dp_fedavg)",
    "local_gaussian": "Own Gaussian (ldp_fedavg)",
    "local_laplace": "Own Laplace (ldp_fedavg)",
    "skellam_clients": "Skellam (ddp_fedavg_client)",
}
EXAMPLE_MECHANISMS: frozenset[Mechanism] = frozenset({"dp_sgd", "skellam"})  # others protect whole clients
_EXAMPLES = "Protects single examples. The sampling rate is the share of a client's examples drawn for each step."
_TURNS = "Protects whole clients. The sampling rate is the share of clients in a round; clients take turns."
MECHANISM_NOTES: Mapping[str, str] = {
    "experiment": "The algorithm of the experiment with all its settings, changed only where you move a slider.",
    "dp_sgd": f"Each client adds noise in every step. {_EXAMPLES}",
    "skellam": f"Clients add shares of noise to a secure sum. {_EXAMPLES}",
    "gaussian": "A trusted server adds the noise. Protects whole clients. The sampling rate is the share of clients, "
    "drawn in secret for each round.",
    "local_gaussian": f"Each client adds noise to its update. {_TURNS}",
    "local_laplace": f"Each client adds noise to its update. {_TURNS}",
    "skellam_clients": f"Clients add shares of noise to a secure sum. {_TURNS}",
}

# The largest numbers that a browser may ask for, so that an answer doesn't take long.
MOST: Mapping[str, int] = {
    "clients": 20_000,
    "rounds": 100_000,
    "local_steps": 1_000,
    "dimension": 10**10,
    "examples": 10**9,
}
LARGEST_DELTA = 0.1  # above it a promise says nothing, and accounting is slow
RANGES: Mapping[str, tuple[float, float]] = {  # ranges of the sliders, all logarithmic
    "epsilon": (0.1, 20),
    "delta": (1e-10, 1e-2),
    "clients": (2, 10_000),
    "sampling_rate": (0.001, 1),
    "rounds": (1, 10_000),
    "local_steps": (1, 100),
}


@part
class Question:
    """One position of all sliders.

    Attributes:
        mechanism: The experiment's own algorithm, or a recipe of the page instead of it.
        sampling_rate: Of a client's examples in each step, or of the clients in each round: see MECHANISM_NOTES.
        dimension: The parameters of the model.
        examples: Of one client on average, as a whole number.
    """

    mechanism: Mechanism
    view: View
    epsilon: Positive
    delta: Probability
    clients: Count
    sampling_rate: Rate
    rounds: Count
    local_steps: Count
    dimension: Count
    examples: Count

    def __post_init__(self) -> None:
        if self.delta > LARGEST_DELTA:
            raise InvalidInput(f"delta must be at most {LARGEST_DELTA} here, and got {self.delta:g}.")
        for name, most in MOST.items():
            if getattr(self, name) > most:
                raise InvalidInput(f"{name} must be at most {most:,} here, and got {getattr(self, name):,}.")

    @property
    def cohort(self) -> int:
        """Number of clients in a round, where the sampling rate is the share of clients."""
        return max(1, round(self.sampling_rate * self.clients))

    def recipe(self) -> Algorithm:
        """Build the page's recipe; clip norms and learning rates are 1 and don't change any number of the answer."""
        rate, steps = self.sampling_rate, self.local_steps
        one: dict[str, Any] = {"learning_rate": 1.0, "clip_norm": 1.0}
        match self.mechanism:
            case "dp_sgd":
                return pfl(sampling_rate=rate, local_steps=steps, **one)
            case "skellam":
                return ddp_fedavg(sampling_rate=rate, local_steps=steps, **one)
            case "gaussian":
                return dp_fedavg(sampling_rate=rate, steps=steps, batch_size=1, **one)
            case "skellam_clients":
                return ddp_fedavg_client(sampling=RoundRobin(cohort=self.cohort), steps=steps, batch_size=1, **one)
            case "local_gaussian" | "local_laplace":
                return ldp_fedavg(
                    learning_rate=1.0,
                    gradient_bound=1.0,
                    local_iterations=steps,
                    cohort=self.cohort,
                    noise="laplace" if self.mechanism == "local_laplace" else "gaussian",
                )
            case "experiment":
                raise ValueError("The experiment's own algorithm is no recipe of the page.")


def slider_stops(name: str) -> list[float]:
    """Return the positions of a slider: numbers of two digits, evenly spaced on a logarithmic scale, each once."""
    low, high = RANGES[name]
    values = (float(f"{low * (high / low) ** (place / 100):.2g}") for place in range(101))
    return sorted({round(value) for value in values} if name in MOST else set(values))

"""What is compared: seven ways to train, each over a grid of its own, on two data sets, for 5, 10 and 20 rounds."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from discreet.experiment.comparison.cells import Cell
from discreet.experiment.comparison.comparison_results import Result, ResultsFile
from discreet.experiment.configuration import experiment_file
from discreet.privacy import calibration
from discreet.privacy.calibration import EpsilonTarget
from discreet.privacy.events import sampled_gaussian
from experiments.common import tuning
from experiments.common.tuning import format_toml

HERE = Path(__file__).parent
SETS = {"mnist": "MNIST, linear", "fashion": "Fashion-MNIST, ScatterNet + linear"}
ROUNDS = (5, 10, 20)
TUNED_ON = 0  # the seed; what a page says is of the others
SEEDS = (1, 2, 3)
CLIENTS, TARGET = 10, EpsilonTarget(epsilon=1.0, delta=1e-5)
RATE = 0.05  # of DP-SGD's batches
PASS = 20  # steps, on average a pass over the data at that rate
FADES = (1.0, 0.2)  # the last round's rate over the first one's

Grid = Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Method:
    """A recipe with what is fixed, and the values that are tried of the rest, by data set."""

    label: str
    fixed: Mapping[str, Any]
    grid: Mapping[str, Grid]
    claim: bool = False  # noise is set by Theorem 4.6's number, which is not certified


LOCAL = {"recipe": "ddp_fedavg", "gradients": "local", "sampling_rate": RATE, "clip_norm": 2.0}
STEPPED: Mapping[str, Grid] = {
    "mnist": {"local_steps": (20, 60), "step": (4.0, 8.0), "fade": FADES},
    "fashion": {"local_steps": (20, 60), "step": (2.0, 4.0), "fade": FADES},
}

WIDER: Mapping[str, Grid] = {  # the claim was best at the edge of the others' grid
    "mnist": {"local_steps": (20, 60, 100), "step": (4.0, 8.0, 12.0), "fade": FADES},
    "fashion": {"local_steps": (20, 60, 100), "step": (2.0, 4.0, 6.0), "fade": FADES},
}
PULLED: Grid = {"strength": (5e-4, 5e-3), "fade": FADES}

METHODS = {
    "one_step": Method(
        "S = 1",
        {"recipe": "ddp_fedavg", "noise": "gaussian", "sampling_rate": 1.0, "local_steps": 1},
        {
            "mnist": {"clip_norm": (8.0, 16.0), "step": (4.0, 8.0), "fade": FADES},
            "fashion": {"clip_norm": (25.0, 50.0), "step": (1.0, 2.0), "fade": FADES},
        },
    ),
    "ldp": Method("LDP", LOCAL, STEPPED),
    "claim": Method("the claim (unsound)", LOCAL | {"as_published": True}, WIDER, claim=True),
    "convex_local": Method(
        "`convex_local`",
        {"recipe": "convex_local", "learning_rate": 4.0},
        {
            "mnist": {"feature_bound": (4.0,), "clip_norm": (0.6, 1.0), "batch_size": (3, 5, 10, 20), "fade": FADES},
            "fashion": {"feature_bound": (50.0,), "clip_norm": (0.4, 0.6), "batch_size": (3, 5, 10, 20), "fade": FADES},
        },
    ),
    "proximal_local": Method(
        "`proximal_local`",
        {"recipe": "proximal_local", "learning_rate": 3.0, "passes": 2},
        {
            "mnist": {**PULLED, "feature_bound": (4.0,), "clip_norm": (1.0,), "batch_size": (10, 20)},
            "fashion": {**PULLED, "feature_bound": (50.0,), "clip_norm": (0.6,), "batch_size": (5, 10)},
        },
    ),
    "denoised_release": Method(
        "`denoised_release`",
        {"recipe": "denoised_release", "sampling_rate": RATE, "clip_norm": 2.0, "local_steps": 20},
        {data: {"ratio": (0.4, 0.8), "step": each["step"], "fade": FADES} for data, each in STEPPED.items()},
    ),
    "shards": Method(
        "`shards`",
        {"recipe": "shards", "epochs": 1, "batch_size": 30},
        {
            "mnist": {"shards": (100, 300), "clip_norm": (0.3, 1.0), "learning_rate": (0.5, 2.0)},
            "fashion": {"shards": (300, 600), "clip_norm": (0.1, 0.3), "learning_rate": (0.02, 0.1)},
        },
    ),
}


@dataclass(frozen=True)
class Variant:
    """One way to train, with its knobs set: `step` is learning_rate · clip_norm, `fade` a schedule over the rounds."""

    data: str
    method: str
    rounds: int
    knobs: tuple[tuple[str, Any], ...]

    @property
    def swept(self) -> dict[str, str]:
        """What tells its results from others, as they are kept."""
        return {"data": self.data, "rounds": str(self.rounds)} | {name: f"{value:g}" for name, value in self.knobs}

    def cell(self, settings: tuple[str, ...] = (), data_dir: Path | None = None) -> Cell:
        method = METHODS[self.method]
        table = format_toml(self._arguments())
        overrides = (f"algorithm={table}", f"rounds={self.rounds}", f"evaluate_every={self.rounds}", *settings)
        source = experiment_file.load_experiment(HERE / f"{self.data}.toml", overrides, data_dir)
        if method.claim:  # it keeps no promise
            source = replace(source, experiment=replace(source.experiment, privacy=None))
        return Cell(self.method, self.swept, source)

    def _arguments(self) -> dict[str, Any]:
        """The recipe's own."""
        arguments = {**METHODS[self.method].fixed, **dict(self.knobs)}
        if (step := arguments.pop("step", None)) is not None:
            arguments["learning_rate"] = step / arguments["clip_norm"]
        if (fade := arguments.pop("fade", 1.0)) < 1:
            arguments["schedule"] = {"kind": "exponential", "decay": fade ** (1 / (self.rounds - 1))}
        if METHODS[self.method].claim:
            arguments["noise_multiplier"] = claimed_noise(self.rounds * arguments["local_steps"])
        return arguments


PROBES = {  # single runs on seed 0 by hand, at 5 rounds, before the grids were drawn: mnist, fashion
    "one_step": (13, 7),
    "ldp": (11, 3),
    "claim": (7, 2),
    "convex_local": (19, 10),
    "proximal_local": (3, 1),
    "denoised_release": (7, 2),
    "shards": (6, 5),
}


def grid(data: str, method: str, rounds: int) -> list[Variant]:
    """All points of a method's grid."""
    tried = METHODS[method].grid[data]
    return [
        Variant(data, method, rounds, tuple(zip(tried, values, strict=True)))
        for values in itertools.product(*tried.values())
    ]


def one_pass(data: str, rounds: int) -> list[Variant]:
    """The points of the claim's grid with one pass over the data a round: what the paper does, and `convex_local`."""
    return [each for each in grid(data, "claim", rounds) if dict(each.knobs)["local_steps"] == PASS]


def best(results: list[Result], points: list[Variant]) -> Variant | None:
    """The point that was best on the validation data of the seed for tuning; None before all of them were tried."""
    return tuning.best_variant(results, points, TUNED_ON)


def accuracies(results: list[Result], asked: Variant) -> dict[int, float]:
    """In percent, by seed."""
    return {each["seed"]: 100 * each["metrics"]["accuracy"] for each in select_results(results, asked)}


def select_results(results: list[Result], asked: Variant) -> list[Result]:
    return [each for each in results if each["name"] == asked.method and each["swept"] == asked.swept]


def results() -> list[Result]:
    return list(ResultsFile(HERE).read_by_key().values())


@cache
def claimed_noise(steps: int) -> float:
    """Return the noise of one client with which, by Theorem 4.6, all clients' steps together would meet the target."""
    return calibration.calibrate_noise(lambda noise: sampled_gaussian(noise, RATE, steps), TARGET) / math.sqrt(CLIENTS)

"""What is run: Heikkilä's settings, and beside them what is certified, each over a small grid of its own."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from discreet.experiment.comparison.cells import Cell
from discreet.experiment.comparison.comparison_results import Result, ResultsFile
from discreet.experiment.configuration import experiment_file
from experiments.common import tuning
from experiments.common.tuning import format_toml
from experiments.distributed.paper_settings import EPOCH, STEP

HERE = Path(__file__).parent
TUNED_ON = 0  # the seed
SEEDS = 3  # that a page tells of each way
MOMENTA = (0.0, 0.8)  # of the server
RING = {"bits": 32}  # the paper's; what follows from the plan is a bit or two less


@dataclass(frozen=True)
class Data:
    """`epoch` and `step` are the batches of the paper's two ways; `clip_norm` and `steps` those that are tuned with.

    A step is learning rate times clip: of one local step, or of the whole round where gradients are at the broadcast.
    """

    label: str
    clients: int
    rounds: tuple[int, ...]
    epoch: Mapping[str, float]
    steps_an_epoch: int
    step: Mapping[str, float]
    clip_norm: float
    at_broadcast: tuple[float, ...]
    at_own_state: tuple[float, ...]
    convex: Mapping[str, float] | None = None  # None: no linear head
    convex_batches: tuple[int, ...] = ()


SETS = {
    "fashion": Data(
        "Fashion-MNIST, a CNN of 26,010 parameters",
        clients=10,
        rounds=(20,),
        epoch={"batch_size": 512},
        steps_an_epoch=11,
        step={"batch_size": 128},
        clip_norm=1.0,
        at_broadcast=(1.0, 3.0),
        at_own_state=(0.5, 1.5),
    ),
    "income": Data(
        "ACS Income, linear",
        clients=51,
        rounds=(10,),
        epoch={"sampling_rate": 0.05},
        steps_an_epoch=20,
        step={"sampling_rate": 0.05},
        clip_norm=3.0,
        at_broadcast=(1.5, 4.5),
        at_own_state=(1.5, 4.5),
        convex={"learning_rate": 4.0, "clip_norm": 1.0, "feature_bound": 4.0},
        convex_batches=(100, 400),
    ),
    "cifar": Data(
        "CIFAR-10, ScatterNet + linear",
        clients=10,
        rounds=(10, 20, 40, 80, 160),
        epoch={"batch_size": 256},
        steps_an_epoch=19,
        step={"batch_size": 128},
        clip_norm=10.0,
        at_broadcast=(0.5, 2.0),
        at_own_state=(0.3, 1.0),
        convex={"learning_rate": 4.0, "clip_norm": 0.6, "feature_bound": 100.0},
        convex_batches=(5, 20),
    ),
}


@dataclass(frozen=True)
class Method:
    """A way to train. A claim is one of Theorem 4.6, with more than one step at a client's own state."""

    label: str
    tuned: bool
    claim: bool = False
    against: str = "server"


METHODS = {
    "published": Method("**claimed**, one epoch, the paper's settings", tuned=False, claim=True),
    "claim": Method("**claimed**, one epoch, tuned", tuned=True, claim=True),
    "published_step": Method("S = 1, the paper's settings", tuned=False),
    "one_step": Method("S = 1, tuned", tuned=True),
    "broadcast": Method("one epoch at the broadcast model, tuned", tuned=True),
    "ldp": Method("one epoch at the own state, LDP, tuned", tuned=True),
    "convex_local": Method("`convex_local`, one pass, tuned", tuned=True, against="public"),
}


@dataclass(frozen=True)
class Variant:
    """One way to train, with its knobs set."""

    data: str
    method: str
    rounds: int
    knobs: tuple[tuple[str, float], ...] = ()

    @property
    def swept(self) -> dict[str, str]:
        """What tells its results from others, as they are kept."""
        return {"data": self.data, "rounds": str(self.rounds)} | {name: f"{value:g}" for name, value in self.knobs}

    def cell(self, settings: tuple[str, ...] = (), data_dir: Path | None = None) -> Cell:
        method = METHODS[self.method]
        against = f'privacy.against="{method.against}"'
        overrides = (f"algorithm={format_toml(self.algorithm())}", f"rounds={self.rounds}", against, *settings)
        source = experiment_file.load_experiment(HERE / f"{self.data}.toml", overrides, data_dir)
        if method.claim:  # it keeps no promise
            source = replace(source, experiment=replace(source.experiment, privacy=None))
        return Cell(self.method, self.swept, source)

    def algorithm(self) -> dict[str, Any]:
        """As a file names it."""
        data, knobs = SETS[self.data], dict(self.knobs)
        server = {"kind": "sgd", "momentum": knobs.get("momentum", 0.0)}
        shared = {"recipe": "ddp_fedavg", "clip_norm": data.clip_norm, "server": server}
        match self.method:
            case "published":
                return self._published_epoch()
            case "published_step":
                return self._published_step()
            case "claim":
                noise = EPOCH[self.data, self.rounds].noise_multiplier
                return shared | self._at_own_state() | {"as_published": True, "noise_multiplier": noise}
            case "ldp":
                return shared | self._at_own_state()
            case "one_step":
                return shared | {**data.step, **RING, "local_steps": 1, "learning_rate": knobs["step"] / data.clip_norm}
            case "broadcast":
                rate = knobs["step"] / data.clip_norm / data.steps_an_epoch
                return shared | {**data.epoch, **RING, "epochs": 1, "learning_rate": rate}
            case _:
                size = int(knobs["batch_size"])
                return {"recipe": "convex_local", **(data.convex or {}), "batch_size": size, "server": server}

    def _at_own_state(self) -> dict[str, Any]:
        data = SETS[self.data]
        rate = dict(self.knobs)["step"] / data.clip_norm
        return {**data.epoch, "gradients": "local", "epochs": 1, "learning_rate": rate}

    def _published_epoch(self) -> dict[str, Any]:
        """Compose the parts: the recipe has no argument for momentum at clients."""
        paper = EPOCH[self.data, self.rounds]
        trainer = {
            "kind": "dp_sgd",
            "epochs": [1],
            **SETS[self.data].epoch,
            "clip_norm": paper.clip_norm,
            "learning_rate": paper.learning_rate,
            "momentum": paper.momentum,
            "noise_multiplier": paper.noise_multiplier,
        }
        server = {"kind": "sgd", "learning_rate": paper.server_learning_rate, "momentum": paper.server_momentum}
        return {"trainer": trainer, "server": server, "as_published": True}

    def _published_step(self) -> dict[str, Any]:
        """One step has no use for momentum that restarts each round."""
        paper = STEP[self.data, self.rounds]
        server = {"kind": "sgd", "learning_rate": paper.server_learning_rate, "momentum": paper.server_momentum}
        own = {"clip_norm": paper.clip_norm, "learning_rate": paper.learning_rate, "server": server}
        return {"recipe": "ddp_fedavg", **SETS[self.data].step, **RING, "local_steps": 1, **own}


def methods(data: str) -> list[str]:
    return [name for name in METHODS if name != "convex_local" or SETS[data].convex]


def seeds(method: str) -> range:
    """Those that a page tells: without the one for tuning, where that was done."""
    first = TUNED_ON + 1 if METHODS[method].tuned else 0
    return range(first, first + SEEDS)


def grid(data: str, method: str, rounds: int) -> list[Variant]:
    """All points that are tried; of what is not tuned, the one."""
    if not METHODS[method].tuned:
        return [Variant(data, method, rounds)]
    whole = SETS[data]
    if method == "convex_local":
        tried: dict[str, tuple[float, ...]] = {"batch_size": whole.convex_batches, "momentum": MOMENTA}
    else:
        steps = whole.at_broadcast if method in ("one_step", "broadcast") else whole.at_own_state
        tried = {"step": steps, "momentum": MOMENTA}
    return [
        Variant(data, method, rounds, tuple(zip(tried, values, strict=True)))
        for values in itertools.product(*tried.values())
    ]


def best(results: list[Result], data: str, method: str, rounds: int) -> Variant | None:
    """The point that ended best on validation data of the seed for tuning; None before all of them were tried."""
    points = grid(data, method, rounds)
    if len(points) == 1:
        return points[0]
    return tuning.best_variant(results, points, TUNED_ON)


def finals(results: list[Result], asked: Variant) -> dict[int, float]:
    """Accuracies after the last round in percent, by seed."""
    return {each["seed"]: 100 * each["metrics"]["accuracy"] for each in select_results(results, asked)}


def bests(results: list[Result], asked: Variant) -> dict[int, float]:
    """The largest of a run's evaluations, about twenty, as the paper chooses them: by the test examples themselves."""
    found = select_results(results, asked)
    return {each["seed"]: 100 * max(line["accuracy"] for line in each["history"]) for each in found}


def select_results(results: list[Result], asked: Variant) -> list[Result]:
    return [each for each in results if each["name"] == asked.method and each["swept"] == asked.swept]


def results() -> list[Result]:
    return list(ResultsFile(HERE).read_by_key().values())

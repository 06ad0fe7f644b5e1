"""Several local steps on Heikkilä's network and data: sound schemes beside LDP, one step and the unsound claim."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.experiment.comparison.cells import Cell
from discreet.experiment.configuration import experiment_file
from experiments.common.tuning import format_toml
from experiments.distributed.cells import HERE as DISTRIBUTED
from experiments.distributed.paper_settings import EPOCH
from experiments.tuned.families import Family

ROUNDS, STEPS_AN_EPOCH = 20, 11
EPOCHWISE = {"batch_size": 512, "epochs": 1}
LOCAL = {"recipe": "ddp_fedavg", "gradients": "local", "clip_norm": 1.0, **EPOCHWISE}
STEPS, MOMENTA = (0.1, 0.5, 1.5, 4.5), (0.0, 0.8)
LONGER_STEP = 13.5  # of the claim alone: its best step was the largest of the first grid
METHODS = {
    "claim": "**claimed** (unsound), one epoch at the own state",
    "ldp": "LDP: one epoch at the own state",
    "one_step": "S = 1",
    "broadcast": "one epoch at the broadcast model",
    "denoised_release": "`denoised_release`, one epoch",
    "shards": "`shards`, one epoch in each shard",
}
AGAINST = {"denoised_release": "public"}  # the others: the server
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "claim": {"step": (*STEPS, LONGER_STEP), "momentum": MOMENTA},
    "ldp": {"step": STEPS, "momentum": MOMENTA},
    "one_step": {"step": (0.5, 1.5, 4.5, 9.0), "momentum": MOMENTA},
    "broadcast": {"step": (0.5, 1.5, 4.5, 9.0), "momentum": MOMENTA},
    "denoised_release": {"step": (0.5, 1.5, 4.5), "momentum": MOMENTA, "ratio": (0.5, 1.0, 2.0)},
    "shards": {"shards": (100,), "clip_norm": (0.3, 1.0), "learning_rate": (0.1, 0.5), "momentum": (0.8,)},
}


def algorithm(method: str, knobs: Mapping[str, float]) -> dict[str, Any]:
    """As a file names it; a step is learning rate times clip, of a local step or of a round at the broadcast model."""
    server = {"kind": "sgd", "momentum": knobs["momentum"]}
    match method:
        case "claim":
            noise = EPOCH["fashion", ROUNDS].noise_multiplier
            found = LOCAL | {"learning_rate": knobs["step"], "as_published": True, "noise_multiplier": noise}
        case "ldp":
            found = LOCAL | {"learning_rate": knobs["step"]}
        case "one_step":
            shape = {"recipe": "ddp_fedavg", "batch_size": 128, "local_steps": 1, "bits": 32, "clip_norm": 1.0}
            found = shape | {"learning_rate": knobs["step"]}
        case "broadcast":
            shape = {"recipe": "ddp_fedavg", **EPOCHWISE, "bits": 32, "clip_norm": 1.0}
            found = shape | {"learning_rate": knobs["step"] / STEPS_AN_EPOCH}
        case "denoised_release":
            shape = {"recipe": "denoised_release", **EPOCHWISE, "clip_norm": 1.0}
            found = shape | {"learning_rate": knobs["step"], "ratio": knobs["ratio"]}
        case _:
            shape = {"recipe": "shards", "epochs": 1, "batch_size": 16, "noise": "skellam"}
            found = shape | {name: knobs[name] for name in ("shards", "clip_norm", "learning_rate")}
    return found | {"server": server}


def families(settings: tuple[str, ...] = (), data_dir: Path | None = None) -> Iterator[Family]:
    """Clients hold out their own test examples, so each seed has others."""
    for method, grid in GRIDS.items():
        tried = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
        found = tuple(_cell(method, knobs, settings, data_dir) for knobs in tried)
        yield Family((method,), found, each_seed_chooses=True)


def _cell(method: str, knobs: dict[str, float], settings: tuple[str, ...], data_dir: Path | None) -> Cell:
    against = f'privacy.against="{AGAINST.get(method, "server")}"'
    overrides = (f"algorithm={format_toml(algorithm(method, knobs))}", against, f"evaluate_every={ROUNDS}", *settings)
    source = experiment_file.load_experiment(DISTRIBUTED / "fashion.toml", overrides, data_dir)
    if method == "claim":  # it keeps no promise
        source = replace(source, experiment=replace(source.experiment, privacy=None))
    return Cell(method, {name: f"{value:g}" for name, value in knobs.items()}, source)

"""DP-FedSAM and its rivals: validation data choose the clip of every method, and the radius of those with SAM."""

import itertools
from collections.abc import Iterator
from pathlib import Path

from discreet.experiment.comparison.cells import Cell
from discreet.experiment.configuration import experiment_file
from discreet.trust import Trust
from experiments.fedsam.cells import HERE as FEDSAM
from experiments.fedsam.cells import METHODS, SETTINGS
from experiments.tuned.families import Family

CLIPS = (0.1, 0.2, 0.4)
WIDER_CLIPS = (*CLIPS, 0.8)  # where 0.4 was the best of the first three
RADII = (  # adaptive, rho; the paper's is the second
    ("true", 0.1),
    ("true", 0.5),
    ("false", 0.01),
    ("false", 0.05),
)
STEPS = {"femnist": 10, "cifar": 4}  # two epochs
LONGER = {"femnist": (25,), "cifar": (10, 20, 60)}  # five epochs; 5, 10 and 30 as in the paper's Fig. 5b
LONG_METHODS, LONG_RADII = ("dp_fedavg", "dp_fedsam"), RADII[:2]
ON_CIFAR = ("dp_fedavg", "dp_fedsam")  # of the seven, those that fit into the time


def families(settings: tuple[str, ...] = (), data_dir: Path | None = None) -> Iterator[Family]:
    for data in STEPS:
        for method in METHODS if data == "femnist" else ON_CIFAR:
            yield _family(data, method, STEPS[data], RADII, settings, data_dir)
        for steps, method in itertools.product(LONGER[data], LONG_METHODS):
            yield _family(data, method, steps, LONG_RADII, settings, data_dir)


def _clips(data: str, steps: int) -> tuple[float, ...]:
    if data == "cifar":
        return WIDER_CLIPS if steps == STEPS[data] else WIDER_CLIPS[1:]
    return WIDER_CLIPS if steps == STEPS[data] else CLIPS


def _family(
    data: str,
    method: str,
    steps: int,
    radii: tuple[tuple[str, float], ...],
    settings: tuple[str, ...],
    data_dir: Path | None,
) -> Family:
    found = []
    for clip, (adaptive, rho) in itertools.product(_clips(data, steps), radii if "sam" in method else (("", 0.0),)):
        swept = {"data": data, "steps": str(steps), "clip": f"{clip:g}"}
        cell_overrides = [f"algorithm.clip_norm={clip}", f"algorithm.steps={steps}"]
        if adaptive:
            swept |= {"adaptive": adaptive, "rho": f"{rho:g}"}
            cell_overrides += [f"algorithm.adaptive={adaptive}", f"algorithm.rho={rho}"]
        overrides = (*SETTINGS[data], *cell_overrides, "evaluate_every=200", "evaluate_training=true", *settings)
        found.append(
            Cell(
                method,
                swept,
                experiment_file.load_experiment(FEDSAM / f"{method}.toml", overrides, data_dir, Trust.all_code()),
            )
        )
    return Family((data, method, str(steps)), tuple(found))

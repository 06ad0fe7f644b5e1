"""What is compared: Shi et al.'s algorithms on three federations, and SAM with other radii on the first."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.experiment.comparison.cells import Cell
from discreet.experiment.comparison.comparison_results import Result, ResultsFile
from discreet.experiment.configuration import experiment_file
from discreet.trust import Trust

HERE = Path(__file__).parent
METHODS = {
    "dp_fedavg": "DP-FedAvg",
    "dp_fedavg_blur": "DP-FedAvg-blur",
    "dp_fedavg_blurs": "DP-FedAvg-blurs",
    "fed_smp_rand": "Fed-SMP-rand_k",
    "fed_smp_top": "Fed-SMP-top_k",
    "dp_fedsam": "DP-FedSAM",
    "dp_fedsam_top": "DP-FedSAM-top_k",
}
SETTINGS = {  # what differs from the files, by federation
    "femnist": (),
    "mnist": ('task={kind="mnist", clients=500, partition="by_group", writers=true, public_examples=4000}',),
    "cifar": (
        'task={kind="cifar10", clients=500, partition={kind="dirichlet", alpha=0.6, sizes="equal"}, '
        "public_examples=2000}",
        'model={kind="networks.py:small_cnn"}',
        "algorithm.batch_size=50",
        "algorithm.steps=4",
    ),
}
WATCHED = ("evaluate_every=10", "evaluate_training=true")
RADII = (  # of DP-FedSAM on FEMNIST, beside the paper's ASAM of 0.5
    {"adaptive": "true", "rho": "0.1"},
    {"adaptive": "true", "rho": "1.0"},
    {"adaptive": "false", "rho": "0.5"},
    {"adaptive": "false", "rho": "0.05"},
    {"adaptive": "false", "rho": "0.01"},
)


@dataclass(frozen=True)
class Variant:
    """One algorithm on one federation; `radius` is what its SAM has instead of the file's."""

    data: str
    method: str
    radius: tuple[tuple[str, str], ...] = ()

    @property
    def swept(self) -> dict[str, str]:
        """What tells its results from others, as they are kept."""
        return {"data": self.data, **dict(self.radius)}

    def cell(self, settings: tuple[str, ...] = (), data_dir: Path | None = None) -> Cell:
        radius = tuple(f"algorithm.{name}={value}" for name, value in self.radius)
        overrides = (*SETTINGS[self.data], *radius, *WATCHED, *settings)
        return Cell(
            self.method,
            self.swept,
            experiment_file.load_experiment(HERE / f"{self.method}.toml", overrides, data_dir, Trust.all_code()),
        )


def list_variants(only: str | None = None) -> list[Variant]:
    """All of them, or those on one federation."""
    every = [Variant(data, method) for data in SETTINGS for method in METHODS]
    every += [Variant("femnist", "dp_fedsam", tuple(radius.items())) for radius in RADII]
    return [each for each in every if only in (None, each.data)]


def results() -> list[Result]:
    return list(ResultsFile(HERE).read_by_key().values())


def select_results(results: list[Result], data: str, method: str, **radius: Any) -> list[Result]:
    return [each for each in results if each["name"] == method and each["swept"] == {"data": data, **radius}]

"""Its Fashion-MNIST settings with the noise that the paper claims and without any, on pixels as its code has them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.experiment.comparison.cells import Cell
from discreet.experiment.comparison.comparison_results import Result, ResultsFile
from discreet.experiment.configuration import experiment_file
from discreet.trust import Trust
from experiments.common.tuning import format_toml
from experiments.distributed.paper_settings import EPOCH, STEP, Settings

HERE = Path(__file__).parent
SEEDS = 5  # the paper's
ROUNDS = 20
SILENT = 0.01  # a noise multiplier must be above 0; this one leaves no guarantee (ε of 25,000 and more)
WORK: dict[str, tuple[Settings, dict[str, Any]]] = {
    "epoch": (EPOCH["fashion", ROUNDS], {"epochs": [1], "batch_size": 512}),
    "step": (STEP["fashion", ROUNDS], {"steps": [1], "batch_size": 128}),
}


@dataclass(frozen=True)
class Variant:
    """One epoch or one step a round, with or without noise."""

    work: str
    noisy: bool

    @property
    def swept(self) -> dict[str, str]:
        return {"work": self.work, "noise": "yes" if self.noisy else "no"}

    def cell(self, settings: tuple[str, ...] = (), data_dir: Path | None = None) -> Cell:
        overrides = (f"algorithm={format_toml(self.algorithm())}", *settings)
        return Cell(
            "no_noise",
            self.swept,
            experiment_file.load_experiment(HERE / "fashion.toml", overrides, data_dir, Trust.all_code()),
        )

    def algorithm(self) -> dict[str, Any]:
        paper, work = WORK[self.work]
        trainer = {
            "kind": "dp_sgd",
            **work,
            "clip_norm": paper.clip_norm,
            "learning_rate": paper.learning_rate,
            "momentum": paper.momentum,
            "noise_multiplier": paper.noise_multiplier if self.noisy else SILENT,
        }
        server = {"kind": "sgd", "learning_rate": paper.server_learning_rate, "momentum": paper.server_momentum}
        return {"trainer": trainer, "server": server, "as_published": self.work == "epoch"}


def list_variants() -> list[Variant]:
    return [Variant(work, noisy) for work in WORK for noisy in (True, False)]


def select_results(results: list[Result], wanted: Variant) -> dict[int, Result]:
    """By seed."""
    return {each["seed"]: each for each in results if each["swept"] == wanted.swept}


def results() -> list[Result]:
    return list(ResultsFile(HERE).read_by_key().values())

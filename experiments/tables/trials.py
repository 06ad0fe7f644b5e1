"""One trial: a table, what is trained on it, and with which seed; run by the commands that a user would type."""

import json
import math
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from experiments.tables.baselines import central_model, constant_answer
from experiments.tables.sources import SOURCES, Source

CLIENTS = 200  # where whole clients are protected
BY_NAME = {source.name: source for source in SOURCES}
FEDAVG = """[algorithm]
recipe = "fedavg"
epochs = 1
batch_size = 50
learning_rate = 0.1
"""
Kind = Literal["starter", "whole_clients", "variant", "fedavg", "central", "constant"]


@dataclass(frozen=True)
class Trial:
    """What is trained and scored once.

    Attributes:
        kind: The starter as `discreet init` writes it (for rows, or for whole clients), a variant of one of its
            settings, a model without privacy, or a constant answer.
        settings: What is set otherwise, as `--set` of `discreet run` writes it; for "central", the penalty.
        is_validation: Whether it is scored on validation data, to choose settings, and not on test data.
        in_groups: Whether the table is cut into `CLIENTS` clients.
    """

    table: str
    kind: Kind
    seed: int
    settings: tuple[str, ...] = ()
    is_validation: bool = False
    in_groups: bool = False

    @property
    def key(self) -> str:
        where = "validation" if self.is_validation else "test"
        groups = f"{CLIENTS} clients" if self.in_groups else "own clients"
        return "|".join([self.table, groups, self.kind, where, str(self.seed), *self.settings])

    @property
    def source(self) -> Source:
        return BY_NAME[self.table]

    def run(self, work: Path, data_dir: Path) -> dict[str, Any]:
        """Run it, and return its score: accuracy, or minus the squared error. None if the training diverged."""
        folder = work / (f"{self.table}-{CLIENTS}" if self.in_groups else self.table)
        if not (folder / "ranges.toml").exists():
            self.source.write(folder, data_dir, CLIENTS if self.in_groups else None)
        overrides = (f"seed={self.seed}", *(("task.validation_fraction=0.2",) if self.is_validation else ()))
        if self.kind == "constant":
            return {"score": constant_answer(self._starter(folder), overrides, self.is_validation)}
        if self.kind == "central":
            penalty = float(self.settings[0])
            return {"score": central_model(self._starter(folder), overrides, self.is_validation, penalty)}
        file = self._fedavg(folder) if self.kind == "fedavg" else self._starter(folder)
        out = folder / "run"
        shutil.rmtree(out, ignore_errors=True)
        sets = [word for each in (*overrides, "evaluate_every=1000", *self.settings) for word in ("--set", each)]
        found = _discreet("run", file, "--out", out, "--key-dir", folder, "--json", *sets)
        metrics = found["validation" if self.is_validation else "metrics"]
        score = -float(metrics["mse"]) if self.source.is_regression else float(metrics["accuracy"])
        return {"score": score if math.isfinite(score) else None, "epsilon": found["epsilon"]}

    def _starter(self, folder: Path) -> Path:
        file = folder / ("clients.toml" if self.kind == "whole_clients" else "rows.toml")
        if not file.exists():
            unit = "client" if self.kind == "whole_clients" else "example"
            named = ("--client", "client", "--label", self.source.label, "--unit", unit)
            _discreet("init", file, "--table", folder / "table.csv", *named, "--ranges", "ranges.toml", "--json")
        return file

    def _fedavg(self, folder: Path) -> Path:
        text = self._starter(folder).read_text()
        file = folder / "fedavg.toml"
        file.write_text(text[: text.index("[privacy]")] + FEDAVG)
        return file


def plan_warnings(trial: Trial, work: Path) -> list[str]:
    """Return the warnings of `discreet plan` for a trial whose files are there."""
    folder = work / (f"{trial.table}-{CLIENTS}" if trial.in_groups else trial.table)
    warnings: list[str] = _discreet("plan", trial._starter(folder), "--json")["warnings"]
    return warnings


def _discreet(*words: str | Path) -> dict[str, Any]:
    """Run a command of this package and return its JSON object."""
    ran = subprocess.run(
        [sys.executable, "-m", "discreet", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    if ran.returncode:
        raise RuntimeError(f"discreet {' '.join(map(str, words))}: {ran.stdout}{ran.stderr}")
    found: dict[str, Any] = json.loads(ran.stdout)
    return found

"""The kept runs: every file in `experiments/` is one. The first line of a file says what its run covers.

`test_coverage.py` checks that every kind of engine and of every part is in some run.
"""

from dataclasses import dataclass
from pathlib import Path

from discreet.experiment.configuration import experiment_file
from discreet.experiment.configuration.experiment_file import Source

EXPERIMENTS = Path(__file__).parent / "experiments"
STOP_AFTER = {"adaptive_clip": 2, "discrete_gaussian": 2}  # runs that are stopped after this round, and resumed
SHARED_LEDGER = {"sam_top_k"}  # runs on a ledger that an earlier run has used


@dataclass(frozen=True)
class Case:
    """One run: the name of its file, the round after which it is stopped and resumed, and whose ledger it uses."""

    name: str
    stop_after: int | None = None
    shared_ledger: bool = False

    @property
    def path(self) -> Path:
        return EXPERIMENTS / f"{self.name}.toml"

    def load(self) -> Source:
        return experiment_file.load_experiment(self.path)


CASES = tuple(
    Case(path.stem, stop_after=STOP_AFTER.get(path.stem), shared_ledger=path.stem in SHARED_LEDGER)
    for path in sorted(EXPERIMENTS.glob("*.toml"))
)

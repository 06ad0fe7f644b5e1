"""The twelve runs. Each is a file in `experiments/`, with settings that a file can't hold listed here.

| run                 | engine    | unit    | noise               | covers                                         |
|---------------------|-----------|---------|---------------------|------------------------------------------------|
| pfl_own_epsilons    | embedded  | example | Gaussian, in DP-SGD | noise computed from own epsilons; own rates    |
| own_budgets         | embedded  | example | Gaussian, minibatch | own rates, clips, noise, epsilons; one leaves  |
| convex_local        | reference | example | Gaussian, shares    | convex local training                          |
| adaptive_clip       | embedded  | client  | Gaussian, server's  | adaptive clip, Poisson, momentum, resume       |
| sam_top_k           | embedded  | client  | Gaussian, server's  | SAM, top_k, a shared ledger                    |
| as_published        | reference | client  | Gaussian, shares    | a claim, cohorts of a fixed size               |
| laplace_round_robin | reference | client  | Laplace, local      | round robin, random_k, own noise and epsilons  |
| local_gaussian      | embedded  | client  | Gaussian, local     | public examples, public_top_k, no promise      |
| shards_skellam      | secure    | example | Skellam             | drop-outs, a lost round that counts, collusion |
| discrete_gaussian   | secure    | example | discrete Gaussian   | drop-outs, a lost round, rotation, resume      |
| ray_denoised        | ray       | example | Gaussian, shares    | blocks on two workers, local noise is not sent |
| flower_skellam      | flower    | client  | Skellam             | clients' own ledgers, a drop-out               |

`test_coverage.py` checks that every kind of engine and of every part is in some run.
"""

from dataclasses import dataclass
from pathlib import Path

from discreet.experiment.configuration import experiment_file
from discreet.experiment.configuration.experiment_file import Source

EXPERIMENTS = Path(__file__).parent / "experiments"


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


CASES = (
    Case("pfl_own_epsilons"),
    Case("own_budgets"),
    Case("convex_local"),
    Case("adaptive_clip", stop_after=2),
    Case("sam_top_k", shared_ledger=True),
    Case("as_published"),
    Case("laplace_round_robin"),
    Case("local_gaussian"),
    Case("shards_skellam"),
    Case("discrete_gaussian", stop_after=2),
    Case("ray_denoised"),
    Case("flower_skellam"),
)

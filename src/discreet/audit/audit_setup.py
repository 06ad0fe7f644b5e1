"""What an audit is made from: all of an experiment but its data, model and loss, from a job or a run directory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import safetensors
import torch

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.engines.engine_table import AnyEngine
from discreet.errors import InvalidInput
from discreet.experiment.configuration import toml_document
from discreet.experiment.job import Job
from discreet.experiment.loop.run_guarantees import certify_run
from discreet.experiment.promise import run_spending
from discreet.experiment.promise.promise import Privacy
from discreet.experiment.run_directory.checkpoint import CHECKPOINT
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.params import Params
from discreet.part import from_plain
from discreet.privacy.guarantee import Guarantee
from discreet.trust import Trust
from discreet.user_part import load_user_parts

PUBLIC_EXAMPLES = 8  # that stand for the server's public data, where an algorithm needs some


@dataclass(frozen=True)
class AuditSetup:
    """What an audited run is trained with.

    Attributes:
        algorithm: The algorithm with all its noise.
        population: Public client sizes.
        params: A model of the right shape; its values change nothing.
        rounds: Number of rounds.
        engine: The engine of the experiment.
        cards: The guarantees of the experiment, the promised one first.
        round_limits: Clients whose budget is spent early, and the number of rounds that each takes part in.
    """

    algorithm: Algorithm
    population: Population
    params: Params
    rounds: int
    engine: AnyEngine
    cards: tuple[Guarantee, ...]
    round_limits: dict[int, int]

    @property
    def public_examples(self) -> int:
        """Number of the server's public examples; 0 for none."""
        return PUBLIC_EXAMPLES if self.algorithm.sparsifier.needs_public_data else 0

    def spent_clients(self, round: int) -> frozenset[int]:
        """Return the clients whose budget is spent before a round."""
        return frozenset(client for client, lasts in self.round_limits.items() if lasts <= round)


def setup_from_job(job: Job) -> AuditSetup:
    """Return the setup of an experiment that could be trained now. Its data is not used."""
    return AuditSetup(
        algorithm=replace(job.algorithm, standardisation=None),
        population=job.population,
        params=job.params,
        rounds=job.rounds,
        engine=job.settings.engine,
        cards=tuple(certify_run(job.terms, job.rounds, None, shared=False)),
        round_limits=job.round_limits,
    )


def setup_from_run(record: RunRecord, trust: Trust) -> AuditSetup:
    """Return the setup of a run, by its directory alone: neither its data nor its model's code is needed.

    Raises:
        InvalidInput: The run has not ended, or an older version made it, which kept no client sizes.
        UntrustedCode: The algorithm names Python files that would have to run, and nobody has trusted them.
    """
    sizes = record.identity.examples
    if not sizes:
        raise InvalidInput(
            f"{record.path} does not say how many examples its clients hold: an older version made it.",
            fix="Audit the experiment's file instead.",
        )
    outcome, resolved = (
        record.read_outcome(),
        toml_document.parse_toml(record.read_text("resolved.toml"), str(record.path / "resolved.toml")),
    )
    folder = Path(record.identity.folder or ".")
    algorithm = load_user_parts(from_plain(Algorithm, resolved.get("algorithm")), folder, trust)
    population = Population(examples=tuple(sizes), max_multiplicity=record.identity.max_multiplicity)
    privacy = from_plain(Privacy, resolved["privacy"]) if resolved.get("privacy") else None
    rounds = outcome["rounds"]
    return AuditSetup(
        algorithm=replace(algorithm, standardisation=None),
        population=population,
        params=_read_params(record.path / CHECKPOINT),
        rounds=rounds,
        engine=from_plain(AnyEngine, resolved.get("engine")),
        cards=tuple(from_plain(Guarantee, card) for card in outcome["guarantees"]),
        round_limits=run_spending.round_limits(algorithm, privacy, rounds, population),
    )


def _read_params(path: Path) -> Params:
    """Return a model of zeros in the shape of the checkpoint's."""
    if not path.exists():
        raise InvalidInput(
            f"{path.parent} has no checkpoint, as the best run of a search: its card covers all trials of the search, "
            "and an audit trains one.",
            fix=f"Audit the experiment's file with the settings of this run, which are in {path.parent}/resolved.toml.",
        )
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            names = [name for name in file.keys() if name.startswith("params/")]  # noqa: SIM118 - it is no mapping
            return {name.removeprefix("params/"): torch.zeros_like(file.get_tensor(name)) for name in names}
    except (OSError, safetensors.SafetensorError):
        raise InvalidInput(f"{path} can't be read.", fix="Audit the experiment's file instead.") from None

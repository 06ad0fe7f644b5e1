"""Private runs in which some clients send the opposite of their update, as long as they like or as is allowed."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from discreet import api
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.upload_limits import OversizedUpload, find_honest_upload, take_upload
from discreet.algorithms.uploads import Uploads
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import CohortSum
from discreet.experiment.configuration import experiment_file
from discreet.experiment.job import Job
from discreet.params import Params, count_values, norms, scale, stack_rows
from discreet.randomness.purposes import Purpose

HERE = Path(__file__).parent
Attack = Literal["ten times", "at the limit"]
ATTACKS: tuple[Attack, ...] = ("ten times", "at the limit")
HOSTILE = (0, 1, 2)
SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class Defence:
    """What the server does: how it aggregates, and whether it bounds uploads."""

    name: str
    aggregation: str
    is_bounded: bool = True


DEFENCES = (
    Defence("mean, no bound", "plain", is_bounded=False),
    Defence("mean", "plain"),
    Defence("median", "median"),
    Defence("trimmed mean, 0.2", "trimmed_mean"),
)


@dataclass(frozen=True)
class HostileServer:
    """Gathers uploads as a server of real clients does: it looks at each of them, and leaves out what it refuses.

    Attributes:
        engine: Plays the clients.
        hostile: The first clients, this many, are hostile.
        attack: What they send.
        defence: What the server does.
    """

    engine: EmbeddedEngine
    hostile: int
    attack: Attack
    defence: Defence

    def gather(self, broadcast: Broadcast, cohort: list[int]) -> CohortSum:
        algorithm = self.engine.simulation.algorithm
        blocks = list(self._take_uploads(broadcast, cohort))
        return CohortSum.from_blocks(blocks, broadcast, algorithm.mechanism, algorithm.aggregation)

    def _take_uploads(self, broadcast: Broadcast, cohort: list[int]) -> Iterator[tuple[list[int], Uploads]]:
        simulation = self.engine.simulation
        for block, sent in self.engine.client_steps(broadcast, cohort):
            kept: dict[int, Params] = {}
            for at, client in enumerate(block):
                row = self._send(broadcast, client, {name: value[at] for name, value in sent.rows.items()})
                try:
                    kept[at] = take_upload(simulation.algorithm, broadcast, client, row, simulation.population).row
                except OversizedUpload:
                    if not self.defence.is_bounded:
                        kept[at] = row
            clients = [block[at] for at in kept]
            yield clients, Uploads(stack_rows(list(kept.values())), sent.norms[list(kept)])

    def _send(self, broadcast: Broadcast, client: int, row: Params) -> Params:
        """Return what a client sends: a hostile one the opposite of its update, made longer."""
        if client >= self.hostile:
            return row
        if self.attack == "ten times":
            return scale(row, -10.0)
        simulation = self.engine.simulation
        honest = find_honest_upload(simulation.algorithm, broadcast.round, client, simulation.population)
        assert honest is not None
        length = float(norms({name: value[None] for name, value in row.items()}))
        return scale(row, -0.999 * honest.limit(count_values(row)) / length)


def run(defence: Defence, attack: Attack, hostile: int, seed: int, rounds: int | None = None) -> dict[str, Any]:
    """Train one run and return its accuracy, and how many uploads were refused."""
    overrides = [f"seed={seed}", f'algorithm.aggregation={{kind="{defence.aggregation}"}}']
    job = api.prepare_job(experiment_file.load_experiment(HERE / "digits.toml", tuple(overrides)))
    server = HostileServer(EmbeddedEngine(job.simulation), hostile, attack, defence)
    state, missing = job.algorithm.init(job.params), 0
    for round in range(rounds or job.rounds):
        broadcast = job.algorithm.broadcast(state, round)
        cohort = list(range(job.population.clients))
        gathered = server.gather(broadcast, cohort)
        joined = len(gathered.contributors)
        missing += len(cohort) - joined
        noise = job.simulation.rows(broadcast, [-1]).for_purpose(Purpose.SERVER)
        state = job.algorithm.server_step(state, broadcast, gathered.total, joined, job.population, noise)
    return {
        "defence": defence.name,
        "attack": attack,
        "hostile": hostile,
        "seed": seed,
        "accuracy": job.evaluate(state)["accuracy"],
        "refused": missing,
        "epsilon": _epsilon(job),
    }


def _epsilon(job: Job) -> float:
    assert job.privacy is not None
    assert isinstance(job.privacy.epsilon, float)
    return job.privacy.epsilon

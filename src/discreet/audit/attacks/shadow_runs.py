"""Train shadow models: the same experiment on other data, many runs as one block where the algorithm allows it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from discreet.algorithms.aggregation import Plain
from discreet.algorithms.algorithm import Algorithm, ServerState
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.mechanisms import Gaussian, LocalNoise, NoPrivacy
from discreet.algorithms.sparsifiers import AllCoordinates
from discreet.algorithms.training import DpSgd, GradientDescent, LocalSgd
from discreet.audit.attacks.shadow_data import BlankFederation
from discreet.engines.embedded import EmbeddedEngine, fitting_block_size
from discreet.engines.engine import Simulation
from discreet.engines.engine_table import Embedded
from discreet.experiment.job import Job
from discreet.params import ClientModels, Params, zeros_like
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey

TIMED_ROUNDS = 3


@dataclass(frozen=True)
class ShadowRuns:
    """Trains models on data that is drawn from a job's. It counts nothing and writes nothing.

    Attributes:
        job: The experiment.
        key: The key of all shadow runs. It is not the run's own, so that nothing here repeats the run's noise.
    """

    job: Job
    key: RunKey

    def train(self, federations: Sequence[BlankFederation], watch: Callable[[int], None]) -> list[ServerState]:
        """Return the state after the last round for each of these federations.

        Args:
            federations: The data of each run.
            watch: Called with the number of runs that are done.
        """
        states: list[ServerState] = []
        for first in range(0, len(federations), self.runs_per_block):
            some = range(first, min(first + self.runs_per_block, len(federations)))
            if self.runs_per_block > 1:
                states += self._train_together(some, [federations[number] for number in some])
            else:
                states += [self._train_alone(number, federations[number]) for number in some]
            watch(len(states))
        return states

    def estimate_seconds(self, federation: BlankFederation, runs: int) -> float:
        """Estimate how long so many runs take, by a few rounds of as many as are trained at once."""
        timed = replace(self, job=replace(self.job, settings=replace(self.job.settings, rounds=TIMED_ROUNDS)))
        timed.train(
            [federation] * min(self.runs_per_block, runs), lambda done: None
        )  # what is compiled or cached first
        began = time.perf_counter()
        timed.train([federation] * min(self.runs_per_block, runs), lambda done: None)
        each = (time.perf_counter() - began) / TIMED_ROUNDS / min(self.runs_per_block, runs)
        return each * runs * self.job.rounds

    @cached_property
    def runs_per_block(self) -> int:
        """Number of runs that are trained as one block; 1 if the algorithm or the memory allows no more."""
        job = self.job
        if job.device.type != "cpu" or not _can_share_block(job.algorithm, job):
            return 1
        broadcast = job.algorithm.broadcast(job.algorithm.init(job.params), 0)
        return max(1, fitting_block_size(job.simulation, broadcast) // job.population.clients)

    def _train_together(self, numbers: Sequence[int], federations: list[BlankFederation]) -> list[ServerState]:
        """Train several runs as one block: client c of run r is client r·n + c of one federation."""
        job, algorithm = self.job, self.job.algorithm
        clients = job.population.clients
        first = federations[0]
        order = torch.cat([each.order for each in federations if each.order is not None])
        data = replace(first, sizes=first.sizes * len(federations), order=order)
        states = [algorithm.init(job.params) for _ in numbers]
        for round in range(job.rounds):
            cohorts = [self._draw_cohort(round, number) for number in numbers]
            run = torch.tensor([place for place, cohort in enumerate(cohorts) for _ in cohort])
            members = [clients * place + client for place, cohort in enumerate(cohorts) for client in cohort]
            streams = [clients * numbers[place] + client for place, cohort in enumerate(cohorts) for client in cohort]
            models = _stack([state.params for state in states])
            broadcasts = [algorithm.broadcast(state, round) for state in states]
            uploads = zeros_like(models, torch.float64)
            if members:
                own = ClientModels({name: value[run] for name, value in models.items()})
                uploads = self._sum_uploads(replace(broadcasts[0], params=own), data, members, streams, run, uploads)
            for place, number in enumerate(numbers):
                total = {name: value[place] for name, value in uploads.items()}
                states[place] = self._step(states[place], broadcasts[place], total, number, len(cohorts[place]))
        return states

    def _sum_uploads(
        self,
        broadcast: Broadcast,
        data: BlankFederation,
        members: list[int],
        streams: list[int],
        run: Tensor,
        zeros: Params,
    ) -> Params:
        """Return the sum of the uploads of each run."""
        rows = self.key.rows(broadcast.round, b"", streams, self.job.device)
        everyone = self.job.simulation.weights(list(range(self.job.population.clients)))
        weights = everyone[torch.tensor(members) % len(everyone)]
        with rows.seed_network():
            sent = self.job.algorithm.client_step(self.job.model.loss, broadcast, data.block(members), weights, rows)
        return {name: value.index_add(0, run, sent.rows[name].double()) for name, value in zeros.items()}

    def _train_alone(self, number: int, federation: BlankFederation) -> ServerState:
        """Train one run, as the training loop does."""
        settings = replace(self.job.settings, engine=Embedded())
        key = RunKey(self.key.secret[:24] + number.to_bytes(8, "little"), is_seeded=True)
        job = replace(self.job, data=federation, key=key, settings=settings)
        simulation = Simulation(
            job.algorithm, federation, job.model.loss, key, job.public_data, precision=settings.precision
        )
        state = job.algorithm.init(job.params)
        if job.algorithm.standardisation is not None:
            state = job.learn_input_scale(state)
        engine = EmbeddedEngine(
            simulation, fitting_block_size(simulation, job.algorithm.broadcast(state, 0, simulation.public_update))
        )
        for round in range(job.rounds):
            broadcast = job.algorithm.broadcast(state, round, simulation.public_update)
            gathered = engine.gather(broadcast, self._draw_cohort(round, number))
            state = self._step(state, broadcast, gathered.total, number, len(gathered.contributors))
        return state

    def _draw_cohort(self, round: int, number: int) -> list[int]:
        generator = self.key.generator(Purpose.SAMPLING, round, number)
        drawn = self.job.algorithm.sampling.sample(self.job.population, round, generator)
        return sorted(set(drawn) - self.job.spent_clients(round))

    def _step(
        self, state: ServerState, broadcast: Broadcast, total: Params, number: int, contributors: int
    ) -> ServerState:
        noise = self.key.rows(broadcast.round, b"", [number], self.job.device).for_purpose(Purpose.SERVER)
        departed = self.job.spent_clients(broadcast.round)
        population = self.job.population
        return self.job.algorithm.server_step(state, broadcast, total, contributors, population, noise, departed)


def _stack(models: Sequence[Params]) -> Params:
    return {name: torch.stack([model[name] for model in models]) for name in models[0]}


def _can_share_block(algorithm: Algorithm, job: Job) -> bool:
    """Whether clients of several runs may train in one block.

    What is announced must be the same for all of them, and training must read the model only as one row a client.
    """
    trainer = algorithm.trainer
    is_known = isinstance(trainer, DpSgd) or (
        isinstance(trainer, LocalSgd | GradientDescent) and trainer.regulariser is None
    )
    return (
        is_known
        and isinstance(algorithm.mechanism, NoPrivacy | Gaussian | LocalNoise)
        and isinstance(algorithm.aggregation, Plain)
        and isinstance(algorithm.sparsifier, AllCoordinates)
        and algorithm.standardisation is None
        and algorithm.client_groups(job.population)[0][0] is None
    )

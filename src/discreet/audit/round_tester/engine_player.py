"""Repetitions of a round through a real engine, one after the other, with the streams that a run has.

This is a thousand times as slow as a block of copies, and shows what blocks can't: the streams of clients and rounds,
the secure sum, workers on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from discreet.algorithms.algorithm import ServerState
from discreet.algorithms.broadcast import Broadcast
from discreet.audit.round_tester.repetition_player import SERVER_STREAM, Data, RepetitionPlayer, flatten_state
from discreet.engines.engine import Engine, Simulation
from discreet.errors import InvalidInput
from discreet.params import Params, flatten, subtract
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey


@dataclass(frozen=True)
class EnginePlayer:
    """Plays the rounds of one run, all from the same model: each round is a repetition.

    Streams are those of a run that has no seed, so that they depend on the broadcast too.

    Attributes:
        fast: The player that it stands in for: algorithm, task, observer.
        build_engine: Builds the engine that gathers the sums.
    """

    fast: RepetitionPlayer
    build_engine: Callable[[Simulation], Engine]

    def __post_init__(self) -> None:
        if len({self.fast.algorithm.sensitivity(round) for round in (0, 1, 50)}) > 1:
            raise InvalidInput(
                "An engine repeats a round by playing later ones, and this algorithm's rounds differ.",
                fix="Use a constant learning rate.",
            )

    def play(self, data: Data, repetitions: int, key: RunKey) -> Tensor:
        """Return what the observer sees, one row for each repetition."""
        algorithm, own = self.fast.algorithm, RunKey(key.secret)
        engine = self.build_engine(Simulation(algorithm, data.federation, self.fast.loss, own))
        state = algorithm.init(self.fast.params)
        seen = []
        for repetition in range(repetitions):
            broadcast = algorithm.broadcast(state, repetition)
            seen.append(self._play_round(engine, state, broadcast, self._draw_cohort(data, own, repetition)))
        return torch.stack(seen).double()

    def _draw_cohort(self, data: Data, key: RunKey, repetition: int) -> list[int]:
        population, sampling = data.federation.population, self.fast.algorithm.sampling
        public = sampling.public_cohort(population, self.fast.round)
        generator = key.generator(Purpose.SAMPLING, repetition)
        cohort = sampling.sample(population, repetition, generator) if public is None else list(public)
        return [client for client in cohort if client not in data.absent and client not in self.fast.dropouts]

    def _play_round(self, engine: Engine, state: ServerState, broadcast: Broadcast, cohort: list[int]) -> Tensor:
        if self.fast.sees == "uploads":
            return torch.cat([flatten(engine.gather(broadcast, [client]).total) for client in cohort])
        gathered = engine.gather(broadcast, cohort)
        total = self._remove_known(engine.simulation, broadcast, gathered.total, gathered.contributors)
        if self.fast.sees == "sum":
            return flatten(total)
        simulation = engine.simulation
        noise = simulation.rows(broadcast, [SERVER_STREAM]).for_purpose(Purpose.SERVER)
        contributors, population = len(gathered.contributors), simulation.population
        return flatten_state(self.fast.algorithm.server_step(state, broadcast, total, contributors, population, noise))

    def _remove_known(
        self, simulation: Simulation, broadcast: Broadcast, total: Params, contributors: tuple[int, ...]
    ) -> Params:
        """Take off the uploads that the observer knows: those clients compute them again, from the same streams."""
        for client in self.fast.known:
            if client in contributors:
                sent = simulation.step(broadcast, [client]).rows
                total = subtract(total, {name: value[0] for name, value in sent.items()})
        return total

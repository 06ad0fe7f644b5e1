"""Train on stand-in data with canaries in it, and score every canary by what the attacker sees in each round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from discreet.algorithms.algorithm import Algorithm, ServerState
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.sparsifiers.common_mask import mask_name
from discreet.algorithms.uploads import Uploads
from discreet.audit.attack_plan import AttackPlan
from discreet.audit.audit_setup import AuditSetup
from discreet.audit.canary_data import PlantedCanaries, blank_public, plant_gradients
from discreet.audit.estimators.estimate import Array, Coins
from discreet.audit.feature_canaries import plant_features
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import CohortSum, Engine, Simulation
from discreet.engines.engine_table import EngineSetup
from discreet.params import Params, flatten
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey
from discreet.secure_sums.secagg.session_errors import RoundOver

Watch = Callable[[int], None]


@dataclass(frozen=True)
class AuditedRun:
    """What was seen of the canaries of one run, one row for each canary and one column for each round.

    Attributes:
        values: What is seen along each canary's direction. NaN where the attacker knows that its client did not join.
        entries: How often each canary would enter if it were present.
        present: Which canaries were present.
    """

    values: Array
    entries: Array
    present: Coins


def play_run(setup: AuditSetup, plan: AttackPlan, key: RunKey, watch: Watch) -> AuditedRun:
    """Train once on stand-in data with canaries in it, and return what was seen of them.

    Args:
        setup: What to train.
        plan: Which canaries to plant, and what is seen.
        key: The key that all randomness is drawn from.
        watch: Called with the number of rounds that are done.
    """
    generator = key.generator(Purpose.AUDIT)
    present = torch.randint(2, (len(plan.slots),), generator=generator, dtype=torch.bool)
    planted = _plant(setup, plan, present, generator)
    like = next(iter(setup.params.values()))
    public = blank_public(setup.public_examples, like) if setup.public_examples else None
    simulation = Simulation(setup.algorithm, planted.data, planted.loss, key, public)
    gone = {c for c, there in zip(plan.slots.clients, present, strict=True) if plan.removes and not there}
    engine = _build_engine(setup, plan, simulation)
    attacker = _Attacker(setup, plan, planted, simulation, engine, frozenset(gone))
    state, values, entries = setup.algorithm.init(planted.params), [], []
    for round in range(setup.rounds):
        state, seen, entered = attacker.play(state, round)
        values.append(seen)
        entries.append(entered)
        watch(round + 1)
    return AuditedRun(np.stack(values, axis=1), np.stack(entries, axis=1), present.numpy())


def _plant(setup: AuditSetup, plan: AttackPlan, present: Tensor, generator: torch.Generator) -> PlantedCanaries:
    sizes = setup.population.examples
    if plan.feature_bound is not None:
        return plant_features(plan.slots, sizes, present, plan.amplitudes, setup.params, plan.feature_bound)
    narrow = plan.design.noise == "laplace"
    return plant_gradients(plan.slots, sizes, present, plan.amplitudes, setup.params, generator, narrow=narrow)


def _build_engine(setup: AuditSetup, plan: AttackPlan, simulation: Simulation) -> Engine:
    """Build the experiment's engine; an attacker who sees uploads needs those of the embedded one."""
    table = setup.engine
    if plan.sight == "uploads" or plan.observer is not None or table.kind in ("ray", "flower"):
        embedded = EngineSetup(simulation, setup.params)
        return EmbeddedEngine(simulation, embedded.choose_block_size(None))
    return table.build(EngineSetup(simulation, setup.params))


@dataclass(frozen=True)
class _Attacker:
    """Plays rounds as the training loop does, and looks at what its view shows."""

    setup: AuditSetup
    plan: AttackPlan
    planted: PlantedCanaries
    simulation: Simulation
    engine: Engine
    gone: frozenset[int]

    def play(self, state: ServerState, round: int) -> tuple[ServerState, Array, Array]:
        """Play one round; return the next state, what is seen of each canary, and how often it would have entered."""
        setup, algorithm = self.setup, self.setup.algorithm
        broadcast = algorithm.broadcast(state, round, self.simulation.public_update)
        spent = setup.spent_clients(round)
        drawn = algorithm.sampling.sample(
            setup.population, round, self.simulation.key.generator(Purpose.SAMPLING, round)
        )
        cohort = [client for client in drawn if client not in spent]
        there = [client for client in cohort if client not in self.gone]
        draws = self.planted.data.draws
        assert draws is not None
        draws.zero_()
        try:
            gathered, uploads = self._gather(broadcast, there)
        except RoundOver:  # the round is lost, and the run goes on with the next
            unseen = np.full(len(self.plan.slots), np.nan)
            return state, unseen, unseen
        noise = self.simulation.rows(broadcast, [-1]).for_purpose(Purpose.SERVER)
        total, joined = gathered.total, len(gathered.contributors)
        if self.plan.sight == "uploads":
            scores = self._score_uploads(uploads, broadcast)
        else:
            seen = self._hide_share(total, uploads)
            divisor = algorithm.expected_cohort(setup.population, spent)
            decoded = algorithm.aggregation.decode(seen, broadcast.encoding, state.params)
            released, _ = algorithm.mechanism.release_sum(decoded, state.mechanism, broadcast, divisor, joined, noise)
            scores = self._score(released, broadcast).double().cpu().numpy()
            if self.plan.knows_cohort:
                scores[~self._is_member(cohort)] = np.nan
        state = algorithm.server_step(state, broadcast, total, joined, setup.population, noise, spent)
        return state, scores, self._entries(cohort)

    def _is_member(self, cohort: list[int]) -> Coins:
        """Return which canaries' clients were drawn."""
        members = set(cohort)
        return np.array([client in members for client in self.plan.slots.clients])

    def _entries(self, cohort: list[int]) -> Array:
        """Return how often each canary entered, or would have if it were present and its rows don't count."""
        if not self.plan.counts_rows:
            return np.where(self._is_member(cohort), self.plan.entries, 0.0)
        assert self.planted.data.draws is not None
        draws = self.planted.data.draws.cpu()
        return np.array([float(draws[rows.start : rows.stop].sum()) for rows in self.plan.slots.rows])

    def _gather(self, broadcast: Broadcast, cohort: list[int]) -> tuple[CohortSum, list[tuple[list[int], Uploads]]]:
        if self.plan.sight == "release" and self.plan.observer is None:
            return self.engine.gather(broadcast, cohort), []
        assert isinstance(self.engine, EmbeddedEngine)
        algorithm, blocks = self.setup.algorithm, list(self.engine.client_steps(broadcast, cohort))
        return CohortSum.from_blocks(blocks, broadcast, algorithm.mechanism, algorithm.aggregation), blocks

    def _score_uploads(self, uploads: list[tuple[list[int], Uploads]], broadcast: Broadcast) -> Array:
        """Score each canary by the upload of its own client."""
        scores = np.full(len(self.plan.slots), np.nan)
        owners = np.array(self.plan.slots.clients)
        for block, sent in uploads:
            products = self._score(sent.rows, broadcast, leading=1).double().cpu().numpy()
            for at, client in enumerate(block):
                scores[owners == client] = products[at, owners == client]
        return scores

    def _score(self, seen: Params, broadcast: Broadcast, leading: int = 0) -> Tensor:
        """Project what is seen onto each canary's direction, in units that are the same in every round."""
        update = {name: seen[name] for name in self.setup.params}  # not what goes beside the update
        masks = {name: broadcast.announcement.get(mask_name(name)) for name in update}
        mask = None
        if all(value is not None for value in masks.values()):
            mask = flatten({name: value for name, value in masks.items() if value is not None})
        return self.planted.directions.project(flatten(update, leading).double(), mask) / _step_size(
            self.setup.algorithm, broadcast
        )

    def _hide_share(self, total: Params, uploads: list[tuple[list[int], Uploads]]) -> Params:
        """Return the sum without the noise that the attacking client added itself."""
        for block, sent in uploads:
            if self.plan.observer in block and sent.clean is not None:
                at = block.index(self.plan.observer)
                return {
                    name: value - (sent.rows[name][at] - sent.clean[name][at]) if name in sent.clean else value
                    for name, value in total.items()
                }
        return total


def _step_size(algorithm: Algorithm, broadcast: Broadcast) -> float:
    """Return the factor of the noise that training adds; noise of a mechanism is in units of the clip."""
    trainer = algorithm.trainer
    if algorithm.mechanism.is_private or not hasattr(trainer, "schedule"):
        return 1.0
    return float(trainer.schedule.factor(broadcast.round)) or 1.0

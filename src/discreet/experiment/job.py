"""A job: everything that the training loop needs to run an experiment."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from discreet.algorithms.algorithm import Algorithm, ServerState
from discreet.algorithms.input_scale import InputScale
from discreet.algorithms.message_sizes import message_bits
from discreet.algorithms.population import Population
from discreet.algorithms.standardisation import MOMENTS, PREPARATION, drop_out_factor, moment_deviation
from discreet.data.data_facts import DataFacts
from discreet.data.federation import Federation
from discreet.data.tasks.task import Task
from discreet.engines.engine import Engine, RemoteEngine, Simulation
from discreet.engines.engine_table import EngineSetup
from discreet.engines.sum_check import check_sum
from discreet.experiment.configuration.run_settings import RunSettings
from discreet.experiment.metrics import CONSTANT
from discreet.experiment.promise.promise import Privacy
from discreet.experiment.promise.released_rounds import ReleasedRound
from discreet.experiment.terms import DeploymentFacts, ModelSize, Terms
from discreet.logs import get_log
from discreet.models.user_module.supervised_module import SupervisedModule
from discreet.params import Params, count_values
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey
from discreet.round_clock import NO_CLOCK, Clock

log = get_log(__name__)
NOT_COMPILED = "compile = true does nothing here: only local SGD and gradient descent are compiled, in simulations."

METRIC_EXAMPLES = 100  # on which the names of metrics are found
TRAINING_EXAMPLES = 10_000  # the most that evaluate_training looks at


@dataclass(frozen=True)
class Job:
    """Everything that the training loop needs.

    Attributes:
        settings: The settings of the run.
        key: The run's key, from which all randomness is drawn.
        task: The data as it was loaded.
        data: The clients' data, on the device and in the precision of the settings.
        public_data: Examples that no client holds and that the server may train on.
        test_data: Inputs and targets on which the model is evaluated.
        model: The user's module with its loss and metric.
        params: The first weights.
        algorithm: The algorithm with all its noise.
        privacy: The promise. None for a run without privacy.
        resolved_text: The experiment in full, as the run directory keeps it.
        source_text: The experiment's file as it was written. Empty for a run from Python.
        folder: The folder that file names are relative to. None for a run from Python.
        declared: The public client sizes of clients who keep their data themselves. None in a simulation.
        remote_engine: The engine that reaches those clients.
        deployment: What the run says about its deployment.
        isolation_note: What was verified about a model of the user's own.
        part_trials: What was tried of parts of the user's own, in sentences.
        validation_data: Inputs and targets on which settings are chosen. None if no examples are held out for that.
        accept_data_ranges: Whether the user accepted ranges that were taken from the data.
        as_far_as_it_goes: Whether to start though the ledger that is shared can't pay for all rounds.
    """

    settings: RunSettings
    key: RunKey
    task: Task
    data: Federation
    public_data: Federation | None
    test_data: tuple[Tensor, Tensor]
    model: SupervisedModule
    params: Params
    algorithm: Algorithm
    privacy: Privacy | None
    resolved_text: str
    source_text: str = ""
    folder: Path | None = None
    declared: Population | None = None
    remote_engine: RemoteEngine | None = None
    deployment: DeploymentFacts | None = None
    isolation_note: str | None = None
    part_trials: tuple[str, ...] = ()
    validation_data: tuple[Tensor, Tensor] | None = None
    accept_data_ranges: bool = False
    as_far_as_it_goes: bool = False

    @property
    def rounds(self) -> int:
        return self.settings.rounds

    @property
    def population(self) -> Population:
        return self.declared or self.data.population

    @property
    def holds_data(self) -> bool:
        """Whether the clients' data is here. False if real clients keep it on their own machines."""
        return self.declared is None

    @property
    def device(self) -> torch.device:
        return self.data.inputs.device

    def start_warnings(self) -> list[str]:
        """Return what every way to start a run warns of: a promise that says little, a setting that does nothing."""
        return [*self.terms.promise_warnings(), *([NOT_COMPILED] * self._compiles_nothing)]

    @property
    def _compiles_nothing(self) -> bool:
        return self.settings.compile and not (self.holds_data and self.algorithm.trainer.has_compiled_steps)

    @property
    def simulation(self) -> Simulation:
        """What an engine needs to play the clients."""
        return Simulation(
            self.algorithm,
            self.data,
            self.model.loss,
            self.key,
            self.public_data,
            declared=self.declared,
            precision=self.settings.precision,
            compile=self.settings.compile,
        )

    def build_engine(self, block_size: int | None, clock: Clock = NO_CLOCK) -> Engine:
        """Build the engine of the settings. A resumed run passes the block size of its checkpoint."""
        simulation = replace(self.simulation, clock=clock)
        engine = self.settings.engine.build(EngineSetup(simulation, self.params, block_size, self.remote_engine))
        kind, device = self.settings.engine.kind, str(self.device)
        log.info("engine built", engine=kind, device=device, block_size=engine.block_size)
        return engine

    def evaluate(self, state: ServerState) -> dict[str, float]:
        """Evaluate the model on the test data. A squared error comes with that of a constant prediction."""
        metrics = self.model.evaluate(state.params, *self.test_data, InputScale.find(state.input_scale))
        if "mse" not in metrics:
            return metrics
        return {"mse": metrics.pop("mse"), CONSTANT: self._constant_mse, **metrics}

    def evaluate_validation(self, state: ServerState) -> dict[str, float]:
        """Evaluate the model on the validation data. Empty if there is none."""
        if self.validation_data is None:
            return {}
        return self.model.evaluate(state.params, *self.validation_data, InputScale.find(state.input_scale))

    @cached_property
    def metric_names(self) -> tuple[str, ...]:
        """The names of the metrics, found on a few test examples. Empty without test data."""
        inputs, targets = self.test_data
        return tuple(self.model.evaluate(self.params, inputs[:METRIC_EXAMPLES], targets[:METRIC_EXAMPLES]))

    def evaluate_training(self, state: ServerState) -> dict[str, float]:
        """Evaluate the model on training examples: the same ones in every round, drawn by the run's key."""
        return self.model.evaluate(state.params, *self._training_examples, InputScale.find(state.input_scale))

    @cached_property
    def _training_examples(self) -> tuple[Tensor, Tensor]:
        generator = self.key.generator(Purpose.TRAINING_EXAMPLES)
        chosen = torch.randperm(sum(self.data.sizes), generator=generator)[:TRAINING_EXAMPLES]
        return self.data.examples_at(chosen.sort().values)

    @cached_property
    def constant_accuracy(self) -> float | None:
        """The share of test examples that have the clients' most frequent label. None if it is not known here."""
        labels, test = self.data.targets, self.test_data[1]
        if self.task.kind != "classification" or not self.holds_data or not len(test) or test.dim() != 1:
            return None
        held = labels if self.data.order is None else labels[self.data.order.to(labels.device)]
        return float((test == held.mode().values).double().mean())

    @cached_property
    def _constant_mse(self) -> float:
        """The squared error of predicting the mean of the clients' targets for every test example."""
        targets = self.data.targets if self.data.order is None else self.data.targets[self.data.order]
        return float((self.test_data[1].double() - targets.double().mean(dim=0)).square().mean())

    def learn_input_scale(self, state: ServerState) -> ServerState:
        """Sum the moments of the clients' numbers, and return the state with the centres and spreads that follow.

        Raises:
            RoundOver: The sum is lost.
            RoundRefused: Too many real clients refused or are away.
        """
        wanted, moments = self.algorithm.standardisation, self.algorithm.for_moments(self.population)
        assert wanted is not None
        assert moments is not None
        first = moments.init(wanted.first_model(next(iter(self.params.values()))))
        simulation = replace(self.simulation, algorithm=moments, loss=wanted.moment_loss)
        if self.remote_engine is None:
            engine = self.settings.engine.for_moments().build(EngineSetup(simulation, first.params))
        else:
            engine = self.remote_engine.for_moments(simulation)
        broadcast = moments.broadcast(first, PREPARATION)
        gathered = engine.gather(broadcast, list(range(self.population.clients)))
        check_sum(moments, broadcast, gathered, self.population)
        noise = engine.simulation.rows(broadcast, [-1]).for_purpose(Purpose.SERVER)
        joined = gathered.contributors
        done = moments.server_step(first, broadcast, gathered.total, len(joined), self.population, noise)
        factor = drop_out_factor(moments, self.population, joined)
        deviation = factor * moment_deviation(self.algorithm, self.population)
        return state._replace(input_scale=wanted.scale_from_moments(factor * done.params[MOMENTS], deviation))

    def has_public_cohort(self, round: int) -> bool:
        """Whether anybody may know who is in a round, since the guarantee counts no secret draw."""
        return self.algorithm.sampling.public_cohort(self.population, round) is not None

    @cached_property
    def terms(self) -> Terms:
        """All that the guarantee and the cost follow from."""
        return Terms(
            settings=self.settings,
            algorithm=self.algorithm,
            privacy=self.privacy,
            population=self.population,
            data=data_facts(self.task, is_here=self.holds_data),
            is_seeded=self.key.is_seeded,
            size=ModelSize(count_values(self.params), message_bits(self.algorithm, self.params)),
            metric_names=self.metric_names,
            deployment=self.deployment,
            isolation_note=self.isolation_note,
            part_trials=self.part_trials,
        )

    def spent_epsilon(self, completed: int, released: Sequence[ReleasedRound] | None = None) -> float | None:
        """Return the ε of the client that has spent most after `completed` rounds, as the job's terms do."""
        return self.terms.spent_epsilon(completed, released)

    @property
    def round_limits(self) -> dict[int, int]:
        """The clients whose budget is spent before the last round, and the number of rounds that each can pay for."""
        return self.terms.round_limits

    def spent_clients(self, round: int) -> frozenset[int]:
        """Return the clients whose budget is spent before this round."""
        return frozenset(client for client, lasts in self.round_limits.items() if lasts <= round)


def data_facts(task: Task, *, is_here: bool) -> DataFacts:
    """Return what plans and cards say about a task's data."""
    train = task.train
    distinct = sum(train.sizes) if train.max_multiplicity == 1 else None
    if train.order is not None:
        distinct = int(torch.bincount(train.order).count_nonzero())
    return DataFacts(
        kind=task.kind,
        facts=task.facts,
        not_covered=task.not_covered,
        ranges_from_data=task.ranges_from_data,
        person=task.person,
        rows_left_out=task.rows_left_out,
        standardisation=task.standardisation,
        has_validation=task.validation is not None,
        public_examples=None if task.public is None else task.public.sizes[0],
        distinct_examples=distinct,
        is_dealt=task.is_dealt,
        is_here=is_here,
    )

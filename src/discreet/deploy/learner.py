"""The client's half of an experiment: its data, its model, and the update that it computes from a broadcast."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.population import Population
from discreet.algorithms.sparsifiers.common_mask import mask_name
from discreet.algorithms.training import Loss
from discreet.client_layers.precision import GradientPrecision, gradient_precision
from discreet.data.federation import Federation
from discreet.data.tables.table_task import TableTask
from discreet.data.tasks.task import Task
from discreet.deploy.app_folder import AppFolder, public_run_key
from discreet.deploy.journal import Entry
from discreet.deploy.policy import ClientFolder
from discreet.engines.flower import signed_messages
from discreet.engines.flower.flower_errors import RequestRefused
from discreet.errors import InvalidInput
from discreet.experiment.loop.job_builder import build_model
from discreet.experiment.promise import data_ranges, person_bound, run_spending
from discreet.experiment.run_directory.fingerprint import client_fingerprint
from discreet.models.user_module.supervised_module import SupervisedModule
from discreet.params import Params
from discreet.paths import Paths
from discreet.randomness.purposes import Purpose
from discreet.randomness.secret_streams import KEY_BYTES, SecretRows
from discreet.randomness.streams import RunKey, SimulatedRows
from discreet.secure_sums.secagg.session_errors import BadMessage
from discreet.trust import Trust
from discreet.user_code import load_object

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Learner:
    """A client's data, model and algorithm.

    Attributes:
        experiment: Digest of the app folder.
        params: The model's first weights, which give the shapes that a broadcast must have.
        loss: The loss that training descends.
        data: The client's own data, or all clients' data if the task is divided here.
        client: The client's number in the deployment.
        place: The client's number in `data`.
        last_rounds: Number of rounds for each client whose budget ends before the run.
        fingerprint: Digest of data and code on this machine, part of noise keys and charges.
        secret: The key of the client's noise.
        notices: Lines that the owner should read when the node starts.
        precision: In which gradients are computed, if the client trains on a GPU; a CPU computes in float32.
    """

    experiment: str
    algorithm: Algorithm
    population: Population
    model: SupervisedModule
    params: Params
    loss: Loss
    data: Federation
    client: int
    place: int
    seed: int | None
    last_rounds: Mapping[int, int]
    fingerprint: str
    secret: bytes = field(repr=False)
    notices: tuple[str, ...] = ()
    precision: GradientPrecision = "float32"

    @classmethod
    def load(
        cls,
        app: AppFolder,
        owned: ClientFolder,
        secret: bytes,
        trust: Trust,
        data_dir: Path | None = None,
        device: torch.device = CPU,
    ) -> "Learner":
        """Load the data and build the model.

        Args:
            app: The app folder.
            owned: The client's folder.
            secret: The key of the client's noise.
            trust: Which code of the app folder may run here.
            data_dir: The folder of downloaded data sets.
            device: Where the client trains.

        Raises:
            UntrustedCode: Code of the app folder may not run.
            InvalidInput: The data is not as declared, or the model does not fit it.
            PolicyRefusal: The ranges were taken from data, and the policy does not allow that.
        """
        experiment, paths = app.experiment, app.source(data_dir, trust).paths
        client = app.client_number(owned.policy.client)
        loaded = load_client_data(app, client, owned.data, paths)
        owned.policy.allow_data_ranges(loaded.ranges_from_data)
        place = 0 if owned.data is not None else client
        module = build_model(experiment.model, loaded, paths, public_run_key(experiment).generator(Purpose.MODEL))
        loss = None if experiment.loss is None else load_object(experiment.loss, paths.folder, trust)
        model = SupervisedModule(module, loaded.kind, loss=loss)
        model.check(loaded)
        dtype = getattr(torch, experiment.dtype)
        params = {name: value.to(dtype) for name, value in model.params.items()}
        model.verify_isolation(loaded, _move(params, device))
        data, algorithm = loaded.train.move_to(CPU, dtype), experiment.algorithm
        last_rounds = run_spending.round_limits(algorithm, experiment.privacy, experiment.rounds, app.population)
        warned = (f"Warning: {sentence}" for sentence in data_ranges.warnings(loaded.ranges_from_data))
        return cls(
            experiment=app.digest,
            algorithm=algorithm,
            population=app.population,
            model=model,
            params=params,
            loss=model.loss,
            data=data.move_to(device),
            client=client,
            place=place,
            seed=experiment.seed,
            last_rounds=last_rounds,
            fingerprint=client_fingerprint(data, secret),
            secret=secret,
            notices=(*warned, *person_bound.owner_notices(loaded.person, loaded.rows_left_out)),
            precision=experiment.precision,
        )

    def for_moments(self) -> "Learner":
        """Return the learner of the sum of moments before the first round.

        Raises:
            RequestRefused: This experiment has no such sum.
        """
        wanted, moments = self.algorithm.standardisation, self.algorithm.for_moments(self.population)
        if wanted is None or moments is None:
            raise RequestRefused(
                "The server asks for the moments of the data, and this experiment standardises nothing."
            )
        first = wanted.first_model(next(iter(self.params.values())))
        return replace(self, algorithm=moments, params=first, loss=wanted.moment_loss)

    def check_cohort(self, round: int, cohort: tuple[int, ...]) -> None:
        """Refuse a cohort that the sampling can't have drawn.

        It must name clients of the deployment, each once, and this client. If the sampling is public, it must be this
        round's cohort.
        """
        if len(set(cohort)) < len(cohort) or max(cohort, default=0) >= self.population.clients:
            raise RequestRefused(
                f"A cohort must be of the {self.population.clients} clients, each at most once, and got {cohort!s:.60}."
            )
        if self.client not in cohort:
            raise RequestRefused(f"The cohort must include this client, number {self.client}, and got {cohort!s:.60}.")
        known = self.algorithm.sampling.public_cohort(self.population, round)
        if known is not None:
            due = {client for client in known if self.last_rounds.get(client, round + 1) > round}
            if set(cohort) != due:
                raise RequestRefused(
                    f"In round {round + 1} it is the turn of {sorted(due)}, and the server names {cohort!s:.60}."
                )

    def lattice(self, round: int) -> tuple[int, int] | None:
        """Return the length and the bits of a secure sum's vector, None if updates are not integers."""
        encoding = self.algorithm.rebuild_broadcast(round, self.params, {}).encoding
        if encoding is None:
            return None
        return sum(value.numel() for value in encoding.zero(self.params).values()), encoding.bits

    def decode_broadcast(self, round: int, data: bytes) -> Broadcast:
        """Decode a broadcast.

        Raises:
            BadMessage: The model is not this experiment's or not finite, or the server announced a value that it may
                not choose.
        """
        params, announced = signed_messages.decode_broadcast(data, self.params)
        if not all(bool(value.isfinite().all()) for value in params.values()):
            raise BadMessage("The model that was sent is not finite, so there is nothing to learn from it.")
        mechanism = self.algorithm.mechanism
        self.algorithm.trainer.check_model(self.loss, params, self.data.inputs[:1, None].cpu())
        due = mechanism.announce(mechanism.init(params), self.algorithm.sensitivity(round))
        # The server may choose only what it alone knows: the adaptive clip, and a mask from its public data.
        chosen = set(mechanism.server_choices)
        if self.algorithm.sparsifier.needs_public_data:
            masks = {mask_name(name): torch.zeros_like(value, dtype=torch.bool) for name, value in params.items()}
            due, chosen = due | masks, chosen | set(masks)
        else:
            due |= self.algorithm.sparsifier.announce(params, round)
        if (scaled := self.algorithm.standardisation) is not None:
            unit = scaled.unit_scale(next(iter(params.values())))
            due, chosen = due | unit, chosen | set(unit)
        for name in {*due, *announced}:
            if not _matches_announcement(due.get(name), announced.get(name), same=name not in chosen):
                raise BadMessage(
                    f"The server announced another {name!r} than this algorithm has, which would change what an "
                    "update may reveal."
                )
        if scaled is not None and not scaled.accepts(announced):
            raise BadMessage("The server announced centres and spreads that no sum of moments gives.")
        return self.algorithm.rebuild_broadcast(round, params, announced)

    def update(self, run: str, broadcast: Broadcast, entry: Entry) -> Params:
        """Compute the update that this client sends. The same run, broadcast and entry give the same bytes."""
        rows = self._noise_rows(run, broadcast)
        rows = rows.for_purpose(Purpose.ATTEMPT, entry.attempt) if entry.attempt else rows
        if self.seed is None and entry.session:  # so that two sessions never share noise, even if the journal was lost
            rows = rows.for_purpose(Purpose.SESSION, entry.session)
        weight = torch.tensor([self.algorithm.weights(self.population)[self.client]], dtype=torch.float64).to(
            self.device
        )
        here = self.algorithm.rebuild_broadcast(
            broadcast.round, _move(broadcast.params, self.device), _move(broadcast.announcement, self.device)
        )
        with rows.seed_network(), gradient_precision(self.precision, self.device):
            sent = self.algorithm.client_step(self.loss, here, self.data.block([self.place]), weight, rows)
        return {name: value[0].cpu() for name, value in sent.rows.items()}

    @property
    def device(self) -> torch.device:
        """Where the client trains. Noise from its own key is drawn on the CPU, and noise from a seed there."""
        return self.data.inputs.device

    def _noise_rows(self, run: str, broadcast: Broadcast) -> SecretRows | SimulatedRows:
        """Return the client's noise streams for a broadcast.

        The key depends on experiment, run and fingerprint, so that two runs that begin with the same model share no
        noise, and neither do other data under the same model. A seed gives the streams of a simulation, bit for bit.
        """
        if self.seed is not None:
            return RunKey.from_seed(self.seed).rows(broadcast.round, b"", [self.client], self.device)
        name = f"{self.experiment} {run} {self.fingerprint}".encode()
        derived = hashlib.blake2b(name, key=self.secret, digest_size=KEY_BYTES, person=b"discreet run")
        return RunKey(derived.digest()).secret_rows(broadcast.round, broadcast.digest, self.client, self.device)


def _move(tensors: Params, device: torch.device) -> Params:
    return {name: value.to(device) for name, value in tensors.items()}


def load_client_data(app: AppFolder, client: int, own: Path | None, paths: Paths) -> Task:
    """Load the client's own table, or the whole task if the task is divided among clients.

    Runs no code of the experiment for a table, and for a task only what the paths' trust allows.

    Raises:
        InvalidInput: The data is not as declared.
    """
    task = app.experiment.task
    if own is not None:
        if not isinstance(task, TableTask):
            raise InvalidInput(
                f"The client has a table of its own, {own}, and the experiment's task is not a table.",
                fix="Leave the table out: each client gets its share of the task.",
            )
        task = replace(task, path=str(own.resolve()))
    experiment = replace(app.experiment, task=task)
    loaded = experiment.load_task(public_run_key(experiment).generator(Purpose.TASK), paths)
    _check_declaration(app, client, loaded.client_names, loaded.train.sizes, own=own is not None)
    return loaded


def _matches_announcement(expected: torch.Tensor | None, announced: torch.Tensor | None, *, same: bool) -> bool:
    """Whether an announced tensor has the expected shape and, if the server may not choose it (`same`), the value."""
    if expected is None or announced is None or not signed_messages.is_like(announced, expected):
        return False
    return torch.equal(expected, announced) if same else bool(announced.isfinite().all())


def _check_declaration(
    app: AppFolder, client: int, names: tuple[str, ...], sizes: tuple[int, ...], *, own: bool
) -> None:
    declared = app.deployment.clients[client]
    if own and len(names) != 1:
        raise InvalidInput(
            f"A client's table must contain only its own rows, and this one has rows of {len(names)} clients.",
            fix="Remove the other clients' rows.",
        )
    if not own and len(names) != app.population.clients:
        raise InvalidInput(
            f"The task has {len(names)} clients, and the deployment {app.population.clients}.",
            fix="Name this client's own table in policy.toml: data = …",
        )
    size = sizes[0 if own else client]
    if size != declared.examples:
        person = None if app.experiment.privacy is None else app.experiment.privacy.person
        rule = "" if person is None else f" after rows of persons with more than {person.at_most} were left out"
        raise InvalidInput(
            f"{declared.name} was declared with {declared.examples} examples to train on, and holds {size}{rule}.",
            fix="Check that this is the right table. If it is, declare the right number: it is public, and the noise "
            "is computed from it.",
        )

"""The server's half of a deployment: start or resume one run, over any carrier of messages to the clients."""

import hashlib
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from discreet import api
from discreet.data.tables.table_task import TableTask
from discreet.deploy.app_folder import AppFolder, public_run_key
from discreet.deploy.certificates import read_key
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.membership import check_in_force
from discreet.deploy.revoked_keys import is_revoked
from discreet.engines.flower.carrier import Carrier
from discreet.engines.flower.client_calls import ClientCalls
from discreet.engines.flower.flower_engine import FlowerEngine
from discreet.errors import InvalidInput
from discreet.experiment.configuration.own_code import find_own_code
from discreet.experiment.job import Job
from discreet.experiment.loop import job_builder, training_loop
from discreet.experiment.loop.outcome import Outcome
from discreet.experiment.promise import data_ranges
from discreet.experiment.run_directory import run_keys
from discreet.experiment.run_directory.draft_folder import remove_drafts
from discreet.experiment.run_directory.resume_check import check_version
from discreet.experiment.run_directory.run_files import RoundRecord, json_number
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.experiment.terms import DeploymentFacts
from discreet.logs import get_log
from discreet.part import to_plain
from discreet.randomness.streams import RunKey
from discreet.trust import Trust

log = get_log(__name__)


@dataclass(frozen=True)
class DeployedRun:
    """One run of a deployment, on the server's machine.

    Attributes:
        root: The deployment's folder.
        name: The run's name.
        is_rehearsal: Whether one machine plays all clients.
        trust: Which code of the app folder may run here.
    """

    root: DeploymentFolder
    name: str
    is_rehearsal: bool = False
    trust: Trust = field(default_factory=Trust.no_code)

    @property
    def folder(self) -> Path:
        return self.root.run(self.name)

    def train(self, carrier: Carrier, say: Callable[[str], None], data_dir: Path | None = None) -> Outcome:
        """Train the deployment's experiment. A run that was stopped goes on after its last round.

        If clients refuse or stay away, the run stops and keeps its model and card, as any stopped run does.

        Args:
            carrier: Carries messages to the clients' nodes.
            say: Prints a line of progress.
            data_dir: Folder of downloaded data sets.
        """
        root, where = self.root, self.folder
        remove_drafts(where)  # the caller holds the run's lock
        self.check_resumable()
        check_in_force(AppFolder.open(root.app))
        before = RunRecord.open(where) if where.exists() else None
        seed = AppFolder.open(root.app).experiment.seed
        if seed is not None:
            key = RunKey.from_seed(seed)
        else:
            key = RunKey.generate() if before is None else run_keys.load_key(before.identity.id, root.key_dir)
        job = self.prepare_job(key, carrier, say, data_dir)
        watch = _log_rounds(job, say)
        for sentence in (*data_ranges.warnings(job.task.ranges_from_data), *job.start_warnings()):
            say(f"Warning: {sentence}")
        if before is None:
            say(f"Run {self.name!r} begins: {job.rounds} rounds, {job.population.clients} clients.")
            outcome = training_loop.start(job, where, None, root.key_dir, watch)
        else:
            say(f"Run {self.name!r} goes on after round {len(before.read_rounds())} of {job.rounds}.")
            outcome = training_loop.resume(job, before, root.key_dir, watch)
        api.write_page(where)
        say(outcome.stopped or f"Run {self.name!r} is done after {outcome.completed} rounds: {where}")
        return outcome

    def check_resumable(self) -> None:
        """Refuse a run that is finished or was made by another version, before anything is started for it."""
        if not self.folder.exists():
            return
        record = RunRecord.open(self.folder)
        if record.is_finished():
            raise InvalidInput(
                f"The run {self.name!r} is finished.",
                fix=f"Use a new name: {replace(self, name='…').resume_command}",
            )
        check_version(record)

    @property
    def resume_command(self) -> str:
        """The command that starts the run, or resumes it."""
        folder = self.root.folder
        verb, folder = ("simulate", folder.parents[1]) if self.is_rehearsal else ("submit", folder)
        return f"discreet deploy {verb} {shlex.quote(str(folder))} --name {self.name}"

    def prepare_job(
        self, key: RunKey, carrier: Carrier, say: Callable[[str], None], data_dir: Path | None = None
    ) -> Job:
        """Build the job whose cohorts are real clients."""
        app = AppFolder.open(self.root.app)
        public, source = public_run_key(app.experiment), app.source(data_dir, self.trust)
        if isinstance(app.experiment.task, TableTask) and app.experiment.algorithm.standardisation is None:
            # what the clients have agreed to decides, not what would be chosen today
            task = replace(app.experiment.task, standardise=False)
            source = replace(source, experiment=replace(source.experiment, task=task))
        job = job_builder.build_job(source, key, declared=app.population, public=public)
        if isinstance(app.experiment.task, TableTask):  # nobody trains on the server's stand-in, so it is the test set
            job = replace(job, test_data=job.data.examples_at(torch.arange(sum(job.data.sizes))))
        engine, run = app.engine, _run_id(self.name, key)
        log.info("deployed run prepared", client_run=run, experiment=app.digest, path=self.folder)
        calls = ClientCalls(
            carrier=carrier,
            members=app.members,
            run=run,
            experiment=app.digest,
            key=read_key(self.root.server / "server.key"),
            say=say,
            timeout=engine.timeout,
            has_public_cohort=job.has_public_cohort,
            is_revoked=self._revocation_check(app),
        )
        return replace(
            job,
            # A round whose model was broadcast but not stored would be repeated, with the same noise and other
            # contributors.
            settings=replace(job.settings, checkpoint_every=1),
            remote_engine=FlowerEngine(
                calls, replace(job.simulation, real=True), job.rounds, engine.session_rounds, self.root.server
            ),
            deployment=DeploymentFacts(
                self.resume_command,
                self.is_rehearsal,
                self._other_runs,
                lambda: sorted(set(calls.code_of_clients.values())),
                app.agreement,
            ),
            accept_data_ranges=app.deployment.data_ranges,
        )

    def _revocation_check(self, app: AppFolder) -> Callable[[int], bool]:
        """Return a function that says whether a client of this run was revoked, by the keys at the run's start."""
        cards = app.deployment.read_cards(app.folder)
        return lambda client: is_revoked(self.root.server, cards[client])

    def _other_runs(self) -> list[str]:
        """Return the names of the deployment's other runs that have begun a round."""
        runs = self.root.run_folders()
        return [run.name for run in runs if run.name != self.name and _has_begun(RunRecord.open(run))]


def trusted_digests(app: Path, trust: Trust) -> list[str]:
    """Return the digests of all code that the server runs for the experiment in the app folder.

    Raises:
        UntrustedCode: Some of it may not run. None was run.
    """
    opened = AppFolder.open(app)
    codes = find_own_code(to_plain(opened.experiment), opened.folder.resolve())
    for code in codes:
        trust.check(code)
    return sorted({code.sha256 for code in codes})


def _has_begun(record: RunRecord) -> bool:
    """Whether the run has recorded a round, or has reserved one and was killed."""
    if record.read_rounds():
        return True
    ledger = record.open_ledger()
    if ledger is None:
        return False
    counts = ledger.summary()["releases"]
    return bool(counts["reserved"] or counts["committed"])


def _run_id(name: str, key: RunKey) -> str:
    """Return the run's id for clients: the same when it is resumed, different for each key and name."""
    return hashlib.blake2b(name.encode(), key=key.secret, digest_size=16, person=b"discreet run id").hexdigest()


def _log_rounds(job: Job, say: Callable[[str], None]) -> training_loop.Watch:
    def watch(line: RoundRecord) -> None:
        shown = [f"round {line['round']} of {job.rounds}", f"{line['clients']} clients", f"{line['seconds']:.2f} s"]
        if "lost" in line:
            shown.append(f"lost: {line['lost']}")
        measured = {**line.get("evaluation", {}), "ε": line.get("epsilon")}
        numbers = {name: json_number(value) for name, value in measured.items()}  # NaN and infinity are words in JSON
        shown += [f"{name} {number:.4g}" for name, number in numbers.items() if number is not None]
        say(", ".join(shown))

    return watch

"""Create a deployment: the app folder for everybody, and the folder that only the server has."""

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

from discreet.algorithms.population import Population
from discreet.data.tables.ranges import find_file
from discreet.data.tables.table_task import TableTask
from discreet.data.tasks.task import Task
from discreet.deploy import certificates
from discreet.deploy.app_folder import CERTIFICATE_FILE, RESOLVED_FILE, public_run_key, user_files
from discreet.deploy.deployment import (
    CARDS_FOLDER,
    DEPLOYMENT_FILE,
    DeclaredClient,
    Deployment,
    check_client_name,
    check_distinct_names,
    write_record,
)
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.flower_bundle import BUNDLE_FILES, write_bundle
from discreet.deploy.request_limit import request_limit, store_request_limit
from discreet.engines.engine import MIN_SECURE_CLIENTS
from discreet.engines.engine_table import Flower
from discreet.errors import InvalidInput
from discreet.experiment.configuration import toml_document
from discreet.experiment.configuration.experiment_file import Source
from discreet.experiment.job import Job
from discreet.experiment.loop import job_builder
from discreet.experiment.promise import data_ranges
from discreet.experiment.run_directory.run_record import check_path_is_free, explain_os_errors
from discreet.part import to_plain
from discreet.randomness.purposes import Purpose
from discreet.user_code import code_places

UNPLANNED_FILE = "experiment.toml"  # without noise, so that it can be computed anew for other clients
STAND_IN = "stand_in"  # the server's public table with the clients' columns
HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,250}[A-Za-z0-9])?")  # a host name or an IPv4 address
PORTS = range(1, 2**16)


def create_deployment(
    folder: Path,
    source: Source,
    clients: Sequence[DeclaredClient],
    address: str,
    hosts: Sequence[str],
    *,
    accept_data_ranges: bool = False,
) -> Deployment:
    """Create a deployment in `folder`, with the noise computed for its clients. An error leaves nothing behind.

    Args:
        folder: A folder that does not exist or is empty.
        source: The experiment.
        clients: The clients with their numbers of examples. Empty: the clients of the experiment's own task.
        address: Host and port by which clients reach the server.
        hosts: Names and addresses for which the server's certificate is valid.
        accept_data_ranges: Whether to accept ranges that were taken from data.

    Raises:
        InvalidInput: The folder is not empty, the address is malformed, or the clients don't fit the experiment.
    """
    check_path_is_free(folder)
    _check_address(address)
    source = _with_flower_engine(source.load_user_parts())
    plan = plan_deployment(source, clients, accept_data_ranges=accept_data_ranges)
    with _draft_folder(folder) as draft:
        return _write_folders(draft, folder.resolve().name, source, plan, address, hosts)


def _with_flower_engine(source: Source) -> Source:
    """Return the source with an engine of real clients, with the settings of its own one if it has such an engine."""
    engine = source.experiment.engine if isinstance(source.experiment.engine, Flower) else Flower()
    return replace(source, experiment=replace(source.experiment, engine=engine))


class Plan(NamedTuple):
    """A deployment's clients, and the job with the noise that was computed for them."""

    clients: tuple[DeclaredClient, ...]
    job: Job

    def resolve(self, task: dict[str, Any]) -> bytes:
        """Return the content of resolved.toml, with the task as everybody has it."""
        resolved = toml_document.parse_toml(self.job.resolved_text, RESOLVED_FILE) | {"task": task}
        return toml_document.format_toml(resolved).encode()

    def request_limit(self) -> int:
        """Return the most bytes of a request that a client can need."""
        return request_limit(self.job.algorithm, self.job.params, len(self.clients), self.job.rounds)


def plan_deployment(source: Source, clients: Sequence[DeclaredClient], *, accept_data_ranges: bool) -> Plan:
    """Compute the noise for these clients, or for those of the experiment's own task if there are none.

    Raises:
        InvalidInput: The clients don't fit the experiment, or its ranges were taken from data and not accepted.
    """
    experiment = source.experiment
    key = public_run_key(experiment)
    task = experiment.load_task(key.generator(Purpose.TASK), source.paths)
    data_ranges.check_accepted(task.ranges_from_data, accepted=accept_data_ranges)
    declared = tuple(clients) or tuple(_declare_task_clients(experiment.task, task))
    check_distinct_names(declared)
    population = Population(
        examples=tuple(client.examples for client in declared), max_multiplicity=task.train.max_multiplicity
    )
    ready = job_builder.build_job(source, key, task, population)
    if (
        ready.algorithm.aggregation.is_secure
        and ready.algorithm.sampling.cohort_bounds(population)[0] < MIN_SECURE_CLIENTS
    ):
        raise InvalidInput(
            f"A secure sum needs at least {MIN_SECURE_CLIENTS} clients in every round.", fix="Let more clients join."
        )
    return Plan(declared, ready)


def _write_folders(
    draft: Path, name: str, source: Source, plan: Plan, address: str, hosts: Sequence[str]
) -> Deployment:
    app, server = DeploymentFolder(draft).app, DeploymentFolder(draft).server
    for path in (app / CARDS_FOLDER, server):
        path.mkdir(parents=True)
    server.chmod(0o700)
    store_request_limit(server, plan.request_limit())
    certificates.write_certificates(server, hosts)
    shutil.copy(server / CERTIFICATE_FILE, app / CERTIFICATE_FILE)
    deployment = Deployment(
        address=address,
        server_key=certificates.write_signing_key(server / "server.key"),
        clients=plan.clients,
        max_multiplicity=plan.job.population.max_multiplicity,
        data_ranges=plan.job.task.ranges_from_data,
    )
    write_record(deployment, app / DEPLOYMENT_FILE)
    task = _share_task(source, app)
    _share_code(source, app)
    (app / RESOLVED_FILE).write_bytes(plan.resolve(task))
    unplanned = toml_document.format_toml({**to_plain(source.experiment), "task": task})
    (server / UNPLANNED_FILE).write_text(unplanned, encoding="utf-8")
    write_bundle(app, name)
    return deployment


@contextmanager
def _draft_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder inside `folder`. Its content is moved into `folder` when the block succeeds."""
    new = not folder.exists()
    with explain_os_errors("deployment", folder):
        folder.mkdir(parents=True, exist_ok=True)
        draft = Path(mkdtemp(prefix=".draft-", dir=folder))
    try:
        yield draft
        for path in draft.iterdir():
            path.rename(folder / path.name)
    except BaseException:
        shutil.rmtree(folder if new else draft)
        raise
    draft.rmdir()


def check_host(host: str) -> None:
    """Refuse what is neither a host name nor an IPv4 address."""
    if not HOST.fullmatch(host) or any(len(label) not in range(1, 64) for label in host.split(".")):
        raise InvalidInput(
            f"The host must be a name or an IPv4 address, and got {host!r}.", fix="Set the port with --port."
        )


def _check_address(address: str) -> None:
    """Refuse an address that certificates or Flower would fail on later."""
    host, _, port = address.rpartition(":")
    check_host(host)
    if not port.isdecimal() or int(port) not in PORTS:
        raise InvalidInput(f"The port must be between {PORTS[0]} and {PORTS[-1]}, and got {port}.")


def _declare_task_clients(kind: Any, task: Task) -> list[DeclaredClient]:
    """Declare the clients of a task that is divided among clients, for a rehearsal."""
    if isinstance(kind, TableTask):
        raise InvalidInput(
            "The clients of a table hold the rows themselves, so they must be named.",
            fix="Name the clients with their numbers of examples: --clients north=480,south=350,east=410",
        )
    names = [re.sub(r"[^A-Za-z0-9_]+", "-", name) for name in task.client_names]
    for name in names:
        check_client_name(name)
    return [DeclaredClient(name=name, examples=size) for name, size in zip(names, task.train.sizes, strict=True)]


def _share_task(source: Source, app: Path) -> dict[str, Any]:
    """Return the task as everybody has it: a table's task gets its public ranges and a copy of the stand-in."""
    task = source.experiment.task
    if not isinstance(task, TableTask):
        return dict(to_plain(task))
    if task.validation_path is not None:
        raise InvalidInput(
            f"A deployment can't have a validation file, and the task names {task.validation_path}.",
            fix="Use validation_fraction, or leave it out.",
        )
    copy = f"{STAND_IN}.{task.kind}"
    shutil.copy(find_file(task.path, source.paths.folder), app / copy)
    ranges = task.ranges
    if isinstance(ranges, str):
        path = find_file(ranges, source.paths.folder)
        ranges = toml_document.parse_toml(toml_document.read_toml_text(path), str(path))
    return dict(to_plain(replace(task, path=copy, ranges=ranges)))


def _share_code(source: Source, app: Path) -> None:
    """Copy the user's files that the experiment names into the app folder, those that only the server runs too."""
    whole = to_plain(source.experiment)
    server = {place for place in code_places([whole["metric"], whole["algorithm"]["server"]]) if place.endswith(".py")}
    if away := sorted(place for place in server if Path(place).name != place):
        raise InvalidInput(
            f"{away[0]} must be in the folder of the experiment's file to be copied into the app folder."
        )
    named = {*user_files(source.experiment), *server}
    if taken := sorted(named & BUNDLE_FILES.keys()):
        raise InvalidInput(f"{taken[0]} has the name of a file of the Flower app.", fix="Rename your file.")
    for name in named:
        shutil.copy(source.paths.folder / name, app / name)

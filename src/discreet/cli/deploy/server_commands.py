"""The server's commands of `discreet deploy`: init, server, submit and simulate."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from discreet.cli.deploy.client_list import parse_clients
from discreet.cli.deploy.health_option import HealthPort, print_health_address
from discreet.cli.deploy.status_command import Folder, open_deployment
from discreet.cli.options import AcceptDataRanges, DataDir
from discreet.cli.output import Json, emit, print_note
from discreet.cli.run import range_warnings
from discreet.cli.trust_options import TrustOption, choose_trust, is_interactive
from discreet.errors import BudgetRefused, DiscreetError, InvalidInput, shorten_names

if TYPE_CHECKING:
    from discreet.deploy.deployment_folder import DeploymentFolder

PORT = 8000
RESULT_KEYS = ("rounds", "stopped", "epsilon", "delta", "metrics")
CLEAR_NOTE = """\
Note: in this experiment the server sees updates in clear, and nothing is promised against it. The clients must trust
the server: no node answers until its owner sets trust_server_with_updates = true. A secure sum, or noise that clients
add with a promise against the server, needs no such trust."""
GRAPH_NOTE = """\
Note: the cohorts are so large that secure sums are made on a graph, which does not withstand a server that lies. No
node takes part until its owner sets graphs = true."""
CODE_NOTE = """\
Note: clients would run your files {files}. No node starts until its owner has read them and
sets own_code = true."""
RANGES_WARNING = """\
Warning: the ranges that scale the columns were taken from data, and no guarantee covers what they reveal. Each client
has to accept them too: discreet deploy enroll NAME --accept-data-ranges"""
COMPOSE_STEPS = """\
On each machine: put the wheels of discreet[flower] into {folder}/wheels (pip wheel),
write the .env that the first lines of {folder}/compose.yaml describe, and run there: docker compose build"""
SYSTEMD_STEPS = "As root, install its files as {folder}/README says."

Name: TypeAlias = Annotated[
    str, typer.Option(metavar="NAME", help="Name of the run. A stopped run of this name is resumed.")
]


def init(
    folder: Folder,
    file: Annotated[Path, typer.Argument(metavar="FILE", hidden=True)],
    clients: Annotated[
        str | None,
        typer.Option(metavar="NAME=EXAMPLES,…", help="The clients, and the number of examples that each trains on."),
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Host name or address by which clients reach the server.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", help="Port by which clients reach the server.")] = PORT,
    compose: Annotated[
        bool, typer.Option("--compose", help="Also write a Dockerfile and a compose file, in DIR/containers.")
    ] = False,
    systemd: Annotated[bool, typer.Option("--systemd", help="Also write systemd units, in DIR/systemd.")] = False,
    data_dir: DataDir = None,
    accept_data_ranges: AcceptDataRanges = False,
    trust: TrustOption = False,
    as_json: Json = False,
) -> None:
    """Create a deployment of the experiment FILE in DIR.

    DIR/app is for everybody, DIR/server for the server alone. The clients' numbers of examples are public. Without
    --clients, the experiment's own task is divided among its clients, for a rehearsal.
    """
    from discreet.data.tables.table_task import TableTask
    from discreet.deploy.app_folder import AppFolder
    from discreet.deploy.certificates import certificate_hosts
    from discreet.deploy.new_deployment import create_deployment
    from discreet.deploy.policy_template import needs_server_trust, uses_graph
    from discreet.deploy.service_files import write_compose, write_units
    from discreet.experiment.configuration import experiment_file

    source = experiment_file.load_experiment(file, (), data_dir, choose_trust(trust, file))
    deployment = create_deployment(
        folder,
        source,
        parse_clients(clients or ""),
        f"{host}:{port}",
        certificate_hosts(host),
        accept_data_ranges=accept_data_ranges,
    )
    services = {write_compose(folder, deployment): COMPOSE_STEPS} if compose else {}
    services |= {write_units(folder): SYSTEMD_STEPS} if systemd else {}
    names = [client.name for client in deployment.clients]
    steps = [
        f"hand {folder / 'app'} to each client, who enrolls with: discreet deploy enroll NAME --app app",
        f"put the cards that they send back into {folder / 'app' / 'clients'}, and hand out the folder again",
        "each client compares the cards with the other clients, and pins them: discreet deploy accept NAME",
        f"discreet deploy server {_shell_word(folder)}",
    ]
    app = AppFolder.open(folder / "app")
    if not isinstance(app.experiment.task, TableTask):
        steps.insert(0, f"to rehearse the deployment on this machine: discreet deploy simulate {_shell_word(folder)}")
    in_clear, graph = needs_server_trust(app), uses_graph(app)
    page = [
        f"Created {folder} for {shorten_names(names)} at {deployment.address}. Next:",
        *(f"  {step}" for step in steps),
    ]
    notes = {
        CLEAR_NOTE: in_clear,
        GRAPH_NOTE: graph,
        CODE_NOTE.format(files=", ".join(app.user_files)): bool(app.user_files),
        RANGES_WARNING: deployment.data_ranges,
    }
    page += [note for note, applies in notes.items() if applies]
    page += [f"Wrote {path}. {next_steps.format(folder=path)}" for path, next_steps in services.items()]
    result = {
        "folder": str(folder),
        "clients": names,
        "server_sees_updates": in_clear,
        "graph": graph,
        "own_code": list(app.user_files),
        "data_ranges": deployment.data_ranges,
        "services": [str(path) for path in services],
    }
    emit(lambda: result, lambda: ["\n".join(page)], as_json=as_json)


def server(
    folder: Folder,
    listen: Annotated[
        str,
        typer.Option(
            metavar="HOST",
            show_default="the deployment's host",
            help="Address to listen at. 0.0.0.0 listens on all networks.",
        ),
    ] = "",
    health: HealthPort = None,
    as_json: Json = False,
) -> None:
    """Run the server of the deployment in DIR.

    It registers the clients and runs until it is stopped.
    """
    from discreet.deploy import flower_commands, superlink
    from discreet.deploy.health_server import serve_health
    from discreet.deploy.new_deployment import check_host
    from discreet.deploy.revoked_keys import is_revoked
    from discreet.deploy.server_health import ServerHealth

    root = open_deployment(folder)
    address = root.deployment.address.rpartition(":")[0]
    check_host(listen or address)
    superlink.write_connection(root)
    cards = [card for card in root.deployment.read_cards(root.app) if not is_revoked(root.server, card)]
    os.umask(0o077)  # runs, keys and the SuperLink's state are private
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    process = subprocess.Popen(  # nosec B603 # a list of words, by no shell; the address was checked
        flower_commands.server_command(root, listen or address), env=flower_commands.flower_environment(root)
    )
    try:
        with serve_health(health, ServerHealth(root, lambda: process.poll() is None).read) as port:
            print_health_address(port)
            superlink.await_superlink(root, lambda: process.poll() is None)
            superlink.unregister_nodes(root, cards, print_note)
            superlink.register_nodes(root, cards, print_note)
            next_command = f"discreet deploy submit {_shell_word(folder)}"
            print_note(f"The server is up at {root.deployment.address}. Next: {next_command}")
            up = {"server": root.deployment.address, "clients": [card.name for card in cards]}
            emit(lambda: up, list, as_json=as_json)
            process.wait()
    finally:
        process.terminate()
        process.wait(timeout=10)
        if was_killed := process.returncode == -signal.SIGKILL:
            superlink.end_orphan(root, process.pid)
    if was_killed:
        raise DiscreetError(
            "The server's process was killed, and its SuperLink was ended.",
            fix="Start the server again, and then each run that was going on, by its name.",
        )
    raise typer.Exit(process.returncode and 1)


def submit(folder: Folder, name: Name = "first", trust: TrustOption = False, as_json: Json = False) -> None:
    """Train the experiment of the deployment in DIR on its clients.

    The command waits until the run has ended. While another run of the deployment is going on, it warns that both
    spend the same budgets of the clients, and in a terminal asks whether to start.
    """
    from discreet.deploy import flower_commands
    from discreet.deploy.deployed_run import DeployedRun, trusted_digests
    from discreet.deploy.submission_log import follow_run

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # SIGTERM ends the run too, as Ctrl-C does
    root = open_deployment(folder)
    DeployedRun(root, name).check_resumable()
    digests = trusted_digests(root.app, choose_trust(trust, folder))
    command = flower_commands.run_command(root, name, digests)
    _warn_of_other_runs(root, name)
    result = follow_run(root, name, command, flower_commands.flower_environment(root), print_note)
    _print_result(root, name, result, as_json=as_json)


def _warn_of_other_runs(root: "DeploymentFolder", name: str) -> None:
    """Warn that another run spends the same budgets, and ask in a terminal whether to start."""
    if not (others := [other for other in root.runs_going_on() if other != name]):
        return
    runs = f"The run {others[0]!r} is" if len(others) == 1 else f"The runs {', '.join(map(repr, others))} are"
    said = f"{runs} going on, and the run {name!r} would spend the same budgets of the clients."
    if not is_interactive():
        print_note(f"Warning: {said}")
        return
    print_note(said)
    if not typer.confirm("Start it nevertheless?", default=False, err=True):
        raise DiscreetError(f"The run {name!r} was not started.")


def simulate(folder: Folder, name: Name = "first", trust: TrustOption = False, as_json: Json = False) -> None:
    """Rehearse the deployment in DIR with Flower's simulation.

    Ray plays all clients on this machine, each with its own keys, policy and ledger in DIR/rehearsals/NAME. The
    experiment's task must be one that is divided among clients, not a table.
    """
    from discreet.deploy.flower_simulation import simulate as play

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that everything that it started ends too
    root, result = play(open_deployment(folder), name, choose_trust(trust, folder), print_note)
    _print_result(root, name, result, as_json=as_json)


def _print_result(root: "DeploymentFolder", name: str, result: dict[str, Any], *, as_json: bool) -> None:
    """Print the card and where the results are, and exit with the run's exit code."""
    where = root.run(name)
    if result["error"]:
        kinds = {kind.exit_code: kind for kind in (DiscreetError, InvalidInput, BudgetRefused)}
        kept = (where / "checkpoint.safetensors").exists()
        fix = f"What was trained so far is in {where}." if kept else ""
        raise kinds[result["exit_code"]](result["error"], fix=fix)
    emit(
        lambda: {"run": str(where), **{key: result[key] for key in RESULT_KEYS}},
        lambda: [
            (where / "guarantee.txt").read_text(),
            *range_warnings(root.deployment.data_ranges),
            f"Results are in {where}",
            *(["", result["stopped"]] if result["stopped"] else []),  # repeated below the long card
        ],
        as_json=as_json,
    )
    raise typer.Exit(result["exit_code"])


def _shell_word(path: Path) -> str:
    """Quote a path for a shell."""
    return shlex.quote(str(path))

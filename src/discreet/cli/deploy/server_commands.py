"""The server's side of `discreet deploy`: init, server, submit, simulate and status."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from discreet.cli.options import AcceptDataRanges, DataDir
from discreet.cli.output import Json, emit, print_note
from discreet.cli.run import range_warnings
from discreet.errors import BudgetRefused, DiscreetError, InvalidInput

if TYPE_CHECKING:
    from discreet.deploy.deployment import DeclaredClient
    from discreet.deploy.site import Site

PORT = 8000
REPORTED = ("rounds", "stopped", "epsilon", "delta", "metrics")
IN_CLEAR = """\
Note: in this experiment updates reach the server in clear, and nothing is promised against it. The clients must trust
it with them: no node answers before its owner has set trust_server_with_updates = true. A secure sum, or noise that
clients add and a promise against the server, asks for no such trust."""
ON_A_GRAPH = """\
Note: in so large a cohort a secure sum is made on a graph, where nothing is promised against a server that lies. No
node takes part before its owner has set graphs = true."""
OWN_CODE = """\
Note: clients would run files of yours, {files}. No node starts before its owner has read them and has
set own_code = true."""
DATA_RANGES = """\
Warning: the ranges that scale the columns were taken from data, and no guarantee covers what they reveal. Each client
has to accept that too: discreet deploy enroll NAME --accept-data-ranges"""

Folder: TypeAlias = Annotated[Path, typer.Argument(metavar="DIR", hidden=True)]
Name: TypeAlias = Annotated[
    str, typer.Option(metavar="NAME", show_default=False, help="The run's name (first); one that was stopped goes on.")
]


def init(
    folder: Folder,
    file: Annotated[Path, typer.Argument(metavar="FILE", hidden=True)],
    clients: Annotated[
        str | None, typer.Option(metavar="NAME=EXAMPLES,…", help="Who takes part, and with how many examples.")
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="HOST", show_default=False, help="How clients reach the server (127.0.0.1).")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="PORT", show_default=False, help="The one port that they reach (8000).")
    ] = PORT,
    data_dir: DataDir = None,
    accept_data_ranges: AcceptDataRanges = False,
    as_json: Json = False,
) -> None:
    """Make a deployment in DIR of the experiment in FILE.

    DIR/app is for everybody, DIR/server for the server alone. Clients are named with the number of examples that each
    trains on, which is public. Without --clients the experiment's own task is dealt out, for a rehearsal.
    """
    from discreet.data.tables.table_task import TableTask
    from discreet.deploy.app_folder import AppFolder
    from discreet.deploy.enrolment import needs_server_trust, uses_graph
    from discreet.deploy.new_deployment import create_deployment as make
    from discreet.experiment.configuration import experiment_file

    source = experiment_file.load_experiment(file, (), data_dir)
    hosts = list(dict.fromkeys([host, "localhost", "127.0.0.1"]))
    made = make(folder, source, _declared(clients), f"{host}:{port}", hosts, accept_data_ranges=accept_data_ranges)
    names = [each.name for each in made.clients]
    steps = [
        f"hand {folder / 'app'} to each client, who enrolls: discreet deploy enroll NAME --app app",
        f"put the cards that they send back into {folder / 'app' / 'clients'}, and hand the folder out again",
        "each client compares the cards with the others, and pins them: discreet deploy accept NAME",
        f"discreet deploy server {_quoted(folder)}",
    ]
    app = AppFolder.open(folder / "app")
    if not isinstance(app.experiment.task, TableTask):
        steps.insert(0, f"to rehearse it on this machine alone: discreet deploy simulate {_quoted(folder)}")
    in_clear, graph = needs_server_trust(app), uses_graph(app)
    page = [f"Made {folder} for {', '.join(names)} at {made.address}. Next:", *(f"  {step}" for step in steps)]
    if in_clear:
        page.append(IN_CLEAR)
    if graph:
        page.append(ON_A_GRAPH)
    if app.user_files:
        page.append(OWN_CODE.format(files=", ".join(app.user_files)))
    if made.data_ranges:
        page.append(DATA_RANGES)
    result = {
        "folder": str(folder),
        "clients": names,
        "server_sees_updates": in_clear,
        "graph": graph,
        "own_code": list(app.user_files),
        "data_ranges": made.data_ranges,
    }
    emit(lambda: result, lambda: ["\n".join(page)], as_json=as_json)


def server(
    folder: Folder,
    listen: Annotated[
        str, typer.Option(metavar="HOST", show_default=False, help="Where to listen; 0.0.0.0 for all networks.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Start DIR's SuperLink, register its clients, and stay."""
    from discreet.deploy import flower_commands

    site = _site(folder)
    address = site.deployment.address.rpartition(":")[0]
    flower_commands.write_connection(site)
    cards = site.deployment.read_cards(site.app)
    os.umask(0o077)  # runs, keys and the SuperLink's state are the server's alone
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    process = subprocess.Popen(
        flower_commands.server_command(site, listen or address), env=flower_commands.flower_environment(site)
    )
    try:
        flower_commands.await_superlink(site, lambda: process.poll() is None)
        flower_commands.register_nodes(site, cards, print_note)
        print_note(f"The server is up at {site.deployment.address}. Next: discreet deploy submit {_quoted(folder)}")
        up = {"server": site.deployment.address, "clients": [card.name for card in cards]}
        emit(lambda: up, list, as_json=as_json)
        process.wait()
    finally:
        process.terminate()
        process.wait(timeout=10)
    raise typer.Exit(process.returncode and 1)


def submit(folder: Folder, name: Name = "first", as_json: Json = False) -> None:
    """Train DIR's experiment on its clients, and wait.

    A run of this name that was stopped goes on.
    """
    from discreet.deploy import flower_commands
    from discreet.deploy.submission_log import follow_run

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # told to end, it ends the run too, as with Ctrl-C
    site = _site(folder)
    found = follow_run(
        site, name, flower_commands.run_command(site, name), flower_commands.flower_environment(site), print_note
    )
    _report(site, name, found, as_json=as_json)


def simulate(folder: Folder, name: Name = "first", as_json: Json = False) -> None:
    """Play DIR's experiment in Flower's simulation, and wait.

    All clients are played on this machine, by Ray, each with keys, policy and ledger in DIR/rehearsals/NAME. The
    experiment's task must be one that is dealt out.
    """
    from discreet.deploy.flower_simulation import simulate as play

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # and nothing that it has started outlives it
    played, found = play(_site(folder), name, print_note)
    _report(played, name, found, as_json=as_json)


def _report(site: "Site", name: str, found: dict[str, Any], *, as_json: bool) -> None:
    """The card and where the results lie; the exit code says how the run ended."""
    where = site.run(name)
    if found["error"]:
        kinds = {each.exit_code: each for each in (DiscreetError, InvalidInput, BudgetRefused)}
        kept = (where / "checkpoint.safetensors").exists()
        fix = f"What was trained so far is in {where}." if kept else ""
        raise kinds[found["exit_code"]](found["error"], fix=fix)
    emit(
        lambda: {"run": str(where), **{key: found[key] for key in REPORTED}},
        lambda: [
            (where / "guarantee.txt").read_text(),
            *range_warnings(site.deployment.data_ranges),
            f"Results lie in {where}",
            *_why(found["stopped"]),
        ],
        as_json=as_json,
    )
    raise typer.Exit(found["exit_code"])


def _why(stopped: str | None) -> list[str]:
    """Said again below the card, which is long."""
    return ["", stopped] if stopped else []


def status(folder: Folder, as_json: Json = False) -> None:
    """Say which clients are online, and how far DIR's runs are.

    The exit code is 1 while the server does not answer.
    """
    from discreet.deploy import flower_commands, online_clients

    site = _site(folder)
    found = flower_commands.list_nodes(site)
    nodes = None if found is None else online_clients.add_client_names(site, found)
    runs = list(_runs(site))
    emit(lambda: {"nodes": nodes, "runs": runs}, lambda: _page(site, nodes, runs), as_json=as_json)
    raise typer.Exit(1 if nodes is None else 0)


def _page(site: "Site", nodes: list[dict[str, Any]] | None, runs: list[dict[str, Any]]) -> Iterator[str]:
    from discreet.deploy import online_clients

    if nodes is None:
        yield f"The server at {site.deployment.address} does not answer."
    else:
        there, total = sum(each.get("status") == "online" for each in nodes), len(site.deployment.clients)
        yield f"The server at {site.deployment.address} is up; {there} of {total} clients are online."
        for what, names in online_clients.client_status(site, nodes)._asdict().items():
            if names:
                yield f"  {what}: {', '.join(names)}"
    for each in runs:
        state = "done" if each["finished"] else "not done"
        yield f"  run {each['name']}: {each['rounds']} round{'s' if each['rounds'] != 1 else ''}, {state}"


def _runs(site: "Site") -> Iterator[dict[str, Any]]:
    from discreet.experiment.run_directory.run_record import RunRecord

    for path in sorted((site.server / "runs").glob("*/run.json")):
        record = RunRecord.open(path.parent)
        yield {"name": path.parent.name, "rounds": len(record.read_rounds()), "finished": record.is_finished()}


def _quoted(path: Path) -> str:
    """As a shell takes it for one word."""
    return shlex.quote(str(path))


def _site(folder: Path) -> "Site":
    from discreet.deploy.site import Site

    site = Site(folder)
    if not site.server.is_dir():
        raise InvalidInput(f"{folder} is no deployment.", fix="Make one with: discreet deploy init")
    return site


def _declared(clients: str | None) -> "list[DeclaredClient]":
    from discreet.deploy.deployment import DeclaredClient, check_distinct_names

    found = []
    for each in (clients or "").split(",") if clients else ():
        name, equals, examples = each.strip().partition("=")
        if not equals or not examples.isdecimal():
            raise InvalidInput(
                f"--clients takes NAME=EXAMPLES, and got {each!r}.", fix="Say --clients north=480,south=350,east=410"
            )
        found.append(DeclaredClient(name=name, examples=int(examples)))
    check_distinct_names(found)
    return found

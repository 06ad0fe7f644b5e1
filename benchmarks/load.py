"""What a server carries: 200 clients through secure sums, and a model of 100 MB, with a real SuperLink on loopback.

    python benchmarks/load.py [--case NAME...] [--write]

Each client is a real node, with keys, policy, ledger, journal, TLS and a connection of its own. The clients of a case
share some processes, since each would need a gigabyte for torch; the server's processes are as in any deployment.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import results

from discreet.deploy.app_folder import AppFolder
from discreet.deploy.deployment import CARDS_FOLDER
from discreet.deploy.enrolment import enroll
from discreet.deploy.new_deployment import create_deployment
from discreet.deploy.peer_cards import PeerCards
from discreet.experiment.configuration import experiment_file

PAGE, DATA = results.FOLDER / "load.md", results.FOLDER / "load.json"
DISCREET = str(Path(sys.executable).with_name("discreet"))
PLAYER = Path(__file__).with_name("many_clients.py")
PORTS = range(20_000, 30_000)
MEGABYTE = 10**6
ROLES = {  # of the server's processes, by a word of their command lines
    "proxy": "discreet.deploy.server_process",
    "SuperLink": "flower-superlink",
    "run": "flwr-serverapp",
}
COLUMNS = ("proxy", "SuperLink", "SuperLink alone", "run")  # of the table


class Case(NamedTuple):
    """One run.

    Attributes:
        clients: Number of clients.
        hidden: Widths of the model's hidden layers; none for a linear model.
        secure: Whether updates are summed securely.
        rounds: Number of rounds.
        processes: Processes that play the clients.
    """

    clients: int
    hidden: tuple[int, ...]
    secure: bool
    rounds: int
    processes: int


LARGE = (5000, 4930)  # 25 million numbers of four bytes
CASES = {
    "200 secure": Case(200, (), True, 3, 4),
    "20 secure": Case(20, (), True, 2, 2),
    "3 small": Case(3, (), False, 3, 3),
    "3 large": Case(3, LARGE, False, 3, 3),
    "6 large": Case(6, LARGE, False, 3, 3),
    "3 large secure": Case(3, LARGE, True, 2, 3),
}
TASK = """\
rounds = {rounds}
task = {{ kind = "digits", clients = {clients}, partition = "iid" }}
model = {model}
engine = {{ kind = "flower", timeout = 1800, patience = 300 }}
evaluate_every = {rounds}

[privacy]
unit = "example"
against = "server"
epsilon = 8.0
delta = 1e-4

[algorithm]
sampling_rate = {rate}
clip_norm = 0.5
learning_rate = 0.1
local_steps = 1
{kind}
"""
INTRODUCTION = """\
# What a server carries

`benchmarks/load.py --write` wrote this page. {provenance}
The machine's load was between {low:.1f} and {high:.1f} before and after these runs.

A real server on loopback, with TLS and node keys, as `discreet deploy server` starts it, and clients that are real
nodes: own keys, policy, ledger, journal and connection each. What is not as in the field: the clients of a case share
a few processes, in each of which one trains at a time.

| case | clients | processes | model, MB | sum | rounds | clients in each | first, s | median of the others, s |
|---|---:|---:|---:|---|---:|---|---:|---:|
"""
MEMORY = """
The most that each of the server's processes held (resident, in MB; the SuperLink with the pages of its database that
it maps, and without), and the bytes of all requests and replies of a round, without what Flower and TLS add to them.

| case | proxy | SuperLink | SuperLink alone | run | MB a round to clients | MB a round from clients |
|---|---:|---:|---:|---:|---:|---:|
"""

REASONS = """
The SuperLink's database keeps up to 64 MB of pages for each of its connections, of which it opens at most 15, and maps
up to 256 MiB of its file. That is a limit for any model and any number of clients. A model is stored once for all
clients, in pieces of 4 MB, and the proxy holds one piece of each call.

A call costs the SuperLink some 10 ms of a processor and the proxy some 5, seen over 30 s with 20 idle nodes, and each
of the three exchanges of a secure round takes some ten calls for each client. So the SuperLink, which uses one
processor at a time, sets the length of a round of 200 clients.

Building the same job of 100 MB in one process, without clients, took 2.2 GB at most, by the check that no example
enters the gradient of another: it holds some ten gradients of the model. So most of what the run's process holds is
taken before its first round, and does not grow with the number of clients.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0] if __doc__ else None)
    parser.add_argument("--case", nargs="+", choices=CASES, default=list(CASES), help="measure these only (all)")
    parser.add_argument("--write", action="store_true", help="keep what was measured, and write docs/results/load.md")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the page from what is kept")
    options = parser.parse_args()
    kept: dict[str, Any] = json.loads(DATA.read_text()) if DATA.exists() else {}
    for name in () if options.page else options.case:
        found = measure(CASES[name])
        print(name, json.dumps(found), flush=True)
        kept = {each: kept.get(each) if each != name else found for each in CASES if each in {*kept, name}}
        if options.write:
            DATA.write_text(json.dumps(kept, indent=2) + "\n")
    if options.write or options.page:
        PAGE.write_text(page(kept))


def measure(case: Case) -> results.Entry:
    """Run a deployment with these clients, and return what it took."""
    with TemporaryDirectory(prefix="discreet-load-", ignore_cleanup_errors=True) as name, ExitStack() as stack:
        folder = Path(name)
        names = create_site(folder, case)
        loads = [os.getloadavg()[0]]
        server = stack.enter_context(start(folder, "server", [DISCREET, "deploy", "server", "site"]))
        wait_for(folder / "server.log", server, "The server is up")
        memory, players = stack.enter_context(watch_memory(server.pid)), []
        for number in range(case.processes):
            played = names[number :: case.processes]
            players.append(
                stack.enter_context(start(folder, f"clients-{number}", [sys.executable, str(PLAYER), *played]))
            )
        for number, player in enumerate(players):
            wait_for(folder / f"clients-{number}.log", player, "All clients are connected.")
        submit = [DISCREET, "deploy", "submit", "site", "--name", "load"]
        done = subprocess.run(submit, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            logs = [(folder / name).read_text(errors="replace") for name in ("server.log", "site/server/superlink.log")]
            sys.exit("\n".join(["The run failed:", *(text[-3000:] for text in (done.stderr, *logs))]))
        loads.append(os.getloadavg()[0])
        rounds = [json.loads(line) for line in (folder / "site/server/runs/load/rounds.jsonl").read_text().splitlines()]
        model = model_bytes(folder)
        peaks = dict(memory)
        stack.close()
        traffic = [read_traffic(folder, f"clients-{number}") for number in range(case.processes)]
    return {
        **case._asdict(),
        "machine": results.machine(),
        "versions": results.versions("discreet", "flwr", "torch"),
        "loads": loads,
        "model": model,
        "seconds": [each["seconds"] for each in rounds],
        "contributors": [each["clients"] for each in rounds],
        "memory": peaks,
        "received": sum(received for received, _ in traffic),
        "sent": sum(sent for _, sent in traffic),
    }


def create_site(folder: Path, case: Case) -> list[str]:
    """Create a deployment whose clients have accepted each other. Returns their names."""
    model = f'{{ kind = "mlp", hidden = {list(case.hidden)} }}' if case.hidden else '{ kind = "linear" }'
    dropouts = max(1, case.clients // 20)
    kind = f'recipe = "ddp_fedavg"\ndropouts = {dropouts}' if case.secure else 'recipe = "pfl"'
    rate = 0.01 if case.hidden else 0.5
    text = TASK.format(rounds=case.rounds, clients=case.clients, model=model, rate=rate, kind=kind)
    (folder / "experiment.toml").write_text(text)
    source = experiment_file.load_experiment(folder / "experiment.toml")
    create_deployment(folder / "site", source, [], f"127.0.0.1:{free_port()}", ["127.0.0.1"])
    app = AppFolder.open(folder / "site" / "app")
    names = [client.name for client in app.deployment.clients]
    for name in names:
        enroll(app, name, folder / name, None)
        (app.folder / CARDS_FOLDER / f"{name}.toml").write_text((folder / name / f"{name}.toml").read_text())
    for name in names:
        cards = PeerCards.open(folder / name)
        cards.pin(cards.code)
        policy = folder / name / "policy.toml"
        policy.write_text(policy.read_text().replace("graphs = false", "graphs = true"))  # 200 clients have neighbours
    return names


def free_port() -> int:
    for port in PORTS:
        with socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise SystemExit(f"All ports from {PORTS.start} to {PORTS.stop} are taken.")


@contextmanager
def start(folder: Path, name: str, command: list[str]) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a process while the block lasts, with its output in a file."""
    settings = {**os.environ, "OMP_NUM_THREADS": "1"}
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=settings, stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for(log: Path, process: "subprocess.Popen[bytes]", words: str) -> None:
    """Wait until the process has printed this."""
    while words not in " ".join(log.read_text(errors="replace").split()):
        if process.poll() is not None:
            raise SystemExit(f"The process of {log} has ended: {log.read_text(errors='replace')[-3000:]}")
        time.sleep(0.2)


@contextmanager
def watch_memory(root: int) -> Iterator[dict[str, float]]:
    """Note, while the block lasts, the most resident memory of each of the server's processes, in MB.

    What a process maps from files is in it: of the SuperLink, up to 256 MiB of its database, which the system may drop
    at any time. Without files it is noted as "SuperLink alone", from looks every tenth of a second.
    """
    peaks: dict[str, float] = {}
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.1):
            for process in descendants(root):
                with suppress(OSError, StopIteration):
                    command = (process / "cmdline").read_bytes().decode(errors="replace")
                    role = next(role for role, word in ROLES.items() if word in command)
                    peaks[role] = max(peaks.get(role, 0.0), read_memory(process, "VmHWM"))
                    if role == "SuperLink":
                        alone = f"{role} alone"
                        peaks[alone] = max(peaks.get(alone, 0.0), read_memory(process, "RssAnon"))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        stop.set()
        thread.join()


def descendants(root: int) -> Iterator[Path]:
    """Yield the process and all that it started, as Linux lists them."""
    process = Path(f"/proc/{root}")
    yield process
    for listed in process.glob("task/*/children"):
        with suppress(OSError):
            for child in listed.read_text().split():
                yield from descendants(int(child))


def read_memory(process: Path, name: str) -> float:
    lines = (process / "status").read_text().splitlines()
    return round(next(int(line.split()[1]) * 1024 / MEGABYTE for line in lines if line.startswith(name)), 1)


def model_bytes(folder: Path) -> int:
    """Return the size of the model's tensors."""
    from discreet.deploy.app_folder import public_run_key
    from discreet.experiment.loop.job_builder import build_job

    app = AppFolder.open(folder / "site" / "app")
    key = public_run_key(app.experiment)
    params = build_job(app.source(), key, declared=app.population, public=key).params
    return sum(value.numel() * value.element_size() for value in params.values())


def read_traffic(folder: Path, name: str) -> tuple[int, int]:
    """Return the bytes that the clients of a process have received and sent."""
    words = (folder / f"{name}.log").read_text(errors="replace").split()
    return int(words[words.index("Received") + 1]), int(words[words.index("sent") + 1])


def page(kept: dict[str, Any]) -> str:
    first = next(iter(kept.values()))
    loads = [load for entry in kept.values() for load in entry["loads"]]
    provenance = results.provenance(first["machine"], first["versions"])
    lines = [INTRODUCTION.format(provenance=provenance, low=min(loads), high=max(loads))]
    for name, entry in kept.items():
        begin, *rest = entry["seconds"]
        lines.append(
            f"| {name} | {entry['clients']} | {entry['processes']} | {entry['model'] / MEGABYTE:.3g} "
            f"| {'secure' if entry['secure'] else 'in clear'} | {entry['rounds']} "
            f"| {', '.join(map(str, entry['contributors']))} | {begin:.1f} | {statistics.median(rest):.1f} |\n"
        )
    lines.append(MEMORY)
    for name, entry in kept.items():
        held = " | ".join(f"{entry['memory'][role]:.0f}" if role in entry["memory"] else "–" for role in COLUMNS)
        ways = [entry[way] / entry["rounds"] / MEGABYTE for way in ("received", "sent")]
        lines.append(f"| {name} | {held} | {ways[0]:.3g} | {ways[1]:.3g} |\n")
    missing = ", ".join(name for name in CASES if name not in kept)
    return "".join(lines) + findings(kept) + REASONS + (f"\nNot measured yet: {missing}.\n" if missing else "")


def findings(kept: dict[str, Any]) -> str:
    """Return what the numbers say of memory, in sentences."""
    if not {"3 small", "3 large"} <= kept.keys():
        return ""
    small, large = kept["3 small"], kept["3 large"]
    told = []
    for name in ("3 large", "6 large", "3 large secure"):
        if name in kept:
            model = large["model"] / MEGABYTE
            more = {
                role: (kept[name]["memory"][role] - small["memory"][role]) / model
                for role in COLUMNS
                if role in small["memory"]
            }
            shown = ", ".join(f"the {role} {factor:.1f}" for role, factor in more.items())
            told.append(f"- {name}: {shown}.")
    return (
        "\nBeyond what the processes hold with a small model (the case *3 small*), in multiples of the large model:\n\n"
        + "\n".join(told)
        + "\n"
    )


if __name__ == "__main__":
    main()

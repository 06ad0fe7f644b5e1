"""How long a round takes on real clients: a SuperLink and three clients on loopback, with TLS and keys, as a user
starts them. The task is small, so nearly all of it is the way there and back.

    python benchmarks/deployment.py [--write]
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import socket

import results

DISCREET = str(Path(sys.executable).with_name("discreet"))
TASK = """\
rounds = {rounds}
task = {{ kind = "digits", clients = {clients}, partition = "iid" }}
model = {{ kind = "linear" }}
engine = {{ kind = "flower" }}

[privacy]
unit = "example"
against = "server"
epsilon = 4.0
delta = 1e-4

[algorithm]
sampling_rate = 0.5
clip_norm = 0.5
learning_rate = 2.0
"""
KINDS = {
    "plain": 'recipe = "pfl"\nlocal_steps = 1\n',
    "secure": 'recipe = "ddp_fedavg"\ndropouts = 1\n',
}
MESSAGES = {"plain": 1, "secure": 3}  # to each client, in a round; a secure session begins with two more
GOALS = {"plain": 1.0, "secure": 3.0}  # seconds
INTRODUCTION = (
    "A SuperLink and {clients} clients on one machine, each a process of its own, with TLS and keys, started as "
    "`docs/guides/deploy.md` says. The task is small, so this is the way there and back. By `benchmarks/deployment.py "
    "--write`; the machine's load was {load} before it began. {provenance}"
)
TABLE = """\
| round | messages to each client | first, s | median of the others, s | from–to, s | goal, s | |
|---|---|---|---|---|---|---|
"""
REASONS = (
    "The first round also finds out who is at which node, and exchanges keys for a secure session. A node's "
    "question for messages is held at the server until there is one. Of a message's time "
    "nearly all is Flower's: some ten calls over TLS, each signed, checked and written to the SuperLink's database. "
    "What a client itself did took 3 to 40 ms in a look at where the time goes.\n\n"
    "A stock SuperNode (`--supernode`) asks for messages every three seconds, whatever happens: a secure round with "
    "one among the clients took 11 to 15 s in the tests."
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0] if __doc__ else None)
    parser.add_argument("--clients", type=int, default=3, help="(3)")
    parser.add_argument("--rounds", type=int, default=10, help="of which the first, that also begins, is apart (10)")
    results.add_options(parser, "deployed")
    options = parser.parse_args()
    results.publish("deployed", options, lambda: measure_deployment(options.clients, options.rounds), page)


def measure_deployment(clients: int, rounds: int) -> results.Entry:
    load = os.getloadavg()[0]
    return {
        "device": "cpu",
        "machine": results.machine(),
        "versions": results.versions("discreet", "flwr", "torch"),
        "load": round(load, 2),
        "clients": clients,
        "seconds": {kind: seconds(kind, clients, rounds) for kind in KINDS},
    }


def page(entries: results.Entries) -> str:
    (entry,) = entries.values()
    rows = [
        f"| {kind} | {MESSAGES[kind]} | {first:.2f} | {statistics.median(rest):.2f} | {min(rest):.2f}–{max(rest):.2f} "
        f"| {GOALS[kind]:g} | {results.verdict(statistics.median(rest) < GOALS[kind])} |"
        for kind, (first, *rest) in entry["seconds"].items()
    ]
    provenance = results.provenance(entry["machine"], entry["versions"])
    head = INTRODUCTION.format(clients=entry["clients"], load=entry["load"], provenance=provenance)
    return f"# How long a round takes on real clients\n\n{head}\n\n{TABLE}{chr(10).join(rows)}\n\n{REASONS}\n"


def seconds(kind: str, clients: int, rounds: int) -> list[float]:
    """Of each round of one run, as the run's own log has them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "experiment.toml").write_text(TASK.format(rounds=rounds, clients=clients) + KINDS[kind])
        names = [f"client-{at}" for at in range(clients)]
        _create_deployment(folder, names)
        with _run_process(folder, ["server", "site"], "The server is up"), _run_clients(folder, names):
            _call(folder, "submit", "site", "--name", "first")
        lines = (folder / "site/server/runs/first/rounds.jsonl").read_text().splitlines()
        return [round(json.loads(line)["seconds"], 3) for line in lines]


def _create_deployment(folder: Path, names: list[str]) -> None:
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    _call(folder, "init", "site", "experiment.toml", "--host", "127.0.0.1", "--port", port)
    for name in names:
        _call(folder, "enroll", name, "--app", "site/app")
        (folder / "site/app/clients" / f"{name}.toml").write_text((folder / name / f"{name}.toml").read_text())
    for name in names:
        code = json.loads(_call(folder, "accept", name, "--json"))["code"]
        _call(folder, "accept", name, "--code", code)


def _call(folder: Path, *arguments: str) -> str:
    done = subprocess.run([DISCREET, "deploy", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"discreet deploy {' '.join(arguments)}: {done.stderr[-2000:]}")
    return done.stdout


@contextmanager
def _run_process(folder: Path, arguments: list[str], ready: str) -> Iterator[None]:
    log = folder / f"{arguments[1]}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [DISCREET, "deploy", *arguments],
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        while ready not in " ".join(log.read_text(errors="replace").split()):
            if process.poll() is not None:
                raise SystemExit(f"discreet deploy {' '.join(arguments)}: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


@contextmanager
def _run_clients(folder: Path, names: list[str]) -> Iterator[None]:
    if not names:
        yield
        return
    with _run_process(folder, ["client", names[0]], "Connected to"), _run_clients(folder, names[1:]):
        yield


if __name__ == "__main__":
    main()

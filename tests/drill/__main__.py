"""`python -m tests.drill`: kill real processes of a deployment, and write what happened as JSON lines and as a page."""

import argparse
import json
import os
import signal
import sys
import time
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from discreet.code_version import read_code_version
from discreet.deploy.deployed_run import DeployedRun
from tests.deploy.example_sites import PLAIN, SECURE, connect_nodes, copy_site
from tests.deploy.real_deployment import CLIENTS, RealDeployment
from tests.drill.kills import Kill, kills_left, plan_kills, take_next
from tests.drill.operator import Operator
from tests.drill.page import write_page
from tests.drill.reservation_check import find_under_counts, read_lines

ROUNDS, KILLS_IN_RUN, MISSES = 30, 6, 3
SCHEMES = {
    name: text.replace("rounds = 3", f"rounds = {ROUNDS}") for name, text in (("plain", PLAIN), ("secure", SECURE))
}
HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
RESULTS = DOCS / "results" / "drill"


class Drill:
    """Carries out kills of one deployment after the other, and appends a line for each to `results`."""

    def __init__(self, scheme: str, results: Path, until: float) -> None:
        self.scheme, self.results, self.until = scheme, results, until
        self.well = True
        self._runs = sum(row["kind"] == "run" for row in read_lines(results))
        self._missed: list[Kill] = []

    def carry_out(self, waiting: list[Kill]) -> bool:
        """Carry out these kills. Returns whether all is well; a deployment that is not is kept, and another begun."""
        while waiting and time.time() < self.until:
            deployment = deploy(SCHEMES[self.scheme])
            try:
                while waiting and time.time() < self.until and self._carry_out_run(deployment, waiting):
                    pass
            finally:
                deployment.processes.end_all()
        return self.well

    def _carry_out_run(self, deployment: RealDeployment, waiting: list[Kill]) -> bool:
        """Kill processes during one run, and check it when it is finished. Returns whether all is well."""
        self._runs += 1
        operator, struck, clients_died = Operator(deployment, f"run-{self._runs}"), 0, False
        while struck < KILLS_IN_RUN and not operator.is_finished() and time.time() < self.until:
            if (kill := take_next(waiting, new_run=struck == 0)) is None:
                break
            struck, clients_died = struck + 1, clients_died or kill.is_at_client
            before = len(deployment.rounds(operator.name))
            if not operator.strike(kill):
                self._put_back(kill, waiting)
                continue
            seconds = operator.recover(kill)
            lost = sum("lost" in line for line in deployment.rounds(operator.name)[before:])
            row = {"kind": "kill", "victim": kill.victim, "point": kill.point, "run": operator.name}
            if not self._append({**row, "seconds": seconds, "lost": lost, "well": seconds is not None}, deployment):
                return False
        if not operator.finish():
            return self._append({"kind": "run", "run": operator.name, "well": False}, deployment)
        return self._append(check_run(deployment, operator.name, self.scheme, clients_died=clients_died), deployment)

    def _put_back(self, kill: Kill, waiting: list[Kill]) -> None:
        self._missed.append(kill)
        if self._missed.count(kill) < MISSES:
            waiting.append(kill)
        else:
            self._append({"kind": "missed", "victim": kill.victim, "point": kill.point, "well": True}, None)

    def _append(self, row: dict[str, Any], deployment: RealDeployment | None) -> bool:
        well = bool(row["well"])
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        row = {"scheme": self.scheme, **row, "at": at, "code": read_code_version().commit}
        with open(self.results, "a") as file:
            file.write(json.dumps(row) + "\n")
        kept = "" if well or deployment is None else f" (kept: {deployment.folder})"
        sys.stdout.write(json.dumps(row) + kept + "\n")
        sys.stdout.flush()
        self.well &= well
        return well


def deploy(text: str) -> RealDeployment:
    """Start a server and three nodes whose processes can be held at named points."""
    folder = Path(mkdtemp(prefix="discreet-drill-"))
    os.environ["DRILL_FOLDER"] = str(folder)
    paths = [str(HERE / "hooks"), str(HERE.parents[1]), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(path for path in paths if path))
    deployment = RealDeployment(folder, text, 4000)
    deployment.processes.discreet("server", "deploy", "server", "site")
    deployment.join(*CLIENTS)
    return deployment


def check_run(deployment: RealDeployment, name: str, scheme: str, *, clients_died: bool) -> dict[str, Any]:
    sent = read_lines(deployment.folder / "sent.jsonl")
    (deployment.folder / "sent.jsonl").unlink(missing_ok=True)
    where, rounds = deployment.site.run(name), deployment.rounds(name)
    under = find_under_counts(sent, read_lines(where / "ledger.jsonl"), secure=scheme == "secure")
    whole = scheme == "plain" and all(line["clients"] == len(CLIENTS) for line in rounds)
    equal = (where / "model.safetensors").read_bytes() == unbroken_model() if whole else None
    row = {"kind": "run", "run": name, "rounds": len(rounds), "updates": len(sent), "clients_died": clients_died}
    well = len(rounds) == ROUNDS and not under and equal is not False
    return {**row, "under_counts": under, "equal": equal, "well": well}


@cache
def unbroken_model() -> bytes:
    """Return the model of the plain run in one process, without a kill."""
    folder = Path(mkdtemp(prefix="discreet-unbroken-"))
    site = copy_site(folder, SCHEMES["plain"])
    DeployedRun(site, "unbroken").train(connect_nodes(folder, site, []), lambda text: None)
    return (site.run("unbroken") / "model.safetensors").read_bytes()


def read_results(folder: Path, names: str) -> list[dict[str, Any]]:
    return [row for each in sorted(folder.glob(f"{names}.jsonl")) for row in read_lines(each)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.drill", description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="kills for each scheme")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=tuple(SCHEMES), help="updates in clear, or secure sums")
    parser.add_argument("--shard", type=int, nargs=2, default=(0, 1), metavar=("AT", "OF"), help="kills AT, AT + OF, …")
    parser.add_argument("--minutes", type=float, default=600.0, help="begin no kill after so many minutes")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results, a file for each scheme")
    parser.add_argument("--page", action="store_true", help="only write docs/reliability.md from the results")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # so that no process is left
    options.results.mkdir(parents=True, exist_ok=True)
    well, until = True, time.time() + options.minutes * 60
    for scheme in () if options.page else [options.only] if options.only else SCHEMES:
        at, of = options.shard
        done = [row for row in read_results(options.results, f"{scheme}-*") if row["kind"] == "kill"]
        kills = kills_left(plan_kills(options.seed, options.count), done)[at::of]
        well &= Drill(scheme, options.results / f"{scheme}-{at}.jsonl", until).carry_out(kills)
    write_page(read_results(options.results, "*"), DOCS)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())

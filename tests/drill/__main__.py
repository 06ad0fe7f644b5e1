"""`python -m tests.drill`: kill real processes of a deployment, and write what happened as JSON lines and as a page."""

import argparse
import json
import os
import random
import sys
import time
from itertools import product
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tests.deploy.example_sites import PLAIN, SECURE, connect_nodes, copy_site
from tests.deploy.real_deployment import CLIENTS, RealDeployment
from tests.drill.named_points import POINTS
from tests.drill.operator import Kill, Operator
from tests.drill.page import write_page
from tests.drill.reservation_check import find_under_counts, read_lines

ROUNDS, KILLS_IN_RUN = 40, 6
VICTIMS = ("run", "superlink", "server", "executor", "client")
SCHEMES = {
    name: text.replace("rounds = 3", f"rounds = {ROUNDS}") for name, text in (("plain", PLAIN), ("secure", SECURE))
}
HERE = Path(__file__).parent


def plan_kills(seed: int, count: int) -> list[Kill]:
    """Return `count` kills: every victim at every named point and at random moments, in an order drawn by the seed."""
    draw = random.Random(seed)
    kills = [
        Kill(victim, point, draw.choice(CLIENTS), draw.uniform(0.2, 4.0))
        for victim, point in product(VICTIMS, (*POINTS, "at random"))
        if victim != "client" or point == "at random" or POINTS[point].role == "client"
    ]
    draw.shuffle(kills)
    while len(kills) < count:
        kills.append(Kill(draw.choice(VICTIMS), "at random", draw.choice(CLIENTS), draw.uniform(0.2, 4.0)))
    return kills[:count]


def drill(scheme: str, kills: list[Kill], results: Path, until: float) -> bool:
    """Carry out these kills and append a line for each to `results`. Returns whether all is well."""
    folder, well = Path(mkdtemp(prefix="discreet-drill-")), True
    os.environ["DRILL_FOLDER"] = str(folder)
    paths = [str(HERE / "hooks"), str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    deployment = RealDeployment(folder, SCHEMES[scheme], 4000)
    waiting, number = list(kills), 0
    try:
        deployment.processes.discreet("server", "deploy", "server", "site")
        deployment.join(*CLIENTS)
        while waiting and time.time() < until:
            number += 1
            name, struck, clients_died = f"run-{number}", 0, False
            operator = Operator(deployment, name)
            operator.restart_what_ended()
            while waiting and struck < KILLS_IN_RUN and not operator.is_finished() and time.time() < until:
                kill = waiting[0]
                before = deployment.rounds(name)
                if not operator.strike(kill):
                    waiting.append(waiting.pop(0))
                    struck += 1
                    continue
                waiting.pop(0)
                struck, clients_died = struck + 1, clients_died or kill.is_at_client
                seconds = operator.recover(kill)
                lost = sum("lost" in line for line in deployment.rounds(name)[len(before) :])
                row = {"kind": "kill", "scheme": scheme, "victim": kill.victim, "point": kill.point, "run": name}
                well &= _append(results, {**row, "seconds": seconds, "lost": lost, "well": seconds is not None})
                if seconds is None:
                    return False
            last = operator.recover(Kill("none", "end"))
            while not operator.is_finished() and last is not None:
                last = operator.recover(Kill("none", "end"))
            well &= _append(results, _check_run(deployment, name, scheme, clients_died=clients_died))
    finally:
        deployment.processes.end_all()
    return well


def _check_run(deployment: RealDeployment, name: str, scheme: str, *, clients_died: bool) -> dict[str, Any]:
    sent = read_lines(deployment.folder / "sent.jsonl")
    (deployment.folder / "sent.jsonl").unlink(missing_ok=True)
    where, finished = deployment.site.run(name), len(deployment.rounds(name)) == ROUNDS
    under = find_under_counts(sent, read_lines(where / "ledger.jsonl"), secure=scheme == "secure")
    whole = scheme == "plain" and all(line["clients"] == len(CLIENTS) for line in deployment.rounds(name))
    equal = (where / "model.safetensors").read_bytes() == unbroken_model(name) if whole and finished else None
    checked = {
        "kind": "run",
        "scheme": scheme,
        "run": name,
        "rounds": len(deployment.rounds(name)),
        "updates": len(sent),
    }
    return {**checked, "under_counts": under, "equal": equal, "well": finished and not under and equal is not False}


def unbroken_model(name: str) -> bytes:
    """Return the model of the same run in one process, without a kill."""
    from discreet.deploy.deployed_run import DeployedRun

    folder = Path(mkdtemp(prefix="discreet-unbroken-"))
    site = copy_site(folder, SCHEMES["plain"])
    DeployedRun(site, name).train(connect_nodes(folder, site, []), lambda text: None)
    return (site.run(name) / "model.safetensors").read_bytes()


def _append(results: Path, row: dict[str, Any]) -> bool:
    with open(results, "a") as file:
        file.write(json.dumps(row) + "\n")
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()
    return bool(row["well"])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.drill", description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="kills for each scheme")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=tuple(SCHEMES), help="updates in clear, or secure sums")
    parser.add_argument("--minutes", type=float, default=600.0, help="begin no kill after so many minutes")
    parser.add_argument("--results", type=Path, default=Path("build/drill.jsonl"))
    parser.add_argument("--page", action="store_true", help="only write docs/reliability.md from the results")
    options = parser.parse_args()
    options.results.parent.mkdir(parents=True, exist_ok=True)
    well, until = True, time.time() + options.minutes * 60
    for scheme in () if options.page else [options.only] if options.only else SCHEMES:
        rows = read_lines(options.results)
        done = sum(row["kind"] == "kill" and row["scheme"] == scheme for row in rows)
        well &= drill(scheme, plan_kills(options.seed, options.count)[done:], options.results, until)
    write_page(read_lines(options.results), HERE.parents[1] / "docs" / "reliability.md")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())

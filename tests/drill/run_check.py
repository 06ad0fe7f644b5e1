"""Whether a run that survived a drill is whole, counted in full, and equal to the unbroken one."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import torch

from discreet.deploy.deployed_run import DeployedRun
from tests.deploy.example_sites import PLAIN, SECURE, connect_nodes, copy_site
from tests.deploy.real_deployment import CLIENTS, RealDeployment
from tests.drill.reservation_check import find_under_counts, read_lines

ROUNDS = 10  # of each run of the whole drill
SCHEMES = {"plain": PLAIN, "secure": SECURE}


def with_rounds(scheme: str, rounds: int = ROUNDS) -> str:
    """Return the experiment of this scheme with so many rounds."""
    return SCHEMES[scheme].replace("rounds = 3", f"rounds = {rounds}")


def check_run(deployment: RealDeployment, name: str, scheme: str, rounds: int = ROUNDS) -> dict[str, Any]:
    """Check a finished run of so many rounds. A plain run is compared if every round had all clients."""
    sent = read_lines(deployment.folder / "sent.jsonl")
    (deployment.folder / "sent.jsonl").unlink(missing_ok=True)
    where, lines = deployment.site.run(name), deployment.rounds(name)
    under = find_under_counts(sent, read_lines(where / "ledger.jsonl"), secure=scheme == "secure")
    whole = scheme == "plain" and all(line["clients"] == len(CLIENTS) for line in lines)
    equal = (where / "model.safetensors").read_bytes() == unbroken_model(rounds) if whole else None
    well = len(lines) == rounds and not under and equal is not False
    row = {"kind": "run", "run": name, "rounds": len(lines), "updates": len(sent)}
    return {**row, "under_counts": under, "equal": equal, "well": well}


@cache
def unbroken_model(rounds: int) -> bytes:
    """Return the model of the plain run in one process, without a kill."""
    torch.set_num_threads(1)  # as OMP_NUM_THREADS sets it in the processes of a deployment: the bits depend on it
    folder = Path(mkdtemp(prefix="discreet-unbroken-"))
    site = copy_site(folder, with_rounds("plain", rounds))
    DeployedRun(site, "unbroken").train(connect_nodes(folder, site, []), lambda text: None)
    return (site.run("unbroken") / "model.safetensors").read_bytes()

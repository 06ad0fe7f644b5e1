"""Play a whole run in which somebody lies, and measure what came of it."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from discreet import api
from discreet.algorithms.broadcast import Broadcast
from discreet.deploy.certificates import read_key
from discreet.deploy.client_node import ClientNode
from discreet.deploy.deployed_run import DeployedRun
from discreet.engines.engine import CohortSum, RoundRefused
from discreet.engines.flower import client_calls
from discreet.engines.flower.flower_engine import FlowerEngine
from discreet.engines.flower.signed_messages import Refusal, encode_refusal
from discreet.errors import DiscreetError, LedgerDamaged
from discreet.experiment.job import Job
from discreet.experiment.loop import run_guarantees
from discreet.params import flatten
from discreet.privacy.ledger import Ledger
from discreet.secure_sums.secagg.session_client import Client
from tests.deploy.example_sites import CENTRAL, PLAIN, SECURE, Wire, copy_site, edit_policy
from tests.deploy.node_requests import count_releases
from tests.lies.moment import Lie, ServerLie
from tests.lies.node_disk import NEWEST
from tests.lies.wires import FIRST_NODE, LyingClientsWire, LyingServerWire

ROUNDS = 3


def _plan(text: str, *changes: tuple[str, str]) -> str:
    for old, new in (("seed = 7\n", ""), ("timeout = 60, patience = 4", "timeout = 0.01, patience = 0.01"), *changes):
        assert old in text
        text = text.replace(old, new)
    return text


FIVE = ("clients = 3", "clients = 5")
PLANS = {
    "secure": _plan(SECURE, FIVE, ("dropouts = 1", "dropouts = 2"), ("evaluate_every = 1\n", "evaluate_every = 9\n")),
    "no drop-outs": _plan(
        SECURE, FIVE, ("dropouts = 1", "dropouts = 0"), ("evaluate_every = 1\n", "evaluate_every = 9\n")
    ),
    "noise at each client": _plan(PLAIN),
    "noise at the server": _plan(CENTRAL),
}


@dataclass
class RunResult:
    """What came of a run.

    Attributes:
        rounds: The contributors of each round; None where it was lost.
        exact: Whether each secure sum is that of its contributors' vectors.
        noise: Of each that is not: the median of its numbers, in units of half the ring; 0.5 if they are uniform.
        stopped: Why the run stopped; None if it did not.
        operator: The lines that the server's operator read.
        owners: The lines that each client's owner read.
        counted: The releases in each client's own ledger.
        sent: The updates, masked or in clear, that each node answered with: distinct bytes.
        told: How many lies were told.
        answers: What each lie of a server got: the client, the request and the reply.
        replies: All replies of all nodes to honest requests.
        left_out: The clients that are left out at the end.
    """

    rounds: list[tuple[int, ...] | None] = field(default_factory=list)
    exact: list[bool] = field(default_factory=list)
    noise: list[float] = field(default_factory=list)
    stopped: str | None = None
    operator: list[str] = field(default_factory=list)
    owners: list[list[str]] = field(default_factory=list)
    counted: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    told: int = 0
    answers: list[tuple[int, bytes, bytes]] = field(default_factory=list)
    replies: set[bytes] = field(default_factory=set)
    left_out: set[int] = field(default_factory=set)


def play_clients(plan: str, lies: Mapping[int, Mapping[str, Lie]]) -> RunResult:
    """Play a run in which these clients lie."""
    return _play(plan, lambda wire, key: LyingClientsWire(wire.nodes_at, lies=lies))


def play_server(plan: str, lies: Mapping[int, Mapping[str, ServerLie]]) -> RunResult:
    """Play a run in which the server lies to these clients."""
    return _play(plan, lambda wire, key: LyingServerWire(wire.nodes_at, key=key, lies=lies))


def play_folder(plan: str, change: Callable[[Path], None]) -> RunResult:
    """Start client 0's node with an app folder that the server has changed since the owner agreed to it."""
    folder = Path(mkdtemp(prefix="discreet-lies-"))
    try:
        site = copy_site(folder, PLANS[plan])
        clients = len(site.deployment.clients)
        played = RunResult(owners=[[] for _ in range(clients)], counted=[0] * clients, sent=[0] * clients, told=1)
        change(site.app)
        try:
            ClientNode.open(folder / "client-0", played.owners[0].append).close()
        except DiscreetError as refused:
            played.owners[0].append(f"Refused: {refused}")
            played.answers = [(0, b"", encode_refusal(Refusal(str(refused))))]
    finally:
        shutil.rmtree(folder)
    return played


def _play(plan: str, lying: Any) -> RunResult:
    torch.set_num_threads(1)
    played, folder = RunResult(), Path(mkdtemp(prefix="discreet-lies-"))
    try:
        site = copy_site(folder, PLANS[plan])
        names = [each.name for each in site.deployment.clients]
        if plan == "noise at the server":
            for name in names:
                edit_policy(folder / name, "trust_server_with_updates = false", "trust_server_with_updates = true")
        played.owners = [[] for _ in names]
        nodes = {
            FIRST_NODE + client: ClientNode.open(folder / name, played.owners[client].append)
            for client, name in enumerate(names)
        }
        wire = lying(Wire(nodes), read_key(site.server / "server.key"))
        with _without_cards(), _watch_sums(played):
            _train(DeployedRun(site, "first"), wire, played)
        played.counted = [_count(node) for node in nodes.values()]
        played.sent = [_count_updates(wire, node) for node in nodes]
        played.told = len(getattr(wire, "told", ())) + len(getattr(wire, "answers", ()))
        played.answers = getattr(wire, "answers", [])
        lied = {request for _, request, _ in played.answers}
        played.replies = {reply for _, request, reply in getattr(wire, "updates", ()) if request not in lied}
        for node in nodes.values():
            node.close()
    finally:
        shutil.rmtree(folder)
    return played


def _train(run: DeployedRun, wire: Wire, played: RunResult) -> None:
    try:
        outcome = run.train(wire, played.operator.append)
    except RoundRefused as refused:  # no model exists yet
        played.stopped = str(refused)
        return
    played.stopped = outcome.stopped
    for line in outcome.record.read_rounds():
        if "lost" in line:  # perhaps a sum that was refused after it was made
            played.rounds[line["round"] - 1] = None


def _count(node: ClientNode) -> int:
    """Return the releases in the node's own ledger, also if the node refuses it."""
    try:
        return count_releases(node)
    except LedgerDamaged:
        folder = node.client_folder.folder
        (path,) = list(folder.glob(f"ledger-*{NEWEST}")) or folder.glob("ledger-*.jsonl")
        return sum(Ledger.open(path).summary()["releases"].values())


def _count_updates(wire: Wire, node: int) -> int:
    """Return the number of different answers to requests for an update."""
    delivered = [(at, *each) for exchange in wire.passed for at, each in exchange.items()]
    return len(
        {
            reply
            for at, request, reply in [*delivered, *getattr(wire, "updates", ())]
            if at == node
            and reply[:1] == b"\0"
            and any(kind in request for kind in (b'"kind": "mask"', b'"kind": "train"'))
        }
    )


@contextmanager
def _without_cards() -> Iterator[None]:
    """Leave out the certificates and the page of the run, which cost most of its time and see no lie."""
    with (
        patch.object(run_guarantees, "certify_run", lambda *about, **more: []),
        patch.object(api, "write_page", lambda folder: None),
        patch.object(client_calls, "LOOK_SECONDS", 0.0),
        patch.object(Job, "spent_epsilon", lambda *about: None),
    ):
        yield


@contextmanager
def _watch_sums(played: RunResult) -> Iterator[None]:
    """Record the contributors of each sum, and whether it is the sum of what they masked."""
    masked: dict[int, np.ndarray] = {}
    mask, gather = Client.mask, FlowerEngine.gather

    def watch_mask(client: Client, number: int, vector: Any, subject: bytes) -> bytes:
        masked[client._state.client] = np.asarray(vector).astype(np.int64)
        return mask(client, number, vector, subject)

    def watch_gather(engine: FlowerEngine, broadcast: Broadcast, cohort: list[int]) -> CohortSum:
        played.rounds.append(None)
        masked.clear()
        try:
            found = gather(engine, broadcast, cohort)
        finally:
            played.left_out = set(engine.calls.left_out)
        played.rounds[-1] = found.contributors
        if masked and broadcast.encoding is not None:
            ring = 2**broadcast.encoding.bits
            total = flatten(found.total).cpu().numpy().astype(np.int64)
            expected = sum(masked[client] for client in found.contributors)
            played.exact.append(bool(np.all((total - expected) % ring == 0)))
            if not played.exact[-1]:
                played.noise.append(float(np.median(np.abs(total))) / (ring / 2))
        return found

    with ExitStack() as stack:
        stack.enter_context(patch.object(Client, "mask", watch_mask))
        stack.enter_context(patch.object(FlowerEngine, "gather", watch_gather))
        yield

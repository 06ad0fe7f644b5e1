"""Malicious or silent clients can do little harm to a run."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import torch

from discreet.algorithms.broadcast import Broadcast
from discreet.deploy.deployed_run import DeployedRun
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.engines.flower import signed_messages
from discreet.engines.flower.client_calls import HELLO_SECONDS
from discreet.engines.flower.flower_engine import FlowerEngine
from discreet.engines.flower.reply_deadline import ReplyDeadline
from discreet.params import Params, norms
from discreet.randomness.streams import RunKey
from discreet.secure_sums.secagg.session_errors import BadMessage
from tests.deploy.example_sites import (
    CENTRAL,
    PLAIN,
    SECURE,
    Replies,
    Wire,
    add_shared,
    connect_nodes,
    copy_site,
    edit_policy,
)

pytestmark = pytest.mark.usefixtures("one_thread")


@dataclass
class LyingWire(Wire):
    """A network that changes one client's answers."""

    lie: Callable[[bytes], bytes] = lambda reply: reply

    def exchange(
        self, requests: Mapping[int, bytes], enough: int, limit: float = math.inf, shared: bytes = b""
    ) -> Replies:
        requests = add_shared(requests, shared)
        came = dict(super().exchange(requests, enough))
        about, _ = signed_messages.read_request(
            requests[102], bytes.fromhex(self.nodes_at[102].client_folder.policy.server_key)
        )
        return iter((came if about.kind == "hello" else came | {102: self.lie(came[102])}).items())


def alter_update(change: Callable[[Params], Params]) -> Callable[[bytes], bytes]:
    return lambda reply: signed_messages.encode_answer(
        signed_messages.encode_tensors(change(signed_messages.decode_tensors(reply[1:])))
    )


def encode_odd(shape: list[int], kind: str = "F32") -> bytes:
    """Return a tensor without bytes in the safetensors format."""
    header = json.dumps({"0.weight": {"dtype": kind, "shape": shape, "data_offsets": [0, 0]}}).encode()
    return len(header).to_bytes(8, "little") + header


@pytest.mark.parametrize(
    "lie",
    [
        lambda reply: signed_messages.encode_answer(b"garbage"),
        alter_update(lambda row: {"x": torch.zeros(1)}),
        alter_update(lambda row: {**row, "x": torch.zeros(())}),
        alter_update(lambda row: {name: value.flatten()[:3] for name, value in row.items()}),
        alter_update(
            lambda row: {name: value.flatten()[:1] for name, value in row.items()}
        ),  # which torch would spread
        alter_update(lambda row: {name: value * float("nan") for name, value in row.items()}),
        alter_update(lambda row: {name: value.double() for name, value in row.items()}),
        lambda reply: signed_messages.encode_answer(encode_odd([0, 2**63])),
    ],
    ids=["garbage", "other names", "more", "other shapes", "one number", "nan", "doubles", "impossible shape"],
)
def test_an_update_in_clear_that_does_not_fit_the_model_is_as_none(
    tmp_path: Path, lie: Callable[[bytes], bytes]
) -> None:
    site, heard = copy_site(tmp_path, PLAIN), list[str]()
    wire = LyingWire(connect_nodes(tmp_path, site, heard).nodes_at, lie=lie)
    job = DeployedRun(site, "first").prepare_job(RunKey.from_seed(7), wire, heard.append)
    assert job.remote_engine is not None
    found = job.remote_engine.gather(job.algorithm.broadcast(job.algorithm.init(job.params), 0), [0, 1, 2])
    assert found.contributors == (0, 1)
    assert list(found.total) == list(job.params)  # in the model's order, in which noise is drawn for it
    assert heard[-1].startswith("Ignored what client-2 sent: ")


@pytest.mark.parametrize("shape", [[0, 2**63], [2**63, 0], [0, 2**62, 4], [0] * 100])
def test_tensors_of_a_shape_that_torch_can_not_hold_are_no_update(shape: list[int]) -> None:
    """safetensors takes these, and torch raised what ended the run."""
    with pytest.raises(BadMessage):
        signed_messages.decode_update(encode_odd(shape), {"0.weight": torch.zeros(2)}, beside=0)


@pytest.mark.parametrize("kind", [torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2, torch.bool, torch.int64])
def test_a_flag_of_a_type_that_no_honest_client_sends_is_no_update(kind: torch.dtype) -> None:
    like = {"0.weight": torch.zeros(2)}
    sent = signed_messages.encode_tensors({**like, "flag": torch.ones(()).to(kind)})
    with pytest.raises(BadMessage, match="no update of this experiment's model"):
        signed_messages.decode_update(sent, like, beside=1)


def gather_with_lie(folder: Path, text: str, change: Callable[[Params], Params]) -> tuple[Params, Params, list[str]]:
    """Return the sum of a round in which the third client lies, the sum of the two others, and what was said."""
    said, sums = list[str](), list[Params]()
    for name, lie in (
        ("lie", alter_update(change)),
        ("silent", lambda reply: signed_messages.encode_answer(b"garbage")),
    ):
        site = copy_site(folder / name, text)
        if text == CENTRAL:
            for client in range(3):
                edit_policy(
                    folder / name / f"client-{client}",
                    "trust_server_with_updates = false",
                    "trust_server_with_updates = true",
                )
        wire = LyingWire(connect_nodes(folder / name, site, []).nodes_at, lie=lie)
        job = DeployedRun(site, "first").prepare_job(RunKey.from_seed(7), wire, said.append)
        assert job.remote_engine is not None
        broadcast = job.algorithm.broadcast(job.algorithm.init(job.params), 0)
        sums.append(job.remote_engine.gather(broadcast, [0, 1, 2]).total)
    return sums[0], sums[1], said


def test_a_huge_update_with_noise_of_its_own_is_as_none_and_its_client_is_named(tmp_path: Path) -> None:
    total, others, said = gather_with_lie(tmp_path, PLAIN, lambda row: {name: 1e6 * each for name, each in row.items()})
    assert all(torch.equal(total[name], others[name]) for name in total)
    assert said[0].startswith("Ignored what client-2 sent: The update has an L2 norm of ")


def test_a_huge_update_without_noise_is_clipped_and_its_client_is_named(tmp_path: Path) -> None:
    huge = {"weight": 1e30, "bias": 0.0}
    total, others, said = gather_with_lie(
        tmp_path, CENTRAL, lambda row: {name: torch.full_like(each, huge[name]) for name, each in row.items()}
    )
    more = {name: (total[name] - others[name])[None] for name in total}
    assert float(norms(more)) == pytest.approx(1.0, abs=1e-5)
    assert said[0].startswith("Clipped what client-2 sent: the update has an L2 norm of ")


def test_a_refusal_is_one_line_that_can_be_printed() -> None:
    """It is printed on a server's terminal, where it must not look like progress or act as control codes."""
    said = "\x1b]0;owned\x07\x1b[2J\nround 99 of 3, accuracy 1.0 " + "x" * 5000
    told = signed_messages.read_reply(signed_messages.encode_refusal(signed_messages.Refusal(said)))
    assert isinstance(told, signed_messages.Refusal)
    assert told.why.isprintable()
    assert len(told.why) == signed_messages.MAX_REFUSAL_CHARACTERS + 1
    assert told.why.startswith("]0;owned [2J round 99 of 3, accuracy 1.0 xxx")


@dataclass
class Slow(Wire):
    """A network with a node that is online and silent; its clock advances by waiting."""

    now: list[float] = field(default_factory=lambda: [0.0])

    def exchange(
        self, requests: Mapping[int, bytes], enough: int, limit: float = math.inf, shared: bytes = b""
    ) -> Replies:
        requests = add_shared(requests, shared)
        came = list(super().exchange({node: each for node, each in requests.items() if node != 102}, enough))
        waiting = ReplyDeadline(timeout=600, patience=30, clock=lambda: self.now[0]).limit_timeout(limit)
        over = waiting.start(len(requests), enough)
        while not over(len(came)):
            self.now[0] += 0.5
        return iter(came)


def build_waiting_engine(wire: Slow, site: DeploymentFolder) -> tuple[FlowerEngine, Broadcast]:
    """Return an engine that uses the wire's clock and waits a minute for its clients, and its broadcast."""
    job = DeployedRun(site, "first").prepare_job(RunKey.from_seed(7), wire, lambda text: None)
    assert job.remote_engine is not None
    engine = job.remote_engine
    assert isinstance(engine, FlowerEngine)
    assert engine.calls.timeout == 60
    engine.calls.clock = lambda: wire.now[0]
    engine.calls.pause = lambda seconds: wire.now.__setitem__(0, wire.now[0] + seconds)
    return engine, job.algorithm.broadcast(job.algorithm.init(job.params), 0)


def test_a_node_that_says_nothing_is_waited_for_once_and_then_holds_up_no_round(tmp_path: Path) -> None:
    """Heartbeats come from a separate thread, so a client that hangs is still online."""
    site = copy_site(tmp_path, SECURE)
    wire, waited = Slow(connect_nodes(tmp_path, site, []).nodes_at), []
    engine, broadcast = build_waiting_engine(wire, site)
    for round in range(3):
        before = wire.now[0]
        assert engine.gather(replace(broadcast, round=round), [0, 1, 2]).contributors == (0, 1)
        waited.append(wire.now[0] - before)
    assert 60 <= waited[0] < 60 + HELLO_SECONDS
    assert waited[1:] == [0, 0]


@dataclass
class BusyWire(Slow):
    """A network so busy that no node's answer arrives within 40 seconds: what comes later is lost."""

    def exchange(
        self, requests: Mapping[int, bytes], enough: int, limit: float = math.inf, shared: bytes = b""
    ) -> Replies:
        self.now[0] += min(limit, 40)
        return iter(()) if limit < 40 else Wire.exchange(self, requests, enough, limit, shared)


def test_a_busy_server_gives_nodes_more_time_to_say_who_they_are(tmp_path: Path) -> None:
    """Else it would ask all of them again, for ever, and never have an answer in time."""
    site = copy_site(tmp_path, SECURE)
    wire = BusyWire(connect_nodes(tmp_path, site, []).nodes_at)
    engine, broadcast = build_waiting_engine(wire, site)
    assert engine.gather(broadcast, [0, 1, 2]).contributors == (0, 1, 2)


@dataclass
class Later(Slow):
    """A network in which the silent node is online from the beginning and the others come later."""

    def nodes(self) -> list[int]:
        return [102] if self.now[0] < 20 else list(self.nodes_at)


def test_clients_that_come_while_a_silent_one_is_waited_for_are_seen(tmp_path: Path) -> None:
    site = copy_site(tmp_path, SECURE)
    engine, broadcast = build_waiting_engine(Later(connect_nodes(tmp_path, site, []).nodes_at), site)
    assert engine.gather(broadcast, [0, 1, 2]).contributors == (0, 1)

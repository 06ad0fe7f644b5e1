"""What clients that lie, or say nothing, can do to a run: little."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import torch

from discreet.deploy.app import App
from discreet.deploy.server import prepared
from discreet.engines.flower import messages
from discreet.engines.flower.engine import FlowerEngine
from discreet.engines.flower.waiting import Waiting
from discreet.params import Params
from discreet.randomness import RunKey
from tests.deploy.sites import PLAIN, SECURE, Wire, copied, wired

pytestmark = pytest.mark.usefixtures("one_thread")


@dataclass
class Lying(Wire):
    """One client's answers are changed on their way."""

    lie: Callable[[bytes], bytes] = lambda reply: reply

    def exchange(self, requests: Mapping[int, bytes], enough: int) -> dict[int, bytes]:
        came = super().exchange(requests, enough)
        about, _ = messages.parsed(requests[102], bytes.fromhex(self.nodes_at[102].owned.policy.server_key))
        return came if about.kind == "hello" else came | {102: self.lie(came[102])}


def altered(change: Callable[[Params], Params]) -> Callable[[bytes], bytes]:
    return lambda reply: messages.answered(messages.tensors(change(messages.tensors_from(reply[1:]))))


@pytest.mark.parametrize(
    "lie",
    [
        lambda reply: messages.answered(b"garbage"),
        altered(lambda row: {"x": torch.zeros(1)}),
        altered(lambda row: {**row, "x": torch.zeros(())}),
        altered(lambda row: {name: value.flatten()[:3] for name, value in row.items()}),
        altered(lambda row: {name: value.flatten()[:1] for name, value in row.items()}),  # which torch would spread
        altered(lambda row: {name: value * float("nan") for name, value in row.items()}),
        altered(lambda row: {name: value.double() for name, value in row.items()}),
    ],
    ids=["garbage", "other names", "more", "other shapes", "one number", "nan", "doubles"],
)
def test_an_update_in_clear_that_does_not_fit_the_model_is_as_none(
    tmp_path: Path, lie: Callable[[bytes], bytes]
) -> None:
    site, heard = copied(tmp_path, PLAIN), list[str]()
    wire = Lying(wired(tmp_path, site, heard).nodes_at, lie=lie)
    job = prepared(site, App.open(site.app), "first", RunKey.seed(7), wire, heard.append)
    assert job.remote is not None
    found = job.remote().gather(job.algorithm.broadcast(job.algorithm.init(job.params), 0), [0, 1, 2])
    assert found.contributors == (0, 1)
    assert list(found.total) == list(job.params)  # in the model's order, in which noise is drawn for it
    assert heard[-1].startswith("What client-2 sent was not taken: ")


def test_a_refusal_is_one_line_that_can_be_printed() -> None:
    """It ends in a server's terminal, which must not take it for progress, or for orders."""
    said = "\x1b]0;owned\x07\x1b[2J\nround 99 of 3, accuracy 1.0 " + "x" * 5000
    told = messages.told(messages.refused(messages.Refusal(said)))
    assert isinstance(told, messages.Refusal)
    assert told.why.isprintable()
    assert len(told.why) == messages.MOST_WORDS + 1
    assert told.why.startswith("]0;owned [2J round 99 of 3, accuracy 1.0 xxx")


@dataclass
class Slow(Wire):
    """One node is online and answers nothing; time is what is waited for."""

    now: list[float] = field(default_factory=lambda: [0.0])

    def exchange(self, requests: Mapping[int, bytes], enough: int) -> dict[int, bytes]:
        came = super().exchange({node: each for node, each in requests.items() if node != 102}, enough)
        over = Waiting(timeout=600, patience=30, clock=lambda: self.now[0]).over(len(requests), enough)
        while not over(len(came)):
            self.now[0] += 0.5
        return came


def test_a_node_that_says_nothing_is_waited_for_once_and_then_holds_up_no_round(tmp_path: Path) -> None:
    """Heartbeats come from a thread of their own, so that a client which hangs is online all the same."""
    site, heard = copied(tmp_path, SECURE), list[str]()
    wire = Slow(wired(tmp_path, site, heard).nodes_at)
    job = prepared(site, App.open(site.app), "first", RunKey.seed(7), wire, heard.append)
    assert job.remote is not None
    engine = job.remote()
    assert isinstance(engine, FlowerEngine)
    engine.calls.clock = lambda: wire.now[0]
    engine.calls.pause = lambda seconds: wire.now.__setitem__(0, wire.now[0] + seconds)
    broadcast, waited = job.algorithm.broadcast(job.algorithm.init(job.params), 0), []
    for round in range(3):
        before = wire.now[0]
        assert engine.gather(replace(broadcast, round=round), [0, 1, 2]).contributors == (0, 1)
        waited.append(wire.now[0] - before)
    assert waited == [600, 0, 0]

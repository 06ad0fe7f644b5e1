"""A malicious server with its own signing key gets nothing from a node that was not counted."""

import math
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from discreet.deploy.certificates import read_key
from discreet.deploy.client_node import ClientNode
from discreet.deploy.deployed_run import DeployedRun
from discreet.deploy.journal import Entry
from discreet.engines.flower import signed_messages
from discreet.engines.flower.signed_messages import RequestHeader
from discreet.params import Params, flatten
from discreet.randomness.streams import RunKey
from discreet.secure_sums.secagg.session_client import Client
from discreet.secure_sums.secagg.session_terms import Terms
from tests.deploy.example_sites import PLAIN, SECURE, Replies, Wire, add_shared, connect_nodes, copy_site, create_site
from tests.deploy.node_requests import RUN, OpenSession, count_releases, open_request, refusal

pytestmark = pytest.mark.usefixtures("one_thread")

MASKED = (
    PLAIN.partition("[algorithm]")[0]
    + """\
[algorithm]
trainer = { kind = "broadcast_gradients", steps = 1, sampling_rate = 0.5, clip_norm = 0.5, learning_rate = 2.0 }
mechanism = { kind = "distributed_gaussian" }
sparsifier = { kind = "random_k", fraction = 0.5 }
"""
)


@pytest.mark.parametrize(
    "change",
    [
        {"mask bias": torch.ones((1, 100, 10), dtype=torch.bool)},  # a hundred copies, each with its own noise
        {"mask weight": torch.ones((1, 0, 10, 64), dtype=torch.bool)},
        {"mask bias": torch.ones(10, dtype=torch.bool)},  # the right shape, and another draw than this round's
        {"mask bias": torch.ones(10)},
        {"more": torch.zeros(())},
        {"mask bias": None},
    ],
    ids=["copies", "nothing", "another draw", "another kind", "more", "less"],
)
def test_a_mask_that_is_not_the_rounds_own_is_refused_and_costs_nothing(
    tmp_path: Path, change: dict[str, torch.Tensor | None]
) -> None:
    site = create_site(tmp_path, MASKED)
    node = ClientNode.open(tmp_path / "client-0", lambda text: None)
    learner = node.learner
    broadcast = learner.algorithm.broadcast(learner.algorithm.init(learner.params), 0)
    told: Params = {name: value for name, value in (broadcast.announcement | change).items() if value is not None}
    about = RequestHeader(kind="train", run=RUN, experiment=node.app.digest, round=0, client=0, cohort=(0, 1, 2))
    key = read_key(site.server / "server.key")
    said = refusal(
        node, signed_messages.sign_request(about, signed_messages.encode_broadcast(broadcast.params, told), key)
    )
    assert "than this algorithm has, which would change what an update may reveal" in said
    assert count_releases(node) == 0
    honest = signed_messages.sign_request(
        about, signed_messages.encode_broadcast(broadcast.params, broadcast.announcement), key
    )
    assert isinstance(signed_messages.read_reply(node.answer(honest)), bytes)


def test_a_secure_sum_for_another_experiment_or_run_is_refused(open_session: OpenSession) -> None:
    """Otherwise a server could sum clients of two experiments, with less noise than one of them assumes."""
    site, wire, engine, broadcast = open_session
    engine.gather(broadcast, [0, 1, 2])
    about, body, key = open_request(wire, 1, 100, site)
    assert about.kind == "session"
    other = signed_messages.session_purpose("0" * 64, about.run)
    strange = replace(Terms.from_bytes(body), purpose=other)
    said = refusal(wire.nodes_at[100], signed_messages.sign_request(about, strange.to_bytes(), key))
    assert said.startswith("The secure sum is for another experiment or another run.")


@dataclass
class TwoFacedWire(Wire):
    """A server that asks client 2 for something else than the others, in the same sum, and signs it as its own."""

    key: bytes = b""
    lie: Callable[[RequestHeader, Params], tuple[RequestHeader, Params]] = lambda about, params: (about, params)

    def exchange(
        self, requests: Mapping[int, bytes], enough: int, limit: float = math.inf, shared: bytes = b""
    ) -> Replies:
        requests = add_shared(requests, shared)
        return super().exchange(
            {node: self._lie(each) if node == 102 else each for node, each in requests.items()}, enough
        )

    def _lie(self, request: bytes) -> bytes:
        node = self.nodes_at[102]
        about, body = signed_messages.read_request(request, bytes.fromhex(node.policy.server_key))
        if about.kind == "relay":
            return signed_messages.sign_request(self.lie(about, {})[0], body, self.key)
        if about.kind != "mask":
            return request
        number, members, spread = signed_messages.decode_mask_request(body)
        params, announced = signed_messages.decode_broadcast(spread, node.learner.params)
        about, params = self.lie(about, params)
        spread = signed_messages.encode_broadcast(params, announced)
        return (
            signed_messages.sign_request(about, signed_messages.encode_mask_request(number, members), self.key, spread)
            + spread
        )


@pytest.mark.parametrize(
    "lie",
    [
        lambda about, params: (about, {name: torch.zeros_like(value) + 1 for name, value in params.items()}),
        lambda about, params: (replace(about, round=about.round + 1), params),
    ],
    ids=["another model", "another round"],
)
def test_a_server_that_tells_one_client_something_else_gets_noise(
    open_session: OpenSession, lie: Callable[[RequestHeader, Params], tuple[RequestHeader, Params]]
) -> None:
    """The two that were told the same unmask, since the server hides what the third one signed: uniform numbers."""
    site, wire, engine, broadcast = open_session
    plain = engine.gather(broadcast, [0, 1, 2])
    heard = list[str]()
    engine.calls.carrier = TwoFacedWire(wire.nodes_at, key=read_key(site.server / "server.key"), lie=lie)
    engine.calls.say = heard.append
    found = engine.gather(replace(broadcast, round=1), [0, 1, 2])
    assert broadcast.encoding is not None
    half = 2 ** (broadcast.encoding.bits - 1)
    typical = [float(flatten(each.total).abs().double().median()) / half for each in (plain, found)]
    assert typical[0] < 0.05
    assert 0.4 < typical[1] < 0.6  # of 650 numbers; 0.5 if they are uniform over the ring
    assert heard == [
        "Ignored what client-2 sent: Client 2 did not sign this round's survivor list, or received another broadcast."
    ]


def test_a_node_whose_journal_is_lost_draws_fresh_noise_in_the_next_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors: list[Any] = []
    mask = Client.mask

    def watch_mask(self: Client, number: int, vector: Any, subject: bytes) -> bytes:
        vectors.append(vector.copy())
        return mask(self, number, vector, subject)

    monkeypatch.setattr(Client, "mask", watch_mask)
    site, heard = copy_site(tmp_path, SECURE.replace("seed = 7\n", "")), list[str]()
    wire, key = connect_nodes(tmp_path, site, heard), RunKey.generate()
    for _ in range(2):
        job = DeployedRun(site, "first").prepare_job(key, wire, heard.append)
        assert job.remote_engine is not None
        job.remote_engine.gather(job.algorithm.broadcast(job.algorithm.init(job.params), 0), [0, 1, 2])
        for node in wire.nodes_at.values():
            shutil.rmtree(node.client_folder.folder / "runs")
    assert len(vectors) == 6
    assert not any(np.array_equal(vectors[client], vectors[client + 3]) for client in range(3))
    assert [count_releases(node) for node in wire.nodes_at.values()] == [2, 2, 2]


def test_what_goes_wrong_with_the_data_in_hand_is_told_to_its_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, heard = copy_site(tmp_path, PLAIN), list[str]()
    node = connect_nodes(tmp_path, site, heard).nodes_at[100]

    def fail(learner: Any, run: str, broadcast: Any, entry: Entry) -> Params:
        raise ValueError("the largest is 4711")

    monkeypatch.setattr("discreet.deploy.learner.Learner.update", fail)
    learner = node.learner
    broadcast = learner.algorithm.broadcast(learner.algorithm.init(learner.params), 0)
    about = RequestHeader(kind="train", run=RUN, experiment=node.app.digest, round=0, client=0, cohort=(0, 1, 2))
    key = read_key(site.server / "server.key")
    said = refusal(
        node,
        signed_messages.sign_request(
            about, signed_messages.encode_broadcast(broadcast.params, broadcast.announcement), key
        ),
    )
    assert said == "The request could not be answered (ValueError); the node's owner sees why."
    assert "4711" in heard[-1]


def test_uploads_with_shares_of_noise_are_doubles_and_are_summed_as_such(tmp_path: Path) -> None:
    """What single precision would round off depends on an update that only the noise of the sum hides."""
    site, heard = create_site(tmp_path, MASKED), list[str]()
    wire = Wire(connect_nodes(tmp_path, site, heard).nodes_at)
    job = DeployedRun(site, "first").prepare_job(RunKey.from_seed(7), wire, heard.append)
    assert job.remote_engine is not None
    found = job.remote_engine.gather(job.algorithm.broadcast(job.algorithm.init(job.params), 0), [0, 1, 2])
    assert found.contributors == (0, 1, 2)
    assert not any(text.startswith("Ignored") for text in heard)
    assert all(value.dtype == torch.float64 for value in found.total.values())
    assert any(not torch.equal(value, value.float().double()) for value in found.total.values())

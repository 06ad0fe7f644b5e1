"""Nodes are registered one after the other by one process, however many there are."""

from dataclasses import replace
from functools import partial, partialmethod
from pathlib import Path
from typing import Any, NoReturn

import pytest

pytest.importorskip("flwr")

import httpx
from flwr.proto.control_pb2 import (
    ListNodesRequest,
    ListNodesResponse,
    RegisterNodeRequest,
    RegisterNodeResponse,
    UnregisterNodeRequest,
    UnregisterNodeResponse,
)
from flwr.proto.node_pb2 import NodeInfo
from flwr.supercore.constant import NodeStatus
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.error.base import ApiErrorCode, FlowerError

from discreet.deploy import online_clients, superlink
from discreet.deploy.certificates import write_certificates, write_node_key
from discreet.deploy.deployment import Card
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.engines.flower.node_registry import register_keys, unregister_keys
from discreet.errors import InvalidInput
from tests.deploy.example_sites import SECURE, copy_site


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    write_certificates(tmp_path, ["127.0.0.1"])
    return tmp_path / "ca.crt"


def answer_with(monkeypatch: pytest.MonkeyPatch, answer: Any) -> list[bytes]:
    """Let the SuperLink answer each registration so. Returns the keys that it is asked to register."""
    asked: list[bytes] = []

    def register(client: ControlHttpClient, request: RegisterNodeRequest) -> RegisterNodeResponse:
        asked.append(request.public_key)
        response: RegisterNodeResponse = answer(len(asked))
        return response

    monkeypatch.setattr(ControlHttpClient, "RegisterNode", register)
    return asked


def refuse(code: ApiErrorCode) -> NoReturn:
    request = httpx.Request("POST", "https://127.0.0.1:1")
    response = httpx.Response(409, request=request, json=FlowerError(code, "secret").to_json("public"))
    response.raise_for_status()
    raise AssertionError


def test_each_client_has_the_number_that_the_superlink_gave_its_key(
    tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {name: write_node_key(tmp_path / name) for name in ("north", "south")}
    asked = answer_with(monkeypatch, lambda number: RegisterNodeResponse(node_id=16 + number))
    assert list(register_keys("127.0.0.1:1", certificate, keys)) == [("north", 17), ("south", 18)]
    assert len(set(asked)) == 2


class FakeSuperLink:
    """A SuperLink's list of nodes, with Flower's rules: a key is registered once, and an unregistered one is kept."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.nodes: dict[int, NodeInfo] = {}
        self.refused: set[int] = set()
        for call in (self.RegisterNode, self.ListNodes, self.UnregisterNode):
            answer = partial(lambda call, client, request: call(request), call)
            monkeypatch.setattr(ControlHttpClient, call.__name__, partialmethod(answer))

    def RegisterNode(self, request: RegisterNodeRequest) -> RegisterNodeResponse:
        if any(node.public_key == request.public_key for node in self.nodes.values()):
            refuse(ApiErrorCode.PUBLIC_KEY_ALREADY_IN_USE)
        number = 17 + len(self.nodes)
        self.nodes[number] = NodeInfo(node_id=number, public_key=request.public_key, status=NodeStatus.REGISTERED)
        return RegisterNodeResponse(node_id=number)

    def ListNodes(self, request: ListNodesRequest) -> ListNodesResponse:
        return ListNodesResponse(nodes_info=self.nodes.values())

    def UnregisterNode(self, request: UnregisterNodeRequest) -> UnregisterNodeResponse:
        node = self.nodes[request.node_id]
        if node.status == NodeStatus.UNREGISTERED or request.node_id in self.refused:
            refuse(ApiErrorCode.NODE_NOT_FOUND)
        node.status = NodeStatus.UNREGISTERED
        return UnregisterNodeResponse()

    def numbers(self) -> list[int]:
        return [number for number, node in self.nodes.items() if node.status != NodeStatus.UNREGISTERED]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeSuperLink:
    return FakeSuperLink(monkeypatch)


def test_a_key_that_is_registered_already_has_the_number_that_it_got_then(
    tmp_path: Path, certificate: Path, fake: FakeSuperLink
) -> None:
    keys = {name: write_node_key(tmp_path / name) for name in ("north", "south")}
    first = list(register_keys("127.0.0.1:1", certificate, keys))
    assert list(register_keys("127.0.0.1:1", certificate, keys)) == first == [("north", 17), ("south", 18)]


class Kill(BaseException):
    """The server ends here."""


def start_server(site: DeploymentFolder, cards: list[Card]) -> list[str]:
    """Bring the SuperLink's nodes up to date as the server does when it starts. Returns what it says."""
    said = list[str]()
    superlink.unregister_nodes(site, cards, said.append)
    superlink.register_nodes(site, cards, said.append)
    return said


def kill_start(site: DeploymentFolder, cards: list[Card], write: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the server, and kill it between what the SuperLink has done and the file that says so."""

    def die(*_: object) -> None:
        raise Kill

    with monkeypatch.context() as patched:
        patched.setattr(online_clients, write, die)
        with pytest.raises(Kill):
            start_server(site, cards)


def test_an_old_key_whose_number_a_killed_start_did_not_store_is_removed_when_the_server_says_so(
    tmp_path: Path, fake: FakeSuperLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = copy_site(tmp_path, SECURE)
    cards = site.deployment.read_cards(site.app)[:1]
    kill_start(site, cards, "store_node_number", monkeypatch)
    assert start_server(site, cards) == ["Registered client-0."]
    assert online_clients.add_client_names(site, [{"node-id": "17"}])[0]["client"] == "client-0"
    renewed = [replace(cards[0], node_key=write_node_key(tmp_path / "new"))]
    assert start_server(site, renewed) == ["Removed the old key of client-0.", "Registered client-0."]
    assert fake.numbers() == [18]


def test_an_old_key_that_a_killed_start_has_removed_is_not_called_known(
    tmp_path: Path, fake: FakeSuperLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = copy_site(tmp_path, SECURE)
    cards = site.deployment.read_cards(site.app)[:2]
    start_server(site, cards)
    kill_start(site, cards[:1], "forget_node_number", monkeypatch)
    assert fake.numbers() == [17]
    assert start_server(site, cards[:1]) == ["Removed the old key of client-1."]
    assert start_server(site, cards[:1]) == []


def test_a_superlink_that_keeps_an_old_key_does_not_stop_the_server_which_says_so_at_each_start(
    tmp_path: Path, fake: FakeSuperLink
) -> None:
    site = copy_site(tmp_path, SECURE)
    cards = site.deployment.read_cards(site.app)[:2]
    start_server(site, cards)
    fake.refused.add(18)
    kept = "The old key of client-1 is still known to the SuperLink, but no longer let in."
    assert start_server(site, cards[:1]) == [kept]
    assert start_server(site, cards[:1]) == [kept]
    fake.refused.clear()
    assert start_server(site, cards[:1]) == ["Removed the old key of client-1."]


def test_a_key_that_is_refused_ends_the_registration_with_one_sentence_and_a_remedy(
    tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, lambda number: refuse(ApiErrorCode.PUBLIC_KEY_NOT_VALID))
    keys = {"north": write_node_key(tmp_path / "north")}
    with pytest.raises(InvalidInput) as refused:
        list(register_keys("127.0.0.1:1", certificate, keys))
    assert refused.value.problem == "The SuperLink must register the node of north, and answered with status 409."
    assert "superlink.log" in refused.value.fix


def test_a_superlink_that_is_away_ends_the_registration_with_one_sentence(tmp_path: Path, certificate: Path) -> None:
    keys = {"north": write_node_key(tmp_path / "north")}
    with pytest.raises(InvalidInput) as refused:
        list(register_keys("127.0.0.1:1", certificate, keys))
    assert refused.value.problem == "The SuperLink must register the node of north, and did not answer."
    with pytest.raises(InvalidInput, match=r"The SuperLink must list its nodes, and did not answer\."):
        list(unregister_keys("127.0.0.1:1", certificate, keys))

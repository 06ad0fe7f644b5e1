"""Nodes are registered one after the other by one process, however many there are."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr")

import httpx
from flwr.proto.control_pb2 import RegisterNodeRequest, RegisterNodeResponse
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.error.base import ApiErrorCode, FlowerError

from discreet.deploy.certificates import write_certificates, write_node_key
from discreet.engines.flower.node_registry import register_keys
from discreet.errors import InvalidInput


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


def refuse(code: ApiErrorCode) -> RegisterNodeResponse:
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


def test_a_key_that_is_registered_already_is_no_fault(
    tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, lambda number: refuse(ApiErrorCode.PUBLIC_KEY_ALREADY_IN_USE))
    keys = {"north": write_node_key(tmp_path / "north")}
    assert list(register_keys("127.0.0.1:1", certificate, keys)) == [("north", None)]


def test_a_key_that_is_refused_ends_the_registration_with_the_clients_name(
    tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, lambda number: refuse(ApiErrorCode.PUBLIC_KEY_NOT_VALID))
    keys = {"north": write_node_key(tmp_path / "north")}
    with pytest.raises(InvalidInput, match="north could not be registered"):
        list(register_keys("127.0.0.1:1", certificate, keys))


def test_a_superlink_that_is_away_ends_the_registration_with_a_sentence(tmp_path: Path, certificate: Path) -> None:
    keys = {"north": write_node_key(tmp_path / "north")}
    with pytest.raises(InvalidInput, match="north could not be registered"):
        list(register_keys("127.0.0.1:1", certificate, keys))

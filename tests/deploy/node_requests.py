"""Requests to a node in tests: signed as a server signs them, with the node's answer and what it counts."""

import hashlib
from pathlib import Path

import torch

from discreet.algorithms.broadcast import Broadcast
from discreet.deploy.certificates import read_key
from discreet.deploy.client_node import ClientNode
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.engines.flower import signed_messages
from discreet.engines.flower.flower_engine import FlowerEngine
from discreet.engines.flower.signed_messages import RequestHeader
from discreet.params import Params
from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.wire import Writer
from tests.deploy.example_sites import Wire

RUN = "a" * 32  # a run's name, as servers make them
RequestCase = tuple[Path, DeploymentFolder, ClientNode, RequestHeader, bytes, bytes]
OpenSession = tuple[DeploymentFolder, Wire, FlowerEngine, Broadcast]


def restart(node: ClientNode) -> ClientNode:
    """Open the node of the same folder again, as after a restart."""
    node.close()
    return ClientNode.open(node.client_folder.folder, lambda text: None)


def refusal(node: ClientNode, request: bytes) -> str:
    answer = signed_messages.read_reply(node.answer(request))
    assert isinstance(answer, signed_messages.Refusal)
    return answer.why


def count_releases(node: ClientNode) -> int:
    """Return the number of releases in the node's own ledger, committed or reserved."""
    return sum(node.ledger.open_ledger(node.day()).summary()["releases"].values())


def are_equal(left: Params, right: Params) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def sign_header(head: bytes, key: bytes) -> bytes:
    said = Writer().blob(head).blob(b"").to_bytes()
    return key_agreement.sign(key, signed_messages.REQUEST_PURPOSE + said + hashlib.sha256().digest()) + said


def open_request(wire: Wire, exchange: int, node: int, site: DeploymentFolder) -> tuple[RequestHeader, bytes, bytes]:
    """Open a recorded request, and return it with the key to sign another one."""
    about, body = signed_messages.read_request(
        wire.passed[exchange][node][0], bytes.fromhex(site.deployment.server_key)
    )
    return about, body, read_key(site.server / "server.key")

"""Register the keys of clients' nodes at the SuperLink, over flwr 1.41's Control API and one connection.

Flower's command registers one node and takes over a second; 200 at once took 12 GB and none came to an end.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
from flwr.proto.control_pb2 import ListNodesRequest, RegisterNodeRequest, UnregisterNodeRequest
from flwr.supercore.constant import NodeStatus
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.error.base import ApiErrorCode, FlowerError
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor

from discreet.engines.flower.front_proxy import public_key_bytes
from discreet.errors import InvalidInput


def register_keys(address: str, certificate: Path, keys: Mapping[str, str]) -> Iterator[tuple[str, int | None]]:
    """Register these clients' keys, and yield each client with the number of its node.

    Args:
        address: The SuperLink's address on loopback.
        certificate: Certificate of the authority that signed the SuperLink's.
        keys: The public key of each client's node, as its card has it.

    Yields:
        The client, and the number, also if the SuperLink has the key already, as after a start that was killed. None
        if it has unregistered the key.

    Raises:
        InvalidInput: The SuperLink does not answer, or refuses a key.
    """
    with _connect(address, certificate) as client:
        for name, key in keys.items():
            public = public_key_bytes(key)
            with _refuse_failure(f"register the node of {name}"):
                try:
                    number = client.RegisterNode(RegisterNodeRequest(public_key=public)).node_id
                except httpx.HTTPStatusError as error:
                    if not _is_known_already(error):
                        raise
                    number = _node_numbers(client).get(public)
            yield name, number


def unregister_keys(address: str, certificate: Path, keys: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    """Unregister these clients' keys, and yield each client and whether the SuperLink has its key no longer.

    The SuperLink says which number a key has: no file that a killed start left unwritten is needed.

    Raises:
        InvalidInput: The SuperLink does not answer.
    """
    with _connect(address, certificate) as client:
        with _refuse_failure("list its nodes"):
            numbers = _node_numbers(client)
        for name, key in keys.items():
            with _refuse_failure(f"unregister the old key of {name}"):
                is_gone = _unregister(client, numbers.get(public_key_bytes(key)))
            yield name, is_gone


def _connect(address: str, certificate: Path) -> ControlHttpClient:
    proofs = [RuntimeVersionHttpInterceptor(component_name="flwr CLI")]
    return ControlHttpClient.from_server_address(address, False, certificate.read_bytes(), interceptors=proofs)


def _node_numbers(client: ControlHttpClient) -> dict[bytes, int]:
    """Return the number of each key that is registered now."""
    nodes = client.ListNodes(ListNodesRequest()).nodes_info
    return {node.public_key: node.node_id for node in nodes if node.status != NodeStatus.UNREGISTERED}


def _unregister(client: ControlHttpClient, number: int | None) -> bool:
    try:
        if number is not None:
            client.UnregisterNode(UnregisterNodeRequest(node_id=number))
    except httpx.HTTPStatusError:
        return False
    return True


@contextmanager
def _refuse_failure(aim: str) -> Iterator[None]:
    """Say in one sentence what the SuperLink did not do. What the library says of it is in the SuperLink's log."""
    try:
        yield
    except httpx.HTTPError as error:
        status = error.response.status_code if isinstance(error, httpx.HTTPStatusError) else None
        why = "did not answer" if status is None else f"answered with status {status}"
        raise InvalidInput(
            f"The SuperLink must {aim}, and {why}.",
            fix="Look into superlink.log in the server's folder, and start the server again: it goes on from here.",
        ) from None


def _is_known_already(error: httpx.HTTPStatusError) -> bool:
    refusal = FlowerError.from_json(error.response.text)
    return refusal is not None and refusal.code == ApiErrorCode.PUBLIC_KEY_ALREADY_IN_USE

"""Register the keys of clients' nodes at the SuperLink, over flwr 1.41's Control API and one connection.

Flower's command registers one node and takes over a second; 200 at once took 12 GB and none came to an end.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
from flwr.proto.control_pb2 import RegisterNodeRequest
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
        The client, and the number; None if the SuperLink has the key already.

    Raises:
        InvalidInput: The SuperLink does not answer, or refuses a key.
    """
    proofs = [RuntimeVersionHttpInterceptor(component_name="flwr CLI")]
    with ControlHttpClient.from_server_address(address, False, certificate.read_bytes(), interceptors=proofs) as client:
        for name, key in keys.items():
            try:
                number = client.RegisterNode(RegisterNodeRequest(public_key=public_key_bytes(key))).node_id
            except httpx.HTTPError as error:
                if not _is_known_already(error):
                    raise InvalidInput(f"{name} could not be registered: {error}") from None
                number = None
            yield name, number


def _is_known_already(error: httpx.HTTPError) -> bool:
    if not isinstance(error, httpx.HTTPStatusError):
        return False
    refusal = FlowerError.from_json(error.response.text)
    return refusal is not None and refusal.code == ApiErrorCode.PUBLIC_KEY_ALREADY_IN_USE

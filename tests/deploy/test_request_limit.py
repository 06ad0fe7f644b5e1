"""The server buffers no request that is larger than the experiment's model can need."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr")

import httpx
from flwr.supercore.primitives.asymmetric import public_key_to_bytes

from discreet.deploy import server_process, superlink
from discreet.deploy.deployed_run import DeployedRun
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.request_limit import LIMIT_FILE, OTHER_BYTES, largest_message, store_request_limit
from discreet.engines.flower import front_proxy
from discreet.engines.flower.message_content import MAX_BYTES, PIECE_BYTES
from tests.deploy.example_sites import PLAIN, SECURE, connect_nodes, copy_site
from tests.deploy.test_front_proxy import KEY, PULL, signed

pytestmark = pytest.mark.usefixtures("one_thread")


class OpenPort(Exception):
    """The proxy runs, with these settings."""


def limit_of_server(site: DeploymentFolder, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the most bytes of a request with which a deployment's server opens its port."""
    superlink.write_connection(site)
    opened = list[front_proxy.FrontProxy]()

    class Server:
        should_exit = False

        def __init__(self, config: Any, gate: object) -> None:
            opened.append(config.app)

        def run(self, sockets: object) -> None:
            pass

    @contextmanager
    def run_superlink(*given: object) -> Iterator[None]:
        raise OpenPort
        yield

    monkeypatch.setattr(front_proxy, "GatedServer", Server)
    monkeypatch.setattr(front_proxy, "bind_port", lambda host, port: (site.folder / "door").open("wb"))
    monkeypatch.setattr(superlink, "run_superlink", run_superlink)
    with pytest.raises(OpenPort):
        server_process.run_server(site, "127.0.0.1")
    return opened[0].max_bytes


@pytest.mark.parametrize("text", [PLAIN, SECURE])
def test_every_reply_of_a_run_is_within_the_limit_and_a_hundred_megabytes_are_not(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, heard = copy_site(tmp_path, text), list[str]()
    limit = limit_of_server(site, monkeypatch)
    wire = connect_nodes(tmp_path, site, heard)
    DeployedRun(site, "first").train(wire, heard.append)
    replies = [len(reply) for exchange in wire.passed for _, reply in exchange.values()]
    assert max(replies) < limit / 10  # a linear model of the digits: most of the limit is for everything else
    assert limit < 2 * 2**20


def test_a_size_above_the_limit_is_refused_before_any_of_the_body_is_read() -> None:
    headers = {**signed(), "content-length": "1001"}
    answers = list[Any]()

    async def receive() -> Any:
        raise AssertionError("the body was read")

    async def send(event: Any) -> None:
        answers.append(event)

    scope = {
        "type": "http",
        "method": "POST",
        "path": PULL,
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    backend, keys = httpx.AsyncClient(), frozenset({public_key_to_bytes(KEY.public_key())})
    asyncio.run(front_proxy.FrontProxy(backend, keys, max_bytes=1000)(scope, receive, send))
    assert answers[0]["status"] == 413


def test_a_model_of_any_size_is_sent_in_requests_of_five_megabytes_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = copy_site(tmp_path, PLAIN)
    store_request_limit(site.server, 400 * 2**20)
    assert limit_of_server(site, monkeypatch) == PIECE_BYTES + OTHER_BYTES == 5 * 2**20
    assert largest_message(site.server) == 400 * 2**20


def test_a_deployment_of_an_older_version_keeps_the_limit_of_a_gibibyte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = copy_site(tmp_path, PLAIN)
    (site.server / LIMIT_FILE).unlink()
    assert largest_message(site.server) == MAX_BYTES == 2**30
    assert limit_of_server(site, monkeypatch) == PIECE_BYTES + OTHER_BYTES

"""The proxy of the drill forwards, cuts, silences and half closes connections."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.deploy.processes import free_port
from tests.drill.proxy import CUT, HALF_CLOSED, PASS, SILENT, Proxy

HOST, SHORT, LONG = "127.0.0.1", 0.3, 20.0  # seconds in which nothing may come, and in which something must


@pytest.fixture
def proxy() -> Iterator[tuple[Proxy, int]]:
    """A proxy in front of a server that sends back what it gets, and the proxy's port."""
    echo, port = socket.create_server((HOST, 0)), free_port()
    threading.Thread(target=_serve_echo, args=(echo,), daemon=True).start()
    proxy = Proxy(echo.getsockname(), (HOST, port))
    yield proxy, port
    proxy.close()
    echo.close()


def _serve_echo(listening: socket.socket) -> None:
    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while content := connection.recv(1000):
                connection.sendall(content)

    with suppress(OSError):  # it was closed
        while True:
            threading.Thread(target=answer, args=(listening.accept()[0],), daemon=True).start()


def connect(port: int) -> socket.socket:
    return socket.create_connection((HOST, port), timeout=LONG)


def is_reset(connection: socket.socket) -> bool:
    try:
        return connection.recv(10) == b""
    except ConnectionResetError:
        return True


def test_what_is_sent_arrives(proxy: tuple[Proxy, int]) -> None:
    with connect(proxy[1]) as connection:
        connection.sendall(b"hello")
        assert connection.recv(10) == b"hello"


def test_a_cut_resets_old_and_new_connections_until_it_ends(proxy: tuple[Proxy, int]) -> None:
    with connect(proxy[1]) as before:
        before.sendall(b"hello")
        assert before.recv(10) == b"hello"
        proxy[0].set_mode(CUT)
        assert is_reset(before)
    with connect(proxy[1]) as during:
        assert is_reset(during)
    proxy[0].set_mode(PASS)
    test_what_is_sent_arrives(proxy)


def test_a_silent_proxy_takes_connections_and_answers_nothing(proxy: tuple[Proxy, int]) -> None:
    proxy[0].set_mode(SILENT)
    with connect(proxy[1]) as connection:
        connection.sendall(b"hello")
        connection.settimeout(SHORT)
        with pytest.raises(TimeoutError):
            connection.recv(10)


def test_a_half_closed_connection_ends_in_both_directions_without_a_reset(proxy: tuple[Proxy, int]) -> None:
    with connect(proxy[1]) as connection:
        connection.sendall(b"hello")
        assert connection.recv(10) == b"hello"
        proxy[0].set_mode(HALF_CLOSED)
        assert connection.recv(10) == b""

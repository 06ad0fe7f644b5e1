"""Connections that ask for nothing lock nobody out of the server: at a real port, with real TLS."""

import gc
import resource
import socket
import ssl
import struct
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

pytest.importorskip("flwr")

from discreet.deploy.certificates import write_certificates, write_node_key
from discreet.engines.flower import connection_gate
from discreet.engines.flower.connection_gate import ConnectionGate, GatedConnection, TimedHttp
from discreet.engines.flower.front_proxy import TlsFiles, bind_port, public_key_bytes, run_proxy

WAIT = 20.0  # seconds, at most, for what takes a moment
FILES, IDLE = 200, 300
ASK = b"POST /v1/fleet/pull-messages HTTP/1.1\r\nHost: server\r\nContent-Length: %d\r\n\r\n"
HOLD = """\
import resource, socket, sys
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # it inherits those of the server
held = []
for _ in range(int(sys.argv[2])):
    held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20))
print("held", flush=True)
sys.stdin.read()
"""

Address = tuple[str, int]


@contextmanager
def limit_open_files(files: int) -> Iterator[None]:
    """Let this process open about so many more files."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Address]:
    """The address of a proxy whose SuperLink is away."""
    write_certificates(tmp_path, ["127.0.0.1"])
    tls = TlsFiles(tmp_path / "ca.crt", tmp_path / "server.crt", tmp_path / "server.tls.key")
    keys = [public_key_bytes(write_node_key(tmp_path / "node.key"))]
    with (
        limit_open_files(FILES),
        bind_port("127.0.0.1", 0) as door,
        run_proxy(door, "127.0.0.1:1", tls, keys),
    ):
        door.listen()
        yield door.getsockname()


def connect(server: Address, own: str = "127.0.0.1", *, tls: bool = True) -> socket.socket:
    plain = socket.create_connection(server, timeout=WAIT, source_address=(own, 0))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(plain) if tls else plain


def status(connection: socket.socket) -> bytes:
    connection.sendall(ASK % 0)
    return connection.recv(1000).partition(b"\r\n")[0]


def is_ended(connection: socket.socket) -> bool:
    """Wait until the server ends the connection."""
    try:
        while connection.recv(1000):
            pass
    except (ConnectionError, ssl.SSLError):
        return True
    except TimeoutError:
        return False
    return True


def count_sent(connection: socket.socket, most: int) -> int:
    """Send single bytes until the server ends the connection. Returns how many were sent, `most` if it never does."""
    for number in range(most):
        try:
            connection.sendall(b"x")
        except OSError:
            return number
    return most


def test_hundreds_of_idle_connections_from_one_address_leave_room_for_the_others(server: Address) -> None:
    """More than the process may have open files: without a limit for each address nobody else would get one."""
    command = [sys.executable, "-c", HOLD, str(server[1]), str(IDLE)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as attacker:
        assert attacker.stdout is not None
        assert attacker.stdout.readline() == b"held\n"
        with connect(server, "127.0.0.2") as honest:
            assert status(honest) == b"HTTP/1.1 401 Unauthorized"
        attacker.communicate()


def test_a_connection_that_does_not_finish_its_handshake_is_ended(
    server: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_gate, "HANDSHAKE_SECONDS", 0.2)
    with connect(server, tls=False) as idle:
        assert is_ended(idle)


@pytest.mark.parametrize("sent", [b"", b"POST /v1/fl", b"POST / HTTP/1.1\r\nHost: server\r\nx-slow: "])
def test_a_connection_that_does_not_finish_its_headers_is_ended(
    server: Address, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_gate, "HEADER_SECONDS", 0.2)
    with connect(server) as slow:
        slow.sendall(sent)
        assert is_ended(slow)


def test_a_connection_that_was_answered_is_ended_although_it_goes_on_sending_its_body(
    server: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_gate, "HEADER_SECONDS", 0.2)
    with connect(server) as slow:
        slow.sendall(ASK % 10**9)
        assert slow.recv(1000).startswith(b"HTTP/1.1 401")
        assert count_sent(slow, 10**6) < 10**6


def test_a_connection_is_used_for_several_requests(server: Address) -> None:
    with connect(server) as honest:
        assert [status(honest) for _ in range(3)] == [b"HTTP/1.1 401 Unauthorized"] * 3


def test_where_all_connections_are_taken_the_longest_wait_makes_room(
    server: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From many addresses, so that no limit for one of them helps."""
    most = ConnectionGate.for_clients(1).most
    with ExitStack() as stack:
        idle = [stack.enter_context(connect(server, f"127.0.1.{at + 1}", tls=False)) for at in range(most)]
        with connect(server, "127.0.0.2") as honest:
            assert status(honest) == b"HTTP/1.1 401 Unauthorized"
        assert is_ended(idle[0])


def test_connections_that_were_answered_and_ask_for_nothing_make_room_too(server: Address) -> None:
    """Else whoever asks without a key before each deadline would keep its connections for ever."""
    with ExitStack() as stack:
        for at in range(ConnectionGate.for_clients(1).most):
            held = stack.enter_context(connect(server, f"127.0.1.{at + 1}"))
            assert status(held) == b"HTTP/1.1 401 Unauthorized"
        with connect(server, "127.0.0.2") as honest:
            assert status(honest) == b"HTTP/1.1 401 Unauthorized"


def test_connections_that_have_ended_are_counted_no_longer(server: Address) -> None:
    gate = ConnectionGate.for_clients(1)
    for _ in range(gate.most_per_address + 5):
        with connect(server) as honest:
            assert status(honest) == b"HTTP/1.1 401 Unauthorized"
            honest.shutdown(socket.SHUT_RDWR)


def test_a_connection_that_was_reset_is_held_by_no_timer(server: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each holds some hundred kilobytes, so who resets many would take the server's memory."""
    held: list[weakref.ref[GatedConnection]] = []
    before = GatedConnection.connection_made

    def count(self: GatedConnection, transport: object) -> None:
        held.append(weakref.ref(self))
        before(self, transport)

    monkeypatch.setattr(GatedConnection, "connection_made", count)
    monkeypatch.setattr(TimedHttp, "timeout_keep_alive_handler", lambda self: pytest.fail("it went on for seconds"))
    for _ in range(3):
        with connect(server) as reset:
            assert status(reset) == b"HTTP/1.1 401 Unauthorized"
            reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    deadline = time.monotonic() + WAIT
    while any(each() for each in held) and time.monotonic() < deadline:
        gc.collect()
    assert [each() for each in held] == [None, None, None]


def test_addresses_of_one_ipv6_network_count_as_one() -> None:
    group = connection_gate._address_group
    assert group(("2001:db8::1", 1, 0, 0)) == group(("2001:db8::ffff", 2, 0, 0)) == "2001:db8::/64"
    assert group(("::ffff:192.0.2.1", 1, 0, 0)) == group(("192.0.2.1", 1)) == "192.0.2.1"
    assert group(("fe80::1%eth0", 1, 0, 0)) == "fe80::/64"


def test_two_hundred_clients_behind_one_address_may_each_hold_two_connections() -> None:
    """A system often allows a process 1024 open files at first; the server may ask for more by itself."""
    with limit_open_files(1024):
        assert ConnectionGate.for_clients(200).most_per_address >= 400

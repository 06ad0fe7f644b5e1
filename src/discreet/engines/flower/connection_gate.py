"""Who may hold a connection to the open port, and how long before asking for something.

Idle connections cost their owner nothing, and a process may have only so many open files. So a connection that does
not finish its handshake or its headers in time is closed, one address holds only a share of all connections, and where
all are taken the longest wait makes room.
"""

import asyncio
import ipaddress
import resource
import socket
import ssl
from asyncio.sslproto import SSLProtocol
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from discreet.logs import get_log

log = get_log(__name__)

HANDSHAKE_SECONDS = 10.0  # from the connection to the end of the TLS handshake
HEADER_SECONDS = 10.0  # from the handshake, or the last response, to the end of a request's headers
CLIENT_CONNECTIONS = 4  # at once, of one client's node: it polls, sends heartbeats and connects again
SPARE_CONNECTIONS = 32  # of one address, beyond those of all clients, which may share one
READ_BYTES = 2**16  # that a connection reads at once, for which it keeps memory; asyncio's own is 2**18
BURST = 32  # connections that are taken at once, before the gate has seen them
OTHER_FILES = 128  # that the process has open beside admitted connections
NETWORK_BITS = 64  # of an IPv6 address: whoever has one address has all that share them


@dataclass
class ConnectionGate:
    """Counts the connections to the open port.

    Attributes:
        most: Most connections in all.
        most_per_address: Most connections of one address.
    """

    most: int
    most_per_address: int
    _held: Counter[str] = field(default_factory=Counter)
    _waiting: "dict[GatedConnection, None]" = field(default_factory=dict)  # ask for nothing now; the longest wait first

    @classmethod
    def for_clients(cls, clients: int) -> "ConnectionGate":
        """Return a gate for so many clients' nodes, within the open files that this process may have."""
        wanted = SPARE_CONNECTIONS + CLIENT_CONNECTIONS * clients
        most = max(8, _allow_files(2 * wanted + OTHER_FILES) - OTHER_FILES)
        return cls(most, min(wanted, most // 2))

    def admit(self, connection: "GatedConnection") -> bool:
        """Count a new connection, which may end the one that has waited longest. Returns whether there is room."""
        if self._held[connection.address] >= self.most_per_address:
            return False
        if self._held.total() >= self.most:
            if not self._waiting:
                return False
            next(iter(self._waiting)).end()
        self._held[connection.address] += 1
        self._waiting[connection] = None
        return True

    def settle(self, connection: "GatedConnection") -> None:
        """Take note that the connection has asked for something."""
        self._waiting.pop(connection, None)

    def wait(self, connection: "GatedConnection") -> None:
        """Take note that the connection was answered, and asks for nothing."""
        self._waiting[connection] = None

    def release(self, connection: "GatedConnection") -> None:
        """Count the connection no longer."""
        self.settle(connection)
        self._held[connection.address] -= 1
        if self._held[connection.address] <= 0:
            del self._held[connection.address]


class GatedConnection(SSLProtocol):
    """The TLS of one connection, after the gate has admitted it."""

    max_size = READ_BYTES
    address = ""
    _is_counted = False

    def __init__(self, gate: ConnectionGate, http: "TimedHttp", context: ssl.SSLContext) -> None:
        self._gate, self._raw = gate, None
        http.connection = self
        loop, limit = asyncio.get_running_loop(), HANDSHAKE_SECONDS
        # typeshed requires a future that asyncio does not need, and whole seconds
        super().__init__(loop, http, context, None, server_side=True, ssl_handshake_timeout=limit)  # type: ignore[arg-type]

    def connection_made(self, transport: Any) -> None:
        self._raw, self.address = transport, _address_group(transport.get_extra_info("peername"))
        self._is_counted = self._gate.admit(self)
        if self._is_counted:
            super().connection_made(transport)
        else:
            log.debug("connection refused")
            transport.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._release()
        super().connection_lost(exc)

    def settle(self) -> None:
        """Take note that this connection has asked for something."""
        self._gate.settle(self)

    def wait(self) -> None:
        """Take note that this connection was answered, unless it has ended."""
        if self._is_counted:
            self._gate.wait(self)

    def end(self) -> None:
        """Close the connection at once, without a farewell that nobody may read."""
        self._release()
        if self._raw is not None:
            self._raw.abort()

    def _release(self) -> None:
        if self._is_counted:
            self._is_counted = False
            self._gate.release(self)


class TimedHttp(H11Protocol):  # type: ignore[misc]
    """HTTP/1.1 that ends a connection on which a request's headers do not arrive in time."""

    connection: GatedConnection
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_asking():
            self.connection.settle()
            self._cancel_deadline()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._await_request()
        if not self._is_asking():
            self.connection.wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()  # uvicorn leaves its timer, and so the connection, if it was reset

    def _is_asking(self) -> bool:
        """Whether a request has come whose response is not complete."""
        return self.cycle is not None and not self.cycle.response_complete

    def _await_request(self) -> None:
        self._cancel_deadline()
        if not self._is_asking():
            self._deadline = asyncio.get_running_loop().call_later(HEADER_SECONDS, self.connection.end)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class GatedServer(uvicorn.Server):  # type: ignore[misc]
    """uvicorn's server, with a gate before its TLS."""

    def __init__(self, config: uvicorn.Config, gate: ConnectionGate) -> None:
        super().__init__(config)
        self._gate = gate

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen at these sockets."""
        await self.lifespan.startup()
        loop = asyncio.get_running_loop()
        self.servers = [
            await loop.create_server(self._create_connection, sock=door, backlog=BURST) for door in sockets or ()
        ]
        for door in sockets or ():
            door.listen(self.config.backlog)  # many may wait in line, though asyncio takes a few at once
        self.started = True

    def _create_connection(self) -> GatedConnection:
        http = TimedHttp(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)
        return GatedConnection(self._gate, http, self.config.ssl)


def _allow_files(wanted: int) -> int:
    """Let this process open so many files if the system allows it. Returns how many it may open now."""
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files < wanted and (most == resource.RLIM_INFINITY or files < most):
        files = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
    return files


def _address_group(peer: Any) -> str:
    """Return the address whose connections are counted together: an IPv4 address or a network of IPv6."""
    if not peer:  # it has left already
        return ""
    host = ipaddress.ip_address(str(peer[0]).partition("%")[0])
    if isinstance(host, ipaddress.IPv6Address) and host.ipv4_mapped is None:
        return str(ipaddress.ip_network((host, NETWORK_BITS), strict=False))
    return str(getattr(host, "ipv4_mapped", None) or host)

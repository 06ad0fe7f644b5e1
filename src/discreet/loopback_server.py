"""Web servers for this machine only: they listen on loopback, refuse requests of other pages, and log nothing."""

import json
import sys
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTP_PORT
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

ADDRESS = "127.0.0.1"  # never another one: whoever reaches such a page may read it
NO_CACHE = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Allow": "GET"}


class LoopbackServer(ThreadingHTTPServer):
    """Listens on loopback, on the given port or on a free one (0)."""

    daemon_threads = True

    def __init__(self, port: int, handler: "type[LoopbackHandler]") -> None:
        super().__init__((ADDRESS, port), handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print errors, except for a reader that closes its connection."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class LoopbackHandler(BaseHTTPRequestHandler):
    """Answers GET only, with the headers of its class."""

    server: LoopbackServer
    server_version, sys_version = "discreet", ""
    protocol_version = "HTTP/1.1"
    headers_sent: ClassVar[Mapping[str, str]] = NO_CACHE
    only_get: ClassVar[str] = "Only GET is answered here."

    def do_GET(self) -> None:
        """Answer a request."""
        self.answer()

    def answer(self) -> None:
        """Answer a GET request for `path`; a server says here what it has."""
        self.refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")

    def host_is_ours(self) -> bool:
        """Return whether the request names this server. Pages of others that try DNS rebinding name their own host."""
        named, port = self.headers.get_all("Host", []), self.server.server_port
        ours = {f"{name}:{port}" for name in (ADDRESS, "localhost")}
        if port == HTTP_PORT:  # which browsers leave out
            ours |= {ADDRESS, "localhost"}
        return len(named) == 1 and named[0] in ours

    def refuse(self, status: HTTPStatus, message: str) -> None:
        """Answer with an error in one sentence."""
        self.send_json(status, {"error": message})

    def send_json(self, status: HTTPStatus, data: Mapping[str, Any]) -> None:
        """Answer with one JSON object."""
        self.send_content(status, "application/json", json.dumps(data, allow_nan=False).encode() + b"\n")

    def send_content(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        """Answer with content of this media type."""
        self.send_response(status)
        for name, value in {**self.headers_sent, "Content-Type": kind, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse other methods, and what is not HTTP at all."""
        self.close_connection = True
        status = HTTPStatus.METHOD_NOT_ALLOWED if code == HTTPStatus.NOT_IMPLEMENTED else HTTPStatus(code)
        self.refuse(status, self.only_get)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: an address may be secret, and a supervisor asks every few seconds."""

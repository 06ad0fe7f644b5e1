"""The page's server: on this machine alone, for whoever knows its address, and for nothing but the page."""

import json
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTP_PORT
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any
from urllib.parse import parse_qs

from discreet.errors import DiscreetError, InvalidInput
from discreet.part import from_plain
from discreet.planning.planner import planner_page
from discreet.planning.planner.slider_answer import answer
from discreet.planning.planner.slider_question import Question
from discreet.planning.planner.slider_start import Start

ADDRESS = "127.0.0.1"
PATIENCE = 5.0  # seconds, after which an answer is drawn with fewer points
LONGEST = 2000  # characters of a request's path
HEADERS = {
    # the browser itself refuses to load anything from elsewhere; plotly sets styles as it draws
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Allow": "GET",
}


class Planner(ThreadingHTTPServer):
    """Answers on a free port, or on the one that is asked for, under a path that nobody can guess."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, start: Start, port: int = 0) -> None:
        self.text = planner_page.document(start).encode()
        self.token = secrets.token_urlsafe(24)
        self.computing = Lock()  # one answer at a time: two would only slow each other down
        super().__init__((ADDRESS, port), Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that hangs up is nothing to tell; anything else is."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_port}/{self.token}/"


@contextmanager
def listening(start: Start, port: int = 0) -> Iterator[Planner]:
    """A server that is ready to serve, and is closed in the end; InvalidInput where the port can't be had."""
    try:
        server = Planner(start, port)
    except (OSError, OverflowError) as error:
        raise InvalidInput(
            f"Port {port} can't be used ({getattr(error, 'strerror', None) or error}).", fix="Leave --port out."
        ) from None
    with server:
        yield server


class Handler(BaseHTTPRequestHandler):
    """GET of a few known names, and nothing else: no folder is read, and no name is looked up in one."""

    server: Planner
    server_version, sys_version = "discreet", ""
    protocol_version = "HTTP/1.1"
    timeout = 30  # seconds that a silent connection may last

    def do_GET(self) -> None:
        """The page, what it loads, and its answers."""
        if len(self.path) > LONGEST or not self._host_is_ours():
            return self._refuse(HTTPStatus.FORBIDDEN, "This is not an address of the planner.")
        path, _, query = self.path.partition("?")
        token, slash, name = path.removeprefix("/").partition("/")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()) or not slash:
            return self._refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")
        if name == "":
            return self._send(HTTPStatus.OK, "text/html; charset=utf-8", self.server.text)
        if name == "answer":
            return self._answer(query)
        if name in planner_page.assets():
            return self._send(HTTPStatus.OK, *planner_page.assets()[name])
        return self._refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")

    def _host_is_ours(self) -> bool:
        """A page from elsewhere, whose name was made to lead here, names its own host."""
        named, port = self.headers.get_all("Host", []), self.server.server_port
        ours = {f"{name}:{port}" for name in (ADDRESS, "localhost")}
        if port == HTTP_PORT:  # which browsers leave out
            ours |= {ADDRESS, "localhost"}
        return len(named) == 1 and named[0] in ours

    def _answer(self, query: str) -> None:
        try:
            question = from_plain(Question, json.loads(parse_qs(query, strict_parsing=True)["q"][0]))
        except (ValueError, KeyError, RecursionError):
            return self._refuse(HTTPStatus.BAD_REQUEST, "The question can't be read.")
        except DiscreetError as error:
            return self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        try:
            with self.server.computing:
                found = answer(question, PATIENCE)
        except DiscreetError as error:
            return self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        except Exception as error:  # noqa: BLE001 - a fault of ours: the page says so, and goes on
            said = f"The planner has no answer to this, and should have one ({type(error).__name__})."
            return self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, said)
        return self._json(HTTPStatus.OK, found)

    def _refuse(self, status: HTTPStatus, said: str) -> None:
        self._json(status, {"error": said})

    def _json(self, status: HTTPStatus, data: Any) -> None:
        self._send(status, "application/json", json.dumps(data, allow_nan=False).encode())

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is no request for a page: another method, or no HTTP at all."""
        self.close_connection = True
        status = HTTPStatus.METHOD_NOT_ALLOWED if code == HTTPStatus.NOT_IMPLEMENTED else HTTPStatus(code)
        self._refuse(status, "The planner only answers to GET.")

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: the address is a secret, and the terminal is the person's."""

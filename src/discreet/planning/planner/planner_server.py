"""The planner's web server: on this machine only, under a secret address, and for the planner's page only."""

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
from discreet.planning.planner.answer_sections import answer_sections
from discreet.planning.planner.slider_answer import answer_question
from discreet.planning.planner.slider_question import Question
from discreet.planning.planner.slider_start import StartPosition

ADDRESS = "127.0.0.1"
PATIENCE = 5.0  # seconds after which an answer has fewer points
LONGEST = 2000  # characters of a request's path
HEADERS = {
    # the browser refuses to load anything from other servers; drawings have styles of their own
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Allow": "GET",
}


class PlannerServer(ThreadingHTTPServer):
    """Serves the page on a free port, or on the given one, under a path that nobody can guess."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, start: StartPosition, port: int = 0) -> None:
        self.start = start
        self.token = secrets.token_urlsafe(24)
        self.computing = Lock()  # one answer at a time: two would slow each other down, and matplotlib has one state
        super().__init__((ADDRESS, port), PlannerHandler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print errors, except for a browser that closes its connection."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def page(self) -> bytes:
        """Return the page with the answer to its first question."""
        return planner_page.render_page(self.start, answer_question(self.start, self.start.question, PATIENCE)).encode()

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_port}/{self.token}/"


@contextmanager
def open_planner(start: StartPosition, port: int = 0) -> Iterator[PlannerServer]:
    """Open a server that is ready to serve, and close it in the end.

    Raises:
        InvalidInput: The port can't be used.
    """
    try:
        server = PlannerServer(start, port)
    except (OSError, OverflowError) as error:
        raise InvalidInput(
            f"Port {port} can't be used ({getattr(error, 'strerror', None) or error}).", fix="Leave --port out."
        ) from None
    with server:
        yield server


class PlannerHandler(BaseHTTPRequestHandler):
    """Answers GET requests for a few known names; it reads no folder and looks up no file by name."""

    server: PlannerServer
    server_version, sys_version = "discreet", ""
    protocol_version = "HTTP/1.1"
    timeout = 30  # seconds until a silent connection is closed

    def do_GET(self) -> None:
        """Serve the page, its files, and its answers."""
        if len(self.path) > LONGEST or not self._host_is_ours():
            return self._refuse(HTTPStatus.FORBIDDEN, "This is not an address of the planner.")
        path, _, query = self.path.partition("?")
        token, slash, name = path.removeprefix("/").partition("/")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()) or not slash:
            return self._refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")
        if name == "":
            with self.server.computing:
                page = self.server.page()
            return self._send(HTTPStatus.OK, "text/html; charset=utf-8", page)
        if name == "answer":
            return self._answer(query)
        if name in planner_page.page_assets():
            return self._send(HTTPStatus.OK, *planner_page.page_assets()[name])
        return self._refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")

    def _host_is_ours(self) -> bool:
        """Refuse requests of other pages by DNS rebinding: they name their own host."""
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
                answer = answer_question(self.server.start, question, PATIENCE)
                sections = answer_sections(question, answer)
        except DiscreetError as error:
            return self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        except Exception as error:  # noqa: BLE001 - our own bug: the page says so and keeps working
            message = f"The planner failed to answer, which is a bug ({type(error).__name__})."
            return self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, message)
        return self._send_json(HTTPStatus.OK, {**answer, "sections": sections})

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self._send_json(status, {"error": message})

    def _send_json(self, status: HTTPStatus, data: Any) -> None:
        self._send(status, "application/json", json.dumps(data, allow_nan=False).encode())

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse other methods, and what is not HTTP at all."""
        self.close_connection = True
        status = HTTPStatus.METHOD_NOT_ALLOWED if code == HTTPStatus.NOT_IMPLEMENTED else HTTPStatus(code)
        self._refuse(status, "The planner only answers to GET.")

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the address is secret."""

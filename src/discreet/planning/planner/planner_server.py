"""The planner's web server: on this machine only, under a secret address, and for the planner's page only."""

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from threading import Lock
from urllib.parse import parse_qs

from discreet.errors import DiscreetError, InvalidInput
from discreet.loopback_server import ADDRESS, NO_CACHE, LoopbackHandler, LoopbackServer
from discreet.part import from_plain
from discreet.planning.planner import planner_page
from discreet.planning.planner.answer_sections import answer_sections
from discreet.planning.planner.slider_answer import answer_question
from discreet.planning.planner.slider_question import Question
from discreet.planning.planner.slider_start import StartPosition

PATIENCE = 5.0  # seconds after which an answer has fewer points
LONGEST = 2000  # characters of a request's path
HEADERS = {
    **NO_CACHE,
    # the browser refuses to load anything from other servers; drawings have styles of their own
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class PlannerServer(LoopbackServer):
    """Serves the page on a free port, or on the given one, under a path that nobody can guess."""

    allow_reuse_address = True

    def __init__(self, start: StartPosition, port: int = 0) -> None:
        self.start = start
        self.token = secrets.token_urlsafe(24)
        self.computing = Lock()  # one answer at a time: two would slow each other down, and matplotlib has one state
        super().__init__(port, PlannerHandler)

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


class PlannerHandler(LoopbackHandler):
    """Answers GET requests for a few known names; it reads no folder and looks up no file by name."""

    server: PlannerServer
    headers_sent = HEADERS
    only_get = "The planner only answers to GET."
    timeout = 30  # seconds until a silent connection is closed

    def answer(self) -> None:
        """Serve the page, its files, and its answers."""
        if len(self.path) > LONGEST or not self.host_is_ours():
            return self.refuse(HTTPStatus.FORBIDDEN, "This is not an address of the planner.")
        path, _, query = self.path.partition("?")
        token, slash, name = path.removeprefix("/").partition("/")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()) or not slash:
            return self.refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")
        if name == "":
            with self.server.computing:
                page = self.server.page()
            return self.send_content(HTTPStatus.OK, "text/html; charset=utf-8", page)
        if name == "answer":
            return self._answer_question(query)
        if name in planner_page.page_assets():
            return self.send_content(HTTPStatus.OK, *planner_page.page_assets()[name])
        return self.refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")

    def _answer_question(self, query: str) -> None:
        try:
            question = from_plain(Question, json.loads(parse_qs(query, strict_parsing=True)["q"][0]))
        except (ValueError, KeyError, RecursionError):
            return self.refuse(HTTPStatus.BAD_REQUEST, "The question can't be read.")
        except DiscreetError as error:
            return self.refuse(HTTPStatus.BAD_REQUEST, str(error))
        try:
            with self.server.computing:
                answer = answer_question(self.server.start, question, PATIENCE)
                sections = answer_sections(question, answer)
        except DiscreetError as error:
            return self.refuse(HTTPStatus.BAD_REQUEST, str(error))
        except Exception as error:  # noqa: BLE001 - our own bug: the page says so and keeps working
            message = f"The planner failed to answer, which is a bug ({type(error).__name__})."
            return self.refuse(HTTPStatus.INTERNAL_SERVER_ERROR, message)
        return self.send_json(HTTPStatus.OK, {**answer, "sections": sections})

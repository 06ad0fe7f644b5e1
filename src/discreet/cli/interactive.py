"""`discreet plan --interactive`: the planner's page, from its address to Ctrl-C."""

import webbrowser
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from discreet.cli.options import Number
from discreet.cli.output import emit
from discreet.part import Count

if TYPE_CHECKING:
    from discreet.experiment.job import Job

PORT = Number("port", Annotated[Count, Field(le=65535)])


def opened(job: "Job", port: int | None, *, browser: bool, as_json: bool) -> None:
    """Serve the page until it is interrupted. Whoever has the address may use it; it is printed, and nowhere kept."""
    from discreet.planner.server import listening
    from discreet.planner.start import start

    with listening(start(job), port or 0) as server, suppress(KeyboardInterrupt):
        emit(lambda: {"url": server.url}, lambda: _said(server.url), as_json=as_json)
        if browser:
            webbrowser.open(server.url)
        server.serve_forever()


def _said(url: str) -> Iterator[str]:
    yield f"The planner is at\n{url}"
    yield "Nothing is trained, spent or sent anywhere. Ctrl-C ends it."

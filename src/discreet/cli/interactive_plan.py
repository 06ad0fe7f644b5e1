"""`discreet plan --interactive`: serve the planner's page on this machine until Ctrl-C."""

import webbrowser
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator

from discreet.cli.options import Number
from discreet.cli.output import emit

if TYPE_CHECKING:
    from discreet.experiment.configuration.experiment_file import Source
    from discreet.experiment.terms import Terms

LAST_PORT = 65_535


def _check_port(value: Any) -> int:
    if not isinstance(value, int) or not 1 <= value <= LAST_PORT:
        raise ValueError(f"must be a whole number from 1 to {LAST_PORT}, and got {value}")
    return value


PORT = Number("port", Annotated[int, BeforeValidator(_check_port)])


def serve_planner(source: "Source", terms: "Terms", port: int | None, *, browser: bool, as_json: bool) -> None:
    """Serve the planner's page until the user interrupts it.

    The printed address contains a secret that is stored nowhere: everyone who has the address can use the page.

    Args:
        source: The experiment at which the sliders start.
        terms: Its terms.
        port: The port to listen on. None takes a free one.
        browser: Open the page in the default browser.
        as_json: Print the address as a JSON object.
    """
    from discreet.planning.planner.planner_server import open_planner
    from discreet.planning.planner.slider_start import start_position

    with open_planner(start_position(source, terms), port or 0) as server, suppress(KeyboardInterrupt):
        emit(lambda: {"url": server.url}, lambda: _describe_address(server.url), as_json=as_json)
        if browser:
            webbrowser.open(server.url)
        server.serve_forever()


def _describe_address(url: str) -> Iterator[str]:
    yield f"The planner is at\n{url}"
    yield "Nothing is trained, spent or sent anywhere. Press Ctrl-C to end it."

"""The server's and the client's half as Flower apps, which Flower's processes start."""

from collections.abc import Callable, Mapping
from logging import INFO
from typing import Any, TypeAlias, cast

from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.supercore import log
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.superlink.grid.http_grid import HttpGrid

from discreet.engines.flower.carrier import LOG_PREFIX, Carrier, Responder
from discreet.engines.flower.grid_carrier import GridCarrier
from discreet.engines.flower.held_polls import SentMark
from discreet.engines.flower.message_content import pack, unpack
from discreet.engines.flower.parent_process import end_with_parent
from discreet.engines.flower.patient_client import PatientClient
from discreet.engines.flower.reply_deadline import ReplyDeadline

Say: TypeAlias = Callable[[str], None]
Main: TypeAlias = Callable[[Callable[[ReplyDeadline, SentMark, int], Carrier], Mapping[str, Any], Say], None]

OpenResponder: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Any], Say], Responder]


def server_app(main: Main) -> ServerApp:
    """Wrap the server's `main` in a ServerApp. Its process ends with the SuperLink."""
    app = ServerApp()

    def run(grid: Grid, context: Context) -> None:
        end_with_parent()
        if isinstance(grid, HttpGrid):
            grid._client = cast("RuntimeHttpClient", PatientClient(grid._runtime_client))
        main(lambda waiting, sent, most: GridCarrier(grid, waiting, sent, most), context.run_config, _say)

    app.main()(run)
    return app


def client_app(open_responder: OpenResponder) -> ClientApp:
    """Wrap a client's responder in a ClientApp."""
    app = ClientApp()

    def query(message: Message, context: Context) -> Message:
        request = unpack(message)
        if request is None:
            raise ValueError("The message is not one of discreet's.")
        return Message(pack(open_responder(context.node_config, context.run_config, _say)(request)), reply_to=message)

    app.query()(query)
    return app


def _say(text: str) -> None:
    for line in text.splitlines():
        log(INFO, "%s%s", LOG_PREFIX, line)

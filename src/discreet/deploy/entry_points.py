"""What Flower's own processes call: the server's run, and a client's answers."""

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from discreet.deploy.app_folder import AppFolder
from discreet.deploy.client_node import ClientNode
from discreet.deploy.deployed_run import reply_deadline, train_deployed
from discreet.deploy.journal import write_durably
from discreet.deploy.site import Site
from discreet.engines.flower.carrier import Carrier, Responder
from discreet.engines.flower.reply_deadline import ReplyDeadline
from discreet.errors import DiscreetError, InvalidInput


def main(carrier: Callable[[ReplyDeadline], Carrier], config: Mapping[str, Any], say: Callable[[str], None]) -> None:
    """One run, as the run's configuration names it; how it ended is left where `discreet deploy submit` reads it."""
    site, name = Site(Path(str(config["folder"]))), str(config["name"])
    try:
        with site.lock_run(name):  # or the end would be another's to say
            _run_and_report(site, name, carrier, say, rehearsal=bool(config.get("nodes")))
    except DiscreetError as error:
        say(f"Error: {error}")
        logging.getLogger("flwr").addFilter(_drop_traceback)
        raise  # by which Flower, too, knows that the run failed


def _run_and_report(
    site: Site, name: str, carrier: Callable[[ReplyDeadline], Carrier], say: Callable[[str], None], *, rehearsal: bool
) -> None:
    try:
        outcome = train_deployed(
            site, name, carrier(reply_deadline(AppFolder.open(site.app))), say, rehearsal=rehearsal
        )
    except DiscreetError as error:
        _write_end(site.ended(name), {"error": str(error), "exit_code": error.exit_code})
        raise
    _write_end(site.ended(name), {"error": None, "exit_code": outcome.exit_code, **outcome.summary()})


def answering(node: Mapping[str, Any], run: Mapping[str, Any], say: Callable[[str], None]) -> Responder:
    """A client's answers, by the folder that its own machine names: --node-config "node='…'".

    In Flower's simulation it is the run that names the folders of all clients, of which each node plays one.
    """
    if node.get("node"):
        folder = Path(str(node["node"]))
    elif run.get("nodes") and "partition-id" in node:
        clients = Site(Path(str(run["folder"]))).deployment.clients
        folder = Path(str(run["nodes"])) / clients[int(node["partition-id"])].name
    else:
        raise InvalidInput("The node's folder is not named.", fix="Start the SuperNode with --node-config \"node='…'\"")

    def answer(request: bytes) -> bytes:
        opened = ClientNode.open(folder, say)
        try:
            return opened.answer(request)
        finally:
            opened.close()  # another process may be asked next

    return answer


def _drop_traceback(record: logging.LogRecord) -> bool:
    """For Flower's log: where our own refusal was raised helps nobody, and the sentence was said."""
    if record.exc_info and isinstance(record.exc_info[1], DiscreetError):
        record.exc_info = None
    return True


def _write_end(path: Path, data: Mapping[str, Any]) -> None:
    write_durably(path, json.dumps(data).encode())

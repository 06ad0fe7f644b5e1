"""What Flower's own processes call: the server's run, and a client's answers."""

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from discreet.deploy.app import App
from discreet.deploy.journal import place
from discreet.deploy.node import Node
from discreet.deploy.server import serve, waiting
from discreet.deploy.site import Site
from discreet.engines.flower.carrier import Answer, Carrier
from discreet.engines.flower.errors import ClientsRefused
from discreet.engines.flower.waiting import Waiting
from discreet.errors import BudgetRefused, DiscreetError, InvalidInput

SPENT = "own ledger refuses"  # as deploy/spending.py says it


def main(carrier: Callable[[Waiting], Carrier], config: Mapping[str, Any], say: Callable[[str], None]) -> None:
    """One run, as the run's configuration names it; how it ended is left where `discreet deploy submit` reads it."""
    site, name = Site(Path(str(config["folder"]))), str(config["name"])
    end = site.ended(name)
    try:
        outcome = serve(site, name, carrier(waiting(App.open(site.app))), say)
        _leave(end, {"error": None, "stopped": outcome.stopped, "exit_code": 3 if outcome.refused else 0})
    except DiscreetError as error:
        _leave(end, {"error": str(error), "stopped": None, "exit_code": _exit_code(error)})
        say(f"Error: {error}")
        logging.getLogger("flwr").addFilter(_without_traceback)
        raise  # by which Flower, too, knows that the run failed


def answering(config: Mapping[str, Any], say: Callable[[str], None]) -> Answer:
    """A client's answers, by the folder that its own machine names: --node-config "node='…'"."""
    if not config.get("node"):
        raise InvalidInput("The node's folder is not named.", fix="Start the SuperNode with --node-config \"node='…'\"")
    return Node.open(Path(str(config["node"])), say).answer


def _without_traceback(record: logging.LogRecord) -> bool:
    """For Flower's log: where our own refusal was raised helps nobody, and the sentence was said."""
    if record.exc_info and isinstance(record.exc_info[1], DiscreetError):
        record.exc_info = None
    return True


def _exit_code(error: DiscreetError) -> int:
    """Of clients who refuse only their words come over the wire; those of a spent budget are a ledger's."""
    spent = isinstance(error, ClientsRefused) and SPENT in str(error)
    return BudgetRefused.exit_code if spent else error.exit_code


def _leave(path: Path, data: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    place(path, json.dumps(data).encode())

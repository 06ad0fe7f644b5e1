"""The functions that Flower's processes call: `main` trains at the server, `build_responder` answers at a client."""

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from discreet.deploy import request_limit, run_failure
from discreet.deploy.app_folder import AppFolder
from discreet.deploy.client_node import ClientNode
from discreet.deploy.deployed_run import DeployedRun
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.run_refusals import record_refusals
from discreet.durable_files import OWNER, write_durably
from discreet.engines.flower.carrier import Carrier, Responder
from discreet.engines.flower.held_polls import SentMark
from discreet.engines.flower.reply_deadline import ReplyDeadline
from discreet.errors import DiscreetError, InvalidInput
from discreet.log_output import environment_settings, write_logs
from discreet.trust import Trust

SUBMIT = "Start the run with `discreet deploy submit`, which asks whether you trust it."


def main(
    carrier: Callable[[ReplyDeadline, SentMark, int], Carrier], config: Mapping[str, Any], say: Callable[[str], None]
) -> None:
    """Train the run that Flower's run configuration names, and write how it ended for `discreet deploy submit`.

    Args:
        carrier: Builds a carrier with this deadline, which advances this mark and takes replies of so many bytes.
        config: Flower's run configuration: `folder`, `name`, `trusted` (digests of the code that may run here) and, in
            a simulation, `nodes`.
        say: Logs a line.
    """
    root, name = DeploymentFolder(Path(str(config["folder"]))), str(config["name"])
    trust = Trust.of_code(str(config.get("trusted", "")).split(), SUBMIT)
    run = DeployedRun(root, name, bool(config.get("nodes")), trust)
    try:
        # Only the process that holds the lock writes how the run ended.
        with write_logs(*environment_settings()), root.lock_run(name):
            _run_and_report(run, carrier, record_refusals(root.refusals_file(name), say))
    except DiscreetError as error:
        say(f"Error: {error}")
        logging.getLogger("flwr").addFilter(_drop_traceback)
        raise  # so that Flower marks the run as failed
    except Exception as error:  # a fault of the machine or of ours, which Flower logs with its traceback
        say(f"Error: {run_failure.describe_failure(root, name, error)}")
        raise


def _run_and_report(
    run: DeployedRun, carrier: Callable[[ReplyDeadline, SentMark, int], Carrier], say: Callable[[str], None]
) -> None:
    end = run.root.end_file(run.name)
    run.check_resumable()  # a start that is refused leaves what the file says of the last one
    try:
        engine = AppFolder.open(run.root.app).engine
        waiting = ReplyDeadline(timeout=engine.timeout, patience=engine.patience)
        outcome = run.train(
            carrier(waiting, SentMark(run.root.sent_mark), request_limit.largest_message(run.root.server)), say
        )
    except DiscreetError as error:
        write_durably(end, json.dumps({"error": str(error), "exit_code": error.exit_code}).encode(), OWNER)
        raise
    ended = {"error": None, "exit_code": outcome.exit_code, **outcome.summary()}
    write_durably(end, json.dumps(ended).encode(), OWNER)


def build_responder(node: Mapping[str, Any], run: Mapping[str, Any], say: Callable[[str], None]) -> Responder:
    """Return a client's responder.

    Args:
        node: Flower's node configuration. It names the client's folder: --node-config "node='…'".
        run: Flower's run configuration. In a simulation its `nodes` is the folder of all clients' folders, and each
            node plays the client of its partition id.
        say: Logs a line.
    """
    if node.get("node"):
        folder = Path(str(node["node"]))
    elif run.get("nodes") and "partition-id" in node:
        clients = DeploymentFolder(Path(str(run["folder"]))).deployment.clients
        folder = Path(str(run["nodes"])) / clients[int(node["partition-id"])].name
    else:
        raise InvalidInput(
            "The client's folder is not named.", fix="Start the SuperNode with --node-config \"node='…'\""
        )

    def answer(request: bytes) -> bytes:
        with write_logs(*environment_settings()):
            client = ClientNode.open(folder, say)
            try:
                return client.answer(request)
            finally:
                client.close()  # the next request may go to another process

    return answer


def _drop_traceback(record: logging.LogRecord) -> bool:
    """Remove the traceback of our own errors from Flower's log: their sentence was logged already."""
    if record.exc_info and isinstance(record.exc_info[1], DiscreetError):
        record.exc_info = None
    return True

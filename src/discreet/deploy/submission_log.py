"""Follow a submitted run: start Flower's command, and print the lines that our server half logs there."""

import json
import re
import shlex
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from discreet.deploy import flower_commands, run_failure, superlink
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.run_watch import RunWatch
from discreet.durable_files import OWNER, storage_fault, write_durably
from discreet.engines.flower.carrier import LOG_PREFIX
from discreet.errors import DiscreetError, InvalidInput
from discreet.experiment.run_directory.run_files import RunFiles

ERROR_PREFIX = "Error: "  # not printed: the error is raised when the run has ended
COLOUR_CODES = re.compile(r"\x1b\[[0-9;]*m")
RUN_NUMBER = re.compile(r"started run (\d+)")  # in the output of `flwr run`
KEPT_LINES = 20  # of Flower's own lines, shown if the run ends without one of ours


class RunStopped(DiscreetError):
    """The user who submitted the run has stopped it."""


def follow_run(
    root: DeploymentFolder,
    name: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Start a run and wait until it has ended. Ctrl-C stops it at the server too, which keeps every finished round.

    Args:
        command: Flower's command that submits the run and streams its log.
        environment: The command's environment.
        say: Prints a line of our server half.

    Returns:
        How the run ended, as `entry_points.main` wrote it.

    Raises:
        RunStopped: The user pressed Ctrl-C.
        InvalidInput: The run ended without saying how.
    """
    end, flower_lines = root.end_file(name), deque[str](maxlen=KEPT_LINES)
    with root.lock_run(name):  # refused while the run goes on, whose end file belongs to its own submitter
        end.unlink(missing_ok=True)
        root.stop_file(name).unlink(missing_ok=True)
    number, fault = None, ""
    with (
        subprocess.Popen(  # nosec B603 # a list of words, by no shell
            command,
            env=dict(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # so that Ctrl-C reaches only this process
        ) as process,
        RunWatch(root.lock_path(name), end, process.terminate) as watch,
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                _, ours, words = COLOUR_CODES.sub("", line).rstrip().partition(LOG_PREFIX)
                if not ours:
                    flower_lines.append(line)
                    number = number or RUN_NUMBER.search(line)
                elif words.startswith(ERROR_PREFIX):
                    fault = words.removeprefix(ERROR_PREFIX)
                else:
                    watch.start()
                    flower_lines.clear()
                    say(words)
        except KeyboardInterrupt:
            process.terminate()
            raise _stop_run(root, name, None if number is None else number[1]) from None
    if not end.exists():
        if fault:
            raise InvalidInput(fault)
        output = COLOUR_CODES.sub("", "".join(flower_lines))
        if watch.is_started:
            raise _interruption_error(root, name, output)
        raise InvalidInput(
            f"The run ended without a message; Flower's command exited with {process.returncode} and said: "
            f"{flower_commands.last_line(output)}",
            fix=f"Is the server running? Look with: {_status_command(root)}",
        )
    result: dict[str, Any] = json.loads(end.read_text())
    return result


def _status_command(root: DeploymentFolder) -> str:
    return f"discreet deploy status {shlex.quote(str(root.folder))}"


def _interruption_error(root: DeploymentFolder, name: str, output: str) -> InvalidInput:
    """Return the error of a run that had begun and ended without saying how; `output` is Flower's after its last line.

    Its process or the server was killed, or an error of ours ended it.
    """
    again = run_failure.CONTINUES
    if not flower_commands.is_listening(flower_commands.loopback_address(root)):
        return InvalidInput(
            f"The server stopped while the run {name!r} was going on.",
            fix=f"Start the server again, and then the run by the same name: {again}.",
        )
    if (fault := storage_fault(root.server)) is not None:
        return run_failure.storage_error(root, name, fault)
    said = f" Flower said: {flower_commands.last_line(output)}" if output.strip() else ""
    return InvalidInput(
        f"The process of the run {name!r} ended without saying why: it was killed, or it failed.{said}",
        fix=f"Start the same name again: {again}. If that fails too, look into {superlink.log_path(root)}",
    )


def _stop_run(root: DeploymentFolder, name: str, number: str | None) -> RunStopped:
    """Stop the run at the server, and return the error that says whether it stopped."""
    if number is None or not _stop_at_server(root, name, number):
        return RunStopped(
            f"The run {name!r} is no longer followed, and may still go on at the server.",
            fix=f"Look with: {_status_command(root)}",
        )
    if not RunFiles(root.run(name)).rounds():
        return RunStopped(
            f"The run {name!r} was stopped before its first round ended: nothing was trained yet.",
            fix="Start the same name again.",
        )
    return RunStopped(
        f"The run {name!r} was stopped; its rounds so far are in {root.run(name)}.",
        fix="Start the same name again to continue after the last of them.",
    )


def _stop_at_server(root: DeploymentFolder, name: str, number: str) -> bool:
    """Stop the run at the server and note that it was stopped: what its process reports is only the consequence."""
    note, is_stopped = root.stop_file(name), False
    write_durably(note, b"", OWNER)  # before it is stopped, so that nobody reads the consequence alone
    try:
        is_stopped = superlink.stop_run(root, number)
    finally:
        if not is_stopped:
            note.unlink(missing_ok=True)
    return is_stopped

"""A run as whoever submits it sees it: Flower's command is started, and what our half says there is passed on."""

import json
import re
import shlex
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from discreet.deploy import flower_commands
from discreet.deploy.site import Site
from discreet.engines.flower.carrier import LOG_PREFIX
from discreet.errors import DiscreetError, InvalidInput

ERROR_PREFIX = "Error: "  # which is said again when the run has ended, with its advice
COLOUR_CODES = re.compile(r"\x1b\[[0-9;]*m")
RUN_NUMBER = re.compile(r"started run (\d+)")  # as Flower's command says it
KEPT_LINES = 20  # of Flower's own lines, for when they are the only ones


class RunStopped(DiscreetError):
    """Whoever submitted the run has ended it before its time."""


def follow_run(
    site: Site, name: str, command: Sequence[str], environment: Mapping[str, str], say: Callable[[str], None]
) -> dict[str, Any]:
    """Wait until the run has ended, and say how. Ctrl-C ends it at the server too, where each round is kept."""
    end, told = site.ended(name), deque[str](maxlen=KEPT_LINES)
    with site.lock_run(name):  # one that goes on leaves its end for whoever submitted it
        end.unlink(missing_ok=True)
    number, fault = None, ""
    with subprocess.Popen(
        command,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # so that Ctrl-C is ours to handle
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                _, ours, words = COLOUR_CODES.sub("", line).rstrip().partition(LOG_PREFIX)
                if not ours:
                    told.append(line)
                    number = number or RUN_NUMBER.search(line)
                elif words.startswith(ERROR_PREFIX):
                    fault = words.removeprefix(ERROR_PREFIX)
                else:
                    say(words)
        except KeyboardInterrupt:
            process.terminate()
            raise _stop_run(site, name, None if number is None else number[1]) from None
    if not end.exists():
        if fault:
            raise InvalidInput(fault)
        raise InvalidInput(
            f"The run ended without a word; Flower's command gave {process.returncode}, and said: "
            f"{flower_commands.last_line(COLOUR_CODES.sub('', ''.join(told)))}",
            fix=f"Is the server up? See: {_status_command(site)}",
        )
    found: dict[str, Any] = json.loads(end.read_text())
    return found


def _status_command(site: Site) -> str:
    return f"discreet deploy status {shlex.quote(str(site.folder))}"


def _stop_run(site: Site, name: str, number: str | None) -> RunStopped:
    """End the run, and say what is known of that."""
    if number is None or not flower_commands.stop_run(site, number):
        return RunStopped(
            f"The run {name!r} is no longer followed, and may go on at the server.",
            fix=f"See: {_status_command(site)}",
        )
    return RunStopped(
        f"The run {name!r} was stopped; its rounds so far are in {site.run(name)}.",
        fix="Start the same name again, and it goes on after the last of them.",
    )

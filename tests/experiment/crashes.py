"""Run in a separate process: at each point a child is killed by SIGKILL while it trains, and another resumes.

It forks, so that torch is imported once; `test_crashes.py` reads what it prints.
"""

import json
import os
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from discreet import api
from discreet.engines.embedded import EmbeddedEngine
from discreet.experiment.configuration import experiment_file
from discreet.experiment.loop import training_loop
from discreet.experiment.run_directory import run_record
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.paths import Paths
from discreet.privacy.ledger import Ledger

ROUND = 3  # the call, counted from 1, at which the child dies


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def run_after(owner: Any, name: str, call: int = ROUND, then: Callable[..., None] = die) -> None:
    """Call `then` after the `call`-th return of `owner.name`."""
    wrapped, calls = getattr(owner, name), Counter[str]()

    def count_call(*given: Any, **named: Any) -> Any:
        answer = wrapped(*given, **named)
        calls[name] += 1
        if calls[name] == call:
            then(*given)
        return answer

    setattr(owner, name, count_call)


def instead(owner: Any, name: str, call: int, then: Callable[..., None]) -> None:
    """Call `then` instead of the `call`-th call of `owner.name`."""
    wrapped, calls = getattr(owner, name), Counter[str]()

    def count_call(*given: Any, **named: Any) -> Any:
        calls[name] += 1
        if calls[name] == call:
            then(*given, **named)
        return wrapped(*given, **named)

    setattr(owner, name, count_call)


def half_a_line(at: RunRecord, line: dict[str, Any]) -> None:
    with open(at.path / "rounds.jsonl", "a") as file:
        file.write(json.dumps(line)[:20])
    die()


def a_draft_only(path: Path, content: bytes) -> None:
    path.with_name(f".{path.name}.draft").write_bytes(content[: len(content) // 2])
    die()


POINTS: dict[str, Callable[[], None]] = {
    "the first reservation was made": lambda: run_after(Ledger, "reserve", 1),
    "a round was reserved": lambda: run_after(Ledger, "reserve"),
    "the sum was gathered": lambda: run_after(EmbeddedEngine, "gather"),
    "half a checkpoint was written": lambda: instead(run_record, "write_durably", 4 + ROUND, a_draft_only),
    "the checkpoint was saved": lambda: run_after(RunRecord, "save_checkpoint"),
    "the ledger was told": lambda: run_after(Ledger, "commit"),
    "half a line was written": lambda: instead(RunRecord, "append_round", ROUND, half_a_line),
    "the line was written": lambda: run_after(RunRecord, "append_round"),
    "the last checkpoint was saved": lambda: run_after(RunRecord, "save_checkpoint", 5),
    "the end was written": lambda: instead(RunRecord, "write_outcome", 1, die),
}


def train(experiment: Path, out: Path, every: int) -> None:
    source = experiment_file.load_experiment(experiment, ("seed=7", "rounds=5", f"checkpoint_every={every}"))
    training_loop.start(api.prepare_job(source), out, None, None, lambda line: None)


def resume(out: Path) -> None:
    job, found = api.reopen_run(out, None)
    training_loop.resume(job, found, None, lambda line: None)


def child(work: Callable[[], None]) -> int:
    """Return the status of a child: its exit code, or the signal that killed it, as a negative number."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of threads, which torch has
        pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - a child that fails says why, and never returns
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main(experiment: Path, folder: Path) -> dict[str, Any]:
    torch.set_num_threads(1)
    experiment_file.load_experiment(experiment).experiment.task.load(
        torch.Generator(), Paths.default()
    )  # imported once, before the forks
    train(experiment, folder / "unbroken", 1)
    found = {}
    for every in (1, 2):
        for number, (name, arm) in enumerate(POINTS.items()):
            if every == 2 and "checkpoint" in name:
                continue  # it saves at other calls
            out = folder / f"{every}-{number}"

            def train_and_die(out: Path = out, every: int = every, arm: Callable[[], None] = arm) -> None:
                arm()
                train(experiment, out, every)

            first = child(train_and_die)
            found[f"{name}, checkpoints every {every}"] = [first, child(lambda out=out: resume(out)), str(out)]  # type: ignore[misc]
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]))))

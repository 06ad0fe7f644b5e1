"""In every process of the drill: hold it at the named point that an order asks for, and note each node's answers.

Python imports this file at its start, because the drill puts its folder on PYTHONPATH.
"""

import functools
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import re
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.drill.named_points import CREATION, POINTS

FOLDER = Path(os.environ.get("DRILL_FOLDER", "/nonexistent"))
ROLE = Path(sys.argv[3]).name if sys.argv[1:3] == ["deploy", "client"] else "run"
LONGEST_HOLD = 120.0  # seconds
NODE, ENTRY = "discreet.deploy.client_node", "discreet.deploy.entry_points"
STARVED = {"discreet.deploy.learner": "Learner.update", "discreet.algorithms.algorithm": "Algorithm.server_step"}
SECOND_ENGINE = "discreet.privacy.second_engine"
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def reach(point: str) -> None:
    """Hold here if this point was ordered, until the drill removes the note that the point was reached."""
    order, reached = FOLDER / f"order-{ROLE}", FOLDER / f"reached-{ROLE}"
    try:
        if order.read_text() != point:
            return
        (FOLDER / f"pid-{ROLE}").write_text(str(os.getpid()))
        order.rename(reached)
    except OSError:
        return
    until = time.monotonic() + LONGEST_HOLD
    while reached.exists() and time.monotonic() < until:
        time.sleep(0.02)


def hold_around(owner: Any, method: str, point: str, *, after: bool) -> None:
    wrapped = getattr(owner, method)

    @functools.wraps(wrapped)
    def hold_call(*given: Any, **named: Any) -> Any:
        if not after:
            reach(point)
        answer = wrapped(*given, **named)
        if after:
            reach(point)
        return answer

    setattr(owner, method, hold_call)


def starve(owner: Any, method: str) -> None:
    """Ask for memory that no machine has before each call of this method, while there is such an order."""
    wrapped = getattr(owner, method)

    @functools.wraps(wrapped)
    def call_without_memory(*given: Any, **named: Any) -> Any:
        if (FOLDER / f"no-memory-{ROLE}").exists():
            importlib.import_module("torch").empty(1 << 60)
        return wrapped(*given, **named)

    setattr(owner, method, call_without_memory)


def hold_at_changes(module: ModuleType) -> None:
    """Hold the run's process before the ordered change of a file below the folder of runs."""
    runs = str(FOLDER / "site" / "server" / "runs")

    def hold_at_change(event: str, given: tuple[Any, ...]) -> None:
        if event == "open" and not given[2] & WRITING:
            return
        for word, change in CREATION.items():
            if event == change.event and re.fullmatch(f"{runs}.*{change.path}", str(given[0])):
                reach(word)

    main = module.main

    def main_with_holds(*given: Any) -> None:
        sys.addaudithook(hold_at_change)
        main(*given)

    setattr(module, "main", main_with_holds)  # noqa: B010


def note_answers(module: ModuleType) -> None:
    """Note every update before it can leave: run, round, digest, and what the node's ledger has reserved for it."""
    answer = module.ClientNode.answer

    def note_answer(self: Any, request: bytes) -> bytes:
        reply: bytes = answer(self, request)
        key = bytes.fromhex(self.policy.server_key)
        try:
            about, _ = module.signed_messages.read_request(request, key)
            is_update = about.kind in ("train", "mask") and isinstance(module.signed_messages.read_reply(reply), bytes)
        except module.DiscreetError:
            return reply
        if is_update:
            ledgers = "".join(path.read_text() for path in self.client_folder.folder.glob("ledger*.jsonl"))
            words = f"run {about.run} round {about.round} of"
            counted = sum('"type":"reserve"' in line and words in line for line in ledgers.splitlines())
            line = [ROLE, about.run, about.round, hashlib.sha256(reply).hexdigest(), counted]
            with open(FOLDER / "sent.jsonl", "a") as file:
                file.write(json.dumps(line) + "\n")
        return reply

    module.ClientNode.answer = note_answer


class Hooks(importlib.abc.MetaPathFinder):
    """Adds the holds to the modules of the named points when they are imported."""

    modules = {point.module for point in POINTS.values()} | {NODE, ENTRY, SECOND_ENGINE, *STARVED}

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name not in self.modules:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_with_holds(module: ModuleType) -> None:
                load(module)
                if name in STARVED:
                    owner, method = STARVED[name].split(".")
                    starve(getattr(module, owner), method)
                for word, point in POINTS.items():
                    if point.module == name:
                        owner, method = point.method.split(".")
                        hold_around(getattr(module, owner), method, word, after=point.after)
                if name == NODE:
                    note_answers(module)
                if name == SECOND_ENGINE:  # each process would load it, which takes longer than what is drilled
                    setattr(module, "is_installed", lambda library: False)  # noqa: B010
                if name == ENTRY:
                    hold_at_changes(module)

            spec.loader.exec_module = load_with_holds  # type: ignore[method-assign]
        return spec


if FOLDER.is_dir():
    sys.meta_path.insert(0, Hooks())

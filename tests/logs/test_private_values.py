"""Nothing private is in the log of a run, down to the details: not the data, the draw, the results or a key.

Two runs that differ in nothing but what is private must write the same log. So the test finds any value that depends on
data, draw, noise or results, and any line whose presence does.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import discreet as d
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.sampling import FixedSize, Poisson
from discreet.data.tasks.task import Task
from discreet.engines.engine_table import AnyEngine, Embedded, Secure
from discreet.experiment.loop.round_player import RoundPlayer
from discreet.experiment.run_directory.run_files import RoundRecord
from discreet.log_output import write_logs
from discreet.logs import get_log
from tests.small_experiment import state  # noqa: F401 - keys are kept in a temporary folder

VARYING = ("time", "process", "run", "client_run", "experiment", "path")  # random names, digests of a seed, and time
CANARY = 31337.125  # among the features of every client
NAME = "canary-hospital"  # the beginning of every client's name
SEEDS = 271828183, 314159265
FOLDERS = "first", "second"
CLIENTS, ROUNDS = 12, 4

PROMISE = d.Privacy(unit="client", against="public", epsilon=8, delta=1e-3)
CENTRAL_NOISE = d.dp_fedavg(learning_rate=0.1, batch_size=4, steps=2, clip_norm=1.0, sampling=Poisson(rate=0.5))
SHARED_NOISE = d.ddp_fedavg_client(
    learning_rate=0.1, batch_size=4, steps=1, clip_norm=1.0, sampling=FixedSize(cohort=6)
)
RUNS = {
    "central": (CENTRAL_NOISE, Embedded(), PROMISE),
    "secure": (SHARED_NOISE, Secure(), d.Privacy(unit="client", against="server", epsilon=60, delta=1e-3)),
}

Train = Callable[[Path, int], None]


def canary_clients(seed: int) -> Task:
    """Clients whose data differ by seed and whose sizes don't: those are public."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(8 * CLIENTS, 3, generator=generator)
    inputs[:, 0] = CANARY + seed % 7
    labels = torch.randint(0, 2, (8 * CLIENTS,), generator=generator)
    names = [f"{NAME}-{example % CLIENTS}" for example in range(8 * CLIENTS)]
    return d.clients_from_arrays(inputs, labels, clients=names, classes=2, test=(inputs[:20], labels[:20]))


def train(
    out: Path | None, number: int, algorithm: Algorithm, engine: AnyEngine, privacy: d.Privacy, **more: Any
) -> None:
    """Train on the data with this number, by default with a seed of the same number."""
    torch.manual_seed(number)
    settings = {"out": out, "rounds": ROUNDS, "seed": number, "evaluate_every": 1, "progress": False, **more}
    model, clients = torch.nn.Linear(3, 2), canary_clients(number)
    d.train(model, clients, algorithm=algorithm, privacy=privacy, engine=engine, **settings)


def write_log(folder: Path, seed: int, run: Train) -> tuple[str, list[RoundRecord]]:
    """Train with details logged, and return the log and the records of all rounds."""
    folder.mkdir()
    with write_logs(verbose=2, file=str(folder / "log.jsonl")):
        run(folder / "run", seed)
    rounds = [json.loads(line) for line in (folder / "run" / "rounds.jsonl").read_text().splitlines()]
    return (folder / "log.jsonl").read_text(), rounds


def find_leaks(tmp_path: Path, run: Train) -> list[str]:
    """Train twice with other data, draws and noise, and return what the logs reveal of that."""
    logs, rounds = zip(
        *(write_log(tmp_path / name, seed, run) for name, seed in zip(FOLDERS, SEEDS, strict=True)), strict=True
    )
    assert _results(rounds[0]) != _results(rounds[1])
    first, second = (public_part(text) for text in logs)
    leaks = [f"{one} differs from {other}" for one, other in zip(first, second, strict=False) if one != other]
    leaks += [] if len(first) == len(second) else [f"{len(first)} lines, and {len(second)}"]
    for text, lines in zip(logs, rounds, strict=True):
        private = {NAME, str(int(CANARY)), *map(str, SEEDS), *_results(lines)}
        leaks += [f"{value} is in the log" for value in private if value in text]
    return leaks


def public_part(text: str) -> list[dict[str, Any]]:
    """Return the lines without what is random or a time."""
    lines = [json.loads(line) for line in text.splitlines()]
    return [{name: value for name, value in line.items() if name not in VARYING} for line in lines]


def _results(value: Any) -> set[str]:
    """Return the fractions in the records of rounds as text: losses, accuracies, norms; ε is public."""
    match value:
        case dict():
            return set().union(*(_results(entry) for name, entry in value.items() if name != "epsilon"))
        case list():
            return set().union(*map(_results, value))
        case float() if not value.is_integer() and math.isfinite(value) and len(str(value)) > 6:
            return {str(value)[:12]}
    return set()


@pytest.mark.filterwarnings("ignore:epsilon = 60 is above 10")
@pytest.mark.parametrize("kind", RUNS)
def test_the_log_of_a_run_depends_on_nothing_private(tmp_path: Path, kind: str):
    assert find_leaks(tmp_path, lambda out, seed: train(out, seed, *RUNS[kind])) == []
    events = [line["event"] for line in public_part((tmp_path / "first" / "log.jsonl").read_text())]
    assert events.count("round finished") == ROUNDS
    assert events.count("stage completed") == (4 * ROUNDS if kind == "secure" else 0)


def test_the_log_of_a_resumed_run_depends_on_nothing_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def stop_and_resume(out: Path, seed: int) -> None:
        with monkeypatch.context() as broken:
            broken.setattr("discreet.experiment.run_directory.run_record.RunRecord.append_round", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                train(out, seed, *RUNS["central"])
        train(None, seed, *RUNS["central"], resume=out)

    assert find_leaks(tmp_path, stop_and_resume) == []
    assert '"event": "run resumed"' in (tmp_path / "first" / "log.jsonl").read_text()


@pytest.mark.parametrize("leak", ["clients", "evaluation"])
def test_a_log_line_that_reveals_a_private_value_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leak: str):
    def log_private(self: RoundPlayer, line: RoundRecord) -> None:
        value = line[leak]["loss"] if leak == "evaluation" else line[leak]
        get_log("discreet.test").debug("round finished", seconds=value)

    monkeypatch.setattr(RoundPlayer, "_log_round", log_private)
    assert find_leaks(tmp_path, lambda out, seed: train(out, seed, *RUNS["central"]))


def test_a_log_line_whose_presence_depends_on_the_draw_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def log_private(self: RoundPlayer, line: RoundRecord) -> None:
        if line["clients"] > CLIENTS / 2:
            get_log("discreet.test").debug("round finished")

    monkeypatch.setattr(RoundPlayer, "_log_round", log_private)
    assert find_leaks(tmp_path, lambda out, seed: train(out, seed, *RUNS["central"]))


def test_the_key_of_a_run_is_not_in_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    algorithm, engine, privacy = RUNS["central"]
    monkeypatch.setattr("discreet.experiment.run_directory.run_keys.delete_key", lambda *_: None)
    with write_logs(verbose=2, file=str(tmp_path / "log.jsonl")):
        train(tmp_path / "run", SEEDS[0], algorithm, engine, privacy, seed=None, key_dir=tmp_path / "keys")
    keys = [path.read_bytes() for path in (tmp_path / "keys").iterdir()]
    text = (tmp_path / "log.jsonl").read_text()
    assert keys
    assert not [key for key in keys if key.hex() in text or key.decode(errors="replace").strip() in text]

"""Ways to get a certified card for code that leaks, each of which was tried and is closed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import discreet
from discreet import parts
from discreet.algorithms.declarations import client_parts, trusted_parts
from discreet.contract import CONTRACTS
from discreet.data.tasks.digits import Digits
from discreet.data.tasks.task import Task
from discreet.engines.engine import RoundRefused
from discreet.errors import InvalidInput
from discreet.paths import Paths
from discreet.privacy.ledger import Budget, Ledger
from discreet.user_part import UserPart

CLIENTS = discreet.clients_from_arrays(torch.randn(40, 3), torch.arange(40) % 2, sizes=[10] * 4, classes=2)
PROMISE = discreet.Privacy(unit="client", against="public", epsilon=8.0, delta=1e-4)
LOCAL: dict[str, Any] = {"learning_rate": 0.1, "batch_size": 5, "steps": 1, "clip_norm": 1.0}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    torch.set_num_threads(1)


def train(folder: Path, algorithm: Any, **more: Any) -> discreet.Run:
    fixed: dict[str, Any] = {"rounds": 6, "privacy": PROMISE, "out": folder / "run"}
    return discreet.train(nn.Linear(3, 2), CLIENTS, algorithm=algorithm, **fixed | more)


@dataclass(frozen=True)
class Disguise:
    """Behaves like an algorithm, and could do anything in a round."""

    inner: Any
    standardisation: Any = None  # which the run sets by dataclasses.replace

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "inner"), name)


def test_an_object_that_only_behaves_like_an_algorithm_is_refused(tmp_path: Path) -> None:
    everyone: dict[str, Any] = {"sampling": parts.Everyone()}
    with pytest.raises(InvalidInput, match="algorithm must be a part itself, of the class Algorithm, and got"):
        train(tmp_path, Disguise(discreet.dp_fedavg(**LOCAL, **everyone)))


class FailsLater:
    """Fails once the trials are over, after it saw the noisy mean of a round."""

    def __init__(self, error: type[Exception] = ValueError) -> None:
        self.error, self.calls = error, 0

    def step(self, params: Any, mean: Any, state: Any) -> Any:
        self.calls += 1
        if self.calls > 60:
            raise self.error("a fault")
        return {name: value + mean[name] for name, value in params.items()}, state


@pytest.mark.parametrize("error", [ValueError, RoundRefused, SystemExit])
def test_a_round_whose_sum_was_seen_stays_counted_when_the_server_optimiser_fails(tmp_path: Path, error: Any) -> None:
    ledger = tmp_path / "ledger.jsonl"
    Ledger.create(ledger, [Budget(unit="client", relation="add_or_remove", view="public", epsilon=9.0, delta=1e-4)])
    algorithm = discreet.dp_fedavg(**LOCAL, sampling=parts.Everyone(), server=FailsLater(error))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="failed in step"):
        train(tmp_path, algorithm, rounds=100, ledger=ledger)
    summary = Ledger.open(ledger).summary()
    assert summary["budgets"][0]["spent"] > 0
    kinds = [line for line in ledger.read_text().splitlines() if '"void' in line]
    assert not kinds


class ChangesType:
    """Returns one tensor in another type from its 61st step on."""

    def init(self, params: Any) -> Any:
        return {"steps": torch.zeros(())}

    def step(self, params: Any, mean: Any, state: Any) -> Any:
        moved = {name: value + mean[name] for name, value in params.items()}
        if int(state["steps"]) > 60:
            moved["bias"] = moved["bias"].bfloat16()
        return moved, {"steps": state["steps"] + 1}


def test_a_model_that_changes_its_type_is_refused_in_every_round(tmp_path: Path) -> None:
    algorithm = discreet.dp_fedavg(**LOCAL, sampling=parts.Everyone(), server=ChangesType())  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="The model after a step of the server must keep its tensor 'bias'"):
        train(tmp_path, algorithm, rounds=100)


def test_an_own_server_optimiser_needs_a_checkpoint_in_every_round(tmp_path: Path) -> None:
    algorithm = discreet.dp_fedavg(**LOCAL, sampling=parts.Everyone(), server=FailsLater())  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="every round needs a checkpoint"):
        train(tmp_path, algorithm, checkpoint_every=5)


def test_the_wrapper_of_own_parts_has_no_subclasses() -> None:
    with pytest.raises(InvalidInput, match="never in a subclass of it"):
        type("Equal", (UserPart,), {"__eq__": lambda self, other: True})


def test_an_own_part_beside_an_equal_server_optimiser_is_still_found() -> None:
    own = UserPart.wrap(CONTRACTS[parts.ServerOptimizer], FailsLater())
    algorithm = discreet.fedavg(**{k: v for k, v in LOCAL.items() if k != "clip_norm"}, server=own)  # type: ignore[arg-type]
    assert client_parts(algorithm) == []
    assert trusted_parts(algorithm) == []


class Chameleon(tuple):  # type: ignore[type-arg]
    """A tuple that says that it is a part."""

    __slots__ = ()

    @property
    def __class__(self) -> Any:
        return parts.Gaussian

    @__class__.setter
    def __class__(self, value: Any) -> None: ...


def test_an_object_that_lies_about_its_class_is_refused() -> None:
    with pytest.raises(InvalidInput):
        parts.Algorithm(trainer=parts.LocalSgd(learning_rate=1.0, batch_size=1, steps=1), mechanism=Chameleon())  # type: ignore[arg-type]


class OwnTask:
    """A task of one's own, passed in Python, with a fact that nobody checked."""

    kind = "own"

    def load(self, generator: torch.Generator, paths: Paths) -> Task:
        return Digits(clients=3).load(generator, paths)


def test_a_task_of_ones_own_that_is_passed_in_python_is_marked_on_the_card(tmp_path: Path) -> None:
    run = discreet.train(
        nn.Linear(64, 10),
        OwnTask(),  # type: ignore[arg-type]
        algorithm=discreet.dp_fedavg(**LOCAL, sampling=parts.Everyone()),
        rounds=1,
        privacy=PROMISE,
        out=tmp_path / "run",
    )
    assert run.guarantee is not None
    assert any("On the word of test_own_code_attacks.py:OwnTask" in fact for fact in run.guarantee.assumptions)
    assert any("OwnTask" in sentence for sentence in run.guarantee.not_covered)

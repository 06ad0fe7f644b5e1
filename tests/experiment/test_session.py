"""A run as a loop of the caller's: its bits, its accounting, and what is left however the loop ends."""

import gc
import inspect
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import discreet as d
from discreet.api import SessionKeywords
from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput
from discreet.experiment.configuration.run_settings import SettingKeywords
from discreet.experiment.loop import round_player
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.privacy.ledger import Budget, Ledger
from tests.experiment.test_run import FILES

ARGUMENTS: dict[str, Any] = {
    "rounds": 4,
    "algorithm": d.pfl(local_steps=1, sampling_rate=0.2, clip_norm=1.0, learning_rate=1.0),
    "privacy": d.Privacy(unit="example", against="server", epsilon=8, delta=1e-4),
    "seed": 3,
}
COMPLETE = {*FILES, "report.html"} - {"experiment.toml"}


def make_arrays() -> tuple[torch.Tensor, torch.Tensor]:
    inputs = torch.randn(300, 4, generator=torch.Generator().manual_seed(0))
    return inputs, (inputs.sum(dim=1) > 0).to(torch.int64)


def make_clients() -> Task:
    inputs, labels = make_arrays()
    return d.clients_from_arrays(inputs[:240], labels[:240], sizes=[80] * 3, test=(inputs[240:], labels[240:]))


def make_net() -> nn.Module:
    net = nn.Linear(4, 2)
    nn.init.zeros_(net.weight)
    nn.init.zeros_(net.bias)
    return net


def open_session(folder: Path, **more: Any) -> d.Session[d.Run]:
    place = {} if "resume" in more else {"out": folder}
    return d.session(make_net(), make_clients(), **{**ARGUMENTS, **place, **more})


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> d.Run:
    """The run that no loop ever stopped."""
    torch.set_num_threads(1)
    return d.train(make_net(), make_clients(), **ARGUMENTS, out=tmp_path_factory.mktemp("whole") / "run")


def model_bytes(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def release_counts(folder: Path) -> dict[str, int]:
    counts: dict[str, int] = Ledger.open(folder / "ledger.jsonl").summary()["releases"]
    return counts


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def without_times(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in record.items() if name != "seconds"} for record in records]


def test_a_loop_to_the_end_is_the_run_of_train_bit_for_bit(whole_run: d.Run, tmp_path: Path):
    session = open_session(tmp_path / "run")
    records = [json.loads(json.dumps(record, default=dict)) for record in session]
    assert records == session.run.history
    assert without_times(records) == without_times(whole_run.history)
    assert model_bytes(tmp_path / "run") == model_bytes(whole_run.directory)
    assert session.run.stopped is None
    assert session.run.guarantee.epsilon == whole_run.guarantee.epsilon
    assert files(tmp_path / "run") == COMPLETE == files(whole_run.directory)
    assert list(session) == []


@pytest.mark.parametrize("resume", [d.session, d.train])
@pytest.mark.parametrize("stop_after", [0, 1, 2, 3, 4])
def test_a_loop_that_was_left_after_any_round_goes_on_as_if_it_had_not(
    stop_after: int, resume: Callable[..., Any], whole_run: d.Run, tmp_path: Path
):
    with open_session(tmp_path / "run") as session:
        for _ in range(stop_after):
            next(session)
    assert session.run.rounds == stop_after == len(session.run.history)
    assert files(tmp_path / "run") >= COMPLETE - (
        {"checkpoint.safetensors", "rounds.jsonl"} if not stop_after else set()
    )
    assert release_counts(tmp_path / "run") == {"committed": stop_after, "reserved": 0, "voided": 0}
    if stop_after == 4:  # leaving after the last round stops nothing
        assert session.run.stopped is None
        return
    assert f"discreet.train(..., resume='{tmp_path / 'run'}')" in session.run.stopped
    resumed = resume(make_net(), make_clients(), **ARGUMENTS, resume=tmp_path / "run")
    rounds = [record["round"] for record in resumed] if isinstance(resumed, d.Session) else []
    assert rounds == ([*range(stop_after + 1, 5)] if resume is d.session else [])
    assert model_bytes(tmp_path / "run") == model_bytes(whole_run.directory)
    assert release_counts(tmp_path / "run") == {"committed": 4, "reserved": 0, "voided": 0}


def test_a_run_that_its_caller_stopped_is_certified_at_its_planned_rounds(whole_run: d.Run, tmp_path: Path):
    with open_session(tmp_path / "run") as session:
        for record in session:
            if record["round"] == 2:
                session.stop()
    card = session.run.guarantee
    assert session.run.rounds == 2
    assert card.epsilon == whole_run.guarantee.epsilon
    assert card.event == whole_run.guarantee.event
    assert any("stopped by its caller after 2 of 4 rounds" in sentence for sentence in card.not_covered)
    assert not any("had nothing to do with" in sentence for sentence in card.assumptions)
    spent = Ledger.open(tmp_path / "run" / "ledger.jsonl").summary()["budgets"][0]["spent"]
    assert spent == session.run.history[1]["epsilon"] < card.epsilon


def test_ctrl_c_in_a_round_ends_the_loop_after_it_as_in_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    settle, before = round_player.RoundPlayer.settle, signal.getsignal(signal.SIGINT)

    def interrupt(*given: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        settle(*given)

    monkeypatch.setattr(round_player.RoundPlayer, "settle", interrupt)
    session = open_session(tmp_path / "run")
    assert [record["round"] for record in session] == [1]
    assert signal.getsignal(signal.SIGINT) is before
    assert session.run.stopped.startswith("Interrupted after 1 of 4 rounds")
    assert any("had nothing to do with what they showed" in sentence for sentence in session.run.guarantee.assumptions)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_in_the_body_leaves_a_complete_run(error: type[BaseException], whole_run: d.Run, tmp_path: Path):
    session = open_session(tmp_path / "run", seed=None, key_dir=tmp_path / "keys")
    next(session)
    with pytest.raises(error), session:
        raise error
    assert files(tmp_path / "run") == COMPLETE
    assert (session.run.rounds, session.run.guarantee.event) == (1, whole_run.guarantee.event)
    assert len(list((tmp_path / "keys").iterdir())) == 1
    with open_session(tmp_path / "run", seed=None, key_dir=tmp_path / "keys", resume=tmp_path / "run") as session:
        assert len(list(session)) == 3
    assert not list((tmp_path / "keys").iterdir())


def test_a_plain_loop_that_is_left_closes_its_run(tmp_path: Path):
    for record in open_session(tmp_path / "run"):
        if record["round"] == 2:
            break
    gc.collect()
    assert files(tmp_path / "run") == COMPLETE
    assert d.load(tmp_path / "run", module=make_net()).rounds == 2


def test_a_session_that_is_still_there_when_python_exits_is_closed_then(tmp_path: Path):
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from tests.experiment.test_session import open_session\n"
        "session = open_session(Path(sys.argv[1]))\n"
        "next(session)\n"
        "if os.fork() == 0:\n"
        "    sys.exit()  # a forked process leaves the run alone\n"
        "os.wait()\n"
        "print((session.directory / 'guarantee.json').exists())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program, tmp_path / "run"],  # fork beside threads
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    assert (ran.stdout, ran.stderr) == ("False\n", "")
    assert files(tmp_path / "run") == COMPLETE


def test_two_sessions_take_turns_in_one_process(whole_run: d.Run, tmp_path: Path):
    before = signal.getsignal(signal.SIGINT)
    first, second = open_session(tmp_path / "first"), open_session(tmp_path / "second")
    for one, other in zip(first, second, strict=True):
        assert one["round"] == other["round"]
    assert model_bytes(tmp_path / "first") == model_bytes(tmp_path / "second") == model_bytes(whole_run.directory)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_run_that_a_session_holds_is_not_opened_twice(tmp_path: Path):
    with open_session(tmp_path / "run") as session:
        next(session)
        with pytest.raises(InvalidInput, match="going on in another process"):
            open_session(tmp_path / "run", resume=tmp_path / "run")
        assert len(list(session)) == 3


def test_a_checkpoint_on_demand_is_where_a_killed_run_goes_on(whole_run: d.Run, tmp_path: Path):
    """The copy stands for what is on the disk when the process is killed."""
    more = {"checkpoint_every": 100}
    with open_session(tmp_path / "run", **more) as session:
        next(session)
        session.checkpoint()
        next(session)
        session.checkpoint()
        saved = (tmp_path / "run" / "checkpoint.safetensors").stat().st_mtime_ns
        session.checkpoint()
        assert (tmp_path / "run" / "checkpoint.safetensors").stat().st_mtime_ns == saved
        next(session)
        shutil.copytree(tmp_path / "run", tmp_path / "copy")
    again = open_session(tmp_path / "copy", **more, resume=tmp_path / "copy")
    assert [record["round"] for record in again] == [3, 4]
    assert model_bytes(tmp_path / "copy") == model_bytes(whole_run.directory)
    assert release_counts(tmp_path / "copy") == {"committed": 4, "reserved": 0, "voided": 0}


def test_an_error_in_a_round_leaves_no_outcome_and_can_be_resumed(
    whole_run: d.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    session = open_session(tmp_path / "run")
    next(session)
    with monkeypatch.context() as broken:
        broken.setattr(RunRecord, "append_round", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            next(session)
    with pytest.raises(InvalidInput, match=r"is unfinished.*resume it"):
        _ = session.run
    assert next(session, None) is None
    assert "guarantee.json" not in files(tmp_path / "run")
    resumed = open_session(tmp_path / "run", resume=tmp_path / "run")
    assert [record["round"] for record in resumed] == [3, 4]
    assert model_bytes(tmp_path / "run") == model_bytes(whole_run.directory)


def test_a_loop_can_not_change_its_run(whole_run: d.Run, tmp_path: Path):
    net, clients = make_net(), make_clients()
    arrays = (clients.train.inputs, clients.train.targets, clients.test_inputs)
    session = d.session(net, clients, **ARGUMENTS, out=tmp_path / "run")
    for record in session:
        with pytest.raises(TypeError):
            record["clients"] = 0  # type: ignore[index]
        with pytest.raises(TypeError):
            record["evaluation"]["accuracy"] = 1.0
        for tensor in (*arrays, *session.model.parameters(), *net.parameters()):
            tensor.data.zero_()
    assert model_bytes(tmp_path / "run") == model_bytes(whole_run.directory)


def test_the_model_of_a_session_is_the_one_that_the_run_ends_with(tmp_path: Path):
    with open_session(tmp_path / "run") as session:
        assert torch.equal(session.model.weight, torch.zeros(2, 4))
        next(session)
        weight = session.model.weight
        with pytest.raises(InvalidInput, match="is unfinished"):
            _ = session.run
    assert torch.equal(session.run.model.weight, weight)


class WeightedLoss(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor = 1.0

    def forward(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return self.factor * nn.functional.cross_entropy(outputs, targets)


def closure_loss(held: dict[str, float]) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    return lambda outputs, targets: held["factor"] * nn.functional.cross_entropy(outputs, targets)


@pytest.mark.parametrize("kind", ["module", "its weights", "closure"])
def test_a_loss_that_the_loop_changes_ends_it_before_the_next_round(kind: str, tmp_path: Path):
    """A round that a killed process played would be repeated with the same noise and another loss."""
    held, module, weighted = {"factor": 1.0}, WeightedLoss(), nn.CrossEntropyLoss(weight=torch.ones(2))
    loss = {"module": module, "its weights": weighted, "closure": closure_loss(held)}[kind]
    session = open_session(tmp_path / "run", loss=loss, checkpoint_every=100)
    next(session)
    module.factor = held["factor"] = 0.0
    weighted.weight.zero_()
    with pytest.raises(InvalidInput, match="was changed between two rounds"):
        next(session)
    assert release_counts(tmp_path / "run") == {"committed": 1, "reserved": 0, "voided": 0}


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_plays_no_round(tmp_path: Path):
    with open_session(tmp_path / "run") as session:
        next(session)
        child = os.fork()
        if child == 0:
            try:
                next(session)
            except InvalidInput as error:
                os._exit(0 if "belongs to the process that opened it" in str(error) else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert session.run.rounds == 1


def test_a_loss_that_reaches_for_its_own_session_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "reachable_sessions", [], raising=False)

    def loss(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        for session in sys.reachable_sessions:  # type: ignore[attr-defined]
            next(session)
        return nn.functional.cross_entropy(outputs, targets)

    session = open_session(tmp_path / "run", loss=loss)
    sys.reachable_sessions.append(session)  # type: ignore[attr-defined]
    with pytest.raises(InvalidInput, match="in the middle of a round"):
        next(session)


def budget(epsilon: float) -> Budget:
    return Budget(unit="example", relation="zero_out", view="server", epsilon=epsilon, delta=1e-4)


def test_a_ledger_of_a_fixed_plan_refuses_a_loop_that_may_stop_and_a_filter_keeps_the_rest(tmp_path: Path):
    plan = Ledger.create(tmp_path / "plan.jsonl", [budget(20)], "plan")
    with pytest.raises(InvalidInput, match="counts runs that were planned in advance"):
        open_session(tmp_path / "run", ledger=plan.path)
    assert not (tmp_path / "run").exists()
    assert plan.summary()["releases"]["reserved"] == 0
    shared = Ledger.create(tmp_path / "filter.jsonl", [budget(20)], "filter")
    with open_session(tmp_path / "run", ledger=shared.path) as session:
        next(session)
    assert shared.summary()["releases"] == {"committed": 1, "reserved": 0, "voided": 0}


def test_session_takes_every_argument_of_train():
    parameters = set(inspect.signature(d.train).parameters) - {"model", "clients", "progress", "callbacks", "settings"}
    assert parameters | set(SettingKeywords.__annotations__) == set(SessionKeywords.__annotations__)

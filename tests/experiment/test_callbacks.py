"""Callbacks of a run: what they are called with, how they stop it, and that they can neither change nor lose it."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import discreet as d
from discreet.errors import CallbackFailed, InvalidInput
from discreet.privacy.ledger import Ledger
from tests.experiment.test_session import (
    ARGUMENTS,
    COMPLETE,
    budget,
    files,
    make_clients,
    make_net,
    model_bytes,
    release_counts,
    whole_run,
    without_times,
)

__all__ = ["whole_run"]


class Diary(d.Callback):
    """Notes every call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def round_begun(self, record: Any) -> None:
        self.calls.append(("begun", record))

    def evaluated(self, record: Any) -> None:
        self.calls.append(("evaluated", record))

    def round_ended(self, record: Any) -> None:
        self.calls.append(("ended", record))

    def finished(self, run: d.Run) -> None:
        self.calls.append(("finished", run))


class StopAfter(d.Callback):
    def __init__(self, round: int) -> None:
        self.round = round

    def round_ended(self, record: Any) -> bool:
        return record["round"] == self.round


class Tracker(d.Callback):
    """A callback that can't stop the run, and does what it is told to after round 2."""

    may_stop = False

    def __init__(self, act: Callable[[], Any]) -> None:
        self.act = act
        self.rounds: list[int] = []

    def round_ended(self, record: Any) -> Any:
        self.rounds.append(record["round"])
        return self.act() if record["round"] == 2 else None


def train(folder: Path, *callbacks: Any, **more: Any) -> d.Run:
    place = {} if "resume" in more else {"out": folder}
    return d.train(make_net(), make_clients(), **{**ARGUMENTS, **place, **more}, callbacks=list(callbacks))


def fail() -> None:
    raise ValueError("no room on the disk")


def test_a_callback_gets_every_event_of_a_run_in_its_order_and_changes_no_bit(whole_run: d.Run, tmp_path: Path):
    diary = Diary()
    run = train(tmp_path / "run", diary, evaluate_every=2)
    assert [name for name, _ in diary.calls] == [
        *("begun", "ended", "begun", "evaluated", "ended"),
        *("begun", "ended", "begun", "evaluated", "ended", "finished"),
    ]
    planned = {"round": 1, "rounds": 4, "directory": str(tmp_path / "run")}
    assert diary.calls[0][1] == planned
    records = [json.loads(json.dumps(record, default=dict)) for name, record in diary.calls if name == "ended"]
    assert records == run.history
    assert diary.calls[-1][1] is run
    assert model_bytes(tmp_path / "run") == model_bytes(whole_run.directory)
    assert run.guarantee.epsilon == whole_run.guarantee.epsilon


def test_a_run_with_callbacks_that_do_nothing_has_the_same_records(whole_run: d.Run, tmp_path: Path):
    class Idle(d.Callback):
        pass

    run = train(tmp_path / "run", Idle())
    assert without_times(run.history) == without_times(whole_run.history)
    assert files(tmp_path / "run") == COMPLETE


def test_a_plain_function_is_called_with_the_record_of_each_round(tmp_path: Path):
    records: list[Any] = []
    train(tmp_path / "run", records.append)
    assert [record["round"] for record in records] == [1, 2, 3, 4]


def test_a_run_that_a_callback_stopped_is_certified_at_its_planned_rounds(whole_run: d.Run, tmp_path: Path):
    diary = Diary()
    run = train(tmp_path / "run", StopAfter(2), diary)
    assert run.rounds == 2
    assert run.stopped.startswith("Stopped by the callback StopAfter after 2 of 4 rounds; to resume: discreet.train(")
    assert run.guarantee.epsilon == whole_run.guarantee.epsilon
    assert run.guarantee.event == whole_run.guarantee.event
    assert diary.calls[-2][0] == "ended"  # the others see the last round too
    assert diary.calls[-1] == ("finished", run)
    spent = Ledger.open(tmp_path / "run" / "ledger.jsonl").summary()["budgets"][0]["spent"]
    assert spent == run.history[1]["epsilon"] < run.guarantee.epsilon


def test_the_card_says_that_a_stop_by_held_out_data_is_not_covered(tmp_path: Path):
    class StopWhenGood(d.Callback):
        def evaluated(self, record: Any) -> bool:
            return record["evaluation"]["accuracy"] > 0

    run = train(tmp_path / "run", StopWhenGood())
    assert run.rounds == 1
    sentence = next(line for line in run.guarantee.not_covered if "was stopped" in line)
    assert "after 1 of 4 rounds" in sentence
    assert "such as metrics, norms or test examples, is not" in sentence


def test_a_callback_may_stop_before_the_first_round(tmp_path: Path):
    class StopAtOnce(d.Callback):
        def round_begun(self, record: Any) -> bool:
            return True

    run = train(tmp_path / "run", StopAtOnce())
    assert (run.rounds, run.history) == (0, [])
    assert release_counts(tmp_path / "run") == {"committed": 0, "reserved": 0, "voided": 0}


def test_a_boolean_of_numpy_stops_a_run_too(tmp_path: Path):
    assert train(tmp_path / "run", lambda record: np.mean([record["round"]]) > 1).rounds == 2


def test_stopping_after_the_last_round_stops_nothing(tmp_path: Path):
    assert train(tmp_path / "run", StopAfter(4)).stopped is None


def test_a_run_that_a_callback_stopped_goes_on_as_if_it_had_not(whole_run: d.Run, tmp_path: Path):
    train(tmp_path / "run", StopAfter(3))
    diary = Diary()
    run = train(tmp_path / "run", diary, resume=tmp_path / "run")
    assert [record["round"] for name, record in diary.calls if name == "begun"] == [4]
    assert run.stopped is None
    assert model_bytes(tmp_path / "run") == model_bytes(whole_run.directory)


def test_a_filter_keeps_what_a_stopped_run_did_not_spend_and_a_plan_takes_only_callbacks_that_can_not_stop(
    tmp_path: Path,
):
    shared = Ledger.create(tmp_path / "filter.jsonl", [budget(20)], "filter")
    train(tmp_path / "stopped", StopAfter(1), ledger=shared.path)
    assert shared.summary()["releases"] == {"committed": 1, "reserved": 0, "voided": 0}
    plan = Ledger.create(tmp_path / "plan.jsonl", [budget(20)], "plan")
    with pytest.raises(InvalidInput, match=r"planned in advance.*may_stop = False"):
        train(tmp_path / "refused", StopAfter(1), ledger=plan.path)
    assert not (tmp_path / "refused").exists()
    tracker = Tracker(lambda: None)
    assert train(tmp_path / "run", tracker, ledger=plan.path).stopped is None
    assert tracker.rounds == [1, 2, 3, 4]


def test_a_callback_that_fails_loses_no_round_and_the_run_can_be_resumed(whole_run: d.Run, tmp_path: Path):
    def function(record: Any) -> None:
        if record["round"] == 2:
            fail()

    expected = r"The callback function failed in round_ended \(ValueError: no room on the disk\).*kept in .*run"
    with pytest.raises(CallbackFailed, match=expected) as caught:
        train(tmp_path / "run", function, checkpoint_every=100)
    assert isinstance(caught.value.__cause__, ValueError)
    assert files(tmp_path / "run") == COMPLETE
    assert release_counts(tmp_path / "run") == {"committed": 2, "reserved": 0, "voided": 0}
    stopped = d.load(tmp_path / "run", module=make_net())
    assert (stopped.rounds, stopped.guarantee.event) == (2, whole_run.guarantee.event)
    assert train(tmp_path / "run", resume=tmp_path / "run", checkpoint_every=100).rounds == 4
    assert model_bytes(tmp_path / "run") == model_bytes(whole_run.directory)


@pytest.mark.parametrize("act", [fail, lambda: True, lambda: "stop"])
def test_a_callback_that_can_not_stop_is_left_out_when_it_fails_or_asks_to(act: Callable[[], Any], tmp_path: Path):
    tracker, diary = Tracker(act), Diary()
    with pytest.warns(RuntimeWarning, match=r"The callback Tracker failed in round_ended.*The run goes on without it"):
        run = train(tmp_path / "run", tracker, diary)
    assert tracker.rounds == [1, 2]
    assert run.stopped is None
    assert diary.calls[-1] == ("finished", run)


def test_a_callback_that_fails_at_the_end_leaves_a_finished_run(tmp_path: Path):
    class FailAtLast(d.Callback):
        def finished(self, run: d.Run) -> None:
            fail()

    with pytest.raises(CallbackFailed, match="failed in finished"):
        train(tmp_path / "run", FailAtLast())
    assert d.load(tmp_path / "run", module=make_net()).stopped is None


@pytest.mark.parametrize("fails", [False, True])
def test_a_callback_that_is_a_context_manager_is_left_in_every_case(fails: bool, tmp_path: Path):
    entered: list[str] = []

    class OpenDiary(Diary):
        def __enter__(self) -> None:
            entered.append("in")

        def __exit__(self, kind: Any, *_: Any) -> None:
            entered.append("out" if kind is None else kind.__name__)

    opened = OpenDiary()
    if fails:
        with pytest.raises(CallbackFailed):
            train(tmp_path / "run", opened, lambda record: fail())
    else:
        train(tmp_path / "run", opened)
        assert opened.calls[-1][0] == "finished"
    assert entered == ["in", "CallbackFailed" if fails else "out"]


def test_a_callback_can_not_change_its_run(whole_run: d.Run, tmp_path: Path):
    net, clients = make_net(), make_clients()
    arrays = (clients.train.inputs, clients.train.targets, clients.test_inputs)

    class Vandal(d.Callback):
        may_stop = False

        def evaluated(self, record: Any) -> None:
            for held in (record, record["evaluation"]):
                with pytest.raises(TypeError):
                    held["round"] = 0
            for tensor in (*arrays, *net.parameters()):
                tensor.data.zero_()

    run = d.train(net, clients, **ARGUMENTS, out=tmp_path / "run", callbacks=[Vandal()])
    assert without_times(run.history) == without_times(whole_run.history)
    assert model_bytes(tmp_path / "run") == model_bytes(whole_run.directory)


def test_a_loss_that_a_callback_changes_ends_the_run_before_the_next_round(tmp_path: Path):
    weighted = torch.nn.CrossEntropyLoss(weight=torch.ones(2))

    def change(record: Any) -> None:
        weighted.weight.zero_()

    with pytest.raises(InvalidInput, match="was changed between two rounds"):
        train(tmp_path / "run", change, loss=weighted)
    assert release_counts(tmp_path / "run") == {"committed": 1, "reserved": 0, "voided": 0}


@pytest.mark.parametrize("method", ["round_begun", "round_ended"])
def test_a_callback_that_interrupts_its_run_is_certified_at_the_whole_plan(
    method: str,
    whole_run: d.Run,
    tmp_path: Path,
):
    class Interrupter(d.Callback):
        may_stop = False

    def interrupt(self: Interrupter, record: Any) -> None:
        if record["round"] == 2:
            signal.raise_signal(signal.SIGINT)

    setattr(Interrupter, method, interrupt)
    run = train(tmp_path / "run", Interrupter())
    assert run.rounds == (1 if method == "round_begun" else 2)
    assert run.stopped is not None
    assert "Stopped by a callback" in run.stopped
    assert run.guarantees[0].epsilon == whole_run.guarantees[0].epsilon


def test_whether_a_callback_may_stop_is_read_once(tmp_path: Path):
    class Later(d.Callback):
        may_stop = False

        def round_ended(self, record: Any) -> bool:
            self.may_stop = True
            return True

    with pytest.warns(RuntimeWarning, match="asked to stop the run, and its may_stop is False"):
        run = train(tmp_path / "run", Later())
    assert run.stopped is None


def test_a_loss_that_is_changed_for_the_length_of_a_round_plays_none(tmp_path: Path):
    """The round would be repeated without the callback after a crash: with the same noise, and another loss."""
    weighted = torch.nn.CrossEntropyLoss(weight=torch.ones(2))

    class Swap(d.Callback):
        def round_begun(self, record: Any) -> None:
            weighted.weight.zero_()

        def round_ended(self, record: Any) -> None:
            weighted.weight.fill_(1.0)

    with pytest.raises(InvalidInput, match="was changed between two rounds"):
        train(tmp_path / "run", Swap(), loss=weighted)
    assert release_counts(tmp_path / "run") == {"committed": 0, "reserved": 0, "voided": 0}


def test_a_network_whose_numbers_a_callback_changes_ends_the_run(tmp_path: Path):
    held = {"factor": 1.0}

    class ScaledNet(torch.nn.Linear):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            return super().forward(input) * held["factor"]

    def change(record: Any) -> None:
        held["factor"] = 0.0

    with pytest.raises(InvalidInput, match="was changed between two rounds"):
        d.train(ScaledNet(4, 2), make_clients(), **ARGUMENTS, out=tmp_path / "run", callbacks=[change])
    assert release_counts(tmp_path / "run") == {"committed": 1, "reserved": 0, "voided": 0}


def test_a_loss_that_counts_its_own_calls_ends_the_run_without_any_callback(tmp_path: Path):
    """A resumed run would count from 0 again, and play rounds that were seen with the same noise and another loss."""
    calls = [0]

    def fade(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        calls[0] += 1
        return torch.nn.functional.cross_entropy(outputs, targets, reduction="none") * (calls[0] < 1000)

    with pytest.raises(InvalidInput, match="was changed between two rounds"):
        d.train(make_net(), make_clients(), **ARGUMENTS, out=tmp_path / "run", loss=fade)
    assert release_counts(tmp_path / "run") == {"committed": 1, "reserved": 0, "voided": 0}


@pytest.mark.parametrize(
    ("callbacks", "sentence"),
    [
        ([Diary], r"must be an object, and got the class Diary. Write Diary\(\)."),
        (Diary(), r"callbacks must be a list, and got an object of the class Diary. Write callbacks=\[...\]."),
        (["tensorboard"], "must be an object or a function, and got an object of the class str"),
        ([3], "must be an object or a function, and got an object of the class int"),
        (print, "callbacks must be a list"),
    ],
)
def test_what_is_no_callback_is_refused_before_anything_is_written(callbacks: Any, sentence: str, tmp_path: Path):
    with pytest.raises(InvalidInput, match=sentence):
        d.train(make_net(), make_clients(), **ARGUMENTS, out=tmp_path / "run", callbacks=callbacks)
    assert not (tmp_path / "run").exists()


def test_an_answer_that_is_neither_none_nor_a_boolean_is_refused(tmp_path: Path):
    with pytest.raises(CallbackFailed, match=r"must return None, or True to stop the run, and returned .* class str"):
        train(tmp_path / "run", lambda record: "yes")


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("on_round_end", "round_ended"),
        ("round_end", "round_ended"),
        ("on_round_begin", "round_begun"),
        ("evaluate", "evaluated"),
        ("finish", "finished"),
        ("on_epoch", "round_begun, evaluated, round_ended or finished"),
    ],
)
def test_a_misspelt_method_of_a_callback_is_refused_with_the_right_name(name: str, right: str, tmp_path: Path):
    misspelt = type("Misspelt", (d.Callback,), {name: lambda self, record: None})()
    with pytest.raises(InvalidInput) as caught:
        d.train(make_net(), make_clients(), **ARGUMENTS, callbacks=[misspelt], out=tmp_path / "run")
    assert f"has a method {name}, which a run never calls. Name it {right}, or" in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_helper_methods_of_a_callback_are_allowed(tmp_path: Path):
    class WithHelpers(Diary):
        def evaluate(self) -> None: ...  # beside `evaluated`, so it isn't meant to be it
        def write_line(self) -> None: ...
        def _evaluate_all(self) -> None: ...

    diary = WithHelpers()
    d.train(make_net(), make_clients(), **ARGUMENTS, callbacks=[diary], out=tmp_path / "run")
    assert diary.calls

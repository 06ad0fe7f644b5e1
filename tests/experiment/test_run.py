"""The training loop: what it spends, when it stops, what it writes, and how it resumes."""

import json
import os
import shutil
import signal
import stat
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from discreet import api
from discreet.cli.main import run as command
from discreet.engines.embedded import EmbeddedEngine
from discreet.errors import BudgetRefused, InvalidInput, Unsupported
from discreet.experiment.configuration import experiment_file
from discreet.experiment.job import Job
from discreet.experiment.loop import round_player, training_loop
from discreet.experiment.loop.outcome import Outcome
from discreet.experiment.loop.round_releases import draw_cohort
from discreet.experiment.run_directory import run_keys
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.privacy.events import steps
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger import Budget, Ledger, Ticket
from discreet.privacy.release import Release
from discreet.randomness.streams import RunKey
from discreet.report import run_page
from tests.small_experiment import PrepareJob

FILES = {
    "checkpoint.safetensors",
    "environment.json",
    "experiment.toml",
    "guarantee.json",
    "guarantee.txt",
    "ledger.jsonl",
    "model.safetensors",
    "resolved.toml",
    "rounds.jsonl",
    "run.json",
}
CLIENTS = (  # whole clients are protected, one after the other
    'algorithm={recipe="dp_fedavg", learning_rate=0.5, batch_size=32, clip_norm=1.0}',
    'algorithm.sampling={kind="round_robin", cohort=1}',
    'privacy.unit="client"',
    "privacy.against=public",
)
SECURE = (  # ten clients through a secure sum
    'algorithm={recipe="ddp_fedavg", learning_rate=1.0, clip_norm=0.5, sampling_rate=0.3}',
    'engine={kind="secure"}',
    "task.clients=10",
    "evaluate_every=1",
)
PUBLIC_MASK = (
    'algorithm={recipe="fed_smp_top", learning_rate=0.5, batch_size=32, steps=2, clip_norm=1.0, fraction=0.1}',
    'task={kind="digits", clients=3, public_examples=200}',
    'privacy.unit="client"',
    "privacy.against=public",
)


def ignore(line: dict[str, Any]) -> None:
    pass


def interrupt_after(*rounds: int, by: signal.Signals = signal.SIGINT) -> training_loop.Watch:
    """Return a watcher that sends Ctrl-C, or another signal, after each named round, once for each mention."""

    def watch(line: dict[str, Any]) -> None:
        for _ in range(rounds.count(line["round"])):
            os.kill(os.getpid(), by)

    return watch


def start(job: Job, out: Path, watch: training_loop.Watch = ignore, ledger: Path | None = None) -> Outcome:
    return training_loop.start(job, out, ledger, None, watch)


def again(out: Path, watch: training_loop.Watch = ignore) -> Outcome:
    job, record = api.reopen_run(out, None)
    return training_loop.resume(job, record, None, watch)


def test_a_run_leaves_its_whole_directory_and_spends_what_it_promised(prepare: PrepareJob, tmp_path: Path):
    ended = start(prepare(), tmp_path / "run")
    assert (ended.completed, ended.stopped) == (4, None)
    assert {path.name for path in (tmp_path / "run").iterdir()} == FILES
    card = ended.guarantees[0]
    assert 1.99 < card.epsilon <= 2
    assert card.ledger is not None
    chain = Ledger.open(tmp_path / "run" / "ledger.jsonl").summary()
    assert (card.ledger.head, card.ledger.length) == (chain["head"], 9)
    assert chain["budgets"][0]["spent"] == card.epsilon
    assert (tmp_path / "run" / "guarantee.txt").read_text().startswith("Guarantee card")


def test_epsilon_and_metrics_are_told_when_the_model_is_evaluated(prepare: PrepareJob, tmp_path: Path):
    told: list[dict[str, Any]] = []
    ended = start(prepare("seed=1"), tmp_path / "run", told.append)
    assert told == ended.record.read_rounds()
    assert ["epsilon" in line for line in told] == [False, True, False, True]
    assert 0 < told[1]["epsilon"] < told[3]["epsilon"] == ended.guarantees[0].epsilon
    assert told[3]["evaluation"] == ended.metrics
    assert told[0]["clients"] == 3
    assert told[0]["norms"]["mean"] <= told[0]["norms"]["max"]


def test_a_seed_repeats_a_run_bit_for_bit_and_the_card_says_what_that_costs(prepare: PrepareJob, tmp_path: Path):
    one, two, other = (
        start(prepare(f"seed={seed}"), tmp_path / name) for seed, name in [(5, "one"), (5, "two"), (6, "other")]
    )
    bytes_of = [(each.record.path / "model.safetensors").read_bytes() for each in (one, two, other)]
    assert bytes_of[0] == bytes_of[1] != bytes_of[2]
    assert any("seeded noise protects nobody" in line for line in one.guarantees[0].assumptions)


def test_without_a_seed_no_two_runs_are_alike_and_no_card_speaks_of_seeds(prepare: PrepareJob, tmp_path: Path):
    one, two = (start(prepare(), tmp_path / name) for name in ("one", "two"))
    assert (one.record.path / "model.safetensors").read_bytes() != (two.record.path / "model.safetensors").read_bytes()
    said = one.guarantees[0].as_text()
    assert "seed" not in said
    assert "simulated" in said
    assert "counts this run" in said


def test_a_round_is_reserved_before_data_is_touched_and_kept_before_it_is_committed(
    prepare: PrepareJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A crash after a commit without a checkpoint would repeat a round that counts as done."""
    order: list[str] = []

    def note_calls(owner: type, name: str) -> None:
        wrapped = getattr(owner, name)

        def note_call(*given: Any, **named: Any) -> Any:
            order.append(name)
            return wrapped(*given, **named)

        monkeypatch.setattr(owner, name, note_call)

    for owner, name in (
        (Ledger, "reserve"),
        (EmbeddedEngine, "gather"),
        (RunRecord, "save_checkpoint"),
        (Ledger, "commit"),
    ):
        note_calls(owner, name)
    start(prepare("rounds=3"), tmp_path / "run")
    assert order == ["reserve", "gather", "save_checkpoint", "commit"] * 3


def test_a_run_without_a_seed_goes_on_with_its_own_key(prepare: PrepareJob, tmp_path: Path, state: Path):
    """Two copies of a stopped run end in the same bytes: a repeated round has the same noise."""
    start(prepare(), tmp_path / "run", interrupt_after(2))
    models = []
    for copy in ("one", "two"):
        shutil.copytree(tmp_path / "run", tmp_path / copy)
        shutil.copytree(state / "discreet" / "keys", tmp_path / f"{copy} keys")
        job, record = api.reopen_run(tmp_path / copy, tmp_path / f"{copy} keys")
        assert not job.key.is_seeded
        assert training_loop.resume(job, record, tmp_path / f"{copy} keys", ignore).completed == 4
        models.append((tmp_path / copy / "model.safetensors").read_bytes())
    assert models[0] == models[1]


def test_a_resumed_round_has_the_cohort_that_it_had(prepare: PrepareJob, tmp_path: Path):
    """If it were drawn again, other clients would take part in a round that is counted once."""
    job = prepare(*CLIENTS[:1], *CLIENTS[2:], "algorithm.sampling_rate=0.5", "algorithm.noise_multiplier=50.0")
    start(job, tmp_path / "run", interrupt_after(1))
    resumed, _ = api.reopen_run(tmp_path / "run", None)
    assert [draw_cohort(resumed, round) for round in range(20)] == [draw_cohort(job, round) for round in range(20)]


def test_a_run_in_which_nobody_is_ever_drawn_still_moves_its_model_by_noise(prepare: PrepareJob, tmp_path: Path):
    job = prepare(*CLIENTS[:1], *CLIENTS[2:], "algorithm.sampling_rate=0.05", "seed=1", "rounds=1")
    ended = start(job, tmp_path / "run")
    assert [line["clients"] for line in ended.record.read_rounds()] == [0]
    assert all(bool((ended.state.params[name] != value).all()) for name, value in job.params.items())


def test_both_engines_run_the_same_loop(prepare: PrepareJob, tmp_path: Path):
    one, other = (
        start(prepare("seed=1", "dtype=float64", f"engine={{kind='{kind}'}}"), tmp_path / kind)
        for kind in ("embedded", "reference")
    )
    assert one.metrics["loss"] == pytest.approx(other.metrics["loss"], rel=1e-12)


def test_a_run_without_privacy_says_so_and_keeps_no_ledger(small: Path, prepare: PrepareJob, tmp_path: Path):
    small.write_text(small.read_text().split("[privacy]")[0] + "[algorithm]\n" + 'recipe = "fedavg"\n')
    job = prepare("seed=1", "algorithm.learning_rate=0.5", "algorithm.batch_size=32", "rounds=8")
    ended = start(job, tmp_path / "run")
    assert ended.guarantees == ()
    assert {path.name for path in (tmp_path / "run").iterdir()} == FILES - {"ledger.jsonl"}
    assert (tmp_path / "run" / "guarantee.txt").read_text().startswith("No privacy")
    assert ended.metrics["accuracy"] > 0.9


def test_ctrl_c_stops_after_the_round_and_resume_ends_as_if_it_had_not(prepare: PrepareJob, tmp_path: Path):
    whole = start(prepare("seed=9"), tmp_path / "whole")
    stopped = start(prepare("seed=9"), tmp_path / "run", interrupt_after(2))
    assert stopped.completed == 2
    assert stopped.stopped is not None
    assert f"discreet run --resume {tmp_path / 'run'}" in stopped.stopped
    assert stopped.guarantees[0].epsilon < whole.guarantees[0].epsilon
    assert any("if it had, ε = 2 of the whole plan" in line for line in stopped.guarantees[0].assumptions)
    assert (tmp_path / "run" / "model.safetensors").exists()
    resumed = again(tmp_path / "run")
    assert (resumed.completed, resumed.stopped, resumed.metrics) == (4, None, whole.metrics)
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == (
        tmp_path / "whole" / "model.safetensors"
    ).read_bytes()


def test_a_run_whose_directory_can_not_be_written_is_not_gone_on_with_and_stays_as_it_was(
    prepare: PrepareJob, tmp_path: Path
):
    """A folder is in the place of the file, because permissions don't bind tests that run as root."""
    start(prepare("seed=9"), tmp_path / "run", interrupt_after(2))
    before = (tmp_path / "run" / "rounds.jsonl").read_bytes()
    (tmp_path / "run" / ".rounds.jsonl.draft").mkdir()
    with pytest.raises(
        InvalidInput, match=r"run can't be written to \(Is a directory\), so the run in it can't be resumed"
    ):
        again(tmp_path / "run")
    assert (tmp_path / "run" / "rounds.jsonl").read_bytes() == before


@pytest.mark.parametrize("seed", ["seed=9", "rounds=4"])
def test_a_run_with_a_mask_from_public_data_resumes_to_the_same_bytes(
    seed: str, prepare: PrepareJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(RunKey, "generate", lambda: RunKey(b"a key that both runs share, unseeded"))
    whole = start(prepare(seed, *PUBLIC_MASK), tmp_path / "whole")
    start(prepare(seed, *PUBLIC_MASK), tmp_path / "run", interrupt_after(2))
    again(tmp_path / "run")
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == (
        tmp_path / "whole" / "model.safetensors"
    ).read_bytes()
    said = " ".join(whole.guarantees[0].as_text().split())
    assert "200 examples that no client holds are public, by declaration" in said


def test_a_public_mask_moves_only_what_the_servers_own_update_moves_most(prepare: PrepareJob, tmp_path: Path):
    job = prepare("seed=9", *PUBLIC_MASK, "rounds=1")
    ended = start(job, tmp_path / "run")
    moved = {name: ended.state.params[name] != job.params[name] for name in job.params}
    simulation = job.simulation
    assert simulation.public_update is not None
    update = simulation.public_update(job.params, 0)
    assert sum(int(each.sum()) for each in moved.values()) == 65  # a tenth of 650 parameters
    least = min(float(update[name][moved[name]].abs().min()) for name in moved if moved[name].any())
    assert least >= max(float(update[name][~moved[name]].abs().max()) for name in moved)


def test_a_public_mask_without_public_data_is_refused_before_anything_is_written(prepare: PrepareJob):
    with pytest.raises(InvalidInput, match=r"update on public data, and there is none\. Name some in the task"):
        prepare(*PUBLIC_MASK, 'task={kind="digits", clients=3}')


def test_a_stop_between_two_checkpoints_loses_nothing(prepare: PrepareJob, tmp_path: Path):
    stopped = start(prepare("seed=9", "checkpoint_every=4"), tmp_path / "run", interrupt_after(3))
    assert stopped.completed == 3
    told: list[dict[str, Any]] = []
    again(tmp_path / "run", told.append)
    assert [line["round"] for line in told] == [4]


def test_a_second_ctrl_c_stops_at_once_and_the_run_can_still_be_resumed(prepare: PrepareJob, tmp_path: Path):
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        start(prepare("seed=9"), tmp_path / "run", interrupt_after(2, 2))
    assert signal.getsignal(signal.SIGINT) is before
    assert not (tmp_path / "run" / "model.safetensors").exists()
    assert again(tmp_path / "run").completed == 4


def test_the_key_of_an_unseeded_run_is_its_owners_alone_until_the_run_ends(
    prepare: PrepareJob, tmp_path: Path, state: Path
):
    stopped = start(prepare(), tmp_path / "run", interrupt_after(2))
    (key,) = (state / "discreet" / "keys").iterdir()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    assert not [path for path in (tmp_path / "run").iterdir() if key.read_bytes() in path.read_bytes()]
    assert key.stem == stopped.record.identity.id
    assert again(tmp_path / "run").completed == 4
    assert not key.exists()


def test_a_lost_key_and_a_finished_run_are_sentences(prepare: PrepareJob, tmp_path: Path):
    stopped = start(prepare(), tmp_path / "run", interrupt_after(2))
    run_keys.delete_key(stopped.record.identity.id, None)
    with pytest.raises(InvalidInput, match="noise can't be drawn again"):
        again(tmp_path / "run")
    start(prepare("seed=1"), tmp_path / "done")
    with pytest.raises(InvalidInput, match="is finished"):
        again(tmp_path / "done")
    with pytest.raises(InvalidInput, match="is not a run directory"):
        again(tmp_path / "nothing")


def test_a_checkpoint_belongs_to_its_experiment(prepare: PrepareJob, tmp_path: Path):
    start(prepare("seed=1"), tmp_path / "run", interrupt_after(2))
    resolved = tmp_path / "run" / "resolved.toml"
    resolved.write_text(resolved.read_text().replace("learning_rate = 4.0", "learning_rate = 8.0"))
    with pytest.raises(InvalidInput, match="another experiment"):
        again(tmp_path / "run")


OUTCOME = ("guarantee.json", "guarantee.txt", "model.safetensors", "report.html", "report-public.html")


class Crash(BaseException):
    """Stands for a process that is killed: nothing catches it."""


def test_sigterm_stops_after_the_round_with_all_saved_as_ctrl_c_does(prepare: PrepareJob, tmp_path: Path):
    def unheard(*_: object) -> None:
        raise AssertionError("The run did not take SIGTERM.")

    before = signal.signal(signal.SIGTERM, unheard)
    try:
        stopped = start(prepare("seed=9"), tmp_path / "run", interrupt_after(2, by=signal.SIGTERM))
        assert (stopped.completed, stopped.guarantees[0].epsilon) == (
            2,
            api.load(tmp_path / "run").guarantees[0].epsilon,
        )
        assert signal.getsignal(signal.SIGTERM) is unheard
        with pytest.raises(KeyboardInterrupt):
            again(tmp_path / "run", interrupt_after(3, 3, by=signal.SIGTERM))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert again(tmp_path / "run").completed == 4


def stopped_with_reports(job: Job, out: Path) -> None:
    start(job, out, interrupt_after(2))
    run_page.write(out)
    run_page.write(out, public=True)
    assert all((out / name).is_file() for name in OUTCOME)


@pytest.mark.parametrize("killed", [3, 4])
def test_a_resumed_run_that_is_killed_has_no_card_of_before(killed: int, prepare: PrepareJob, tmp_path: Path):
    """Its rounds are spent, so the card of the earlier stop would state too small an epsilon."""
    out = tmp_path / "run"
    stopped_with_reports(prepare("seed=1"), out)

    def die(line: dict[str, Any]) -> None:
        if line["round"] == killed:
            raise Crash

    with pytest.raises(Crash):
        again(out, die)
    assert not [name for name in OUTCOME if (out / name).exists()]
    with pytest.raises(InvalidInput, match="is unfinished: it has no model yet") as refusal:
        api.load(out)
    assert f"discreet run --resume {out}" in refusal.value.fix
    for public in ([], ["--public"]):
        assert command(["report", str(out), *public]) == InvalidInput.exit_code
    assert again(out).stopped is None
    assert api.load(out).rounds == 4


def test_the_card_of_before_is_gone_when_a_resumed_run_reserves_its_next_round(
    prepare: PrepareJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    out = tmp_path / "run"
    stopped_with_reports(prepare("seed=1"), out)
    left: list[list[str]] = []
    reserve = Ledger.reserve

    def watch_reserve(ledger: Ledger, key: str, releases: list[Release]) -> Ticket:
        if " round 2 of " in key:
            left.append([name for name in OUTCOME if (out / name).exists()])
        return reserve(ledger, key, releases)

    monkeypatch.setattr(Ledger, "reserve", watch_reserve)
    again(out)
    assert left == [[]]


def test_a_resume_that_is_refused_leaves_the_card_as_it_was(prepare: PrepareJob, tmp_path: Path):
    out = tmp_path / "run"
    stopped_with_reports(prepare("seed=1"), out)
    (out / "resolved.toml").write_text((out / "resolved.toml").read_text() + "\n")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(InvalidInput):
        again(out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_model_without_its_card_is_not_loaded(prepare: PrepareJob, tmp_path: Path):
    """Such a run was killed between the two writes."""
    start(prepare("seed=1"), tmp_path / "run")
    (tmp_path / "run" / "guarantee.json").unlink()
    with pytest.raises(InvalidInput, match="has no guarantee yet") as refusal:
        api.load(tmp_path / "run")
    assert "discreet run --resume" in refusal.value.fix


def test_two_processes_cannot_train_one_run(prepare: PrepareJob, tmp_path: Path):
    start(prepare("seed=1"), tmp_path / "run", interrupt_after(2))
    with RunRecord.open(tmp_path / "run").lock(), pytest.raises(InvalidInput, match="another process"):
        again(tmp_path / "run")


def budget(epsilon: float) -> Budget:
    return Budget(unit="example", relation="zero_out", view="server", epsilon=epsilon, delta=1e-4)


def test_a_shared_ledger_stops_a_run_where_its_budget_ends(prepare: PrepareJob, tmp_path: Path):
    Ledger.create(tmp_path / "data.jsonl", [budget(2.5)], "filter")
    first = start(prepare("privacy.epsilon=0.8"), tmp_path / "first", ledger=tmp_path / "data.jsonl")
    assert first.stopped is None
    with pytest.raises(BudgetRefused, match=r"can pay for \d of 4 rounds, and what they spend would be lost"):
        start(prepare("privacy.epsilon=1.5"), tmp_path / "second", ledger=tmp_path / "data.jsonl")
    assert not (tmp_path / "second").exists()
    assert Ledger.open(tmp_path / "data.jsonl").summary()["releases"]["committed"] == 4  # nothing was spent
    job = replace(prepare("privacy.epsilon=1.5"), as_far_as_it_goes=True)
    second = start(job, tmp_path / "second", ledger=tmp_path / "data.jsonl")
    assert second.is_refused
    assert 0 < second.completed < 4
    assert second.stopped is not None
    assert second.stopped.startswith(f"Stopped after {second.completed} of 4 rounds. This release would raise epsilon")
    assert (tmp_path / "second" / "model.safetensors").exists()
    assert not (tmp_path / "second" / "ledger.jsonl").exists()
    assert any("With all that its ledger counts" in line for line in second.guarantees[0].not_covered)
    spent = Ledger.open(tmp_path / "data.jsonl").summary()
    assert spent["releases"] == {"committed": 4 + second.completed, "reserved": 0, "voided": 0}
    assert max(first.guarantees[0].epsilon, second.guarantees[0].epsilon) < spent["budgets"][0]["spent"] <= 2.5


def test_a_ledger_for_one_planned_run_refuses_a_second_run(prepare: PrepareJob, tmp_path: Path):
    ledger = Ledger.create(tmp_path / "data.jsonl", [budget(9.0)], "plan")
    start(prepare("rounds=2"), tmp_path / "first", ledger=ledger.path)
    with pytest.raises(InvalidInput, match="counts one planned run, and another run has used it already"):
        start(prepare("rounds=3"), tmp_path / "second", ledger=ledger.path)
    assert not (tmp_path / "second").exists()


def test_a_ledger_that_cannot_pay_for_the_first_round_refuses_before_anything_is_written(
    prepare: PrepareJob, tmp_path: Path, state: Path
):
    Ledger.create(tmp_path / "data.jsonl", [budget(0.01)], "filter")
    with pytest.raises(BudgetRefused):
        start(prepare(), tmp_path / "run", ledger=tmp_path / "data.jsonl")
    with pytest.raises(Unsupported, match="say nothing about"):
        start(prepare(*CLIENTS), tmp_path / "run", ledger=tmp_path / "data.jsonl")
    assert not (tmp_path / "run").exists()
    assert not state.exists() or not list(state.rglob("*.key"))


def test_an_older_ledger_refuses_a_run_until_it_is_restated(prepare: PrepareJob, tmp_path: Path):
    ledger = Ledger.create(tmp_path / "data.jsonl", [replace(budget(9.0), relation="add_or_remove")], "filter")
    with pytest.raises(Unsupported, match=r"so a removed one shows\. .*discreet ledger restate PATH"):
        start(prepare(), tmp_path / "run", ledger=ledger.path)
    assert not (tmp_path / "run").exists()
    assert ledger.summary()["releases"] == {"committed": 0, "reserved": 0, "voided": 0}
    ledger.restate()
    assert start(prepare(), tmp_path / "run", ledger=ledger.path).stopped is None


def test_a_run_that_can_not_start_gives_back_what_it_reserved(prepare: PrepareJob, tmp_path: Path):
    ledger = Ledger.create(tmp_path / "data.jsonl", [budget(9.0)], "filter")
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="The run directory can't be created"):
        start(prepare(), tmp_path / "file" / "run", ledger=ledger.path)
    assert ledger.summary()["releases"] == {"committed": 0, "reserved": 0, "voided": 1}


def test_a_round_that_can_not_be_trained_gives_back_what_it_reserved(
    prepare: PrepareJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuses(*_: object) -> None:
        raise InvalidInput("This can't be trained.")

    ledger = Ledger.create(tmp_path / "data.jsonl", [budget(9.0)], "filter")
    monkeypatch.setattr("discreet.engines.embedded.EmbeddedEngine.gather", refuses)
    with pytest.raises(InvalidInput, match="can't be trained"):
        start(prepare(), tmp_path / "run", ledger=ledger.path)
    assert ledger.summary()["releases"] == {"committed": 0, "reserved": 0, "voided": 1}


def test_the_own_ledger_charges_those_who_joined(prepare: PrepareJob, tmp_path: Path):
    ended = start(prepare(*CLIENTS), tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run" / "ledger.jsonl").read_text().splitlines()]
    paid = Counter(tuple(line["releases"][0]["clients"]) for line in lines if line["type"] == "reserve")
    assert paid == {(0,): 2, (1,): 1, (2,): 1}
    assert [card.unit for card in ended.guarantees] == ["client", "example"]


def test_private_noise_without_a_promise_is_certified_and_its_plan_is_its_budget(
    small: Path, prepare: PrepareJob, tmp_path: Path
):
    before, _, after = small.read_text().partition("[privacy]")
    small.write_text(before + "[algorithm]" + after.partition("[algorithm]")[2])
    ended = start(prepare("algorithm.noise_multiplier=2"), tmp_path / "run")
    (card,) = ended.guarantees
    (planned,) = Ledger.open(tmp_path / "run" / "ledger.jsonl").budgets
    assert isinstance(card, Guarantee)
    assert (card.epsilon, card.delta) == (planned.epsilon, planned.delta)


def test_a_directory_that_holds_something_is_never_written_over(prepare: PrepareJob, tmp_path: Path):
    (tmp_path / "run").mkdir()
    start(prepare(), tmp_path / "run")  # an empty one is fine
    with pytest.raises(InvalidInput, match="already exists"):
        start(prepare(), tmp_path / "run")


def test_the_text_as_given_is_kept(small: Path, tmp_path: Path):
    small.write_text("# mine\n" + small.read_text())
    ended = start(api.prepare_job(experiment_file.load_experiment(small)), tmp_path / "run")
    assert ended.record.read_text("experiment.toml") == small.read_text()


def test_a_secure_sum_is_refused_before_anything_is_written(prepare: PrepareJob):
    distributed = 'algorithm={recipe="ddp_fedavg", learning_rate=1.0, clip_norm=0.5, sampling_rate=0.3}'
    secure = 'engine={kind="secure"}'
    assert prepare(distributed, secure).algorithm.aggregation.is_secure
    with pytest.raises(InvalidInput, match="this algorithm sums real numbers"):
        prepare(secure)
    with pytest.raises(InvalidInput, match="at least 3 clients, and as few as 2 may be in a round"):
        prepare(distributed, secure, "task.clients=2")


def test_a_secure_sum_that_can_not_withstand_the_plan_is_refused_before_the_run(prepare: PrepareJob):
    with pytest.raises(InvalidInput, match=r"4 may collude and 5 leave\. Its threshold must be at least 6"):
        prepare(*SECURE, "algorithm.colluding=4", "algorithm.dropouts=5")


def lossy(prepared: PrepareJob, *more: str) -> Job:
    """Ten clients, of which three may drop out, and more do."""
    return prepared(*SECURE, "algorithm.dropouts=3", 'engine={kind="secure", drop_out=0.3}', "rounds=6", *more)


def summary(folder: Path) -> dict[str, Any]:
    return Ledger.open(folder / "ledger.jsonl").summary()


def test_a_round_that_is_lost_before_shares_are_revealed_costs_nothing_and_later_all(
    prepare: PrepareJob, tmp_path: Path
):
    ended = start(lossy(prepare, "seed=3"), tmp_path / "run")
    lines = ended.record.read_rounds()
    lost = {line["round"]: line["revealed"] for line in lines if "lost" in line}
    assert sorted(lost.values()) == [False, True]  # the seed has one of each
    assert summary(tmp_path / "run")["releases"] == {"committed": 5, "reserved": 0, "voided": 1}
    assert all(line["clients"] >= 7 for line in lines if "lost" not in line)
    spent = {line["round"]: line["epsilon"] for line in lines}
    for number, revealed in lost.items():
        before = spent.get(number - 1, 0.0)
        assert spent[number] > before if revealed else spent[number] == before


def test_the_card_and_the_lines_say_what_the_ledger_counts(prepare: PrepareJob, tmp_path: Path):
    """Some rounds were lost, and others had more noise than planned, so less was spent than promised."""
    ended = start(lossy(prepare, "seed=3"), tmp_path / "run")
    (budget,) = summary(tmp_path / "run")["budgets"]
    card = ended.guarantees[0]
    assert card.epsilon == pytest.approx(budget["spent"], rel=1e-9)
    assert ended.record.read_rounds()[-1]["epsilon"] == pytest.approx(budget["spent"], rel=1e-9)
    assert budget["spent"] < 1.9 < budget["epsilon"] == 2.0
    assert sum(steps(card.event).values()) == 5
    assert len(steps(card.event)) > 1  # rounds with differing numbers of shares
    (said,) = [each for each in card.assumptions if "dropped out" in each]
    assert "that 1 of 6 were lost" in said
    assert "ε = 2 of the whole plan" in said


def test_a_run_that_lost_rounds_goes_on_with_the_same_numbers(prepare: PrepareJob, tmp_path: Path):
    whole = start(lossy(prepare, "seed=3"), tmp_path / "whole")
    lost = [line["round"] for line in whole.record.read_rounds() if "lost" in line]
    start(lossy(prepare, "seed=3"), tmp_path / "run", interrupt_after(*lost))
    again(tmp_path / "run", interrupt_after(*lost))
    ended = again(tmp_path / "run")
    assert len(lost) == 2
    assert ended.guarantees[0].event == whole.guarantees[0].event
    assert ended.guarantees[0].epsilon == whole.guarantees[0].epsilon
    timeless = [[line | {"seconds": 0} for line in each.record.read_rounds()] for each in (whole, ended)]
    assert timeless[0] == timeless[1]
    assert summary(tmp_path / "run")["releases"] == summary(tmp_path / "whole")["releases"]


def test_the_commit_of_a_lost_round_that_a_crash_cut_off_is_made_up_for(
    prepare: PrepareJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The process dies after the checkpoint and before the ledger entry; shares were revealed, so the round counts."""
    whole = start(lossy(prepare, "seed=3"), tmp_path / "whole")
    (late,) = [line["round"] for line in whole.record.read_rounds() if line.get("revealed")]
    settle = round_player.RoundPlayer.settle

    def die_in_round(training: round_player.RoundPlayer, ticket: Any, line: dict[str, Any]) -> None:
        if line["round"] == late:
            raise KeyboardInterrupt
        settle(training, ticket, line)

    monkeypatch.setattr(round_player.RoundPlayer, "settle", die_in_round)
    with pytest.raises(KeyboardInterrupt):
        start(lossy(prepare, "seed=3"), tmp_path / "run")
    monkeypatch.setattr(round_player.RoundPlayer, "settle", settle)
    ended = again(tmp_path / "run")
    assert summary(tmp_path / "run")["releases"] == {"committed": 5, "reserved": 0, "voided": 1}
    assert ended.guarantees[0].epsilon == whole.guarantees[0].epsilon


def test_a_run_of_which_every_round_is_lost_has_released_nothing(prepare: PrepareJob, tmp_path: Path):
    ended = start(lossy(prepare, "seed=3", "engine.drop_out=0.9"), tmp_path / "run")
    assert all("lost" in line and line["epsilon"] == 0 for line in ended.record.read_rounds())
    assert [(card.epsilon, steps(card.event)) for card in ended.guarantees] == [(0.0, {})] * len(ended.guarantees)
    assert summary(tmp_path / "run")["budgets"][0]["spent"] == 0
    assert "Mechanism       nothing" in ended.record.read_text("guarantee.txt")


def test_without_drop_outs_more_noise_is_there_than_was_planned_and_the_card_says_so(
    prepare: PrepareJob, tmp_path: Path
):
    """Seven shares are planned and ten arrive in every round: ten sevenths of the variance."""
    ended = start(prepare(*SECURE, "algorithm.dropouts=3", "rounds=2", "seed=1"), tmp_path / "run")
    planned = start(prepare(*SECURE, "rounds=2", "seed=1"), tmp_path / "planned")
    (budget,) = summary(tmp_path / "run")["budgets"]
    assert ended.guarantees[0].epsilon == pytest.approx(budget["spent"], rel=1e-9)
    assert ended.guarantees[0].epsilon < 1.8
    assert 1.99 < planned.guarantees[0].epsilon <= 2.0
    assert not [each for each in planned.guarantees[0].assumptions if "dropped out" in each]

"""A random search: what it pays, that only its best trial leaves, and what is refused."""

import json
import logging
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from discreet.errors import BudgetRefused, DiscreetError, InvalidInput, Unsupported
from discreet.experiment.loop import training_loop
from discreet.experiment.run_directory.run_data import read_run
from discreet.experiment.tuning import random_search
from discreet.experiment.tuning.hidden_trials import LOCK, hidden_folder, times_of_beginning, trial_folder
from discreet.experiment.tuning.trial_score import Scorer
from discreet.part import to_plain
from discreet.privacy import accountant
from discreet.privacy.events import BestOf, DiscreteGaussianNoise, steps
from discreet.privacy.ledger import Budget, Ledger
from discreet.report.verdict import judge
from tests.experiment.tuning.searches import draw, make_builder, write_file

PUBLIC = ('against = "server"', 'against = "public"')


@pytest.fixture
def file(tmp_path):
    return write_file(tmp_path, public=PUBLIC)


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_card_is_that_of_the_whole_search(file, tmp_path):
    plan, winner = draw(file, tmp_path / "out", 3)
    card = winner.guarantees[0]
    assert isinstance(card.event, BestOf)
    assert (card.unit, card.view) == ("example", "public")
    assert card.epsilon == pytest.approx(plan.epsilon)
    assert plan.naive < 2.001 < card.epsilon <= 9
    assert card.claims[0].epsilon == pytest.approx(plan.naive)
    stored = json.loads((tmp_path / "out/best/guarantee.json").read_text())
    assert stored["guarantees"] == [to_plain(other) for other in winner.guarantees]
    assert stored["promise"]["epsilon"] == 9
    assert all(card.view == "public" for card in winner.guarantees)


def test_the_report_of_the_best_trial_judges_the_promise_of_the_search(file, tmp_path):
    draw(file, tmp_path / "out", 1)
    run = read_run(tmp_path / "out/best")
    assert run.promise.epsilon == 9
    assert judge(run).mood == "good"
    assert not run.series("epsilon")  # that of the trial alone would be too small


def test_everything_is_paid_before_a_trial_begins(file, tmp_path, monkeypatch):
    spent = []
    start = training_loop.start

    def watch_start(job, out, ledger, key_dir, watch):
        spent.append(Ledger.open(tmp_path / "out/ledger.jsonl").summary()["budgets"][0]["spent"])
        return start(job, out, ledger, key_dir, watch)

    monkeypatch.setattr(training_loop, "start", watch_start)
    plan, _ = draw(file, tmp_path / "out", 2)
    assert spent == pytest.approx([plan.epsilon] * 2, rel=1e-2)
    assert min(spent) >= plan.epsilon


def test_no_file_and_no_log_shows_how_many_trials_there_were(file, tmp_path, caplog):
    caplog.set_level(logging.DEBUG, "discreet")
    shown = []
    for trials in (1, 4):
        caplog.clear()
        out = tmp_path / str(trials)
        draw(file, out, trials)
        ledger = [json.loads(line)["type"] for line in (out / "ledger.jsonl").read_text().splitlines()]
        shown.append((files_below(out), ledger, [record.message for record in caplog.records]))
    assert shown[0] == shown[1]
    assert not any("round" in message or "run" in message for message in shown[0][2])


def test_nothing_of_the_other_trials_is_left_on_the_disk(file, tmp_path):
    draw(file, tmp_path / "out", 3)
    assert list(trial_folder().iterdir()) == []
    assert trial_folder().is_relative_to(tmp_path / "state")
    assert not list((tmp_path / "state").rglob("*.key"))
    assert "started" not in json.loads((tmp_path / "out/best/environment.json").read_text())  # after the trials before
    rounds = (tmp_path / "out/best/rounds.jsonl").read_text()
    assert "seconds" not in rounds  # a slow first round would show that it was the first trial


def test_what_a_killed_search_left_is_removed_by_the_next_one_and_what_goes_on_is_kept(file, tmp_path):
    killed = trial_folder() / "0123456789abcdef"
    (killed / "trial/run").mkdir(parents=True)
    (killed / "trial/run/model.safetensors").write_bytes(b"of a trial that nobody may see")
    killed.with_suffix(LOCK).touch()
    with hidden_folder() as other:
        (other / "trial").mkdir()
        draw(file, tmp_path / "out", 1)
        assert (other / "trial").is_dir()
        assert not killed.exists()
    assert list(trial_folder().iterdir()) == []


def test_a_process_that_is_killed_leaves_its_trials_for_the_next_one_to_remove(tmp_path):
    code = (
        "import os, signal\n"
        "from discreet.experiment.tuning.hidden_trials import hidden_folder\n"
        "with hidden_folder() as hidden:\n"
        "    (hidden / 'trial').mkdir()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    assert [path.name for path in trial_folder().glob("*/*")] == ["trial"]
    with hidden_folder() as hidden:
        assert sorted(path.name for path in trial_folder().iterdir()) == [hidden.name, f"{hidden.name}{LOCK}"]


def test_all_files_of_a_search_bear_the_time_at_which_it_began(tmp_path):
    folder = tmp_path / "out"
    began = time.time_ns()
    with times_of_beginning(folder):
        entered = time.time_ns()
        (folder / "best").mkdir(parents=True)
        (folder / "best/report.html").write_text("at the end")
        os.utime(folder / "best/report.html", ns=(began + 10**12, began + 10**12))
    times = {path.stat().st_mtime_ns for path in (folder, folder / "best", folder / "best/report.html")}
    assert len(times) == 1
    assert began <= times.pop() <= entered


def test_the_folder_of_a_trial_does_not_count_the_trials(file, tmp_path, monkeypatch):
    names, start = [], training_loop.start

    def watch_start(job, out, ledger, key_dir, watch):
        names.append(out.parent.name)
        return start(job, out, ledger, key_dir, watch)

    monkeypatch.setattr(training_loop, "start", watch_start)
    draw(file, tmp_path / "out", 2)
    assert len(set(names)) == 2
    assert all(len(name) == 16 for name in names)


def test_the_trial_with_the_best_score_is_the_one_that_leaves(file, tmp_path, monkeypatch):
    scores, seen = iter([0.2, 0.9, 0.4]), []

    def score(self, job, state):
        seen.append(job.algorithm.trainer.learning_rate)
        return next(scores)

    monkeypatch.setattr(Scorer, "score", score)
    _, winner = draw(file, tmp_path / "out", 3)
    assert winner.score == 0.9
    assert winner.settings["algorithm.learning_rate"] == pytest.approx(seen[1])


def test_trials_that_differ_in_price_are_all_covered(tmp_path):
    tune = """
[tune]
mode = "random"
epsilon = 90.0
[tune.space]
rounds = { choices = [1, 4] }
"algorithm.local_steps" = { choices = [1, 3] }
"""
    builder = make_builder(write_file(tmp_path, tune, public=PUBLIC))
    plan = random_search.plan_search(builder, lambda *_: None)
    (release,) = [release for release in plan.whole if release.unit == "example"]
    assert len(release.event.trials) == 4
    for trial in release.event.trials:
        alone = BestOf(count=release.event.count, trials=(trial,))
        assert accountant.epsilon(alone, plan.delta, release.relation) <= plan.epsilon + 1e-9


def test_the_price_of_a_trial_has_its_score_in_it(file):
    plan = random_search.plan_search(make_builder(file, "tune.mode=random"), lambda *_: None)
    score = DiscreteGaussianNoise(variance=plan.scorer.deviation**2, l2_sensitivity=1.0)
    (release,) = [release for release in plan.whole if release.unit == "example"]
    assert all(score in steps(trial) for trial in release.event.trials)


def test_a_number_of_zero_trials_releases_nothing(file, tmp_path):
    _, winner = draw(file, tmp_path / "out", 0, "tune.distribution=poisson")
    assert winner is None
    assert files_below(tmp_path / "out") == ["ledger.jsonl"]


def test_an_interrupted_search_leaves_nothing_and_stays_paid(file, tmp_path, monkeypatch):
    def interrupt(job, out, ledger, key_dir, watch):
        raise KeyboardInterrupt

    monkeypatch.setattr(training_loop, "start", interrupt)
    with pytest.raises(KeyboardInterrupt):
        draw(file, tmp_path / "out", 2)
    assert files_below(tmp_path / "out") == ["ledger.jsonl"]
    assert Ledger.open(tmp_path / "out/ledger.jsonl").summary()["budgets"][0]["spent"] > 2


def test_a_trial_that_is_stopped_ends_the_search_without_a_number(file, tmp_path, monkeypatch):
    start = training_loop.start

    def stop(job, out, ledger, key_dir, watch):
        return replace(start(job, out, ledger, key_dir, watch), stopped="Interrupted after 1 of 2 rounds")

    monkeypatch.setattr(training_loop, "start", stop)
    with pytest.raises(DiscreetError) as caught:
        draw(file, tmp_path / "out", 2)
    assert not any(letter.isdigit() for letter in str(caught.value))


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("privacy.against=server", "hides nothing from the server"),
        ("seed=1", "A seed makes all randomness known"),
        ("engine.kind=ray", "would see how many"),
        ("privacy.epsilon=[1.0,2.0,2.0]", "alike for all clients"),
        ("track=[{kind='csv',to='metrics.csv'}]", "every trial"),
    ],
)
def test_what_would_show_more_than_the_best_trial_is_refused(file, tmp_path, monkeypatch, setting, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=words):
        draw(file, tmp_path / "out", 1, setting)
    assert not (tmp_path / "out").exists()


def test_a_file_without_a_promise_is_refused(tmp_path):
    file = write_file(tmp_path)
    text = file.read_text()
    start, end = text.index("[privacy]"), text.index("[algorithm]")
    file.write_text(
        text[:start] + text[end:].replace("learning_rate = 4.0", "learning_rate = 4.0\nnoise_multiplier = 1.0")
    )
    with pytest.raises(InvalidInput, match="needs the promise of one trial"):
        draw(file, tmp_path / "out", 1)


def test_a_search_over_its_epsilon_is_refused_with_its_cost(file, tmp_path):
    with pytest.raises(BudgetRefused, match=r"would cost epsilon = .* over the 2.5 under"):
        draw(file, tmp_path / "out", 1, "tune.epsilon=2.5")
    without = write_file(tmp_path, "\n[tune.space]\nrounds = { choices = [1, 2] }\n", public=PUBLIC)
    builder = make_builder(without, "tune.mode=random")
    with pytest.raises(InvalidInput, match=r"would cost epsilon = .*Write epsilon = \d"):
        random_search.plan_search(builder, lambda *_: None)


def test_a_shared_ledger_pays_for_the_whole_search_or_refuses(file, tmp_path):
    budget = Budget(unit="example", relation="zero_out", view="public", epsilon=3.0, delta=1e-4)
    small = Ledger.create(tmp_path / "small.jsonl", [budget]).path
    with pytest.raises(BudgetRefused, match="over the budget of 3"):
        draw(file, tmp_path / "out", 1, ledger=small)
    assert not (tmp_path / "out").exists()
    against_server = Ledger.create(
        tmp_path / "server.jsonl",
        [Budget(unit="example", relation="zero_out", view="server", epsilon=90.0, delta=1e-4)],
    ).path
    with pytest.raises(Unsupported):
        draw(file, tmp_path / "out", 1, ledger=against_server)

"""A search that counts every trial: its ledger, its refusals, how it goes on, and its card."""

import json
import signal

import pytest

from discreet.errors import BudgetRefused, InvalidInput
from discreet.experiment.configuration.tune_table import Choices, Interval, Tune
from discreet.experiment.run_directory.run_data import read_run
from discreet.experiment.tuning.optuna_sampler import NextTrial, count_trials
from discreet.experiment.tuning.trial_score import Scorer
from discreet.part import to_plain
from discreet.privacy.ledger import Budget, Ledger
from discreet.report.verdict import judge
from discreet.words import fill
from tests.experiment.tuning.searches import ROUNDS, Watcher, compose, make_builder, write_file


@pytest.fixture
def file(tmp_path):
    return write_file(tmp_path)


def read_spending(path):
    return Ledger.open(path).summary()["budgets"][0]["spent"]


def count_committed(path):
    return Ledger.open(path).summary()["releases"]["committed"]


def test_every_round_and_every_score_is_in_the_ledger(file, tmp_path):
    _, end, _ = compose(file, tmp_path / "out")
    assert len(end.trials) == 3
    assert count_committed(tmp_path / "out/ledger.jsonl") == 3 * (ROUNDS + 1)
    assert end.stopped is None


def test_the_card_holds_for_the_whole_budget_and_names_what_one_trial_would_have_printed(file, tmp_path):
    plan, end, (card,) = compose(file, tmp_path / "out")
    assert (card.epsilon, card.delta) == (9, 1e-4)
    assert card.accountant == "filter"
    assert read_spending(tmp_path / "out/ledger.jsonl") < 9
    assert card.claims[-1].epsilon == pytest.approx(max(trial.epsilon for trial in end.trials))
    assert card.attacks[0].true_positive_rate > 0.01
    assert any("every score" in sentence for sentence in card.assumptions)
    run = read_run(tmp_path / "out/best")
    assert run.promise.epsilon == plan.whole_epsilon == 9
    assert judge(run).mood == "good"
    assert json.loads((tmp_path / "out/best/guarantee.json").read_text())["guarantees"] == [to_plain(card)]


def test_no_card_of_a_single_trial_is_left(file, tmp_path):
    compose(file, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "best",
        "ledger.jsonl",
        "search.json",
        "study.jsonl",
    ]
    assert not read_run(tmp_path / "out/best").series("epsilon")
    assert not read_run(tmp_path / "out/best").validation_metrics


def test_the_best_trial_is_kept(file, tmp_path, monkeypatch):
    scores = iter([0.3, 0.8, 0.1])
    monkeypatch.setattr(Scorer, "score", lambda self, job, state: next(scores))
    _, end, _ = compose(file, tmp_path / "out")
    assert json.loads((tmp_path / "out/best/run.json").read_text())["id"] == end.trials[1].run
    rate = read_run(tmp_path / "out/best").value("algorithm", "trainer", "learning_rate")
    assert rate == pytest.approx(end.trials[1].settings["algorithm.learning_rate"])


def test_the_card_has_the_assumptions_of_trials_that_were_not_the_best(tmp_path, monkeypatch):
    space = '[tune.space]\n"algorithm.recipe" = { choices = ["pfl", "ddp_fedavg"] }\n'
    file = write_file(tmp_path, f'\n[tune]\nepsilon = 20.0\ntrials = 2\nsampler = "grid"\n{space}')
    scores = iter([0.9, 0.2])
    monkeypatch.setattr(Scorer, "score", lambda self, job, state: next(scores))
    _, end, cards = compose(file, tmp_path / "out")
    assert [trial.settings["algorithm.recipe"] for trial in end.trials] == ["pfl", "ddp_fedavg"]
    assert fill("assumes.lattice") in cards[0].assumptions  # secure sums of the second trial
    assert len(set(cards[0].assumptions)) == len(cards[0].assumptions)


def test_an_interrupted_trial_leaves_no_card_and_goes_on(file, tmp_path):
    class InterruptedWatcher(Watcher):
        def begin_trial(self, number, settings, job):
            return lambda line: signal.raise_signal(signal.SIGINT)

    _, end, _ = compose(file, tmp_path / "out", watcher=InterruptedWatcher())
    assert "Interrupted in trial 1" in end.stopped
    assert (tmp_path / "out/trial/run.json").is_file()
    assert not list((tmp_path / "out/trial").glob("guarantee*"))
    _, end, cards = compose(file, tmp_path / "out")
    assert end.stopped is None
    assert len(cards) == 1


@pytest.mark.parametrize("sampler", ["tpe", "random"])
@pytest.mark.parametrize("at", [1, 2 * ROUNDS - 1])
def test_an_interrupted_search_tries_the_points_of_an_uninterrupted_one(
    file, tmp_path, monkeypatch, sampler: str, at: int
):
    monkeypatch.setattr(Scorer, "score", lambda self, job, state: job.algorithm.trainer.learning_rate)
    wanted = f"tune.sampler={sampler}"
    _, whole, _ = compose(file, tmp_path / "whole", wanted)
    with pytest.raises(RuntimeError):
        compose(file, tmp_path / "cut", wanted, watcher=Watcher(at, RuntimeError))
    _, cut, _ = compose(file, tmp_path / "cut", wanted)
    points = [trial.settings["algorithm.learning_rate"] for trial in whole.trials]
    assert [trial.settings["algorithm.learning_rate"] for trial in cut.trials] == points
    assert len(set(points)) == 3


def test_a_search_that_cannot_be_paid_for_is_refused_with_the_number_that_can(file, tmp_path):
    with pytest.raises(BudgetRefused, match=r"can pay for [1-9] of 30 trials"):
        compose(file, tmp_path / "out", "tune.trials=30", "tune.epsilon=4")
    assert not (tmp_path / "out").exists()


def test_a_search_without_an_epsilon_is_told_its_cost(tmp_path):
    file = write_file(tmp_path, "\n[tune.space]\n'algorithm.learning_rate' = { choices = [1.0, 2.0] }\n")
    with pytest.raises(InvalidInput, match=r"would cost epsilon = .*Write epsilon = (\d+)") as caught:
        compose(file, tmp_path / "out", "tune.trials=2")
    suggested = str(caught.value).partition("Write epsilon = ")[2].split()[0]
    _, end, _ = compose(file, tmp_path / "out", "tune.trials=2", f"tune.epsilon={suggested}")
    assert len(end.trials) == 2


@pytest.mark.parametrize("at", [1, 4, 6])
def test_a_search_that_died_goes_on_and_spends_no_more(file, tmp_path, at):
    with pytest.raises(RuntimeError):
        compose(file, tmp_path / "out", watcher=Watcher(at, RuntimeError))
    _, end, (card,) = compose(file, tmp_path / "out")
    assert [trial.number for trial in end.trials] == [0, 1, 2]
    assert count_committed(tmp_path / "out/ledger.jsonl") == 3 * (ROUNDS + 1)
    assert card.epsilon == 9
    assert not list((tmp_path / "state").rglob("*.key"))


def test_a_trial_that_was_trained_but_not_scored_is_only_scored_and_pays_for_another_score(file, tmp_path, monkeypatch):
    score = Scorer.score

    def die(self, job, state):
        raise RuntimeError

    monkeypatch.setattr(Scorer, "score", die)
    with pytest.raises(RuntimeError):
        compose(file, tmp_path / "out")
    monkeypatch.setattr(Scorer, "score", score)
    watcher = Watcher()
    compose(file, tmp_path / "out", watcher=watcher)
    assert watcher.rounds == 2 * ROUNDS  # the first trial is not trained again
    counts = Ledger.open(tmp_path / "out/ledger.jsonl").summary()["releases"]
    assert counts == {"committed": 3 * (ROUNDS + 1), "reserved": 1, "voided": 0}


def test_a_search_that_goes_on_has_no_card(file, tmp_path):
    with pytest.raises(RuntimeError):
        compose(file, tmp_path / "out", watcher=Watcher(ROUNDS + 1, RuntimeError))
    best = tmp_path / "out/best"
    assert (best / "model.safetensors").exists()
    assert not (best / "guarantee.json").exists()
    assert judge(read_run(best)).mood == "bad"
    made = ["report.html", "brief.html", "brief-public.html", "model_card.md", "exported.onnx"]
    for name in made:
        (best / name).write_text("of an earlier card")
    with pytest.raises(RuntimeError):
        compose(file, tmp_path / "out", watcher=Watcher(1, RuntimeError))
    assert not any((best / name).exists() for name in made)


def test_another_file_or_ledger_does_not_continue_the_search(file, tmp_path):
    compose(file, tmp_path / "out")
    with pytest.raises(InvalidInput, match="another file"):
        compose(file, tmp_path / "out", "rounds=3")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/note.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="not empty"):
        compose(file, tmp_path / "other")


@pytest.mark.parametrize("text", ['{"id": "a", "another": 1}', "not JSON", "{}"])
def test_a_search_of_another_version_is_refused_in_a_sentence(file, tmp_path, text):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/search.json").write_text(text)
    with pytest.raises(InvalidInput, match="can't be read as a search of this version"):
        compose(file, tmp_path / "out")


def test_a_ledger_of_plans_cannot_count_a_search(file, tmp_path):
    budget = Budget(unit="example", relation="zero_out", view="server", epsilon=20.0, delta=1e-4)
    ledger = Ledger.create(tmp_path / "plan.jsonl", [budget]).path
    with pytest.raises(InvalidInput, match="chooses later trials by earlier"):
        compose(file, tmp_path / "out", ledger=ledger)
    filtered = Ledger.create(tmp_path / "filter.jsonl", [budget], "filter").path
    _, _, (card,) = compose(file, tmp_path / "out", ledger=filtered)
    assert card.epsilon == 20
    assert any("20" in sentence and "ledger" in sentence for sentence in card.not_covered)


def test_public_data_is_searched_without_a_ledger_and_without_a_model(file, tmp_path):
    plan, end, cards = compose(file, tmp_path / "out", "tune.public_data=true", "tune.metric=loss", "seed=1")
    assert (plan.ledger, cards) == (None, [])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["search.json", "study.jsonl"]
    assert all(trial.epsilon is None for trial in end.trials)


@pytest.mark.parametrize("sampler", ["tpe", "random", "qmc", "grid"])
def test_every_sampler_proposes_points_of_the_space(sampler):
    space = {"rounds": Interval(low=1, high=3), "device": Choices(choices=("cpu", "auto"))}
    tune = Tune(space=space, sampler=sampler, trials=5)
    chooser = NextTrial(tune, [({"rounds": 2, "device": "cpu"}, 0.5)])
    for number in range(4):
        point = chooser.ask()
        assert point["rounds"] in (1, 2, 3)
        assert point["device"] in ("cpu", "auto")
        chooser.tell(point, 0.1 * number)


def test_a_grid_visits_every_point_once_and_needs_a_finite_space():
    space = {"rounds": Interval(low=1, high=3), "device": Choices(choices=("cpu", "auto"))}
    tune = Tune(space=space, sampler="grid")
    assert count_trials(tune) == 6
    chooser, seen = NextTrial(tune), []
    for _ in range(6):
        point = chooser.ask()
        chooser.tell(point, 0.0)
        seen.append(tuple(point.items()))
    assert len(set(seen)) == 6
    with pytest.raises(InvalidInput, match="finite space"):
        count_trials(Tune(space={"x": Interval(low=0.1, high=1.0)}, sampler="grid"))


def test_the_data_is_dealt_alike_in_all_trials(file):
    builder = make_builder(file)
    first, second = builder.build({}), builder.build({"algorithm.learning_rate": 1.0})
    assert first.task is second.task
    assert all((first.params[name] == second.params[name]).all() for name in first.params)
    assert first.key.secret != second.key.secret

"""`discreet tune`: what it prints, writes and refuses."""

import json

import pytest

from tests.experiment.tuning.searches import write_file
from tests.small_experiment import state

__all__ = ["state"]


@pytest.fixture
def file(tmp_path):
    return write_file(tmp_path)


def test_a_search_prints_its_card_its_trials_and_what_one_trial_would_have_hidden(discreet, file, tmp_path):
    ran = discreet("tune", file, "--out", tmp_path / "out", "--set", "tune.trials=2")
    text = " ".join(ran.out.split())
    assert ran.code == 0
    assert "Certified ε = 9 at δ = 0.0001" in text
    assert "The whole search: epsilon = 9 at delta = 0.0001. A report of the best trial alone would say" in text
    assert "1/2 algorithm.learning_rate=" in " ".join(ran.err.split())
    page = (tmp_path / "out/search.html").read_text()
    assert page.count("<svg") == 2
    assert "Accuracy by algorithm.learning_rate" in page
    assert "<script" not in page


def test_as_json_a_search_says_all_of_its_trials_and_continues_with_the_same_command(discreet, file, tmp_path):
    line = ("tune", file, "--out", tmp_path / "out", "--set", "tune.trials=2", "--json")
    first, again = discreet(*line).json, discreet(*line).json
    assert first["trials"] == again["trials"]
    assert len(first["trials"]) == first["planned_trials"] == 2
    assert (first["mode"], first["epsilon"], first["stopped"]) == ("compose", 9.0, None)
    assert 1 < first["best_trial_alone"] <= 2
    assert first["best"]["run"] == str(tmp_path / "out/best")
    assert first["best"]["score"] == max(trial["score"] for trial in first["trials"])


def test_a_random_search_shows_nothing_but_its_best_trial(discreet, tmp_path):
    file = write_file(tmp_path, public=('against = "server"', 'against = "public"'))
    settings = ("--set", "tune.mode=random", "--set", "tune.expected_trials=2")
    ran = discreet("tune", file, "--out", tmp_path / "out", *settings, "--json")
    data = ran.json
    assert (ran.code, ran.err) == (0, "")
    assert "trials" not in data
    assert data["best_trial_alone"] <= 2 < data["epsilon"] <= 9
    assert data["guarantees"][0]["event"]["kind"] == "best_of"
    assert "One row for each trial" not in (tmp_path / "out/search.html").read_text()
    assert len({path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}) == 1  # not how long it took


def test_public_data_is_declared_by_its_owner(discreet, file, tmp_path):
    ran = discreet("tune", file, "--out", tmp_path / "out", "--public-data", "--set", "tune.trials=2")
    assert "The owner of the data declares all of it to be public, so nothing is counted." in " ".join(ran.out.split())
    assert "Certified" not in ran.out
    assert not (tmp_path / "out/best").exists()
    assert "declares all of it to be public" in (tmp_path / "out/search.html").read_text()


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        (("tune.mode=random",), 2, "hides nothing from the server"),
        (("tune.epsilon=2.7",), 3, "can pay for 1 of 3 trials"),
        (("tune.epsilon=1.5",), 3, "can pay for 0 of 3 trials"),
        (("task.validation_fraction=0",), 2, "validation_fraction = 0.2"),
        (("seed=3",), 2, "protects nobody"),
        (("tune.sampler=grid",), 2, "finite space"),
        (("tune.mode=both",), 2, "compose"),
        (('tune.space={"algorithm.learning_rat"={low=0.5, high=8.0}}',), 2, "learning_rate"),
        (('tune.space={"algorithm.learning_rate"={choices=[1.0, "fast"]}}',), 2, "learning_rate"),
        (('track=[{kind="tensorboard"}]',), 2, "trains without trackers"),
    ],
)
def test_what_can_not_be_searched_is_refused_in_a_sentence_and_leaves_nothing(
    discreet, file, tmp_path, settings, code, words
):
    options = [word for setting in settings for word in ("--set", setting)]
    ran = discreet("tune", file, "--out", tmp_path / "out", *options)
    assert (ran.code, ran.out) == (code, "")
    assert words in ran.err
    assert ran.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_file_without_the_table_is_told_how_to_write_it(discreet, small_without_table):
    ran = discreet("tune", small_without_table)
    assert ran.code == 2
    assert "[tune]" in ran.err
    assert "tune.space" in ran.err


def test_a_search_that_is_stopped_at_once_says_how_it_goes_on(discreet, file, tmp_path, monkeypatch):
    from discreet.experiment.tuning.composed_search import ComposedSearch

    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(ComposedSearch, "run", interrupt)
    ran = discreet("tune", file, "--out", tmp_path / "out")
    assert ran.code == 1
    assert "the same command continues the search" in " ".join(ran.err.split())


@pytest.fixture
def small_without_table(tmp_path):
    return write_file(tmp_path, "")


def test_a_search_that_was_interrupted_ends_with_code_1_and_goes_on(discreet, file, tmp_path, monkeypatch):
    from discreet.experiment.loop.run_loop import RunLoop

    play, played = RunLoop.play_round, []

    def interrupt(self):
        played.append(1)
        if len(played) == 2:
            self._interrupt.is_requested = True
        return play(self)

    monkeypatch.setattr(RunLoop, "play_round", interrupt)
    ran = discreet("tune", file, "--out", tmp_path / "out", "--json")
    assert (ran.code, ran.json["trials"]) == (1, [])
    assert "the same command continues" in ran.json["stopped"]
    monkeypatch.undo()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    again = discreet("tune", file, "--out", tmp_path / "out", "--json")
    assert (again.code, len(again.json["trials"])) == (0, 3)
    counts = [json.loads(line)["type"] for line in (tmp_path / "out/ledger.jsonl").read_text().splitlines()]
    assert counts.count("reserve") == 3 * 3

"""A promise that says little is warned of, however a run is started."""

import warnings
from pathlib import Path

import pytest
import torch

import discreet as d
from discreet.privacy.html_card import GOOD
from tests.cli.conftest import Discreet, discreet
from tests.experiment.test_session import ARGUMENTS, make_clients, make_net
from tests.experiment.tuning.searches import compose, draw, write_file
from tests.small_experiment import SMALL, state

__all__ = ["discreet", "state"]

LARGE_DELTA = d.Privacy(unit="example", against="server", epsilon=8, delta=0.01)  # of 240 examples
LARGE_EPSILON = d.Privacy(unit="example", against="server", epsilon=12, delta=1e-4)


@pytest.mark.parametrize(("privacy", "words"), [(LARGE_DELTA, "1/240"), (LARGE_EPSILON, "which says little")])
def test_train_and_session_warn_at_the_line_that_calls_them(tmp_path: Path, privacy: d.Privacy, words: str):
    arguments = ARGUMENTS | {"privacy": privacy}
    with pytest.warns(UserWarning, match=words) as caught:
        d.train(make_net(), make_clients(), **arguments, out=tmp_path / "train")
    assert [Path(warning.filename).name for warning in caught] == [Path(__file__).name]
    with (
        pytest.warns(UserWarning, match=words),
        d.session(make_net(), make_clients(), **arguments, out=tmp_path / "session") as rounds,
    ):
        next(rounds)
    with pytest.warns(UserWarning, match=words):
        d.train(make_net(), make_clients(), **arguments, resume=tmp_path / "session")


def test_a_promise_that_says_enough_is_not_warned_of(tmp_path: Path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        d.train(make_net(), make_clients(), **ARGUMENTS, out=tmp_path / "run")


def test_the_card_of_a_large_delta_is_not_green_in_a_notebook(tmp_path: Path):
    arguments = {name: value for name, value in ARGUMENTS.items() if name != "seed"}
    kept = d.train(make_net(), make_clients(), **arguments, out=tmp_path / "small").guarantee
    assert kept is not None
    assert GOOD in kept._repr_html_()
    with pytest.warns(UserWarning, match="1/240"):
        run = d.train(make_net(), make_clients(), **{**arguments, "privacy": LARGE_DELTA}, out=tmp_path / "large")
    assert run.guarantee is not None
    shown = run.guarantee._repr_html_()
    assert GOOD not in shown
    assert "This guarantee says little" in shown.partition("<details>")[0]


def test_a_resumed_command_warns_again(discreet: Discreet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)
    (tmp_path / "large.toml").write_text(SMALL.replace("delta = 1e-4", "delta = 0.01"))
    with monkeypatch.context() as broken:
        broken.setattr(
            "discreet.experiment.loop.round_player.RoundPlayer.settle",
            lambda *_: (_ for _ in ()).throw(OSError("gone")),
        )
        started = discreet("run large.toml --out result")
    assert "Warning: delta = 0.01 is no less than" in started.err
    resumed = discreet("run --resume result")
    assert resumed.code == 0
    assert "Warning: delta = 0.01 is no less than" in " ".join(resumed.err.split())


def test_a_search_warns_of_the_epsilon_of_all_its_trials(tmp_path: Path):
    file = write_file(tmp_path, public=('against = "server"', 'against = "public"'))
    (sentence,) = compose(file, tmp_path / "composed", "tune.epsilon=40", "tune.trials=1")[0].warnings
    assert sentence.startswith("epsilon = 40 is above 10")
    assert draw(file, tmp_path / "drawn", 1, "tune.epsilon=40")[0].warnings == ()  # its card has less
    (sentence,) = draw(file, tmp_path / "dear", 1, "tune.epsilon=40", "privacy.epsilon=12")[0].warnings
    assert "is above 10" in sentence


def test_a_setting_that_compiles_nothing_is_warned_of(tmp_path: Path):
    with pytest.warns(UserWarning, match="compile = true does nothing here"):
        d.train(make_net(), make_clients(), **ARGUMENTS, compile=True, out=tmp_path / "run")

"""A notebook shows one bar that follows the rounds, by plain HTML and without widgets."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

import discreet
from discreet.data.tasks.digits import Digits
from discreet.experiment.loop.notebook_bar import NotebookBar
from discreet.models.networks.linear import Linear


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """What a notebook has shown so far, in one output that is replaced."""
    contents: list[dict[str, str]] = []

    def update(content: dict[str, str], raw: bool) -> None:
        assert raw
        contents.append(content)

    def display(content: dict[str, str], raw: bool, display_id: bool) -> SimpleNamespace:
        assert raw
        assert display_id
        contents.append(content)
        return SimpleNamespace(update=update)

    notebook: Any = ModuleType("IPython.display")
    notebook.display = display
    package: Any = ModuleType("IPython")
    package.version_info = (9, 0)  # which matplotlib asks for
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", notebook)
    return contents


def tick(step: float) -> Iterator[float]:
    time = 0.0
    while True:
        yield time
        time += step


def test_each_round_replaces_the_one_before(outputs: list[dict[str, str]]):
    clock = tick(5.0)
    bar = NotebookBar(4, lambda: next(clock))
    for done in range(1, 5):
        bar.show(done, f"accuracy 0.{done}")
    assert [content["text/plain"].split("  ")[0] for content in outputs] == [f"round {done}/4" for done in range(5)]
    assert [re.findall(r"width:(\d+)%", content["text/html"]) for content in outputs] == [
        [str(share)] for share in (0, 25, 50, 75, 100)
    ]
    assert outputs[-1]["text/plain"] == "round 4/4  accuracy 0.4"


def test_quick_rounds_are_shown_now_and_then_and_the_last_one_always(outputs: list[dict[str, str]]):
    clock = tick(0.001)
    bar = NotebookBar(1000, lambda: next(clock))
    for done in range(1, 1001):
        bar.show(done, "")
    assert 5 < len(outputs) < 60
    assert outputs[-1]["text/plain"] == "round 1000/1000"


def test_a_run_that_stops_early_leaves_its_last_round(outputs: list[dict[str, str]]):
    clock = tick(0.001)
    bar = NotebookBar(10, lambda: next(clock))
    bar.show(1, "")
    bar.show(2, "lost")
    bar.close()
    assert "round 2/10  lost" in outputs[-1]["text/plain"]


def test_the_time_left_follows_from_the_rounds_that_were_played_here(outputs: list[dict[str, str]]):
    seconds = [0.0]
    bar = NotebookBar(20, lambda: seconds[0])
    seconds[0] = 30.0
    bar.show(11, "")  # a resumed run: ten rounds were played before
    assert outputs[-1]["text/plain"] == "round 11/20  4:30 left"


def test_text_is_escaped(outputs: list[dict[str, str]]):
    clock = tick(5.0)
    NotebookBar(2, lambda: next(clock)).show(1, "<b>&")
    assert "&lt;b&gt;&amp;" in outputs[-1]["text/html"]
    assert "<b>" not in outputs[-1]["text/html"]


@pytest.mark.parametrize("wanted", [None, True, False])
def test_train_shows_it_in_a_notebook_without_widgets(
    outputs: list[dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: bool | None
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("discreet.api.training_session.Console", lambda: Console(force_jupyter=True))
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    discreet.train(
        Linear(),
        Digits(clients=3),
        rounds=2,
        algorithm=discreet.pfl(local_steps=1, sampling_rate=0.1, clip_norm=0.5, learning_rate=4.0),
        privacy=discreet.Privacy(unit="example", against="server", epsilon=2.0, delta=1e-4),
        out=tmp_path / "run",
        progress=wanted,
    )
    assert bool(outputs) == (wanted is not False)
    if outputs:
        assert outputs[-1]["text/plain"].startswith("round 2/2  3 clients  accuracy 0.")
        assert "ε 2.00, 0.00 left" in outputs[-1]["text/plain"]

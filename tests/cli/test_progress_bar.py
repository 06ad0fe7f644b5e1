"""While data is prepared, a terminal shows progress; a pipe and a program see nothing."""

import pytest

from discreet.cli.progress_bar import show_preparation
from discreet.experiment.configuration.experiment_file import Source, load_experiment


@pytest.fixture
def source() -> Source:
    return load_experiment()


@pytest.mark.parametrize(
    ("terminal", "quiet", "seen"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_only_a_terminal_shows_what_is_computed(
    terminal: bool,
    quiet: bool,
    seen: bool,
    source: Source,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    else:
        monkeypatch.delenv("FORCE_COLOR", raising=False)
    with show_preparation(source, quiet=quiet) as ready:
        for done in (32, 64):
            ready.paths.on_progress("features of pictures", done, 64)
    said = capsys.readouterr()
    assert said.out == ""
    assert ("features of pictures" in said.err) is seen
    assert ready.experiment == source.experiment
    assert ready.paths.data == source.paths.data


def test_places_are_silent_by_themselves(source: Source, capsys: pytest.CaptureFixture[str]):
    source.paths.on_progress("features of pictures", 1, 2)
    assert capsys.readouterr().err == ""

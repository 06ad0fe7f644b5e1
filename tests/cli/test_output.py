"""Output is one JSON object, or text that is readable in a pipe."""

import io
import json
import math
import sys

import pytest
from rich.table import Table

from discreet.cli.output import emit


def test_json_is_one_object_on_one_line_when_piped(capsys: pytest.CaptureFixture[str]):
    emit(lambda: {"epsilon": 2.0, "tpr": {0.1: 0.5}}, list, as_json=True)
    assert capsys.readouterr().out == '{"epsilon": 2.0, "tpr": {"0.1": 0.5}}\n'


def test_infinity_is_a_word_that_reads_back(capsys: pytest.CaptureFixture[str]):
    emit(lambda: {"epsilon": math.inf, "all": (1, [math.inf])}, list, as_json=True)
    data = json.loads(capsys.readouterr().out)
    assert data == {"epsilon": "inf", "all": [1, ["inf"]]}
    assert float(data["epsilon"]) == math.inf


def test_not_a_number_is_never_printed():
    with pytest.raises(ValueError, match="Out of range"):
        emit(lambda: {"epsilon": math.nan}, list, as_json=True)


def test_text_in_a_pipe_has_no_colour_no_markup_and_no_trailing_blanks(capsys: pytest.CaptureFixture[str]):
    table = Table("a", "b", box=None)
    table.add_row("[bold]1[/bold]", "2", style="bold")
    emit(dict, lambda: [table, "a [red]word[/red] " * 20, "laid out  " + "x" * 100 + "\nsecond"], as_json=False)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "[bold]1[/bold]" in out
    assert all(line == line.rstrip() for line in out.splitlines())
    assert "x" * 100 in out  # line breaks are kept


def test_a_path_that_is_longer_than_a_line_is_not_broken(capsys: pytest.CaptureFixture[str]):
    path = "/folder/" + "long_name" * 12 + ".json"
    emit(dict, lambda: [f"The curves are in {path}."], as_json=False)
    assert f"{path}." in capsys.readouterr().out.split()


def test_a_terminal_gets_bold(monkeypatch: pytest.MonkeyPatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    table = Table("a", box=None)
    table.add_row("1", style="bold")
    emit(dict, lambda: [table], as_json=False)
    assert "\x1b[1m" in terminal.getvalue()

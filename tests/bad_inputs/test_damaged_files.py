"""A damaged file gets one sentence and its documented exit code from every command, and nothing is written."""

from pathlib import Path

import pytest

from discreet.cli.main import run
from tests.bad_inputs.damaged_files import DAMAGES, FOLDER, LOOP, Case, cases
from tests.bad_inputs.stage import Stage

CASES = list(cases())


def damage_file(path: Path, damage: str) -> None:
    if damage in DAMAGES:
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
        return
    path.unlink()
    if damage == FOLDER:
        path.mkdir()
    if damage == LOOP:
        path.symlink_to(path.name)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_damaged_file_is_refused_in_one_sentence_and_nothing_is_written(
    case: Case, stage: Stage, capsys: pytest.CaptureFixture[str]
):
    damage_file(stage.here / case.file, case.damage)
    before = stage.content()
    code = run(case.line.split())
    said = capsys.readouterr()
    assert (code, said.out) == (case.code, ""), said.err
    assert said.err.startswith("Error: ")
    assert not said.err.startswith("Error: Unexpected")
    assert said.err.count("\n") == 1
    assert case.says in said.err
    assert stage.content() == before


def test_a_report_says_that_an_audit_can_not_be_read(stage: Stage):
    (stage.here / "run" / "audit.json").write_text('{"audits": 3}')
    assert run(["report", "run"]) == 0
    assert "audit.json has no list of audits" in (stage.here / "run" / "report.html").read_text()


def test_a_search_goes_on_after_a_line_that_was_cut(stage: Stage):
    study = stage.here / "tuned" / "study.jsonl"
    whole = study.read_bytes()
    study.write_bytes(whole[: len(whole) // 2])
    line = ["tune", "tuned.toml", "--public-data", "--out", "tuned"]
    assert (run(line), run(line)) == (0, 0)
    assert study.read_bytes().count(b"\n") == whole.count(b"\n")

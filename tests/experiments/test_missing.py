"""The runs that pages lack: what is listed, what is made on several processes, and what is kept of it."""

import json
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from experiments.common.workers import make_runs
from experiments.missing import groups, reproduce
from experiments.missing.groups import PflJob
from experiments.pfl.cells import RESULTS, Cell
from experiments.tuned import families

CELL = Cell("mnist", "cnn-ts", 2.93, 1, 20, 1, False, "authors")


def half(number: int) -> float:
    if number == 3:
        raise ValueError("3 is odd")
    return number / 2


def nothing(study: str, phase: str) -> list[dict[str, Any]]:
    return []


def pfl_result(cell: Cell, seed: int) -> dict[str, Any]:
    return {name: getattr(cell, name) for name in Cell.__dataclass_fields__} | {"seed": seed, "accuracy": 1.0}


def test_every_job_is_done_but_those_that_fail_and_jobs_may_be_added(capsys: pytest.CaptureFixture[str]) -> None:
    jobs, done = deque([2, 3, 4]), {}
    for job, result in make_runs(jobs, half, workers=2):
        done[job] = result
        if job == 2:
            jobs.append(8)
    assert done == {2: 1.0, 4: 2.0, 8: 4.0}
    assert "3 failed: 3 is odd" in capsys.readouterr().out


def test_no_job_is_begun_after_the_limit() -> None:
    assert list(make_runs(deque([2]), half, workers=1, limit_s=0.0)) == []


def test_a_run_is_missing_until_it_has_a_result() -> None:
    before = groups.missing_pfl("pfl-alone", [])
    assert PflJob(CELL, 1) in before
    assert groups.missing_pfl("pfl-alone", [pfl_result(CELL, 1)]) == [job for job in before if job != PflJob(CELL, 1)]
    assert groups.missing_pfl("pfl-ends", []) == []


def test_every_missing_run_of_pfl_is_in_a_group() -> None:
    wanted = {job for name in groups.PFL_GROUPS for job in groups.missing_pfl(name, [])}
    assert len(wanted) == 145


def test_a_run_for_the_page_is_missing_only_when_validation_data_have_chosen() -> None:
    lacking = groups.missing_tuned("fu", nothing)
    assert {job.phase for job in lacking} == {"validation"}
    family = next(each for each in groups.read_families("fu") if each.key == ("20", "240", "12"))
    validated = [
        {"name": cell.name, "swept": cell.swept, "seed": 0, "metrics": {"accuracy": 0.1 * place}}
        for place, cell in enumerate(family.cells)
    ]
    made = {"validation": validated}
    now = groups.missing_tuned("fu", lambda study, phase: made.get(phase, []))
    chosen = [job for job in now if job.phase == "final"]
    assert [(dict(job.identity[1:-1])["rate"], job.identity[-1]) for job in chosen] == [("0.3", n) for n in range(3)]


def test_every_job_names_a_run_that_a_worker_finds() -> None:
    setup = reproduce.RunSetup("cpu", None, 1, 2.0)
    job = groups.missing_tuned("fu", nothing)[0]
    run = reproduce._runs("fu", setup)[job.identity]
    assert run.source.experiment.engine.memory_gb == 2.0


def test_merged_results_are_kept_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, folder = tmp_path / "results.jsonl", tmp_path / "tuned"
    kept.write_text(RESULTS.read_text().splitlines(keepends=True)[0])
    monkeypatch.setattr(reproduce, "RESULTS", kept)
    monkeypatch.setattr(families, "HERE", folder)
    tuned = {"key": "a", "name": "gaussian", "swept": {"E": "2"}, "seed": 0}
    lines = [
        {"study": "pfl", "phase": "authors", "result": pfl_result(CELL, 1)},
        {"study": "fu", "phase": "final", "result": tuned},
    ]
    for _ in range(2):
        reproduce.merge(lines)
    assert [json.loads(line)["seed"] for line in kept.read_text().splitlines()[1:]] == [1]
    assert families.results("fu", "final") == [tuned]


def test_an_unfinished_last_line_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "out").write_text('{"study": "fu"}\n{"study": "f')
    assert reproduce.read_lines(tmp_path / "out") == [{"study": "fu"}]
    assert reproduce.read_lines(tmp_path / "none") == []

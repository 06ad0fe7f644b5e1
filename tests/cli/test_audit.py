"""`discreet audit`: what it prints, what it keeps, and its exit codes."""

import json
import shutil
from pathlib import Path

import pytest

import discreet as discreet_module
from discreet.audit.audit_record import read_audits
from discreet.cli.main import run
from tests.cli.conftest import Discreet
from tests.small_experiment import SMALL


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the small experiment."""
    folder = tmp_path_factory.mktemp("audit")
    (folder / "small.toml").write_text(SMALL.replace("epsilon = 2.0", "epsilon = 8.0"))
    assert run(["run", str(folder / "small.toml"), "--out", str(folder / "run"), "--json"]) == 0
    return folder / "run"


@pytest.fixture
def run_copy(finished_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


def test_a_run_is_audited_by_its_directory_and_keeps_the_result(run_copy: Path, discreet: Discreet) -> None:
    ran = discreet(f"audit {run_copy} --seed 1 --json")
    answer = json.loads(ran.out)
    assert ran.code == 0
    assert 0 < answer["lower_bound"] < answer["certified_epsilon"] <= 8
    assert (answer["confidence"], answer["estimator"], answer["canaries"]) == (0.95, "gaussian", 650)
    assert [record.lower_bound for record in read_audits(run_copy)] == [answer["lower_bound"]]


def test_the_page_says_what_was_measured_and_what_it_does_not_prove(run_copy: Path, discreet: Discreet) -> None:
    text = " ".join(discreet(f"audit {run_copy} --seed 1").out.split())
    assert "An attack that knew everything but one example measured at least ε = " in text
    assert "no client's data was read" in text
    assert "A lower bound proves no safety" in text


def test_audits_of_several_kinds_stand_beside_each_other(run_copy: Path, discreet: Discreet) -> None:
    for options in ("--seed 1", "--seed 2", "--estimator one-run"):
        assert discreet(f"audit {run_copy} --canaries 50 --runs 1 {options}").code == 0
    assert [record.estimator for record in read_audits(run_copy)] == ["gaussian", "gaussian", "one-run"]


@pytest.mark.parametrize("content", ['{"audits": [{"lower_', "[]", "{}", '{"audits": null}', ""])
def test_a_damaged_file_of_audits_is_refused_before_training_and_left_as_it_is(
    run_copy: Path, discreet: Discreet, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    monkeypatch.setattr("discreet.audit.auditor.play_runs", lambda *_: pytest.fail("it trained"))
    kept = run_copy / "audit.json"
    kept.write_text(content)
    ran = discreet(f"audit {run_copy} --seed 1")
    assert ran.code == 2
    assert f"{kept} must be JSON with a list of the audits of this run, and it is damaged." in ran.err
    assert f"mv {kept} {kept}.damaged" in ran.err
    assert kept.read_text() == content


def test_a_lower_bound_above_the_card_has_an_exit_code_of_its_own(run_copy: Path, discreet: Discreet) -> None:
    text = (run_copy / "resolved.toml").read_text()
    stated = next(line for line in text.splitlines() if line.startswith("noise_multiplier"))
    (run_copy / "resolved.toml").write_text(text.replace(stated, "noise_multiplier = 0.2"))
    ran = discreet(f"audit {run_copy} --seed 1")
    assert ran.code == 4
    assert "The guarantee is false, or the attack is" in ran.out


def test_an_experiment_is_audited_before_it_is_trained(tmp_path: Path, discreet: Discreet) -> None:
    small = tmp_path / "small.toml"
    small.write_text(SMALL)
    answer = json.loads(discreet(f"audit {small} --set privacy.epsilon=8 --canaries 100 --runs 1 --seed 1 --json").out)
    assert answer["file"] == str(small)
    assert answer["lower_bound"] < answer["certified_epsilon"]


def test_settings_of_a_run_are_not_changed(run_copy: Path, discreet: Discreet) -> None:
    ran = discreet(f"audit {run_copy} --set rounds=3")
    assert ran.code == 2
    assert "--set belongs to an experiment's file" in ran.err


def test_an_option_that_an_audit_of_a_run_would_ignore_is_refused(run_copy: Path, discreet: Discreet) -> None:
    ran = discreet(f"audit {run_copy} --data-dir {run_copy}")
    assert ran.code == 2
    assert "--data-dir belongs to an experiment's file" in ran.err
    ran = discreet(f"audit {run_copy} --estimator repeated --canaries 50")
    assert ran.code == 2
    assert "Repeated runs have one canary each, and got 50 canaries." in ran.err


def test_too_few_repeated_runs_are_refused_before_the_first(
    run_copy: Path, discreet: Discreet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.audit.auditor.play_runs", lambda *_: pytest.fail("it trained"))
    assert "must be at least 8, and got 3." in discreet(f"audit {run_copy} --estimator repeated --runs 3").err


def test_a_guarantee_that_is_not_there_is_named(run_copy: Path, discreet: Discreet) -> None:
    ran = discreet(f"audit {run_copy} --unit client")
    assert ran.code == 2
    assert "example against server" in ran.err


def test_the_report_of_an_audited_run_says_what_was_measured(run_copy: Path, discreet: Discreet) -> None:
    discreet(f"audit {run_copy} --seed 1")
    for options in ("", "--public", "--brief"):
        printed = " ".join(discreet(f"report {run_copy} {options}").out.split())
        assert "An attack that knew everything but one example measured at least" in printed
    assert "Measured by an attack" in (run_copy / "report-public.html").read_text()


def test_a_picture_is_drawn_of_what_was_measured(run_copy: Path, tmp_path: Path, discreet: Discreet) -> None:
    ran = discreet(f"audit {run_copy} --canaries 50 --runs 1 --picture {tmp_path / 'audit.svg'}")
    assert ran.code == 0
    assert f"Wrote {tmp_path / 'audit.svg'}" in " ".join(ran.out.split())
    assert (tmp_path / "audit.svg").stat().st_size > 1000
    refused = discreet(f"audit {run_copy} --picture {tmp_path / 'audit.txt'}")
    assert refused.code == 2


def test_an_audit_in_python_is_kept_with_the_run(run_copy: Path) -> None:
    record = discreet_module.audit_run(run_copy, seed=1, canaries=50, runs=1)
    assert discreet_module.load(run_copy).audits == [record]


def test_the_best_run_of_a_search_is_refused_with_the_reason(run_copy: Path, discreet: Discreet) -> None:
    """It has no checkpoint, and its card covers more trainings than one."""
    (run_copy / "checkpoint.safetensors").unlink()
    ran = discreet(f"audit {run_copy}")
    assert ran.code == 2
    assert "covers all trials of the search" in " ".join(ran.err.split())
    assert "resolved.toml" in ran.err


def test_clients_is_another_word_for_client(run_copy: Path, discreet: Discreet) -> None:
    plural, singular = (
        discreet(f"audit {run_copy} --against {word} --seed 1 --canaries 50 --runs 1") for word in ("clients", "client")
    )
    assert (plural.code, plural.out, plural.err) == (singular.code, singular.out, singular.err)
    assert "Invalid value" not in plural.err


def test_what_is_neither_a_run_nor_a_file_is_named(tmp_path: Path, discreet: Discreet) -> None:
    ran = discreet(f"audit {tmp_path / 'nosuch'}")
    assert ran.code == 2
    assert "a run directory or an experiment's file, and there is neither" in " ".join(ran.err.split())


def test_a_card_is_sent_to_the_checker_of_cards(run_copy: Path, discreet: Discreet) -> None:
    ran = discreet(f"audit {run_copy / 'guarantee.json'}")
    assert ran.code == 2
    assert "discreet verify" in ran.err

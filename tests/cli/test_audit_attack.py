"""`discreet audit --attack`: what it prints, draws and keeps, and what it refuses."""

import json
from pathlib import Path

import pytest
import typer

from discreet.cli.audit_modes import MODES
from discreet.cli.main import app, run
from tests.cli.conftest import Discreet

FAST = "--set rounds=2 --set task.clients=3 --set task.test_fraction=0.9 --seed 1"


def test_inversion_needs_no_run_and_says_what_each_view_gives_away(discreet: Discreet) -> None:
    ran = discreet(f"audit --attack inversion {FAST}")
    assert ran.code == 0
    assert "With raw FedAvg, the server recovers the examples" in ran.out
    assert "Attacked: the built-in digits, which are public." in ran.out
    assert "those who may see the data" not in ran.out


def test_own_data_is_for_its_owner(discreet: Discreet) -> None:
    ran = discreet(f"audit --attack inversion --on-data --batch 2 {FAST}")
    assert "Attacked: the clients' own data." in ran.out
    assert "show it only to those who may see the data" in " ".join(ran.out.split())


def test_membership_prints_rates_with_intervals_below_the_certified_ones(discreet: Discreet) -> None:
    ran = discreet(f"audit --attack membership --shadows 8 --compare {FAST}")
    assert ran.code == 0
    assert "Training shadow models takes about" in ran.err
    assert "95 % interval" in ran.out
    assert "without privacy (FedAvg)" in " ".join(ran.out.split())


def test_json_holds_everything_and_a_picture_is_drawn(discreet: Discreet, tmp_path: Path) -> None:
    ran = discreet(f"audit --attack labels {FAST} --json --picture", tmp_path / "labels.svg")
    assert ran.json["attack"] == "labels"
    assert ran.json["views"][0]["counts"] == ran.json["counts"]
    assert ran.json["picture"] == str(tmp_path / "labels.svg")
    assert (tmp_path / "labels.svg").read_text().startswith("<?xml")
    assert ran.err == ""


def test_a_run_keeps_the_attack_for_its_report(discreet: Discreet, tmp_path: Path) -> None:
    settings = ["--set", "rounds=1", "--set", "task.clients=3"]
    assert run(["run", *settings, "--out", str(tmp_path / "run"), "--json"]) == 0
    ran = discreet("audit --attack inversion --seed 1", tmp_path / "run")
    assert "Kept in" in ran.out
    assert json.loads((tmp_path / "run" / "attack_inversion.json").read_text())["attack"] == "inversion"
    assert "Gradient inversion" in (tmp_path / "run" / "report.html").read_text()
    discreet("report --public", tmp_path / "run")
    assert "Gradient inversion" not in (tmp_path / "run" / "report-public.html").read_text()
    assert (
        "--set belongs to an experiment's file"
        in discreet("audit --attack labels --set rounds=2", tmp_path / "run").err
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--attack labels --compare", "--compare belongs to --attack membership, and got --attack labels"),
        ("--attack membership --batch 2", "--batch belongs to --attack inversion"),
        ("--attack membership --on-data", "--on-data belongs to --attack inversion or labels"),
        ("--shadows 16", "--shadows belongs to --attack membership, and got no --attack. Add --attack membership, or"),
        ("--on-data", "--on-data belongs to --attack inversion or labels, and got no --attack."),
        ("--attack labels --canaries 5", "--canaries belongs to an audit without --round and --attack, and got"),
        ("--attack labels --estimator one-run", "and got --attack labels. Leave out --estimator."),
        ("--attack labels --confidence 0.99", "and got --attack labels. Leave out --confidence."),
        ("--attack labels --unit client", "--unit belongs to an audit without --attack, and got --attack labels"),
        ("--attack labels --repetitions 1000", "--repetitions belongs to --round, and got --attack labels."),
        ("--repetitions 1000", "--repetitions belongs to --round, and got no --round. Add --round, or leave out"),
        ("--attack labels --round", "--round belongs to an audit without --attack, and got --attack labels."),
        ("--round --runs 3", "--runs belongs to an audit without --round and --attack, and got --round."),
        ("--round --picture x.svg", "--picture belongs to an audit without --round, and got --round."),
        ("--round --data-dir .", "--data-dir belongs to an audit without --round, and got --round."),
        ("--round --batch 2", "--batch belongs to --attack inversion, and got --round."),
        ("--round", "--round needs an experiment's file, and got none."),
        ("--confidence x", "must be a number, and got 'x'."),
        ("--attack inversion --batch 9", "1 to 4 examples, and got 9"),
        ("--attack inversion --picture x.gif", "must end in .png"),
        ("", "needs a run directory or an experiment's file"),
    ],
)
def test_what_can_not_be_done_is_refused_in_one_sentence(discreet: Discreet, line: str, said: str) -> None:
    ran = discreet(f"audit {line}")
    assert ran.code == 2
    assert said in ran.err


def test_every_option_of_an_audit_is_in_the_table_of_modes_or_belongs_to_all_of_them() -> None:
    """An option that a new mode forgets would be ignored in silence."""
    command = typer.main.get_command(app).commands["audit"]  # type: ignore[attr-defined]
    options = {name for option in command.params for name in option.opts if name.startswith("--")}
    everywhere = {"--attack", "--round", "--set", "--seed", "--trust", "--json"}
    assert options == set(MODES) | everywhere

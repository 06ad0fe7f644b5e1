"""`discreet run`: one object for a program, a card for a person, an exit code for a script."""

import fcntl
import json
import os
import pty
import re
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from discreet.experiment.run_directory.run_record import RunRecord
from discreet.privacy.ledger import Budget, Ledger
from tests.cli.conftest import Discreet
from tests.small_experiment import SMALL


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SMALL)
    return tmp_path / "small.toml"


def test_json_is_one_object_with_all_that_a_script_asks_for(discreet: Discreet, tmp_path: Path):
    ran = discreet("run small.toml --out result --json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.count("\n") == 1
    found = ran.json
    assert set(found) >= {"run", "rounds", "epsilon", "delta", "metrics", "guarantees", "stopped"}
    assert (found["run"], found["rounds"], found["delta"], found["stopped"]) == ("result", 4, 1e-4, None)
    assert 1.9 < found["epsilon"] <= 2
    assert 0 < found["metrics"]["accuracy"] <= 1
    assert (found["certified"], found["seeded"]) == (True, False)
    assert found["guarantees"][0]["epsilon"] == found["epsilon"]
    assert (tmp_path / "result" / "report.html").is_file()


def test_a_person_sees_how_it_goes_the_card_and_where_the_results_lie(discreet: Discreet):
    ran = discreet("run small.toml --out result")
    assert ran.code == 0
    assert ran.out.startswith("Guarantee card")
    assert "Results are in result" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80
    (second, fourth) = ran.err.splitlines()
    assert second.startswith("round 2/4  3 clients  accuracy 0.")
    assert "ε 2.00, 0.00 left" in fourth


def test_a_profile_is_a_table_with_a_sentence_or_a_part_of_the_json(discreet: Discreet, tmp_path: Path):
    ran = discreet("run small.toml --out result --profile")
    table = ran.out.partition("Where the time of a round went")[2]
    assert "Training (forward and backward)" in table
    assert " of the time" in table
    assert max(map(len, ran.out.splitlines())) <= 80
    assert (tmp_path / "result" / "profile.svg").is_file()
    found = discreet("run small.toml --out other --profile --json").json["profile"]
    assert found["rounds"] == 4
    assert found["phases"][0]["phase"] == found["largest"]
    assert sum(part["share"] for part in found["phases"]) == pytest.approx(1)


def test_what_is_left_is_the_least_of_what_the_promise_and_the_ledger_leave(discreet: Discreet):
    budget = Budget(unit="example", relation="zero_out", view="server", epsilon=1.5, delta=1e-4)
    Ledger.create("data.jsonl", [budget])
    ran = discreet("run small.toml --out result --ledger data.jsonl --as-far-as-it-goes --set evaluate_every=1")
    amounts = [re.search(r"ε ([\d.]+), ([\d.]+) left", line) for line in ran.err.splitlines()]
    sums = [float(found[1]) + float(found[2]) for found in amounts if found]
    assert sums
    assert all(total == pytest.approx(1.5, abs=0.011) for total in sums)  # the promise alone would leave 2


def test_without_a_place_results_go_under_runs(discreet: Discreet, tmp_path: Path):
    found = discreet("run small.toml --json").json
    assert (tmp_path / found["run"]).parent == tmp_path / "runs"
    assert Path(found["run"]).name.startswith("small-")


def test_without_a_file_the_built_in_digits_are_trained(discreet: Discreet):
    ran = discreet("run --set seed=1 --set rounds=2 --out result --json")
    assert (ran.code, ran.json["rounds"]) == (0, 2)


def test_overrides_and_device_reach_the_resolved_experiment(discreet: Discreet, tmp_path: Path):
    discreet("run small.toml --out result --set privacy.epsilon=1 --set seed=3 --device cpu --json")
    text = (tmp_path / "result" / "resolved.toml").read_text()
    for line in ("epsilon = 1", "seed = 3", 'device = "cpu"', "noise_multiplier = "):
        assert line in text
    again = discreet("run result/resolved.toml --out again --json")  # a resolved experiment is an experiment too
    assert again.code == 0
    assert (tmp_path / "again/model.safetensors").read_bytes() == (tmp_path / "result/model.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("run none.toml", "There is no file none.toml"),
        ("run small.toml --set roudns=3", "did you mean 'rounds'?"),
        ("run small.toml --set algorithm.recipe=none", "There are: fedavg, fedsgd, fedprox, pfl"),
        ("run small.toml --set rounds=ten", "must be a whole number, and got 'ten'"),
        ("run small.toml --set task.clients=100000", "100000 clients"),
        ("run small.toml --set privacy.unit=client", "this algorithm protects one example against the server"),
        ("run small.toml --set model.kind=gone.py:Net", "no file"),
        ("run small.toml --set loss=gone.py:loss", "no file"),
        (
            "run small.toml --ledger gone.jsonl",
            "There is no ledger gone.jsonl. Create it first: discreet ledger create",
        ),
        ("run small.toml --resume somewhere", "--resume continues a run as it was started"),
        ("run --resume somewhere", "somewhere is not a run directory"),
        ("run small.toml --device tpu", "--device"),
    ],
)
def test_bad_input_is_one_sentence_exit_code_2_and_nothing_written(
    line: str, said: str, discreet: Discreet, tmp_path: Path
):
    before = sorted(tmp_path.rglob("*"))
    ran = discreet(f"{line} --out result" if "--resume" not in line else line)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert [path for path in sorted(tmp_path.rglob("*")) if "state" not in path.parts] == before


def test_a_place_that_holds_something_is_refused(discreet: Discreet, tmp_path: Path):
    (tmp_path / "result").mkdir()
    (tmp_path / "result" / "thesis.tex").write_text("years")
    ran = discreet("run small.toml --out result")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "already exists" in ran.err
    assert [path.name for path in (tmp_path / "result").iterdir()] == ["thesis.tex"]


def test_too_little_noise_for_the_promise_is_refused_with_exit_code_3(discreet: Discreet, tmp_path: Path):
    ran = discreet("run small.toml --out result --set algorithm.noise_multiplier=0.5")
    assert (ran.code, ran.out) == (3, "")
    assert "and 2 is promised" in ran.err
    assert not (tmp_path / "result").exists()


def test_a_budget_that_ends_in_mid_run_keeps_the_model_and_exits_with_3(discreet: Discreet, tmp_path: Path):
    budget = Budget(unit="example", relation="zero_out", view="server", epsilon=1.5, delta=1e-4)
    Ledger.create(tmp_path / "data.jsonl", [budget])
    refused = discreet("run small.toml --out result --ledger data.jsonl")
    assert refused.code == 3
    assert "can pay for" in refused.err
    assert "--as-far-as-it-goes" in refused.err
    assert not (tmp_path / "result").exists()
    ran = discreet("run small.toml --out result --ledger data.jsonl --as-far-as-it-goes --json")
    assert ran.code == 3
    assert 0 < ran.json["rounds"] < 4
    assert "over the budget of 1.5" in ran.json["stopped"]
    assert ran.json["epsilon"] <= 1.5
    assert (tmp_path / "result" / "model.safetensors").is_file()


def own_terminal() -> None:
    """Make the child's terminal deliver typed signals to it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_ctrl_c_in_a_terminal_stops_after_the_round(discreet: Discreet, tmp_path: Path):
    """A real terminal, a real Ctrl-C: typed when the first round shows on the bar."""
    main, side = pty.openpty()
    line = "run small.toml --out result --set seed=1 --set rounds=100000 --set evaluate_every=1"
    with subprocess.Popen(
        [sys.executable, "-c", "from discreet.cli.main import main; main()", *line.split()],
        stdin=side,
        stdout=subprocess.PIPE,
        stderr=side,
        text=True,
        start_new_session=True,
        preexec_fn=own_terminal,
    ) as ran:
        os.close(side)
        seen = b""
        while b"accuracy" not in seen:
            seen += os.read(main, 1024)
        os.write(main, b"\x03")
        assert ran.stdout is not None
        out = ran.stdout.read()
    os.close(main)
    assert ran.returncode == 1
    assert "Interrupted after" in out
    assert "Guarantee card" in out
    done = len(RunRecord.open(tmp_path / "result").read_rounds())
    assert 0 < done < 100000


def test_an_interrupted_run_is_resumed_to_its_end(discreet: Discreet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    whole = discreet("run small.toml --out whole --set seed=1 --json").json
    with monkeypatch.context() as broken:
        broken.setattr(
            "discreet.experiment.loop.round_player.RoundPlayer.settle",
            lambda *_: (_ for _ in ()).throw(OSError("gone")),
        )
        assert discreet("run small.toml --out result --set seed=1").code == 1
    resumed = discreet("run --resume result --json")
    assert resumed.code == 0
    assert resumed.json["metrics"] == whole["metrics"]
    assert discreet("run --resume result").code == 2
    lines = [json.loads(line) for line in (tmp_path / "result" / "rounds.jsonl").read_text().splitlines()]
    assert [line["round"] for line in lines] == [1, 2, 3, 4]


TABLE = """\
rounds = 2
model = { kind = "linear" }
algorithm = { recipe = "pfl", local_steps = 1, sampling_rate = 0.5, clip_norm = 0.5, learning_rate = 1.0 }

[task]
kind = "csv"
path = "visits.csv"
client = "hospital"
label = "ill"
ranges = { age = { min = 0, max = 100 }, ill = { values = [0, 1] } }

[privacy]
unit = "example"
against = "server"
epsilon = 8.0
delta = 1e-3
"""


def test_a_row_that_changed_since_a_run_was_started_is_refused_with_exit_code_2(
    discreet: Discreet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    rows = [f"{hospital},{age},{age % 2}\n" for hospital in ("north", "south") for age in range(30, 60)]
    (tmp_path / "visits.csv").write_text("hospital,age,ill\n" + "".join(rows))
    (tmp_path / "visits.toml").write_text(TABLE)
    with monkeypatch.context() as broken:
        broken.setattr(
            "discreet.experiment.loop.round_player.RoundPlayer.settle",
            lambda *_: (_ for _ in ()).throw(OSError("gone")),
        )
        assert discreet("run visits.toml --out result").code == 1
    before = {path.name: path.read_bytes() for path in (tmp_path / "result").iterdir()}
    (tmp_path / "visits.csv").write_text("hospital,age,ill\n" + "".join([*rows[:-1], "south,60,1\n"]))
    ran = discreet("run --resume result")
    assert ran.code == 2
    said = " ".join(ran.err.split())
    assert "was started with other " in said
    assert "Restore what it was started with, or start a new run, which spends its budget anew." in said
    assert {path.name: path.read_bytes() for path in (tmp_path / "result").iterdir()} == before
    (tmp_path / "visits.csv").write_text("hospital,age,ill\n" + "".join(rows))
    assert discreet("run --resume result").code == 0


def test_trackers_of_the_file_and_of_the_command_line_are_both_written(discreet: Discreet, tmp_path: Path):
    place = tmp_path / "all.csv"
    ran = discreet(
        f'run --set rounds=2 --set track=[{{kind="json_lines"}}] --track csv={place} --out {tmp_path / "run"}'
    )
    assert ran.code == 0
    assert place.read_text().startswith("round,epsilon,uncovered/")
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 3
    again = discreet(f"run --set rounds=2 --track csv={place} --out {tmp_path / 'again'}")
    assert (again.code, again.err.count("\n")) == (2, 1)
    assert "which exists already" in again.err
    assert not (tmp_path / "again").exists()
    unknown = discreet(f"run --track wandb --out {tmp_path / 'again'}")
    assert (unknown.code, "one of 'csv'" in unknown.err) == (2, True)

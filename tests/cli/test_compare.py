"""`discreet compare`: one table, one page, stored results, and no run of an invalid experiment."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from discreet.experiment.loop import round_player
from tests.cli.conftest import Discreet
from tests.small_experiment import SMALL

OPEN = """\
rounds = 2
task = { kind = "digits", clients = 3 }
model = { kind = "mlp" }

[algorithm]
recipe = "fedavg"
batch_size = 64
learning_rate = 0.5
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "open.toml").write_text(OPEN)
    return tmp_path


def test_a_person_sees_a_line_a_run_and_one_table(discreet: Discreet, folder: Path):
    ran = discreet("compare small.toml open.toml --seeds 2 --sweep algorithm.learning_rate=0.1,2 --out both")
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= 80
    heading, *rows = ran.out.split("\n\n")[0].splitlines()
    assert heading.split() == ["experiment", "learning_rate", "accuracy,", "%", "ε", "rounds", "seconds"]
    assert [each.split()[:2] for each in rows] == [["small", "0.1"], ["small", "2"], ["open", "0.1"], ["open", "2"]]
    assert [each.split()[5] for each in rows] == ["2", "2", "∞", "∞"]
    assert "3 clients, ε at δ = 0.0001 for one example against the server." in " ".join(ran.out.split())
    assert ran.out.count("protect nobody") == 1
    lines = ran.err.splitlines()
    assert len(lines) == 8
    assert lines[0].startswith("1/8  small, algorithm.learning_rate=0.1, seed 0: accuracy 0.")
    assert sorted(path.name for path in (folder / "both").iterdir()) == ["compare.html", "results.jsonl", "table.md"]


def test_json_is_the_same_as_one_object(discreet: Discreet, folder: Path):
    ran = discreet("compare small.toml open.toml --seeds 2 --json")
    assert (ran.code, ran.err) == (0, "")
    small, free = ran.json["rows"]
    assert (ran.json["runs"], ran.json["wanted"], ran.json["seeded"], ran.json["stopped"]) == (4, 4, True, None)
    assert (small["unit"], small["against"], small["delta"], small["rounds"]) == ("example", "server", 1e-4, 4)
    assert 1.9 < small["epsilon"] <= 2
    assert small["mean"] == pytest.approx(sum(small["values"]) / 2)
    assert (free["epsilon"], free["unit"], free["noise_multiplier"]) == (None, None, None)
    assert (folder / ran.json["page"]).parent == folder / "runs" / "compare-small-open"


def test_the_same_command_again_runs_nothing_and_more_seeds_run_only_the_new(discreet: Discreet, folder: Path):
    first = discreet("compare small.toml --seeds 1 --out one --json").json
    assert discreet("compare small.toml --seeds 1 --out one --json").json == first
    more = discreet("compare small.toml --seeds 2 --out one")
    assert more.err.startswith("2/2  small, seed 1: ")
    assert more.err.count("\n") == 1
    assert len((folder / "one" / "results.jsonl").read_text().splitlines()) == 2


def test_a_run_that_diverges_is_shown_as_what_it_is(discreet: Discreet):
    line = 'compare open.toml --seeds 2 --set algorithm.server={kind="sgd",learning_rate=1e300} --out lost'
    ran = discreet(line)
    assert ran.code == 0
    assert ran.out.splitlines()[1].split()[1] == "diverged"
    assert "seed 0: diverged in" in ran.err
    assert discreet(f"{line} --json").json["rows"][0]["diverged"] == 2


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("none.toml", 2, "There is no file none.toml"),
        ("small.toml small.toml", 2, "is there twice"),
        ("small.toml --sweep rounds", 2, "--sweep needs NAME=V1,V2,…, and got 'rounds'. For example: --sweep"),
        ("small.toml --sweep rounds=1,no", 2, "small, rounds=no: rounds: must be a whole number, and got 'no'"),
        ("small.toml --sweep algorithm.epoch=1 --sweep algorithm.epoch=2", 2, "is there twice"),
        ("small.toml --sweep rounds.x=1", 2, "small, rounds.x=1: rounds.x=1: 'rounds' is a value, not a table."),
        ("small.toml --sweep seed=1,2", 2, "Every run gets its seed from --seeds"),
        ("small.toml --sweep privacy.unit=example,client", 2, "small, privacy.unit=client: The promise is about"),
        ("small.toml open.toml --sweep task.clients=3,100000", 2, "small, task.clients=100000: "),
        ("small.toml --sweep algorithm.noise_multiplier=5,0.1", 3, "small, algorithm.noise_multiplier=0.1: "),
        ("small.toml --choose algorithm.clip_norm=1,2", 2, "holds none out. Set it in the task, or add: --set"),
        ("small.toml open.toml --choose algorithm.clip=1,2", 2, "takes no 'clip' (did you mean 'clip_norm'?)"),
        ("small.toml --choose privacy.epsilon=1,2", 2, "would choose the promise by its results"),
        ("small.toml --choose rounds", 2, "--choose needs NAME=V1,V2,…, and got 'rounds'. For example: --choose"),
        ("small.toml --choose rounds=1,2 --sweep rounds=1,2", 2, "is there twice"),
        ("small.toml --latex table.pdf", 2, "The file of --latex must end in .tex"),
        ("small.toml --picture nowhere/table.pdf", 2, "there is no folder nowhere"),
        ("small.toml --seeds 0", 2, "--seeds"),
        ("small.toml --device tpu", 2, "--device"),
        ("", 2, "Missing argument 'FILE...'"),
    ],
)
def test_what_is_wrong_with_a_cell_is_one_sentence_before_anything_runs(
    line: str, code: int, said: str, discreet: Discreet, folder: Path
):
    ran = discreet(f"compare {line} --out here")
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert not (folder / "here").exists()


def test_a_folder_of_something_else_is_left_alone(discreet: Discreet, folder: Path):
    (folder / "here").mkdir()
    (folder / "here" / "thesis.tex").write_text("years")
    ran = discreet("compare small.toml --out here")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert [path.name for path in (folder / "here").iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("other", ["open.toml", "small.toml --sweep algorithm.learning_rate=1,2"])
def test_a_folder_of_another_comparison_is_left_alone(other: str, discreet: Discreet, folder: Path):
    discreet("compare small.toml --seeds 1 --out here")
    before = {path.name: path.read_bytes() for path in (folder / "here").iterdir()}
    ran = discreet(f"compare {other} --seeds 1 --out here")
    assert (ran.code, ran.out) == (2, "")
    assert "here holds another comparison, with results of small, and is not overwritten. Name another" in ran.err
    assert {path.name: path.read_bytes() for path in (folder / "here").iterdir()} == before


def test_a_comparison_goes_on_with_more_files_and_with_an_edited_one(discreet: Discreet, folder: Path):
    discreet("compare open.toml --seeds 1 --out here")
    (folder / "open.toml").write_text(OPEN.replace("0.5", "0.25"))
    assert discreet("compare open.toml small.toml --seeds 1 --out here").code == 0
    assert len((folder / "here" / "results.jsonl").read_text().splitlines()) == 3


def test_ctrl_c_keeps_what_is_done_says_how_to_go_on_and_going_on_ends_as_if_nothing_had_happened(
    discreet: Discreet, monkeypatch: pytest.MonkeyPatch
):
    line = "compare small.toml --seeds 3 --sweep algorithm.learning_rate=1,4"
    whole = discreet(f"{line} --out whole --json").json
    rounds, told = list[int](), round_player.RoundPlayer._complete_record

    def interrupt(*given: Any) -> Any:
        rounds.append(1)
        if len(rounds) == 10:  # in the third of six runs of four rounds
            os.kill(os.getpid(), signal.SIGINT)
        return told(*given)

    with monkeypatch.context() as during:
        during.setattr(round_player.RoundPlayer, "_complete_record", interrupt)
        ran = discreet(f"{line} --out stopped")
    assert (ran.code, len(rounds)) == (1, 10)
    said = " ".join(ran.out.split())
    assert "Interrupted: 2 of 6 runs are done and kept. To continue: discreet compare small.toml" in said
    assert "1 of 3" in ran.out
    again = discreet(f"{line} --out stopped --json")
    assert (again.code, again.json["runs"]) == (0, 6)
    assert [each["values"] for each in again.json["rows"]] == [each["values"] for each in whole["rows"]]


def test_an_interrupted_program_gets_its_object_too(discreet: Discreet, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("discreet.experiment.comparison.comparison._run_cell", lambda *_: None)
    ran = discreet("compare small.toml --out none --json")
    assert ran.code == 1
    assert "0 of 3 runs" in ran.json["stopped"]
    assert ran.json["rows"][0]["mean"] is None


def test_ctrl_c_while_planning_says_how_a_comparison_goes_on(discreet: Discreet, monkeypatch: pytest.MonkeyPatch):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("discreet.experiment.comparison.comparison.plan_comparison", interrupt)
    ran = discreet("compare small.toml --out none")
    assert (ran.code, ran.out) == (1, "")
    assert "the same command goes on" in ran.err
    assert "--resume" not in ran.err


def test_a_terminal_shows_one_bar_over_all_and_it_leaves_nothing_behind(
    discreet: Discreet, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FORCE_COLOR", "1")
    ran = discreet("compare small.toml --seeds 2 --out bar")
    assert ran.code == 0
    assert "run 1/2" in ran.err
    assert "seed 0: accuracy" not in ran.err


def test_every_line_of_results_is_whole_and_says_how_it_went(discreet: Discreet, folder: Path):
    discreet("compare small.toml --seeds 1 --out one")
    (line,) = (folder / "one" / "results.jsonl").read_text().splitlines()
    found = json.loads(line)
    assert [each["round"] for each in found["history"]] == [2, 4]
    assert set(found) >= {"key", "name", "swept", "seed", "metrics", "epsilon", "delta", "seconds", "device"}


def test_settings_are_chosen_on_validation_data_and_reported_on_test_data(discreet: Discreet, folder: Path):
    line = (
        "compare small.toml open.toml --seeds 2 --choose algorithm.learning_rate=0.01,1 "
        "--set task.validation_fraction=0.2 --out chosen --latex t.tex --csv t.csv --picture t.svg"
    )
    ran = discreet(line)
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= 80
    said = " ".join(ran.out.split())
    assert "For each seed, algorithm.learning_rate was chosen from 2 settings by the accuracy on its" in said
    assert "Written: t.tex, t.csv, t.svg" in said
    again = discreet(f"{line} --json").json
    assert (again["runs"], again["wanted"], again["files"]) == (8, 8, ["t.tex", "t.csv", "t.svg"])
    kept = [json.loads(each) for each in (folder / "chosen" / "results.jsonl").read_text().splitlines()]
    for row in again["rows"]:
        for seed in (0, 1):
            tried = [each for each in kept if (each["name"], each["seed"]) == (row["name"], seed)]
            best = max(tried, key=lambda each: each["validation"]["accuracy"])
            assert row["chosen"]["algorithm.learning_rate"][seed] == best["swept"]["algorithm.learning_rate"]
            assert row["values"][seed] == best["metrics"]["accuracy"]
    assert (folder / "t.tex").read_text().count("\\rule") == 0
    assert "\\toprule" in (folder / "t.tex").read_text()


def test_a_choice_is_made_only_for_recipes_that_have_the_field(discreet: Discreet):
    line = (
        "compare small.toml open.toml --seeds 1 --choose algorithm.clip_norm=0.5,1 --set task.validation_fraction=0.2"
    )
    ran = discreet(f"{line} --out some --json")
    assert (ran.code, ran.json["left_out"]) == (0, ["open.toml has no algorithm.clip_norm to choose."])
    small, free = ran.json["rows"]
    assert (list(small["chosen"]), "chosen" in free, ran.json["runs"]) == (["algorithm.clip_norm"], False, 3)
    said = " ".join(discreet(f"{line} --out some").out.split())
    assert "open.toml has no algorithm.clip_norm to choose." in said
    assert "clip_norm was chosen from 2 settings" in said


def test_without_validation_data_the_kept_results_choose_nothing_either(discreet: Discreet):
    discreet("compare open.toml --seeds 1 --sweep algorithm.learning_rate=0.1,1 --out kept")
    ran = discreet("compare open.toml --seeds 1 --choose algorithm.learning_rate=0.1,1 --out kept")
    assert (ran.code, ran.out) == (2, "")
    assert "--choose compares settings on validation data, and open holds none out" in ran.err

"""The harness of benchmarks: all sides do the same work, a stopped case goes on, and the page follows from the JSON."""

import importlib
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TRAINED = (
    "pfl_round",
    "dp_fedavg_cnn",
    "dp_fedavg_resnet18",
    "dp_fedsam_resnet18",
    "femnist",
    "lora_transformer",
    "tiny_clients_10000",
    "dp_sgd_cnn",
    "dp_sgd_linear",
)

TOLERANCES = {
    "pfl_round": 0.25,  # dropout
    "tiny_clients_10000": 0.15,  # the loop plays a part of the clients
    "dp_fedsam_resnet18": 0.05,  # two passes, and 32 groups in layers with four pixels
}


@pytest.fixture(autouse=True)
def _folder_of_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    torch.set_num_threads(1)


def load(name: str) -> Any:
    return importlib.import_module(f"speed.{name}")


def counting_case(losses: dict[str, list[float]], **fields: Any) -> Any:
    """A case whose sides do nothing, and have these losses before and after."""
    case = load("case")

    def contestant(values: list[float]) -> Any:
        given = iter(values)
        return case.Contestant(lambda: None, lambda: next(given))

    def sides(setting: Any) -> Any:
        return {name: (lambda values=values: contestant(values)) for name, values in losses.items()}

    size = {"cpu": {"clients": 3}}
    return case.Case(name="nothing", title="Nothing", work="{clients} clients rest.", sizes=size, sides=sides, **fields)


def limits(turns: int, most: float = float("inf")) -> Any:
    """Limits by a clock that ticks once each time it is read."""
    return load("runner").Limits(turns, most, itertools.count().__next__)


def measure(case: Any, turns: int, most: float = float("inf"), before: Any = None) -> Any:
    return load("runner").measure(case, "cpu", "float32", "cpu", limits(turns, most), before)


def leave_compiled_out(sides: dict[str, Any]) -> dict[str, Any]:
    """Leave the compiled side out: compiling takes half a minute, and test_compiled_step.py tests what it gives."""
    return {name: side for name, side in sides.items() if name != load("case").COMPILED}


def test_training_is_measured_in_compiled_steps_too():
    cases, setting = load("registry").CASES, load("case").Setting
    assert "discreet, compiled" in cases["femnist"].sides(setting("cpu", "float32", cases["femnist"].sizes["tiny"]))
    assert "discreet, compiled" not in cases["epsilon"].sides(setting("cpu", "float32", cases["epsilon"].sizes["tiny"]))


@pytest.mark.parametrize("name", TRAINED)
def test_ours_and_the_plain_loop_lower_the_loss_alike(name: str):
    """Both train on all examples of all clients in one batch, so nothing is drawn but noise, which is tiny."""
    case = load("registry").CASES[name]
    uncompiled = replace(case, sides=lambda setting: leave_compiled_out(case.sides(setting)))
    entry = load("runner").measure(uncompiled, "cpu", "float32", "tiny", limits(1, 0), None)
    ours, *_, loop = entry.sides
    assert (ours.name, loop.name) == ("discreet", "plain loop")
    assert ours.losses[0] == pytest.approx(loop.losses[0], rel=1e-5)
    tolerance = TOLERANCES.get(name, 0.02)
    assert ours.progress == pytest.approx(loop.progress, rel=tolerance)
    assert ours.progress > 0


@pytest.mark.parametrize("name", ["epsilon", "secure_sum"])
def test_sides_without_training_agree_too(name: str):
    case = load("registry").CASES[name]
    entry = load("runner").measure(case, "cpu", "float32", "tiny", limits(1), None)
    assert entry.is_complete


def test_a_side_that_skips_work_is_refused():
    WorkDiffers = load("runner").WorkDiffers
    assert measure(counting_case({"discreet": [2.0, 1.0], "peer": [2.0, 1.1]}), 1).is_complete
    with pytest.raises(WorkDiffers, match=r"peer lowered the loss by 0\.5 and discreet 1"):
        measure(counting_case({"discreet": [2.0, 1.0], "peer": [2.0, 1.5]}), 1)
    with pytest.raises(WorkDiffers, match="must be positive"):
        measure(counting_case({"discreet": [2.0, 2.0], "peer": [2.0, 2.0]}), 1)
    with pytest.raises(WorkDiffers, match="peer lowered the loss by nan"):
        measure(counting_case({"discreet": [2.0, 1.0], "peer": [2.0, float("nan")]}), 1)
    with pytest.raises(WorkDiffers, match="peer found"):
        measure(counting_case({"discreet": [0.0, 1.0], "peer": [0.0, 1.5]}, is_exact=True), 1)


def test_a_case_that_was_stopped_goes_on_with_its_turns():
    case = counting_case({"discreet": [2.0, 1.0], "peer": [2.0, 1.0]})
    stopped = measure(case, 5, most=2)  # the clock allows two turns
    assert [len(side.seconds) for side in stopped.sides] == [2, 2]
    assert not stopped.is_complete
    whole = measure(case, 5, before=stopped)
    assert [len(side.seconds) for side in whole.sides] == [5, 5]
    assert whole.sides[0].seconds[:2] == stopped.sides[0].seconds
    assert whole.is_complete


def test_turns_of_another_machine_or_another_code_are_not_added():
    case = counting_case({"discreet": [2.0, 1.0], "peer": [2.0, 1.0]})
    stopped = measure(case, 5, most=2)
    for field, value in (("machine", "another"), ("code", "another"), ("size", {"clients": 4}), ("note", "kept")):
        before = load("measurements").Entry(**vars(stopped) | {field: value})
        assert len(measure(case, 1, before=before).sides[0].seconds) == 1, field


def test_the_time_of_a_part_is_scaled_up():
    case = load("case")
    sides = {
        "discreet": lambda: case.Contestant(lambda: None, None, 1.0),
        "loop": lambda: case.Contestant(lambda: None, None, 1e6),
    }
    found = measure(case.Case(name="part", title="", work="", sizes={"cpu": {}}, sides=lambda _: sides), 3)
    ours, loop = found.sides
    assert loop.median > 1000 * ours.median


@pytest.fixture
def kept_results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The harness keeps its results in a temporary folder, and has one case."""
    command, case = (
        load("command"),
        counting_case({"discreet": [2.0, 1.0], "peer": [2.0, 1.0]}, goals={"cpu": 0.0, "cuda": 8.0}),
    )
    monkeypatch.setattr(command, "KEPT", tmp_path / "speed.json")
    monkeypatch.setattr(command, "CASES", {"nothing": case})
    return tmp_path / "speed.json"


def test_the_page_is_made_from_what_is_kept(kept_results: Path, capsys: pytest.CaptureFixture[str]):
    main = load("command").main
    assert main(["--write", "--turns", "3"]) == 0
    page = kept_results.with_suffix(".md").read_text()
    assert "3 clients rest." in page
    assert "| Nothing: on a GPU | all peers | – | – | ≥ 8× | not measured |" in page
    assert "| discreet | float32 |" in page
    assert "s | 2 → 1 | – |" in page
    assert "3 turns." in page
    changed = json.loads(kept_results.read_text())
    changed["entries"][0]["sides"][1] |= {"seconds": [10.0, 20.0, 30.0], "first": 40.0}
    changed["entries"][0]["sides"][0]["seconds"] = [1.0, 2.0, 3.0]
    kept_results.write_text(json.dumps(changed))
    assert main(["--page"]) == 0
    page = kept_results.with_suffix(".md").read_text()
    assert "| peer | float32 | 20 s | 15 s to 25 s | 10.00 | 40 s | 2 → 1 | – |" in page
    assert "| Nothing: on a CPU | all peers | float32 | 10× | ≥ 0× | met |" in page


def test_goals_are_counted_in_each_precision_and_for_the_fastest_of_each_side():
    modules = load("measurements")

    def entry(precision: str, ours: float, fast: float, slow: float) -> Any:
        times = {"discreet": 2 * ours, "discreet, compiled": ours, "peer fast": fast, "other": slow}
        sides = [modules.SideTimes(name, precision, [seconds]) for name, seconds in times.items()]
        given = {"case": "nothing", "device": "cuda", "precision": precision, "size": {"clients": 3}, "turns": 1}
        return modules.Entry(**given, machine="", versions={}, code=None, date="", load=None, sides=sides)

    case = counting_case({}, goals={"cuda": 8.0}, against="peer", most_seconds={"cuda": 0.5})
    entries = {each.key: each for each in (entry("float32", 2.0, 20.0, 4.0), entry("bf16", 0.5, 10.0, 4.0))}
    page = load("page").render_page(entries, {"nothing": case})
    assert "| peer | float32 | 10× | ≥ 8× | met |" in page
    assert "| peer | bf16 | 20× | ≥ 8× | met |" in page
    assert "| peer | fastest of each | 20× | ≥ 8× | met |" in page
    assert "| – | float32 | 2 s | ≤ 500 ms | **missed** |" in page
    assert "| – | bf16 | 500 ms | ≤ 500 ms | met |" in page


def test_what_was_measured_elsewhere_is_taken_over(kept_results: Path, tmp_path: Path):
    main, elsewhere = load("command").main, tmp_path / "gpu.json"
    assert main(["--results", str(elsewhere), "--turns", "2"]) == 0
    moved = json.loads(elsewhere.read_text())
    moved["entries"][0] |= {"device": "cuda", "precision": "tf32"}
    elsewhere.write_text(json.dumps(moved))
    assert main(["--write", "--turns", "2"]) == 0
    assert main(["--merge", str(elsewhere)]) == 0
    entries = json.loads(kept_results.read_text())["entries"]
    assert [(entry["device"], entry["precision"]) for entry in entries] == [("cpu", "float32"), ("cuda", "tf32")]
    assert "**On a GPU, tf32.**" in kept_results.with_suffix(".md").read_text()


def test_finished_cases_are_left_out_when_a_session_goes_on(kept_results: Path):
    main = load("command").main
    assert main(["--write", "--turns", "2", "--limit-s", "0"]) == 0
    assert not kept_results.exists()
    assert main(["--write", "--turns", "2", "--go-on"]) == 0
    first = kept_results.read_text()
    assert main(["--write", "--turns", "2", "--go-on"]) == 0
    assert kept_results.read_text() == first
    assert main(["--write", "--turns", "3", "--go-on"]) == 0
    assert len(json.loads(kept_results.read_text())["entries"][0]["sides"][0]["seconds"]) == 3


def test_numbers_of_an_earlier_script_are_kept_until_they_are_measured_again(kept_results: Path):
    main = load("command").main
    assert main(["--write", "--turns", "1"]) == 0
    old = json.loads(kept_results.read_text())
    old["entries"][0] |= {"note": "Kept from a script.", "precision": "as torch ships", "load": None, "date": ""}
    kept_results.write_text(json.dumps(old))
    assert main(["--page"]) == 0
    assert "Kept from a script." in kept_results.with_suffix(".md").read_text()
    assert main(["--write", "--turns", "1", "--go-on"]) == 0
    assert [entry["note"] for entry in json.loads(kept_results.read_text())["entries"]] == [""]


def test_a_file_that_holds_something_else_ends_the_command_in_a_sentence(kept_results: Path, tmp_path: Path):
    (tmp_path / "wrong.json").write_text("[1]")
    with pytest.raises(SystemExit, match=r"wrong\.json must hold"):
        load("command").main(["--merge", str(tmp_path / "wrong.json")])


def test_the_page_in_the_repository_is_made_from_the_numbers_beside_it():
    command, page = load("command"), load("page")
    entries = load("measurements").read_entries(command.KEPT)
    assert command.KEPT.with_suffix(".md").read_text() == page.render_page(entries, command.CASES)

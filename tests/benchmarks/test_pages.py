"""Result pages are rendered from measurements: a run replaces the part of its own device and keeps the other."""

import argparse
import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    results = importlib.import_module("results")
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    return results


def dp_sgd(device: str, ratio: float) -> dict[str, Any]:
    shapes = importlib.import_module("dp_sgd").SHAPES
    found = {"seconds": {"discreet": 0.1, "opacus ghost": 0.1 * ratio}, "ratio_to_best_opacus": ratio}
    return {**entry(device), "repeats": 7, "results": dict.fromkeys(shapes, found)}


def a_round(device: str, ms: float, ratio: float) -> dict[str, Any]:
    seconds = {"discreet": ms / 1000, "pfl": ms * ratio / 1000}
    return {**entry(device), "rounds": 30, "seconds": seconds, "ratio": ratio}


def entry(device: str) -> dict[str, Any]:
    return {"device": device, "machine": f"a {device}", "versions": {"torch": "2"}}


def publish(results: ModuleType, name: str, found: dict[str, Any], **options: Any) -> None:
    chosen = argparse.Namespace(**{"json": False, "write": False, "merge": None} | options)
    results.publish(name, chosen, lambda: found, importlib.import_module(name).page)


def test_each_device_has_its_own_part(results: ModuleType, tmp_path: Path):
    publish(results, "dp_sgd", dp_sgd("cuda", 12.0), write=True)
    publish(results, "dp_sgd", dp_sgd("cpu", 0.5), write=True)
    publish(results, "dp_sgd", dp_sgd("cpu", 2.0), write=True)
    assert list(json.loads((tmp_path / "dp_sgd.json").read_text())) == ["cpu", "cuda"]
    page = (tmp_path / "dp_sgd.md").read_text()
    assert page.index("## On a CPU") < page.index("## On a GPU")
    assert "| CNN, 10 clients, batches of 256: on a CPU | 2.0× | ≥ 1× (aim 1.5×) | met |" in page
    assert "| CNN, 10 clients, batches of 256: on a GPU | 12.0× | ≥ 4× | met |" in page
    assert "| linear, 50 clients, batches of 10: on a CPU | 2.0× | ≥ 10× | **missed** |" in page


def test_the_kernels_page_has_a_row_for_each_product_and_a_sum_for_each_network(results: ModuleType, tmp_path: Path):
    kernels = importlib.import_module("kernels")
    rows = [
        {
            "network": "pfl",
            "layer": layer.words,
            "product": kind,
            "by": who,
            "precision": "tf32",
            "milliseconds": speed,
            "error": 8e-4,
        }
        for layer in kernels.LAYERS[:2]
        for kind in kernels.KINDS
        for who, speed in (("cuDNN", 0.5), ("discreet", 0.125))
    ]
    found = {**entry("cuda"), "rows": rows, "left out": ["64 → 128"]}
    publish(results, "kernels", found, write=True)
    page = (tmp_path / "kernels.md").read_text()
    assert "| pfl | 3 → 32, 3 × 3, 32 × 32 | output | 0.500 (8e-04) | 0.125 (8e-04) |" in page
    assert "| pfl | 3.00 | 0.75 |" in page
    assert "Not measured, since the time was up: 64 → 128." in page


def test_what_was_measured_elsewhere_is_merged(results: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    publish(results, "round", a_round("cuda", 20.0, 25.0), json=True)
    (tmp_path / "gpu.json").write_text(capsys.readouterr().out)
    publish(results, "round", {}, merge=tmp_path / "gpu.json")
    page = (tmp_path / "round.md").read_text()
    assert "| one round on a GPU | 20.0 ms | ≤ 25 ms | met |" in page
    assert "| times as fast as pfl-research | 25.0× | ≥ 20× | met |" in page
    assert "| pfl | 500.00 | 25.0 |" in page


def test_a_goal_that_nobody_measured_is_not_called_met(results: ModuleType, tmp_path: Path):
    publish(results, "round", a_round("cpu", 900.0, 25.0), write=True)
    assert "| one round on a GPU | – | ≤ 25 ms | not measured |" in (tmp_path / "round.md").read_text()


@pytest.mark.parametrize("text", ["", "[1]", '{"device": "tpu", "machine": "", "versions": {}}', '{"device": "cpu"}'])
def test_what_is_no_measurement_is_not_merged(text: str, results: ModuleType, tmp_path: Path):
    (tmp_path / "wrong.json").write_text(text)
    with pytest.raises(SystemExit, match=r"wrong\.json"):
        publish(results, "round", {}, merge=tmp_path / "wrong.json")
    assert not (tmp_path / "round.md").exists()


def test_the_digits_page_says_whether_its_goals_are_met():
    digits = importlib.import_module("digits")
    series = digits.Series("a machine", {"torch": "2"}, [], None, 2.0, 1e-4, [0.89, 0.91, 0.82], [6.0, 7.0, 9.0])
    page = digits.page(series)
    assert "| mean and its standard error | 87.33 ± 2.73 % | ≥ 88 % | **missed** |" in page
    assert "| least | 82.00 % | ≥ 83 % | **missed** |" in page
    assert "| seconds a run, median | 7.0 |" in page


def test_memory_is_a_line_through_the_clients_and_a_full_block() -> None:
    """0.3 GB and 2 kB per client before training; the widest model with the most clients added 1.5 GB."""
    scale = importlib.import_module("scale")
    cells = [
        {
            "clients": clients,
            "parameters": parameters,
            "before": 3e8 + 2e3 * clients,
            "peak": 3e8 + 2e3 * clients + used,
        }
        for clients, parameters, used in ((10, 1_000, 1e8), (1_000, 100_000, 1e9), (10_000, 99_985, 1.5e9))
    ]
    memory = scale.fit_memory(cells)
    assert memory == pytest.approx((3e8, 2e3, 1.5e9))
    assert memory.predict(1_000_000) == pytest.approx(3.8e9)


def test_the_page_of_faults_lists_what_a_new_version_has_mended_apart():
    fault, page = importlib.import_module("peers.fault").Fault, importlib.import_module("peer_faults").page
    still = fault("torch", "A fault.", "1", "2", True, "A remark.", "A test.")
    mended = fault("numpy", "Another fault.", "1", "1", False, "A remark.", "A test.")
    shown, _, gone = page([still, mended]).partition("## No longer there")
    assert "### A fault." in shown
    assert "| 1 | 2 |" in shown
    assert "Another fault" not in shown
    assert "Another fault. Now: 1." in gone


def test_every_program_of_the_folder_of_faults_is_run():
    programs = {path.stem for path in (BENCHMARKS / "peers").glob("*.py")} - {"__init__", "fault"}
    assert programs == set(importlib.import_module("peer_faults").PROGRAMS)

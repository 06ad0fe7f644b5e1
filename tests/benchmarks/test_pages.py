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


def entry(device: str) -> dict[str, Any]:
    return {"device": device, "machine": f"a {device}", "versions": {"torch": "2"}}


def publish(results: ModuleType, found: dict[str, Any], **options: Any) -> None:
    chosen = argparse.Namespace(**{"json": False, "write": False, "merge": None} | options)
    results.publish("sums", chosen, lambda: found, lambda entries: "\n".join(entries))


def test_each_device_has_its_own_part(results: ModuleType, tmp_path: Path):
    publish(results, entry("cuda"), write=True)
    publish(results, entry("cpu"), write=True)
    publish(results, entry("cpu"), write=True)
    assert list(json.loads((tmp_path / "sums.json").read_text())) == ["cpu", "cuda"]
    assert (tmp_path / "sums.md").read_text() == "cpu\ncuda"


def test_the_kernels_page_has_a_row_for_each_product_and_a_sum_for_each_network():
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
    page = kernels.page({"cuda": found})
    assert "| pfl | 3 → 32, 3 × 3, 32 × 32 | output | 0.500 (8e-04) | 0.125 (8e-04) |" in page
    assert "| pfl | 3.00 | 0.75 |" in page
    assert "Not measured, since the time was up: 64 → 128." in page


def test_what_was_measured_elsewhere_is_merged(results: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    publish(results, entry("cuda"), json=True)
    (tmp_path / "gpu.json").write_text(capsys.readouterr().out)
    publish(results, {}, merge=tmp_path / "gpu.json")
    assert (tmp_path / "sums.md").read_text() == "cuda"


@pytest.mark.parametrize("text", ["", "[1]", '{"device": "tpu", "machine": "", "versions": {}}', '{"device": "cpu"}'])
def test_what_is_no_measurement_is_not_merged(text: str, results: ModuleType, tmp_path: Path):
    (tmp_path / "wrong.json").write_text(text)
    with pytest.raises(SystemExit, match=r"wrong\.json"):
        publish(results, {}, merge=tmp_path / "wrong.json")
    assert not (tmp_path / "sums.md").exists()


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

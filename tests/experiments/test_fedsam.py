"""Shi et al.'s page: one setting for all files, so that only the algorithm differs; its verdicts, and its own ε."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from discreet.algorithms.population import Population
from discreet.experiment.configuration import experiment_file
from discreet.experiment.promise.calibrate import calibrate_noise
from experiments.fedsam import cells, coverage, page, paper_epsilon, reproduce
from tests.experiments.drawings import assert_same_drawing

FILES = sorted(cells.HERE.glob("*.toml"))
WRITERS = Population(examples=(150,) * 300)
OWN = {"recipe", "strength", "fraction", "rho", "adaptive"}  # the keys in which algorithms differ


def run(method: str, seed: int, accuracy: float, data: str = "femnist", **radius: str) -> dict[str, Any]:
    return {
        "key": f"{method} {data} {seed} {radius}",
        "name": method,
        "swept": {"data": data, **radius},
        "seed": seed,
        "rounds": 200,
        "clients": 300,
        "metrics": {"accuracy": accuracy},
        "epsilon": 7.99,
        "delta": 1e-5,
        "noise_multiplier": 1.1298,
        "device": "cpu",
        "training": {"accuracy": accuracy + 0.01},
        "diagnostics": {"norm": accuracy, "kept": 0.25, "deviation": 0.03, "clipped": 1.0, "signal_to_noise": 0.3},
        "history": [{"round": 100, "accuracy": accuracy / 2}, {"round": 200, "accuracy": accuracy}],
    }


def runs(method: str, *accuracies: float, **radius: str) -> list[dict[str, Any]]:
    return [run(method, seed, accuracy, **radius) for seed, accuracy in enumerate(accuracies)]


def test_all_of_shi_et_als_algorithms_are_there():
    assert {path.stem for path in FILES} == set(cells.METHODS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_differ_only_in_what_an_algorithm_has_to_itself(path: Path):
    told, first = (tomllib.loads(each.read_text()) for each in (path, FILES[0]))
    assert told["algorithm"]["recipe"] == path.stem
    for each in (told, first):
        each["algorithm"] = {name: value for name, value in each["algorithm"].items() if name not in OWN}
    assert told == first


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_file_promises_the_same_and_takes_the_same_noise(path: Path):
    experiment = experiment_file.load_experiment(path).experiment
    algorithm = calibrate_noise(experiment.algorithm, experiment.privacy, experiment.rounds, WRITERS)
    assert experiment.privacy is not None
    assert (experiment.privacy.unit, experiment.privacy.epsilon) == ("client", 8.0)
    assert algorithm.mechanism.noise_multiplier == pytest.approx(1.1298, abs=1e-3)


def test_every_cell_can_be_read_and_keeps_the_promise_and_the_noise_of_the_files():
    found = [asked.cell() for asked in cells.list_variants()]
    assert len(found) == 3 * 7 + 5
    assert len({(cell.name, *cell.swept.items()) for cell in found}) == len(found)
    first = found[0].source.experiment
    for cell in found:
        experiment = cell.source.experiment
        assert (experiment.privacy, experiment.rounds) == (first.privacy, first.rounds)
        assert (experiment.algorithm.sampling, experiment.algorithm.mechanism) == (
            first.algorithm.sampling,
            first.algorithm.mechanism,
        )
        assert experiment.evaluate_training
    pictures = [cell.source.experiment for cell in found if cell.swept["data"] == "cifar"]
    assert {(each.task.kind, each.task.clients, each.algorithm.trainer.steps) for each in pictures} == {
        ("cifar10", 500, 4)
    }
    radii = [cell.source.experiment.algorithm.trainer.perturbation for cell in found if len(cell.swept) == 3]
    assert {(each.kind, each.rho) for each in radii} == {
        ("asam", 0.1),
        ("asam", 1.0),
        ("sam", 0.5),
        ("sam", 0.05),
        ("sam", 0.01),
    }
    assert {each.data for each in cells.list_variants("cifar")} == {"cifar"}


def test_the_network_for_cifar_has_as_many_parameters_as_the_page_says():
    from experiments.fedsam.networks import small_cnn

    assert sum(value.numel() for value in small_cnn().parameters()) == 19_626
    assert "19,626 parameters" in page.SMALLER["cifar"]


def test_the_papers_own_epsilon_is_reproduced_and_what_its_code_does_costs_more():
    """The code's own numbers to its printed digits; what is certified, by the privacy-loss distribution."""
    assert paper_epsilon.claimed_epsilon(200, 2e-3) == pytest.approx(8.572, abs=5e-4)
    assert paper_epsilon.claimed_epsilon(300, 5e-3) == pytest.approx(9.938, abs=5e-4)
    assert paper_epsilon.certified_epsilon(200, 2e-3) == pytest.approx(7.301, abs=1e-3)
    assert paper_epsilon.certified_epsilon(300, 2e-3, paper_epsilon.NOISE / 62**0.5) == pytest.approx(1465, abs=2)
    assert paper_epsilon.fixed_size(200, 2e-3) > 5 * paper_epsilon.certified_epsilon(200, 2e-3)
    assert paper_epsilon.rounds_for(4) == 47


def verdict(results: list[dict[str, Any]], claim: str) -> str:
    line = next(line for line in page._claims(results, ["femnist"]) if line.startswith(f"| {claim}"))
    return line.split("|")[2].strip()


def test_a_claim_holds_or_fails_only_where_the_difference_is_clear():
    claim, plain = "SAM helps", runs("dp_fedavg", 0.50, 0.52, 0.54)
    assert verdict(plain, claim) == "not run"
    assert verdict([*plain, *runs("dp_fedsam", 0.52, 0.542, 0.558)], claim) == "+2.00 ± 0.12: **holds**"
    assert verdict([*plain, *runs("dp_fedsam", 0.48, 0.502, 0.518)], claim) == "-2.00 ± 0.12: **fails**"
    assert verdict([*plain, *runs("dp_fedsam", 0.51, 0.51, 0.56)], claim) == "+0.67 ± 0.88: no clear difference"


def test_smaller_updates_are_what_the_paper_claims_of_sam():
    found = [*runs("dp_fedavg", 0.50, 0.52, 0.54), *runs("dp_fedsam", 0.48, 0.502, 0.518)]
    assert verdict(found, "updates are smaller with SAM") == "-0.020 ± 0.001: **holds**"


def test_a_radius_of_its_own_is_no_result_of_the_files():
    found = [*runs("dp_fedsam", 0.5), *runs("dp_fedsam", 0.4, adaptive="true", rho="0.1")]
    assert [each["metrics"]["accuracy"] for each in cells.select_results(found, "femnist", "dp_fedsam")] == [0.5]
    rows = [line for line in page._radii(found) if line.startswith("| ASAM")]
    assert [line.split("|")[2:4] for line in rows] == [
        [" 0.1 ", " **40.00** (n = 1) "],
        [" 0.5 ", " **50.00** (n = 1) "],
        [" 1.0 ", " – "],
    ]


def test_the_page_counts_the_tests_behind_its_verdicts():
    told = "\n".join(page._claims(runs("dp_fedavg", 0.5), ["femnist", "mnist"]))
    rows = [line for line in told.splitlines() if line.startswith("| ")][1:]
    assert f"The table has {2 * len(rows)} such tests" in told


def test_missing_runs_are_counted_with_what_they_cost():
    every = [
        run(cell.method, seed, 0.5, cell.data, **dict(cell.radius))
        for cell in cells.list_variants()
        for seed in range(3)
    ]
    assert "All 78 runs that the script asks for were made." in coverage.section(every)
    beyond = [run("dp_fedavg", 3, 0.5)]
    told = "Not run: 15 of the 78 runs that the script asks for, about 2 GPU-minutes."
    assert told in coverage.section([*every[:63], *beyond])


def test_the_page_is_written_alike_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(paper_epsilon, "table", lambda: iter(["## The paper's own ε"]))  # tested by itself, and slow
    found = [each for method in cells.METHODS for each in runs(method, 0.5, 0.52, 0.54)]
    written = []
    for name in ("first", "again"):
        (tmp_path / name).mkdir()
        page.write(found, tmp_path / name)
        written.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})
    assert set(written[0]) == {"fedsam.md", "fedsam.svg"}
    assert written[0] == written[1]
    assert "| DP-FedSAM | **52.00** ± 1.15 | +0.00 ± 0.00 |" in written[0]["fedsam.md"].decode()


def test_the_page_is_what_the_results_say(tmp_path: Path):
    page.write(cells.results(), tmp_path)
    assert (tmp_path / "fedsam.md").read_bytes() == (page.DOCS / "fedsam.md").read_bytes()
    assert_same_drawing(tmp_path / "fedsam.svg", page.DOCS / "fedsam.svg")


def test_other_rounds_go_elsewhere(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="2"):
        reproduce.main(["--rounds", "2"])
    assert "say with --out where they go" in capsys.readouterr().err

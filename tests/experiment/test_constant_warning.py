"""A model that diverged or is hardly better than a constant answer is said to be so, after a run and on its page."""

from pathlib import Path

import pytest

from discreet.experiment.metrics import model_warning
from discreet.experiment.run_directory.run_data import read_run
from discreet.report.run_page import render_page
from tests.cli.conftest import Discreet, discreet  # noqa: F401 - a fixture
from tests.cli.test_standardised_runs import write_experiment


@pytest.mark.parametrize(
    ("metrics", "constant", "is_warned"),
    [
        ({"accuracy": 0.509}, 0.5, True),
        ({"accuracy": 0.40}, 0.5, True),
        ({"accuracy": 0.52}, 0.5, False),
        ({"accuracy": 0.40}, None, False),
        ({"mse": 0.0999, "constant_mse": 0.1}, None, True),
        ({"mse": 0.05, "constant_mse": 0.1}, None, False),
        ({"mse": "inf", "constant_mse": 0.1}, None, True),
        ({"mse": "nan", "constant_mse": 0.1}, None, True),
        ({"loss": 3.0}, 0.5, False),
        ({"accuracy": 0.9, "loss": "nan"}, 0.5, True),
        ({"loss": float("inf")}, None, True),
    ],
)
def test_what_diverged_or_is_hardly_better_than_a_constant_is_warned_of(
    metrics: dict[str, float | str], constant: float | None, is_warned: bool
) -> None:
    assert (model_warning(metrics, constant) is not None) is is_warned


def test_the_owner_reads_it_and_the_public_page_leaves_it_out(tmp_path: Path, discreet: Discreet) -> None:  # noqa: F811
    file = write_experiment(tmp_path)
    options = "--set task.standardise=false --set algorithm.learning_rate=1e-6"
    said = " ".join(discreet(f"run {file} {options} --out {tmp_path / 'run'}").out.split())
    assert "The model has learned little: always predicting the most frequent label is right for" in said
    run = read_run(tmp_path / "run")
    assert run.warning is not None
    assert "has learned little" in render_page(run)
    assert "has learned little" not in render_page(run, public=True)

"""A plan forecasts from public numbers whether a model will be better than a constant answer."""

import math
from pathlib import Path

import numpy as np
import pytest

from discreet import api
from discreet.experiment.configuration import experiment_file
from discreet.planning.learning_forecast import run_noise_to_signal
from tests.cli.conftest import Discreet, discreet  # noqa: F401 - a fixture

CLASSES = '[columns]\nage = { min = 0, max = 120 }\nill = { values = ["no", "yes"] }\n'
NUMBER = "[columns]\nage = { min = 0, max = 120 }\nill = { min = 0, max = 10 }\n"


def write_table(folder: Path, rows: int, ranges: str = CLASSES) -> None:
    numbers = np.random.default_rng(0)
    ages = numbers.integers(20, 80, rows)
    ill = ages / 10 if ranges == NUMBER else np.where(ages > 50, "yes", "no")
    lines = [f"{'abcd'[row % 4]},{age},{label}\n" for row, (age, label) in enumerate(zip(ages, ill, strict=True))]
    (folder / "visits.csv").write_text("hospital,age,ill\n" + "".join(lines))
    (folder / "ranges.toml").write_text(ranges)


def plan_warnings(folder: Path, discreet: Discreet, options: str = "", epsilon: float = 2.0) -> list[str]:  # noqa: F811
    file = folder / f"{len(list(folder.iterdir()))}.toml"
    ran = discreet(f"init {file} --table {folder / 'visits.csv'} --client hospital --label ill {options}")
    assert ran.code == 0, ran.err
    found: list[str] = discreet(f"plan {file} --set privacy.epsilon={epsilon} --json").json["warnings"]
    return [warning for warning in found if "will probably be no better" in warning]


def test_the_noise_of_all_rounds_is_that_of_a_sum_over_all_of_them(tmp_path: Path):
    write_table(tmp_path, 400)
    text = """rounds = 9
model = { kind = "linear" }
[task]
kind = "csv"
path = "visits.csv"
client = "hospital"
label = "ill"
ranges = "ranges.toml"
test_fraction = 0.0
[algorithm]
recipe = "ddp_fedavg"
noise = "gaussian"
noise_multiplier = 5.0
sampling_rate = 1.0
clip_norm = 0.7
learning_rate = 1.0
"""
    (tmp_path / "e.toml").write_text(text)
    terms = api.prepare_job(experiment_file.load_experiment(tmp_path / "e.toml")).terms
    expected = 5.0 * math.sqrt(9) * math.sqrt(4) / (9 * 400)  # 2 × 2 weights; 9 sums of 400 gradients at the clip
    assert run_noise_to_signal(terms) == pytest.approx(expected)


@pytest.mark.parametrize(("ranges", "answer"), [(CLASSES, "the same label"), (NUMBER, "the mean")])
def test_few_rows_are_warned_of_and_many_are_not(
    ranges: str,
    answer: str,
    tmp_path: Path,
    discreet: Discreet,  # noqa: F811
):
    write_table(tmp_path, 16, ranges)
    (warning,) = plan_warnings(tmp_path, discreet)
    assert answer in warning
    assert "More rows, fewer inputs or a larger epsilon may help." in warning
    write_table(tmp_path, 2_000, ranges)
    assert plan_warnings(tmp_path, discreet) == []


def test_rows_dont_help_where_whole_clients_are_protected(tmp_path: Path, discreet: Discreet):  # noqa: F811
    write_table(tmp_path, 2_000, NUMBER)
    assert plan_warnings(tmp_path, discreet, epsilon=1.0) == []
    (warning,) = plan_warnings(tmp_path, discreet, "--unit client", epsilon=1.0)
    assert "More clients" in warning


def test_without_noise_nothing_is_forecast(tmp_path: Path, discreet: Discreet):  # noqa: F811
    write_table(tmp_path, 16)
    assert (
        discreet(f"init {tmp_path / 'e.toml'} --table {tmp_path / 'visits.csv'} --client hospital --label ill").code
        == 0
    )
    text = (tmp_path / "e.toml").read_text()
    fedavg = '[algorithm]\nrecipe = "fedavg"\nbatch_size = 8\nlearning_rate = 0.1\n'
    (tmp_path / "e.toml").write_text(text[: text.index("[privacy]")] + fedavg)
    assert discreet(f"plan {tmp_path / 'e.toml'} --json").json["warnings"] == []

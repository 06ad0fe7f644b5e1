"""A small experiment that trains in a tenth of a second, and a temporary state folder."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from discreet import api
from discreet.experiment.configuration import experiment_file
from discreet.experiment.job import Job
from discreet.trust import Trust

SMALL = """\
rounds = 4
task = { kind = "digits", clients = 3 }
model = { kind = "linear" }
evaluate_every = 2

[privacy]
unit = "example"
against = "server"
epsilon = 2.0
delta = 1e-4

[algorithm]
recipe = "pfl"
local_steps = 1
sampling_rate = 0.1
clip_norm = 0.5
learning_rate = 4.0
"""

PrepareJob = Callable[..., Job]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    torch.set_num_threads(1)
    return tmp_path / "state"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    return file


@pytest.fixture
def prepare(small: Path) -> PrepareJob:
    return lambda *overrides: api.prepare_job(experiment_file.load_experiment(small, overrides, trust=Trust.all_code()))

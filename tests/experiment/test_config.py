"""An experiment file is one record: what it may contain, its errors, and what is stored of it."""

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

from discreet import api
from discreet.algorithms.recipes.dp_fedavg import dp_fedavg
from discreet.algorithms.recipes.pfl import pfl
from discreet.algorithms.sampling import FixedSize
from discreet.api import train
from discreet.engines.engine_table import Reference
from discreet.errors import InvalidInput
from discreet.experiment.configuration import experiment_file, toml_document
from discreet.experiment.configuration.experiment_file import Experiment
from discreet.experiment.configuration.run_settings import (
    WITHOUT_EFFECT_ON_NUMBERS,
    RunSettings,
    SettingKeywords,
    Settings,
)
from discreet.experiment.configuration.toml_document import build_record, override_values, parse_toml
from discreet.trust import Trust
from tests.small_experiment import PrepareJob

PARTS = """\
[algorithm]
sampling = { kind = "fixed_size", cohort = 2 }
trainer = { kind = "local_sgd", learning_rate = 0.1, batch_size = 8, steps = 2 }
mechanism = { kind = "gaussian", clip_norm = 1.0, noise_multiplier = 2.0 }
"""


def test_the_built_in_experiment_is_the_one_of_the_design():
    experiment = experiment_file.load_experiment().experiment
    assert (experiment.rounds, experiment.seed) == (100, None)
    assert experiment.algorithm == pfl(local_steps=1, sampling_rate=0.5, clip_norm=0.5, learning_rate=3.0)
    assert experiment.privacy is not None
    assert (experiment.privacy.epsilon, experiment.privacy.delta) == (2.0, 1e-4)


def test_an_algorithm_may_be_given_part_by_part(small: Path):
    small.write_text(small.read_text().split("[privacy]")[0] + PARTS)
    algorithm = experiment_file.load_experiment(small).experiment.algorithm
    same = dp_fedavg(
        learning_rate=0.1, batch_size=8, steps=2, clip_norm=1.0, noise_multiplier=2.0, sampling=FixedSize(cohort=2)
    )
    assert algorithm == same


def test_a_recipe_takes_parts_as_tables(small: Path):
    experiment = experiment_file.load_experiment(
        small, ('algorithm.server={kind="adam", learning_rate=0.1}',)
    ).experiment
    assert experiment.algorithm.server.kind == "adam"


def test_overrides_change_the_experiment_and_keep_the_comments_of_its_text():
    source = experiment_file.load_experiment(
        None, ("privacy.epsilon=1", "task.clients=20", "engine.kind=reference", "device=cpu")
    )
    assert source.experiment.privacy is not None
    assert source.experiment.privacy.epsilon == 1
    assert source.experiment.task.clients == 20  # type: ignore[union-attr]
    assert source.experiment.engine == Reference()
    assert "# the promise; the noise is computed from it" in source.text
    assert build_record(Experiment, parse_toml(source.text, "")) == source.experiment


def test_the_resolved_experiment_reads_back_as_the_same_with_its_noise(prepare: PrepareJob):
    job = prepare("seed=3")
    again = build_record(Experiment, parse_toml(job.resolved_text, ""))
    assert again.algorithm == job.algorithm
    assert again.algorithm.trainer.noise_multiplier is not None  # type: ignore[union-attr]
    assert (again.seed, again.privacy) == (3, job.privacy)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("roudns=3", "There is no key 'roudns' (did you mean 'rounds'?); allowed are: algorithm, checkpoint_every"),
        ("task.client=3", "There is no key 'task.client' (did you mean 'clients'?); allowed are: clients, kind"),
        ("privacy.eps=3", "allowed are: against, delta, epsilon, unit"),
        (
            "engine={kind='embedded', memory=3}",
            "no key 'engine.memory' (did you mean 'memory_gb'?); allowed are: block_size, kind",
        ),
        ("engine.memory_gb=3", "engine needs a kind; there are: embedded, secure, reference"),
        ("algorithm.recipe=pfll", "There is no recipe 'pfll'. There are: fedavg, fedsgd, fedprox, pfl"),
        ("algorithm.clip=1", "takes no 'clip' (did you mean 'clip_norm'?). It takes: learning_rate, clip_norm"),
        ("algorithm.clip_norm=-1", "must be between 1e-30 and 1e30, and got -1"),
        ("algorithm.clip_norm=big", "must be a number or a list, and got 'big'"),
        ("rounds=2.5", "must be a whole number, and got 2.5"),
        ("rounds=true", "must be a whole number, and got True"),
        ("rounds=0", "at least 1"),
        ("seed=-1", "at least 0"),
        ("privacy.epsilon=nan", "finite"),
        ("privacy.delta=1", "below 1"),
        ("privacy.against=everyone", "'server', 'client' or 'public'"),
        ("task.kind=digit", "'digits', 'csv'"),
        ("model.kind=linaer", "'linear'"),
        ("dtype=float16", "'float32' or 'float64'"),
        ("algorithm=pfl", "algorithm must be a table, and got 'pfl'"),
        ("rounds.a=1", "'rounds' is a value, not a table"),
        ('tune.space."algorithm.lr={low=1}', "--set needs NAME=VALUE, and got"),
        ("rounds", "--set needs NAME=VALUE, and got 'rounds'"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_allowed(override: str, said: str, small: Path):
    with pytest.raises(InvalidInput) as refused:
        experiment_file.load_experiment(small, (override,))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_long_list_of_numbers_is_written_as_a_short_one_is():
    """tomlkit takes six seconds for 10,000 numbers in a list, and a hundred times that for ten times as many."""
    numbers = [0, 1, 10**12] * toml_document.LONG
    text = toml_document.format_toml({"task": {"examples": tuple(numbers), "name": "a"}, "rounds": 2})
    assert text.splitlines()[:2] == ["rounds = 2", ""]
    assert f"examples = [{', '.join(map(str, numbers))}]" in text.splitlines()
    assert parse_toml(text, "it") == {"rounds": 2, "task": {"examples": numbers, "name": "a"}}
    short = toml_document.format_toml({"task": {"examples": [3, 4]}})
    assert "examples = [3, 4]" in short.splitlines()


def test_a_name_with_a_dot_is_set_in_quotes_as_in_toml():
    changed = override_values("", ['tune.space."algorithm.clip_norm"={low=1, high=2}', "tune.space.'a=b' = 3"])
    assert parse_toml(changed, "x") == {"tune": {"space": {"algorithm.clip_norm": {"low": 1, "high": 2}, "a=b": 3}}}


@pytest.mark.parametrize(
    ("missing", "said"), [("rounds = 4\n", "rounds is missing"), ("clip_norm = 0.5\n", "needs clip_norm")]
)
def test_what_is_missing_is_named(missing: str, said: str, small: Path):
    small.write_text(small.read_text().replace(missing, ""))
    with pytest.raises(InvalidInput, match=said):
        experiment_file.load_experiment(small)


def test_a_file_that_is_not_there_or_no_toml_is_named(tmp_path: Path):
    with pytest.raises(InvalidInput, match=r"There is no file .*discreet init"):
        experiment_file.load_experiment(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("rounds = \n")
    with pytest.raises(InvalidInput, match=r"bad\.toml is not valid TOML"):
        experiment_file.load_experiment(tmp_path / "bad.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="not UTF-8"):
        experiment_file.load_experiment(tmp_path / "bad.toml")


def test_a_users_own_model_loss_and_metric_lie_beside_the_file(small: Path):
    (small.parent / "mine.py").write_text(
        "import torch\n"
        "def net(task): return torch.nn.Linear(64, task.classes)\n"
        "def loss(outputs, targets): return torch.nn.functional.cross_entropy(outputs, targets, reduction='none')\n"
        "def worst(outputs, targets): return {'worst': float(outputs.min())}\n"
    )
    own = ("model.kind=mine.py:net", "loss=mine.py:loss", "metric=mine.py:worst")
    job = api.prepare_job(experiment_file.load_experiment(small, own, trust=Trust.all_code()))
    assert {"accuracy", "loss", "worst"} <= set(job.evaluate(job.algorithm.init(job.params)))
    with pytest.raises(InvalidInput, match="no 'lost'"):
        api.prepare_job(experiment_file.load_experiment(small, ("loss=mine.py:lost",), trust=Trust.all_code()))


def test_a_device_that_is_not_there_is_refused(small: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(InvalidInput, match="finds no CUDA device"):
        api.prepare_job(experiment_file.load_experiment(small, ("device=cuda",)))


def test_train_takes_every_setting_of_a_file_as_a_keyword():
    names = {field.name for field in fields(RunSettings)}
    assert names == {"rounds", *SettingKeywords.__annotations__}
    assert set(WITHOUT_EFFECT_ON_NUMBERS) <= names
    assert names == set(Settings.__dataclass_fields__)
    assert names < set(Experiment.__dataclass_fields__)


def test_the_docstring_of_train_describes_every_setting():
    _, _, settings = (inspect.getdoc(train) or "").partition("**settings:")
    settings, _, _ = settings.partition("Returns:")
    assert set(re.findall(r"^ {8}(\w+): ", settings, re.MULTILINE)) == set(SettingKeywords.__annotations__)

"""Errors of an experiment are found when it is planned, before a directory, a ledger or a budget is touched."""

import json
from pathlib import Path

import pytest

from discreet import api
from discreet.cli.main import run
from discreet.errors import InvalidInput
from discreet.experiment.configuration import experiment_file
from discreet.experiment.job import Job
from discreet.experiment.loop import run_guarantees
from discreet.planning.experiment_plan import plan_experiment
from discreet.privacy.ledger import Budget, Ledger

INTEGERS = """\
rounds = 3
task = { kind = "digits", clients = 10, partition = "iid" }
model = { kind = "linear" }

[privacy]
unit = "example"
against = "server"
epsilon = 2.0
delta = 1e-4

[algorithm]
trainer = { kind = "broadcast_gradients", steps = 1, sampling_rate = 0.5, clip_norm = 1.0, learning_rate = 1.0 }
mechanism = { kind = "skellam" }
aggregation = { kind = "lattice" }
"""
HEAD = """\
rounds = 3
task = { kind = "digits", clients = 4 }
model = { kind = "mlp" }

[algorithm]
recipe = "convex_local"
learning_rate = 2.0
clip_norm = 0.5
feature_bound = 3.0
batch_size = 32
noise_multiplier = 5.0
"""


def prepare(folder: Path, text: str, *overrides: str) -> Job:
    (folder / "experiment.toml").write_text(text)
    return api.prepare_job(experiment_file.load_experiment(folder / "experiment.toml", overrides))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("algorithm.aggregation.dimension=1", "laid out for a model of 1 numbers, and this one has 650"),
        ("algorithm.aggregation={kind='lattice',bits=16,scale=1e5}", "leaves the ring of 16 bits"),
        ("algorithm.aggregation={kind='lattice',bits=7,scale=1.0}", "bits"),
        ("algorithm.aggregation.scale=1e9", "too fine"),
    ],
)
def test_a_lattice_that_would_promise_or_carry_too_much_is_refused(tmp_path: Path, change: str, sentence: str):
    with pytest.raises(InvalidInput, match=sentence):
        prepare(tmp_path, INTEGERS, change)


def test_a_file_as_it_was_resolved_makes_the_same_algorithm(tmp_path: Path):
    first = prepare(tmp_path, INTEGERS)
    again = prepare(tmp_path, first.resolved_text)
    assert (again.algorithm, again.resolved_text) == (first.algorithm, first.resolved_text)


def test_a_training_for_linear_heads_refuses_another_model_when_the_job_is_made(tmp_path: Path):
    with pytest.raises(InvalidInput, match="takes a model of one linear layer under cross-entropy"):
        prepare(tmp_path, HEAD)
    assert prepare(tmp_path, HEAD, "model={kind='linear'}").algorithm.trainer.kind == "convex_local"


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_tensor_cores_are_refused_on_a_cpu_and_in_double_precision(tmp_path: Path, precision: str):
    with pytest.raises(InvalidInput, match=f'precision = "{precision}" needs a GPU'):
        prepare(tmp_path, INTEGERS, f"precision={precision}", "device=cpu")
    with pytest.raises(InvalidInput, match="whose digits tensor cores don't keep"):
        prepare(tmp_path, INTEGERS, f"precision={precision}", "dtype=float64")
    with pytest.raises(InvalidInput, match="'float32', 'tf32' or 'bf16'"):
        prepare(tmp_path, INTEGERS, "precision=half")
    assert prepare(tmp_path, INTEGERS, "precision=float32", "device=cpu").simulation.precision == "float32"


def test_a_refused_run_leaves_no_directory_and_spends_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "head.toml").write_text(HEAD)
    budget = Budget(unit="example", relation="zero_out", view="server", epsilon=50.0, delta=1e-4)
    Ledger.create(tmp_path / "led.jsonl", [budget])
    where = ["--out", str(tmp_path / "out"), "--ledger", str(tmp_path / "led.jsonl")]
    for command in (["plan"], ["run", *where]):
        assert run([*command, str(tmp_path / "head.toml")]) == 2
        assert "one linear layer" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert Ledger.open(tmp_path / "led.jsonl").summary()["budgets"][0]["spent"] == 0


def test_what_is_left_to_chance_is_on_the_card_and_in_the_plan(tmp_path: Path):
    """3 rounds of 650 parameters: 3e-9 for the ring at most, 2·650·3·2^-52 = 8.7e-13 for the draws."""
    job = prepare(tmp_path, INTEGERS)
    source = experiment_file.load_experiment(tmp_path / "experiment.toml")
    found = json.loads(json.dumps(plan_experiment(source, job.terms)))
    assert 0 < found["wraparound"] <= 3.1e-9
    words = " ".join(run_guarantees.certify_run(job.terms, 3, None, shared=False)[0].assumptions)
    assert "Over 3 rounds a sum leaves its ring of 23 bits with a probability of at most" in words
    assert "may add up to 8.7e-13 to δ, which is not counted" in words
    assert plan_experiment(source, prepare(tmp_path, INTEGERS, "privacy.epsilon=1.0").terms)["wraparound"] <= 3.1e-9


def test_a_card_of_sums_on_a_graph_says_what_few_neighbours_leave_to_chance(tmp_path: Path):
    """3 rounds at 2^-40 are 2.8e-12. Ten clients are all neighbours, so no probability is involved."""
    secure = 'engine={kind="secure"}'
    for clients, said in ((10, 0), (400, 1)):
        job = prepare(tmp_path, INTEGERS, secure, f"task.clients={clients}")
        words = " ".join(run_guarantees.certify_run(job.terms, 3, None, shared=False)[0].assumptions)
        assert words.count("shares masks with 100 others, on a random graph") == said
        assert words.count("2^-40 a round: over 3 rounds that may add up to 2.8e-12 to δ") == said

"""The diagnostics in rounds.jsonl: numbers that no guarantee covers, and the card says so."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from discreet.engines.engine import CohortSum
from discreet.experiment.job import Job
from discreet.experiment.loop import diagnostics, training_loop
from tests.small_experiment import PrepareJob

CENTRAL = (  # three clients of a model of 650 numbers; z = 2
    'algorithm={recipe="dp_fedavg", learning_rate=0.5, batch_size=32, clip_norm=1.0, noise_multiplier=2.0}',
    'privacy={unit="client", against="public", epsilon=100.0, delta=1e-4}',
)


def cohort_sum(job: Job, *norms: float, signal: float = 1.0) -> CohortSum:
    sizes = torch.tensor(norms, dtype=torch.float64)
    whole = {name: torch.zeros_like(value) for name, value in job.params.items()}
    return CohortSum(whole, tuple(range(len(norms))), sizes, (1 / sizes).clamp(max=1), torch.tensor(signal))


def train(job: Job, out: Path) -> list[dict[str, Any]]:
    training_loop.start(job, out, None, None, lambda line: None)
    return [json.loads(line) for line in (out / "rounds.jsonl").read_text().splitlines()]


def test_norms_are_told_by_their_quantiles(prepare: PrepareJob) -> None:
    """Of 1, 2, …, 21 the 5 % quantile is the second, the 25 % quantile the sixth, and so on."""
    line = diagnostics.round_diagnostics(job := prepare(*CENTRAL), cohort_sum(job, *map(float, range(1, 22))))
    assert line["norms"] == {"mean": 11, "median": 11, "max": 21, "p5": 2, "p25": 6, "p75": 16, "p95": 20}
    assert line["clipped"] == 20 / 21


def test_a_norm_that_is_no_number_is_said_in_words(prepare: PrepareJob) -> None:
    line = diagnostics.round_diagnostics(job := prepare(*CENTRAL), cohort_sum(job, 1.0, math.nan))
    assert {line["norms"][name] for name in ("mean", "p5", "p95")} == {"nan"}
    json.dumps(line, allow_nan=False)


def test_signal_to_noise_is_the_sums_norm_over_that_of_its_noise(prepare: PrepareJob) -> None:
    """z = 2 in each of 650 coordinates has a norm of 2·√650; on 65 of them, 2·√65."""
    job = prepare(*CENTRAL)
    assert diagnostics.signal_to_noise(job, cohort_sum(job, 1.0, signal=3.0)) == pytest.approx(3 / (2 * math.sqrt(650)))
    masked = prepare(*CENTRAL, 'algorithm.recipe="fed_smp_rand"', "algorithm.fraction=0.1")
    assert diagnostics.signal_to_noise(masked, cohort_sum(masked, 1.0, signal=3.0)) == pytest.approx(
        3 / (2 * math.sqrt(65))
    )


def test_the_noise_of_clients_own_grows_with_the_square_root_of_their_number(prepare: PrepareJob) -> None:
    local = 'algorithm={recipe="ldp_fedavg", learning_rate=0.1, gradient_bound=1.0, noise_multiplier=8.0}'
    job = prepare(local, 'privacy={unit="client", against="server", epsilon=100.0, delta=1e-4}')
    each = 8 * math.sqrt(2)  # the deviation of Laplace noise of scale 8
    found = diagnostics.signal_to_noise(job, cohort_sum(job, 1.0, 1.0, 1.0, signal=5.0))
    assert found == pytest.approx(5 / (each * math.sqrt(3 * 650)))
    assert diagnostics.signal_to_noise(job, cohort_sum(job)) is None  # nobody came, so there is no noise either


def test_without_noise_or_with_noise_in_training_there_is_no_signal_to_noise(prepare: PrepareJob) -> None:
    job = prepare()  # DP-SGD: the update without its noise is unknown
    assert "signal_to_noise" not in diagnostics.round_diagnostics(job, cohort_sum(job, 1.0))


def test_a_run_tells_of_every_round(prepare: PrepareJob, tmp_path: Path) -> None:
    lines = train(prepare(*CENTRAL, "seed=1"), tmp_path / "run")
    assert [line["bits"] for line in lines] == [{"up": 32 * 650, "down": 32 * 650}] * 4
    for line in lines:
        most = 3 / (2 * math.sqrt(650))  # three clients, each of norm 1 at most
        assert 0 < line["signal_to_noise"] <= most
        sizes = line["norms"]
        assert sizes["p5"] <= sizes["p25"] <= sizes["median"] <= sizes["p75"] <= sizes["p95"] <= sizes["max"]
    assert all("training" not in line for line in lines)


def test_the_model_is_tried_on_training_examples_where_that_is_asked_for(prepare: PrepareJob, tmp_path: Path) -> None:
    job = prepare("seed=1", "evaluate_training=true")
    lines = train(job, tmp_path / "run")
    assert ["training" in line for line in lines] == [False, True, False, True]  # as often as on test examples
    assert set(lines[-1]["training"]) == set(lines[-1]["evaluation"]) >= {"accuracy", "loss"}
    assert lines[-1]["training"] != lines[-1]["evaluation"]
    card = json.loads((tmp_path / "run" / "guarantee.json").read_text())["guarantees"][0]
    assert any("training examples" in each for each in card["not_covered"])
    assert any("signal-to-noise" in each for each in card["not_covered"])
    plain = train(prepare("seed=1"), tmp_path / "plain")
    assert plain[-1]["evaluation"] == lines[-1]["evaluation"]  # evaluation changes nothing


def test_the_training_examples_are_the_same_few_in_every_round(
    prepare: PrepareJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.experiment.job.TRAINING_EXAMPLES", 50)
    one, again, other = (prepare(f"seed={seed}") for seed in (1, 1, 2))
    assert len(one._training_examples[0]) == 50
    assert torch.equal(one._training_examples[0], again._training_examples[0])
    assert not torch.equal(one._training_examples[0], other._training_examples[0])

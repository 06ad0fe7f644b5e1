"""Scores: what one unit can change, how much noise they have, and which are refused."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from discreet.errors import InvalidInput, Unsupported
from discreet.experiment.job import Job
from discreet.experiment.tuning.trial_score import Scorer, choose_scorer
from discreet.models.user_module.supervised_module import SupervisedModule
from discreet.privacy.events import DiscreteGaussianNoise, steps
from discreet.privacy.ledger import Budget
from discreet.privacy.release import Person, Release
from tests.experiment.tuning.searches import make_builder, write_file


@pytest.fixture
def builder(tmp_path):
    return make_builder(write_file(tmp_path))


def test_the_default_noise_is_half_the_root_of_the_examples(builder):
    job = builder.build({})
    scorer = choose_scorer(job, builder.read_tune())
    assert scorer.examples == len(job.validation_data[1])
    assert scorer.deviation == pytest.approx(math.sqrt(scorer.examples) / 2)


def test_a_client_can_change_as_many_as_it_holds_out(builder):
    job = builder.build({})
    held = [int(size * 0.2) for size in _sizes_before(job)]
    bound = choose_scorer(job, builder.read_tune()).client_bound
    assert max(held) <= bound <= max(held) + 1
    budget = Budget(unit="client", relation="zero_out", view="public", epsilon=9.0, delta=1e-4)
    assert choose_scorer(job, builder.read_tune(), [budget]).deviation == pytest.approx(5 * bound)


def _sizes_before(job):
    """The sizes s with s − ⌊s/5⌋ examples left to train on."""
    return [
        next(s for s in range(trained, 2 * trained) if s - int(s * 0.2) == trained)
        for trained in job.population.examples
    ]


@pytest.mark.parametrize("unit", ["client", Person(column="patient", at_most=3)])
def test_examples_of_unknown_owners_bound_no_client_and_no_person(unit):
    unknown = Scorer("accuracy", 100, 5.0)
    assert unknown.sensitivity("example") == 1
    with pytest.raises(Unsupported, match="Whose the validation examples are"):
        unknown.sensitivity(unit)


def test_a_person_can_change_as_many_as_it_has_rows():
    held_out = Scorer("accuracy", 100, 5.0, is_held_out=True)
    assert held_out.sensitivity(Person(column="patient", at_most=3)) == 3
    assert held_out.sensitivity(Person(column="patient", at_most=3, clients_at_most=2)) == 6


def test_an_example_that_several_clients_hold_can_change_as_many(builder):
    job = builder.build({})
    shared = replace(job, declared=replace(job.population, max_multiplicity=3))
    scorer = choose_scorer(shared, builder.read_tune())
    assert scorer.sensitivity("example") == 3
    assert scorer.deviation >= 15


def test_a_score_is_a_release_to_every_view_of_the_training(builder):
    job = builder.build({})
    scorer = choose_scorer(job, builder.read_tune())
    trained = job.algorithm.planned_releases(job.rounds, job.population)
    released = scorer.releases(trained)
    assert {(r.unit, r.relation, r.view) for r in released} == {(r.unit, r.relation, r.view) for r in trained}
    noise = DiscreteGaussianNoise(variance=scorer.deviation**2, l2_sensitivity=1.0)
    assert noise in steps(scorer.add_to(trained[0]).event)


def test_public_examples_need_no_noise_and_release_nothing(tmp_path):
    builder = make_builder(write_file(tmp_path), "tune.public_validation=true")
    scorer = choose_scorer(builder.build({}), builder.read_tune())
    release = Release(
        unit="example",
        relation="zero_out",
        view="server",
        event=DiscreteGaussianNoise(variance=4.0, l2_sensitivity=1.0),
    )
    assert scorer.deviation is None
    assert scorer.releases([release]) == []
    assert scorer.add_to(release) == release


def test_without_validation_data_a_search_is_refused_and_never_scored_on_test_data(tmp_path):
    builder = make_builder(write_file(tmp_path), "task.validation_fraction=0")
    with pytest.raises(InvalidInput, match=r"validation_fraction = 0\.2"):
        choose_scorer(builder.build({}), builder.read_tune())


@pytest.mark.parametrize("metric", ["loss", "mse"])
def test_a_metric_without_a_bound_is_refused_on_private_data(tmp_path, metric):
    builder = make_builder(write_file(tmp_path), f"tune.metric={metric}")
    with pytest.raises(Unsupported, match="Only accuracy"):
        choose_scorer(builder.build({}), builder.read_tune())


def test_a_score_is_the_share_of_right_predictions_plus_noise_of_the_stated_deviation(builder):
    """The mean of 400 scores is off by 5 of its standard errors, or their deviation by 20 %, less than once in 1e6."""
    job = builder.build({})
    scorer = choose_scorer(job, builder.read_tune())
    state = job.algorithm.init(job.params)
    right = job.model.count_correct(state.params, *job.validation_data)
    assert right / scorer.examples == pytest.approx(job.evaluate_validation(state)["accuracy"])
    scores = torch.tensor([scorer.score(job, state) for _ in range(400)], dtype=torch.float64) * scorer.examples
    assert float(scores.mean()) == pytest.approx(right, abs=5 * scorer.deviation / 20)
    assert float(scores.std()) == pytest.approx(scorer.deviation, rel=0.2)
    assert torch.equal(scores.round(), scores.round(decimals=6))


class BatchMixer(nn.Module):
    """A network whose outputs depend on the other examples of the batch."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, inputs):
        return self.linear(inputs - inputs.mean(dim=0))


def test_one_example_moves_the_count_by_at_most_one_also_where_a_network_mixes_examples():
    torch.manual_seed(0)
    model = SupervisedModule(BatchMixer(), "classification")
    inputs, targets = torch.randn(50, 4), torch.randint(3, (50,))
    changed = inputs.clone()
    changed[7] = 1000.0
    counts = [model.count_correct(model.params, given, targets) for given in (inputs, changed)]
    assert abs(counts[0] - counts[1]) <= 1


def test_a_score_that_is_not_finite_is_the_worst(builder, monkeypatch):
    job = builder.build({})
    monkeypatch.setattr(Job, "evaluate_validation", lambda self, state: {"loss": math.nan})
    assert Scorer("loss", 10, None).score(job, job.algorithm.init(job.params)) == math.inf
    assert replace(job, validation_data=None).validation_data is None

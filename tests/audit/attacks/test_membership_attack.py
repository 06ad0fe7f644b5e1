"""Membership inference on whole experiments: shadow runs, and what is recognised with and without privacy."""

from dataclasses import replace

import pytest
import torch

from discreet.algorithms.mechanisms import AdaptiveGaussian
from discreet.algorithms.recipes.dp_fedavg import dp_fedavg
from discreet.algorithms.recipes.fedavg import fedavg, fedsgd
from discreet.algorithms.sampling import Everyone
from discreet.api.experiment_jobs import prepare_job
from discreet.audit.attacks.membership_attack import BASELINE, LIRA, OWN, attack_membership
from discreet.audit.attacks.shadow_data import ShadowData
from discreet.audit.attacks.shadow_runs import ShadowRuns
from discreet.errors import InvalidInput
from discreet.experiment.configuration.experiment_file import load_experiment
from discreet.experiment.loop.run_guarantees import certify_run
from discreet.privacy import accountant
from discreet.privacy.events import SkellamNoise
from discreet.randomness.streams import RunKey

SMALL = ("seed=1", "rounds=3", "task.clients=3", "task.test_fraction=0.9")
KEY = RunKey.from_seed(2)
SURE = 1 - 1e-6
SKELLAM = SkellamNoise(variance=1e10, l2_sensitivity=1e5, dimension=650)


@pytest.fixture
def job():
    return prepare_job(load_experiment(None, SMALL))


def test_a_blank_slot_adds_nothing_to_a_gradient(job):
    """With all slots blank but one, the mean update is the gradient of that one example, by its client's share."""
    trainer = fedavg(learning_rate=1.0, batch_size=1000, steps=1)
    shadow = ShadowData(job.data, "example")
    only = torch.zeros(shadow.units, dtype=torch.bool)
    only[shadow.unit_of_slot[0]] = True
    state = ShadowRuns(replace(job, algorithm=trainer, settings=replace(job.settings, rounds=1)), KEY)
    (moved,) = state.train([shadow.draw(only)], lambda done: None)
    inputs, targets = job.data.examples_at(torch.arange(1))
    loss = torch.func.grad(lambda params: job.model.loss(params, inputs, targets).mean())(job.params)
    shares = torch.tensor(job.data.sizes) / sum(job.data.sizes)
    for name, value in moved.params.items():
        assert torch.allclose(value, -loss[name] * shares[0], atol=1e-6)


def test_a_blank_client_sends_no_signal_but_keeps_its_size(job):
    shadow = ShadowData(job.data, "client")
    assert shadow.units == 3
    drawn = shadow.draw(torch.tensor([True, False, True]))
    assert drawn.sizes == job.data.sizes
    batch = drawn.block([0, 1, 2]).full_batch()
    assert batch.mask.sum(dim=1).tolist() == [drawn.sizes[0], 0, drawn.sizes[2]]


PRIVATE_CLIENTS = dp_fedavg(
    learning_rate=0.1, batch_size=8, steps=2, clip_norm=1.0, noise_multiplier=1.0, sampling=Everyone()
)


@pytest.mark.parametrize(
    "algorithm",
    [None, fedavg(learning_rate=0.1, batch_size=8, epochs=2, momentum=0.5), fedsgd(learning_rate=0.1), PRIVATE_CLIENTS],
)
def test_runs_in_one_block_end_where_each_ends_alone(job, algorithm):
    if algorithm is not None:
        job = replace(job, algorithm=algorithm.for_population(job.population), privacy=None)
    shadow = ShadowData(job.data, "example")
    coins = torch.rand(3, shadow.units, generator=torch.Generator().manual_seed(0)) < 0.5
    federations = [shadow.draw(present) for present in coins]
    runs = ShadowRuns(job, KEY)
    assert runs.runs_per_block >= 3
    together = runs.train(federations, lambda done: None)
    for number, state in enumerate(together):
        (alone,) = runs._train_together([number], [federations[number]])
        for name, value in state.params.items():
            assert value.numpy() == pytest.approx(alone.params[name].numpy(), abs=1e-5)
    first, second = (torch.cat([value.flatten() for value in state.params.values()]) for state in together[:2])
    assert (first - second).abs().max() > 1e-3


def test_an_algorithm_whose_clients_hear_different_clips_is_run_one_by_one(job):
    adaptive = replace(PRIVATE_CLIENTS, mechanism=AdaptiveGaussian(clip_norm=1.0, noise_multiplier=1.0))
    job = replace(job, algorithm=adaptive.for_population(job.population), privacy=None)
    shadow = ShadowData(job.data, "example")
    runs = ShadowRuns(job, KEY)
    assert runs.runs_per_block == 1
    every = torch.ones(shadow.units, dtype=torch.bool)
    first, again = runs.train([shadow.draw(every)] * 2, lambda done: None)
    assert not torch.equal(*(next(iter(state.params.values())) for state in (first, again)))  # noise of their own


def test_a_model_that_overfits_gives_its_members_away():
    job = prepare_job(
        load_experiment(None, ("seed=1", "rounds=10", "task.clients=3", "task.test_fraction=0.9", "model.kind=mlp"))
    )
    overfit = replace(job, algorithm=fedavg(learning_rate=0.2, batch_size=8, epochs=10), privacy=None)
    found = attack_membership(overfit, None, shadows=16, key=KEY)
    assert found.curves[OWN][LIRA].area > 0.7
    assert found.curves[OWN][LIRA].rate_at(0.01).interval(SURE)[0] > 0.02  # above guessing, surely
    assert found.certified_rate(0.01) is None


def test_no_attack_on_a_private_model_exceeds_the_certified_curve(job):
    """Each comparison fails by chance at most once in 500,000 seeds: both its intervals hold with 1 − 1e-6."""
    (card, *_) = certify_run(job.terms, job.rounds, None, shared=False)
    found = attack_membership(job, card, shadows=32, key=KEY)
    for roc in found.curves[OWN].values():
        for rate in (*roc.rates(), roc.rate_at(0.5)):
            bound = found.certified_rate(rate.largest_false_positive_rate(SURE))
            assert bound is not None
            assert rate.interval(SURE)[0] <= bound


def test_the_result_names_rates_intervals_and_the_certified_bound(job):
    (card, *_) = certify_run(job.terms, job.rounds, None, shared=False)
    estimates: list[float] = []
    watched: list[tuple[str, int, int]] = []
    found = attack_membership(
        job, card, shadows=8, compare=True, key=KEY, announce=estimates.append, watch=lambda *told: watched.append(told)
    )
    data = found.to_plain()
    assert [run["name"] for run in data["runs"]] == [OWN, BASELINE]
    rate = data["runs"][0]["attacks"][0]["rates"][1]
    assert rate["low"] <= rate["true_positive_rate"] <= rate["high"]
    assert rate["certified"] == found.certified_rate(0.01)
    assert "certified" not in data["runs"][1]["attacks"][0]["rates"][1]
    assert data["certified_epsilon"] == card.epsilon
    assert len(data["sentences"]) == 3
    assert estimates[0] > 0
    assert watched[-1] == (BASELINE, 8, 8)


def test_a_guarantee_for_clients_is_attacked_client_by_client(job):
    job = replace(job, algorithm=PRIVATE_CLIENTS.for_population(job.population), privacy=None)
    card = next(card for card in certify_run(job.terms, 3, None, shared=False) if card.unit == "client")
    found = attack_membership(job, card, shadows=8, key=KEY)
    assert found.unit == "client"
    rate = found.curves[OWN][LIRA].rate_at(0.5)
    assert rate.positives + rate.negatives == 8 * 3


def test_too_few_shadows_are_refused(job):
    with pytest.raises(InvalidInput, match="at least 8 shadow models, and got 3"):
        attack_membership(job, None, shadows=3)


def test_a_guarantee_by_renyi_divergences_has_a_curve_up_to_a_false_alarm_rate_of_one(job):
    """Skellam noise has no privacy-loss distribution; its curve ends at (1, 1), as every trade-off does."""
    card = replace(certify_run(job.terms, 3, None, shared=False)[0], event=SKELLAM)
    curve = attack_membership(job, card, shadows=8, key=KEY).to_plain()["certified_curve"]
    assert curve[-1] == (1.0, 1.0)
    assert all(rate <= bound for rate, bound in curve)


def test_an_error_of_the_accountant_comes_before_training(job, monkeypatch):
    def fail(*arguments):
        raise ValueError("math domain error")

    card = certify_run(job.terms, 3, None, shared=False)[0]
    monkeypatch.setattr(accountant, "true_positive_rate", fail)
    monkeypatch.setattr(ShadowRuns, "train", lambda *arguments: pytest.fail("a model was trained"))
    with pytest.raises(ValueError, match="math domain error"):
        attack_membership(job, card, shadows=8, key=KEY)

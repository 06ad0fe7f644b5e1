"""Advice that is printed before a run."""

from discreet.planning.advice import advice
from tests.small_experiment import PrepareJob

DISTRIBUTED = 'algorithm={recipe="ddp_fedavg", learning_rate=1.0, clip_norm=0.5, sampling_rate=0.3, local_steps=2}'


def test_a_linear_model_under_shared_noise_is_told_of_convex_local(prepare: PrepareJob):
    (sentence,) = advice(prepare(DISTRIBUTED))
    assert 'recipe = "convex_local"' in sentence


def test_other_models_and_other_algorithms_are_not(prepare: PrepareJob):
    assert not list(advice(prepare()))
    assert not list(advice(prepare(DISTRIBUTED, 'model={kind="mlp", hidden=[8]}')))

"""What is said before a run, unasked."""

from discreet.planning.advice import advice
from tests.small_experiment import Prepared

DISTRIBUTED = 'algorithm={recipe="ddp_fedavg", learning_rate=1.0, clip_norm=0.5, sampling_rate=0.3, local_steps=2}'


def test_a_linear_model_under_shared_noise_is_told_of_convex_local(prepared: Prepared):
    (sentence,) = advice(prepared(DISTRIBUTED))
    assert 'recipe = "convex_local"' in sentence


def test_other_models_and_other_algorithms_are_not(prepared: Prepared):
    assert not list(advice(prepared()))
    assert not list(advice(prepared(DISTRIBUTED, 'model={kind="mlp", hidden=[8]}')))

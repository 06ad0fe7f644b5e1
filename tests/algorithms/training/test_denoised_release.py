"""Denoised releases: two noises on one sum count as one, and the client's own noise never leaves the client."""

import math
from dataclasses import replace

import pytest
import torch

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.population import Population
from discreet.algorithms.recipes.local_schemes import denoised_release
from discreet.algorithms.training import BroadcastGradients, DenoisedRelease
from discreet.algorithms.training.batches import Batches
from discreet.errors import Unsupported
from discreet.experiment.promise.calibrate import calibrate_noise
from discreet.experiment.promise.promise import Privacy
from discreet.part import from_plain, to_plain
from discreet.privacy import accountant
from discreet.privacy.events import GaussianNoise, PoissonSampled, SkellamNoise, steps
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey
from tests.federations import CPU, cross_entropy, federation, linear

TRAINER = DenoisedRelease(
    steps=3, sampling_rate=1.0, clip_norm=0.5, learning_rate=2.0, state_noise=0.7, expected_batch=6.0
)


def update(trainer: DenoisedRelease | BroadcastGradients, examples: int = 6, round: int = 0) -> torch.Tensor:
    held = federation(6)
    batches = Batches(held.inputs, held.targets, (0,), (examples,))
    rows = RunKey.from_seed(0).rows(round, b"", [0], CPU)
    delta = trainer.train(cross_entropy, Broadcast(round, linear(), {}), batches, rows)
    return torch.cat([value.flatten() for value in delta.values()])


def by_hand(trainer: DenoisedRelease, *, examples: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """The clipped sums of each step, and the noisy ones that drive the state, with every example in every batch."""
    assert trainer.state_noise is not None
    held, model = federation(6), linear()
    noises = RunKey.from_seed(0).rows(0, b"", [0], CPU).for_purpose(Purpose.NOISE).open()
    clean, noisy = [], []
    for _ in range(3):
        total = torch.zeros(18, dtype=torch.float64)
        for x, y in zip(held.inputs[:examples], held.targets[:examples], strict=True):
            own = {name: value.clone().requires_grad_() for name, value in model.items()}
            found = torch.autograd.grad(cross_entropy(own, x[None], y[None])[0], list(own.values()))
            gradient = torch.cat([each.flatten() for each in found])
            total += gradient * min(1.0, trainer.clip_norm / float(gradient.norm()))
        drawn = noises.normal(model)
        noise = torch.cat([value[0].flatten() for value in drawn.values()])
        clean.append(total)
        noisy.append(total + trainer.state_noise * trainer.clip_norm * noise)
        step = trainer.learning_rate / 6 * noisy[-1]
        model = {"weight": model["weight"] - step[:15].reshape(3, 5), "bias": model["bias"] - step[15:]}
    return clean, noisy


def test_the_state_walks_on_noisy_sums_and_the_clean_ones_are_sent():
    clean, _ = by_hand(TRAINER, examples=6)
    assert torch.allclose(update(TRAINER), -2.0 / 6 * torch.stack(clean).sum(dim=0), rtol=1e-4, atol=1e-6)


def test_given_the_noisy_sums_one_example_moves_each_clean_one_by_at_most_C():
    """Both runs follow the same states, as in composition; then the sums differ by one example."""
    held, model = federation(6), linear()
    for _ in range(3):
        model = {name: value + torch.randn(value.shape, dtype=torch.float64) for name, value in model.items()}
        single = BroadcastGradients(steps=1, sampling_rate=1.0, clip_norm=0.5, learning_rate=2.0, expected_batch=6.0)
        rows = RunKey.from_seed(0).rows(0, b"", [0], CPU)
        whole, fewer = (
            single.train(
                cross_entropy, Broadcast(0, model, {}), Batches(held.inputs, held.targets, (0,), (size,)), rows
            )
            for size in (6, 5)
        )
        moved = torch.cat([(whole[name] - fewer[name]).flatten() for name in whole]).norm()
        assert moved <= 2.0 * 0.5 / 6
    assert TRAINER.exposure(0).example.sensitivity == pytest.approx(
        math.sqrt(3) * 2.0 * 0.5 / 6
    )  # z times it is z for each of the 3 sums


def test_without_noise_on_the_state_it_would_be_plain_local_steps_and_with_one_step_a_gradient_at_the_broadcast():
    one = replace(TRAINER, steps=(1,))
    other = BroadcastGradients(steps=1, sampling_rate=1.0, clip_norm=0.5, learning_rate=2.0, expected_batch=6.0)
    assert torch.allclose(update(one), update(other))


def test_two_noises_on_one_sum_count_as_one():
    """1/σ² = 1/σ_L² + 1/σ_Z²: 3 and 4 make 2.4. The server sees one share of σ_Z."""
    population = Population(examples=(100,) * 16)
    algorithm = denoised_release(
        learning_rate=1, clip_norm=1, sampling_rate=0.1, local_steps=5, ratio=0.75, noise_multiplier=4.0
    ).for_population(population)
    found = {each.view: each for each in algorithm.planned_releases(3, population)}
    for view, noise in (("public", 2.4), ("server", 3 / math.sqrt(10))):
        (step,) = steps(found[view].event)  # type: ignore[index]
        assert steps(found[view].event)[step] == 15  # type: ignore[index]
        assert isinstance(step, PoissonSampled)
        assert isinstance(step.event, GaussianNoise)
        assert step.event.noise_multiplier == pytest.approx(noise)


def test_two_looks_at_one_gaussian_are_one_look_at_less_noise():
    """The likelihood ratio of both looks is that of their weighted mean: a test on numbers, for the formula above."""
    generator = torch.Generator().manual_seed(0)
    own, sent = 3.0, 4.0
    looks = torch.randn(2, 1000, generator=generator, dtype=torch.float64) * torch.tensor([[own], [sent]])

    def log_ratio(seen: torch.Tensor, noise: float) -> torch.Tensor:
        return (seen - 0.5) / noise**2  # N(1, σ²) against N(0, σ²)

    both = log_ratio(looks[0], own) + log_ratio(looks[1], sent)
    weights = torch.tensor([1 / own**2, 1 / sent**2], dtype=torch.float64)
    mean = (weights @ looks) / weights.sum()
    assert torch.allclose(both, log_ratio(mean, 1 / math.hypot(1 / own, 1 / sent)))


def test_one_promise_fixes_both_noises():
    population = Population(examples=(100,) * 10)
    promised = Privacy(unit="example", against="public", epsilon=1.0, delta=1e-5)
    open_noise = denoised_release(learning_rate=1, clip_norm=1, sampling_rate=0.1, local_steps=5, ratio=2.0)
    found = calibrate_noise(open_noise, promised, 4, population)
    assert isinstance(found.trainer, DenoisedRelease)
    assert found.trainer.state_noise == pytest.approx(2 * found.mechanism.noise_multiplier)
    (event,) = (each.event for each in found.planned_releases(4, population) if each.view == "public")
    assert accountant.epsilon(event, 1e-5, "zero_out") == pytest.approx(1.0, abs=1e-3)


def test_noise_of_another_kind_is_refused():
    integers = SkellamNoise(variance=100.0, l2_sensitivity=10.0, dimension=5)
    with pytest.raises(Unsupported, match="A client's state has Gaussian noise and its upload has skellam"):
        TRAINER.exposure(0).example_event(integers, range(1))


def test_an_algorithm_of_it_is_its_own_configuration():
    for noise in (None, 2.0):
        algorithm = denoised_release(learning_rate=1, clip_norm=1, sampling_rate=0.1, noise_multiplier=noise)
        assert from_plain(Algorithm, to_plain(algorithm)) == algorithm

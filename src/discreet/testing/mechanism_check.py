"""The contract of a mechanism as a check: its bound, its noise, and what it declares of both."""

import torch

from discreet.algorithms.aggregation import Lattice, Plain
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.mechanisms import IntegerNoise, Mechanism
from discreet.algorithms.population import Population
from discreet.algorithms.sampling import AnySampling, Everyone
from discreet.algorithms.training import BroadcastGradients, LocalSgd
from discreet.algorithms.training.gradient_rules import L1Clip, L2Clip
from discreet.params import Params, count_values
from discreet.testing.noise_trial import try_later_noise, try_noise
from discreet.testing.trial_round import TrialRound
from discreet.testing.update_bounds import check_bounds, check_finite, measure_movement
from discreet.testing.wrapped_part import wrap_part
from discreet.words import fill


def check_mechanism(mechanism: Mechanism, clients: int = 4, sampling: AnySampling = Everyone()) -> list[str]:
    """Check that a mechanism keeps its contract: it bounds every update, and adds the noise that it declares.

    Whole rounds are played on synthetic updates: zero, small, huge, NaN, infinite, one-hot and aligned ones, an empty
    cohort, and several rounds and runs. A mechanism that passes was tried and not proved: noise that is drawn from
    `rows` and looks right may still depend on the updates in a way that none of these shows.

    Args:
        mechanism: The mechanism, ours or a user's own. Noise that is not chosen yet is set to a multiplier of 1.
        clients: Number of clients.
        sampling: Which of them join a round. If it may be none, an empty sum must carry all the noise.

    Returns:
        What was tried and measured, in sentences.

    Raises:
        PartFailed: The mechanism doesn't keep its contract. The message says what was seen.

    Example:
        >>> from discreet.algorithms.mechanisms import Gaussian
        >>> check_mechanism(Gaussian(clip_norm=0.5, noise_multiplier=1.0))[1].partition(";")[2]
        ' 1 is declared (gaussian). Measured on 32,768 values.'
    """
    population, model = Population(examples=(8,) * clients), synthetic_model()
    algorithm = _compose(wrap_part(Mechanism, mechanism).with_noise(1.0), sampling).for_population(
        population, count_values(model)
    )
    return try_mechanism(algorithm, population, model)


def try_mechanism(algorithm: Algorithm, population: Population, params: Params) -> list[str]:
    """Try the mechanism of an algorithm in whole rounds, with the algorithm's other parts around it.

    Args:
        algorithm: The algorithm with all its noise.
        population: Public client sizes.
        params: The model.

    Raises:
        PartFailed: The algorithm doesn't keep what its mechanism declares.
    """
    sentences = []
    for _, group in algorithm.client_groups(population):
        for sentence in _try_group(TrialRound(group, population, params)):
            if sentence not in sentences:
                sentences.append(sentence)
    return sentences


def _try_group(trial: TrialRound) -> list[str]:
    mechanism = trial.algorithm.mechanism
    check_bounds(trial)
    movement = measure_movement(trial)
    if not trial.algorithm.aggregation.is_secure:
        check_finite("an empty cohort", trial.play(torch.zeros(0, trial.dimension)))
    if not mechanism.is_private:
        return [fill("trial.no_privacy")]
    bounds = "bounded" if trial.algorithm.aggregation.is_secure else "bounded_and_empty"
    tried = [fill(f"trial.{bounds}.{mechanism.unit}", updates=movement.tried), *try_noise(trial, movement)]
    later = trial.later_round()
    try_later_noise(later, measure_movement(later))
    return tried


def synthetic_model() -> Params:
    """Return a model of 16,384 weights in two tensors."""
    generator = torch.Generator().manual_seed(7)
    return {
        "weight": torch.randn(128, 126, generator=generator) / 10,
        "bias": torch.randn(256, generator=generator) / 10,
    }


def _compose(mechanism: Mechanism, sampling: AnySampling) -> Algorithm:
    """Return an algorithm around a mechanism, with training that bounds what the mechanism leaves to it."""
    clip = L1Clip(bound=0.4) if mechanism.norm_order == 1 else L2Clip(bound=0.4)
    local = LocalSgd(learning_rate=1.0, batch_size=8, steps=1, gradient_clip=clip)
    gradients = BroadcastGradients(steps=(1,), sampling_rate=0.5, clip_norm=1.0, learning_rate=1.0)
    return Algorithm(
        sampling=sampling,
        trainer=gradients if mechanism.unit == "example" else local,
        mechanism=mechanism,  # type: ignore[arg-type]
        aggregation=Lattice() if isinstance(mechanism, IntegerNoise) else Plain(),
    )

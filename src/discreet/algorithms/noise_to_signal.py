"""The noise-to-signal ratio of a round in the best case, computed from the configuration alone."""

import math
from typing import TYPE_CHECKING

from discreet.algorithms import per_client
from discreet.algorithms.mechanisms import AdaptiveGaussian, AnyMechanism, LocalNoise
from discreet.algorithms.population import Population
from discreet.algorithms.training import (
    AnyTrainer,
    BroadcastGradients,
    ConvexLocal,
    DenoisedRelease,
    DpSgd,
    MinibatchDp,
    Shards,
)
from discreet.algorithms.training.margin_clip import MAX_GRADIENT_NORM
from discreet.algorithms.training.per_round import value_in_round

if TYPE_CHECKING:
    from discreet.algorithms.algorithm import Algorithm


def noise_multiplier(algorithm: "Algorithm") -> float | None:
    """Return the noise multiplier of training, else of the mechanism; the smallest if clients differ."""
    own = part_noise_multiplier(algorithm.trainer)
    return own if own is not None else part_noise_multiplier(algorithm.mechanism)


def part_noise_multiplier(part: AnyTrainer | AnyMechanism) -> float | None:
    """Return the noise multiplier of a trainer or mechanism, the smallest if clients differ; None if it has none."""
    multiplier: float | None = getattr(per_client.worst_case(part), "noise_multiplier", None)
    return multiplier


def noise_to_signal(algorithm: "Algorithm", population: Population, dimension: int) -> float | None:
    """Return ‖noise‖ ÷ ‖signal‖ of the first round's mean update, with all updates at the clip in the same direction.

    A best case: real updates are shorter, and disagree. The norm of the noise is √d times its deviation in each of the
    d coordinates that are sent. None without noise, and if one number can't describe it: with noise both in training
    and on updates, or if clients remove some of it.
    """
    in_training = part_noise_multiplier(algorithm.trainer) is not None
    if algorithm.sparsifier.unsound_reason is not None or (in_training and algorithm.mechanism.is_private):
        return None
    ratio = _in_training(algorithm, population) if in_training else _on_updates(algorithm, population)
    return None if ratio is None else math.sqrt(algorithm.sparsifier.coordinates(dimension)) * ratio


def _in_training(algorithm: "Algorithm", population: Population) -> float:
    """√(Σ (w_k·s_k)²) ÷ Σ w_k·C_k over the clients, times √(Σc²) ÷ Σc over a round's steps, ÷ √(the rate of joining).

    s_k = z_k·C_k ÷ (q_k·n_k) is the noise in a step's mean gradient (DP-SGD; z_k·C_k where the mean itself is clipped),
    w_k a client's weight, and c how far a step moves the round's end: 1, or more by momentum.
    """
    trainer = algorithm.trainer
    assert isinstance(trainer, DpSgd | MinibatchDp)
    assert trainer.noise_multiplier is not None
    assert trainer.steps is not None
    clients = population.clients
    noises, clips = (per_client.repeat_value(each, clients) for each in (trainer.noise_multiplier, trainer.clip_norm))
    batches = trainer.examples_per_step(population) if isinstance(trainer, DpSgd) else (1.0,) * clients
    each = list(zip(algorithm.weights(population), noises, clips, batches, strict=True))
    noise = math.sqrt(sum((w * z * C / batch) ** 2 for w, z, C, batch in each if batch))
    signal = sum(w * C for w, _, C, batch in each if batch)
    momentum = trainer.momentum if isinstance(trainer, DpSgd) else 0.0
    reaches, reach = [], 0.0
    for _ in range(value_in_round(trainer.steps, 0)):  # from the last step to the first
        reach = 1 + momentum * reach
        reaches.append(reach)
    steps = math.sqrt(sum(c * c for c in reaches)) / sum(reaches)
    return noise / signal * steps / math.sqrt(algorithm.sampling.expected_cohort(population) / clients)


def _on_updates(algorithm: "Algorithm", population: Population) -> float | None:
    """The deviation of the noise on a sum of m updates, over m times the longest one: z/m where a server adds it, or
    clients in shares; z/√m where each adds its own (√2·z/√m for Laplace).

    For single examples it is z·reach ÷ (m · how far a client's examples move its update when all are at the clip).
    """
    mechanism, cohort = algorithm.mechanism, algorithm.sampling.expected_cohort(population)
    if isinstance(mechanism, LocalNoise):  # clients may differ: use the mean of their variances
        everyone = mechanism.noise_deviation(range(population.clients))
        deviation = None if everyone is None else everyone * math.sqrt(cohort / population.clients)
    else:
        deviation = mechanism.noise_deviation(range(max(1, round(cohort))))
    if deviation is None:
        return None
    if mechanism.unit == "client":
        kept = math.sqrt(1 - mechanism.flag**2) if isinstance(mechanism, AdaptiveGaussian) else 1.0
        return deviation / (cohort * kept)
    reach, longest = algorithm.trainer.example_sensitivity(0), _longest_update(algorithm.trainer, population)
    return None if reach is None or longest is None else deviation * reach / (cohort * longest)


def _longest_update(trainer: AnyTrainer, population: Population) -> float | None:
    """Return the norm of the mean client's update if all that training clips is at the clip in the same direction."""
    match trainer:
        case BroadcastGradients() | DenoisedRelease() if trainer.steps is not None:
            return (
                value_in_round(trainer.steps, 0)
                * trainer.learning_rate
                * trainer.schedule.factor(0)
                * trainer.clip_norm
            )
        case ConvexLocal() if trainer.batch_size is not None:
            rate = trainer.learning_rate * trainer.schedule.factor(0)
            steps = trainer.passes * sum(population.examples) / population.clients / trainer.batch_size
            step = rate * min(trainer.clip_norm, MAX_GRADIENT_NORM) / trainer.feature_bound * trainer.sampling_rate
            pull = rate * trainer.strength
            return step * (steps if not pull else (1 - (1 - pull) ** steps) / pull)
        case Shards():  # an empty shard sends nothing
            return trainer.clip_norm * min(1.0, sum(population.examples) / population.clients / trainer.shards)
        case _:
            return None

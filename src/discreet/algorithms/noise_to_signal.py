"""The noise-to-signal ratio of a round in the best case, computed from the configuration alone."""

import math
from typing import TYPE_CHECKING

from discreet.algorithms import per_client
from discreet.algorithms.mechanisms import AnyMechanism
from discreet.algorithms.population import Population
from discreet.algorithms.training import AnyTrainer

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
    if in_training:
        joining = math.sqrt(algorithm.sampling.expected_cohort(population) / population.clients)
        own = algorithm.trainer.noise_to_signal(algorithm.weights(population), population)
        ratio = None if own is None else own / joining
    else:
        ratio = _on_updates(algorithm, population)
    return None if ratio is None else math.sqrt(algorithm.sparsifier.coordinates(dimension)) * ratio


def _on_updates(algorithm: "Algorithm", population: Population) -> float | None:
    """The deviation of the noise on a sum of m updates, over m times the longest one: z/m where a server adds it, or
    clients in shares; z/√m where each adds its own (√2·z/√m for Laplace).

    For single examples it is z·reach ÷ (m · how far a client's examples move its update when all are at the clip).
    """
    mechanism, cohort = algorithm.mechanism, algorithm.sampling.expected_cohort(population)
    if mechanism.is_local:  # clients may differ: use the mean of their variances
        everyone = mechanism.noise_deviation(range(population.clients))
        deviation = None if everyone is None else everyone * math.sqrt(cohort / population.clients)
    else:
        deviation = mechanism.noise_deviation(range(max(1, round(cohort))))
    if deviation is None:
        return None
    if mechanism.unit == "client":
        return deviation / (cohort * mechanism.update_share)
    reach, longest = algorithm.sensitivity(0), algorithm.trainer.longest_update(population)
    return None if reach is None or longest is None else deviation * reach / (cohort * longest)

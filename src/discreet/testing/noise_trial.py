"""Whether the noise that leaves is the noise that a mechanism declares: its size, its shape, and fresh in each draw."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from discreet.algorithms import soundness
from discreet.params import unflatten
from discreet.privacy.events import Noise
from discreet.testing.noise_statistics import (
    ERRORS,
    MAX_CORRELATION,
    MAX_REPETITION,
    SAMPLES,
    SHORTFALL,
    correlation,
    deviation,
    deviation_ratio,
    is_continuous,
    max_shape_distance,
    norm_order,
    relative_error,
    repetition,
    shape_distance,
)
from discreet.testing.part_failure import require
from discreet.testing.trial_round import TrialRound
from discreet.testing.update_bounds import CLIENTS, Movement
from discreet.words import fill

MOST_VALUES = 2**20  # in the uploads of one round
FRESH = "Draw noise from `rows` and `noise`, which are fresh for each round, client and run."
ENOUGH = "Add more noise, or declare less."


@dataclass(frozen=True)
class NoiseSample:
    """The noise of a round in which no client had anything to say, drawn several times, one row for each draw.

    Attributes:
        released: The released sums.
        upload: The uploads of the first client.
        shares: The noise shares of the first two clients.
    """

    released: Tensor
    upload: Tensor | None
    shares: list[Tensor]


def draw_noise(trial: TrialRound, clients: int, *, seed: int = 0, knows_share: bool = False) -> NoiseSample:
    """Repeat the round with zero updates until there are enough values, at least twice."""
    zero = torch.zeros(clients, trial.dimension).to(next(iter(trial.params.values())))
    draws = range(math.ceil(SAMPLES / trial.dimension) + 1)
    results = [trial.play(zero, draw, seed, knows_share=knows_share) for draw in draws]
    released = torch.stack([result.released for result in results])
    if clients == 0:
        return NoiseSample(released, None, [])
    uploads, clean = (torch.stack([getattr(each, name)[:2] for each in results]) for name in ("uploads", "clean"))
    shares = uploads - clean if uploads.shape == clean.shape else uploads
    return NoiseSample(released, uploads[:, 0], [*shares.unbind(dim=1)])


def try_noise(trial: TrialRound, movement: Movement) -> list[str]:
    """Compare the noise on sums and uploads with what the mechanism declares.

    Returns:
        What was tried and measured, in sentences.

    Raises:
        PartFailed: There is less noise than declared, of another shape, or the same noise twice.
    """
    if soundness.has_thinned_noise(trial.algorithm):
        return [fill("trial.noise_removed")]
    mechanism, grid = trial.algorithm.mechanism, trial.algorithm.grid(trial.population)
    fewest, most = trial.algorithm.sampling.cohort_bounds(trial.population)
    largest = max(CLIENTS, MOST_VALUES // trial.dimension)
    tried = []
    for clients in sorted({min(fewest, largest), min(most, CLIENTS)}):
        if clients == 0 and trial.algorithm.aggregation.is_secure:
            continue  # such a sum is never taken
        contributors = None if clients == fewest else clients
        declared, known = (mechanism.sum_noise(grid, number, contributors) for number in (0, 1))
        name, noise = f"the sum of {clients} {'client' if clients == 1 else 'clients'}", draw_noise(trial, clients)
        if declared is not None:
            measured = compare_noise(trial, name, noise.released, movement.released, declared)
            number = "noise_of_one" if clients == 1 else "noise_of_sum"
            tried.append(fill(f"trial.{number}.{mechanism.unit}", clients=clients, **measured))
            others = [draw_noise(trial.next_round(), clients), draw_noise(trial, clients, seed=1)]
            _check_fresh(noise.released, *(other.released for other in others))
        _check_deviation(trial, clients, noise.released, movement)
        if known is not None and clients > 0:
            rest = draw_noise(trial, clients, knows_share=True).released
            compare_noise(trial, f"{name}, without the noise share of one of them,", rest, movement.released, known)
    return tried[-1:] + _try_uploads(trial, min(most, 2), movement, mechanism.upload_noise(grid))


def _try_uploads(trial: TrialRound, clients: int, movement: Movement, declared: Noise | None) -> list[str]:
    noise = draw_noise(trial, clients)
    if len(noise.shares) == 2:
        _check_independent(noise.shares[0], noise.shares[1], "Two clients add the same noise")
    if declared is None:
        return []
    if trial.algorithm.sparsifier.unsound_reason is not None:
        return [fill("trial.upload_changed")]
    others = [draw_noise(trial.next_round(), clients), draw_noise(trial, clients, seed=1)]
    uploads = [sample.upload for sample in (noise, *others) if sample.upload is not None]
    measured = compare_noise(trial, "an upload", uploads[0], movement.upload, declared)
    _check_fresh(*uploads)
    return [fill(f"trial.noise_of_upload.{trial.algorithm.mechanism.unit}", **measured)]


def try_later_noise(trial: TrialRound, movement: Movement) -> None:
    """Compare the noise of one later round, so that noise that fades is found.

    Raises:
        PartFailed: There is less noise than declared.
    """
    if trial.algorithm.sparsifier.unsound_reason is not None:
        return
    mechanism, grid = trial.algorithm.mechanism, trial.algorithm.grid(trial.population)
    clients = min(CLIENTS, trial.algorithm.sampling.cohort_bounds(trial.population)[1])
    noise, place = draw_noise(trial, clients), f"in round {trial.round}"
    declared, alone = mechanism.sum_noise(grid, 0, clients), mechanism.upload_noise(grid)
    if declared is not None:
        compare_noise(trial, f"the sum of {clients} clients {place}", noise.released, movement.released, declared)
    if alone is not None and noise.upload is not None:
        compare_noise(trial, f"an upload {place}", noise.upload, movement.upload, alone)


def compare_noise(
    trial: TrialRound, name: str, values: Tensor, movement: dict[int, float], declared: Noise
) -> dict[str, str]:
    """Refuse noise that is less than declared, or of another shape. Return what was measured, for a sentence."""
    unit, ratio, moved = trial.algorithm.mechanism.unit, deviation_ratio(declared), movement[norm_order(declared)]
    measured = deviation(values) / moved if moved > 0 else math.inf
    declared_text = f"{ratio:.4g} is declared ({declared.kind})"
    require(
        measured >= SHORTFALL * ratio,
        f"Noise on {name} has a deviation of {measured:.4g} times the most that one {unit} moves it by, and "
        f"{declared_text}.",
        ENOUGH,
    )
    if is_continuous(declared):
        quiet = int((values == 0).all(dim=0).sum())
        require(quiet == 0, f"Noise on {name} is missing in {quiet} of {values.shape[1]} coordinates.", ENOUGH)
    if is_continuous(declared) and SHORTFALL * measured <= ratio:
        distance, most = shape_distance(values, declared), max_shape_distance(values.numel())
        require(
            distance <= most,
            f"Noise on {name} is not {declared.kind}: its distribution is {distance:.3f} away, and {most:.3f} would be "
            "chance.",
            "Declare the noise that is drawn.",
        )
    _check_tensors(trial, name, values, SHORTFALL * ratio * moved, declared)
    return {
        "measured": f"{measured:.4g}",
        "ratio": f"{ratio:.4g}",
        "kind": declared.kind,
        "values": f"{values.numel():,}",
    }


def _check_tensors(trial: TrialRound, name: str, values: Tensor, least: float, declared: Noise) -> None:
    """Refuse noise that is missing in one tensor of the model and made up for in others."""
    if values.shape[1] != trial.dimension:
        return  # uploads of another shape, such as rotated ones
    for tensor, part in unflatten(values, trial.params).items():
        allowance = ERRORS * relative_error(declared, part.numel())
        require(
            deviation(part) >= (1 - min(1.0, allowance)) * least,
            f"Noise on {name} has a deviation of {deviation(part):.3g} in the tensor {tensor!r}, and {least:.3g} is "
            "the least that its declaration allows.",
            ENOUGH,
        )


def _check_fresh(values: Tensor, other_round: Tensor, other_run: Tensor) -> None:
    _check_independent(values, other_round, "Two rounds carry the same noise")
    _check_independent(values, other_run, "Two runs with different keys carry the same noise")
    repeated = repetition(values)
    require(
        repeated < MAX_REPETITION,
        f"Parts of a model carry the same noise: shifted against itself, the noise correlates by {repeated:.1f} "
        f"standard errors, and {MAX_REPETITION:g} would be chance.",
        "Draw noise for every coordinate.",
    )


def _check_independent(left: Tensor, right: Tensor, problem: str) -> None:
    shared = correlation(left, right)
    require(abs(shared) < MAX_CORRELATION, f"{problem}: the correlation is {shared:.2f}.", FRESH)


def _check_deviation(trial: TrialRound, clients: int, values: Tensor, movement: Movement) -> None:
    """Refuse a `noise_deviation` that is not the deviation: whether noise depends on who joins is read from it."""
    declared = trial.algorithm.mechanism.noise_deviation(range(clients))
    if declared is None or movement.unit == 0 or trial.algorithm.sparsifier.unsound_reason is not None:
        return
    measured = deviation(values) / movement.unit
    require(
        abs(measured - declared) <= (1 - SHORTFALL) * declared,
        f"Noise on the sum of {clients} clients has a deviation of {measured:.4g} clip norms, and `noise_deviation` "
        f"says {declared:.4g}.",
        "Return the deviation of all noise in the sum of these clients, or None.",
    )

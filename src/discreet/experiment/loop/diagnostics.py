"""Diagnostics of a round for rounds.jsonl. No guarantee covers any of them."""

import math
from typing import Any

import torch

from discreet.algorithms.message_sizes import message_bits
from discreet.engines.engine import CohortSum
from discreet.experiment.job import Job
from discreet.params import count_values

QUANTILES = (5, 25, 75, 95)  # percent; the median is listed by its name


def round_diagnostics(job: Job, gathered: CohortSum) -> dict[str, Any]:
    """Return the norms of updates, the share that clipping kept, the ratio of signal to noise, and the traffic."""
    line: dict[str, Any] = {"bits": message_bits(job.algorithm, job.params)._asdict()}
    sizes = gathered.norms.double()
    if gathered.contributors and not sizes.numel():  # real clients send their update and no norms
        return line
    if sizes.numel():
        averages = {"mean": sizes.mean(), "median": sizes.median(), "max": sizes.max()}
        line["norms"] = json_numbers({name: float(value) for name, value in averages.items()} | _quantiles(sizes))
        if _clips_updates(job):
            kept = gathered.kept.double().nan_to_num(0.0)
            mean = kept.mean()
            line["kept"] = json_numbers({"mean": float(mean), "deviation": float((kept - mean).abs().mean())})
    ratio = signal_to_noise(job, gathered)
    if ratio is not None:
        line["signal_to_noise"] = json_number(ratio)
    return line | ({"clipped": gathered.clipped_share} if _clips_updates(job) else {})


def _clips_updates(job: Job) -> bool:
    """Whether whole updates are clipped. Clipping of single examples inside training is not looked at."""
    return job.algorithm.mechanism.is_private and job.algorithm.mechanism.unit == "client"


def signal_to_noise(job: Job, gathered: CohortSum) -> float | None:
    """Return ‖Σ clipped updates‖ over √d times the deviation of the noise in each of the d sent coordinates.

    None without noise, where updates are not summed, and where training adds the noise, since the update without noise
    is then unknown.
    """
    algorithm = job.algorithm
    in_training = getattr(algorithm.trainer, "noise_multiplier", None)
    deviation = algorithm.mechanism.noise_deviation(gathered.contributors)
    if in_training is not None or not deviation or algorithm.aggregation.needs_each_upload:
        return None
    return float(gathered.signal) / (deviation * math.sqrt(algorithm.sparsifier.coordinates(count_values(job.params))))


def json_number(value: float | None) -> float | str | None:
    """Return a value that JSON can hold: infinity and NaN become words."""
    return value if value is None or math.isfinite(value) else str(value)


def json_numbers(values: dict[str, float]) -> dict[str, Any]:
    """Return values that JSON can hold: infinity and NaN become words."""
    return {name: json_number(value) for name, value in values.items()}


def _quantiles(sizes: torch.Tensor) -> dict[str, float]:
    """Return quantiles that are norms of clients. If a norm is NaN, all of them are."""
    at = torch.tensor(QUANTILES, dtype=sizes.dtype, device=sizes.device) / 100
    quantiles = torch.quantile(sizes, at, interpolation="nearest").tolist()
    return {f"p{percent}": value for percent, value in zip(QUANTILES, quantiles, strict=True)}

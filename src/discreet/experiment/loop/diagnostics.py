"""What rounds.jsonl says of a round to those who diagnose a run: no guarantee covers any of it."""

import math
from typing import Any

import torch

from discreet.algorithms.message_sizes import message_bits
from discreet.engines.engine import CohortSum
from discreet.experiment.loop.job import Job
from discreet.params import count_values

QUANTILES = (5, 25, 75, 95)  # percent; the median has a name of its own


def round_diagnostics(job: Job, gathered: CohortSum) -> dict[str, Any]:
    """How large updates were, how much of them the clip left, how loud they were beside the noise, what was sent."""
    line: dict[str, Any] = {"bits": message_bits(job.algorithm, job.params)._asdict()}
    sizes = gathered.norms.double()
    if gathered.contributors and not sizes.numel():  # real clients send their update, and nothing beside it
        return line
    if sizes.numel():
        found = {"mean": sizes.mean(), "median": sizes.median(), "max": sizes.max()}
        line["norms"] = json_numbers({name: float(value) for name, value in found.items()} | _quantiles(sizes))
        if _clips_updates(job):
            kept = gathered.kept.double().nan_to_num(0.0)
            mean = kept.mean()
            line["kept"] = json_numbers({"mean": float(mean), "deviation": float((kept - mean).abs().mean())})
    ratio = signal_to_noise(job, gathered)
    if ratio is not None:
        line["signal_to_noise"] = json_number(ratio)
    return line | ({"clipped": gathered.clipped_share} if _clips_updates(job) else {})


def _clips_updates(job: Job) -> bool:
    """Whether whole updates are clipped: what happens to single examples inside training is not looked at."""
    return job.algorithm.mechanism.is_private and job.algorithm.mechanism.unit == "client"


def signal_to_noise(job: Job, gathered: CohortSum) -> float | None:
    """‖Σ clipped updates‖ over √d times the deviation of the noise in each of the d coordinates that are sent.

    None without noise; and where training itself adds it, since what an update would be without is then unknown.
    """
    algorithm = job.algorithm
    in_training = getattr(algorithm.trainer, "noise_multiplier", None)
    deviation = algorithm.mechanism.noise_deviation(gathered.contributors)
    if in_training is not None or not deviation:
        return None
    return float(gathered.signal) / (deviation * math.sqrt(algorithm.sparsifier.coordinates(count_values(job.params))))


def json_number(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else str(value)


def json_numbers(values: dict[str, float]) -> dict[str, Any]:
    """JSON has no infinity and no NaN: they are said in words."""
    return {name: json_number(value) for name, value in values.items()}


def _quantiles(sizes: torch.Tensor) -> dict[str, float]:
    """Each is some client's norm; a client without one (NaN) leaves none."""
    at = torch.tensor(QUANTILES, dtype=sizes.dtype, device=sizes.device) / 100
    found = torch.quantile(sizes, at, interpolation="nearest").tolist()
    return {f"p{percent}": value for percent, value in zip(QUANTILES, found, strict=True)}

"""Poisson batches of clipped gradients, which several trainers share: their number, their size and their sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from discreet.algorithms import per_client
from discreet.algorithms.clipping import Clip
from discreet.algorithms.population import Population
from discreet.algorithms.training.batches import Batches
from discreet.algorithms.training.cuda_graphs import Recordings
from discreet.algorithms.training.exposure import ExampleBound, Exposure, expose_steps
from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.per_round import value_in_round
from discreet.algorithms.training.trainer import Loss
from discreet.errors import InvalidInput
from discreet.lazy_torch import Tensor, torch
from discreet.params import Params, add, map_params, repeat_for_clients, zeros_like
from discreet.privacy.events import Noise
from discreet.randomness.streams import Streams

SMALLEST_CLIP = 1e-9


def check_fields(part: Any) -> None:
    """Refuse a trainer without exactly one of steps and epochs and of rate and batch size, or with a tiny clip."""
    for one, other in (("steps", "epochs"), ("sampling_rate", "batch_size")):
        if (getattr(part, one) is None) == (getattr(part, other) is None):
            raise InvalidInput(
                f"{part.kind} needs either {one} or {other}, one of the two.", fix="Give one, leave out the other."
            )
    least = min(per_client.repeat_value(part.clip_norm, 1))
    if least < SMALLEST_CLIP:
        raise InvalidInput(
            f"clip_norm must be at least {SMALLEST_CLIP:g}, below which single precision can't measure a gradient, "
            f"and got {least:g}.",
            fix="Scale clip_norm up and the learning rate down by the same factor.",
        )
    if part.epochs is not None and isinstance(part.sampling_rate, tuple):
        raise InvalidInput(
            "Clients of different sampling rates would take different numbers of steps in an epoch.",
            fix="Give steps instead of epochs.",
        )


def derive_fields(part: Any, population: Population) -> dict[str, Any]:
    """Derive fields from the client sizes: steps from epochs, and the sampling rate from the batch size."""
    per_client.check_client_values(part, population)
    rate, steps = part.sampling_rate, part.steps
    if rate is None:
        rate = 1 / math.ceil(max(population.examples) / part.batch_size)
    if steps is None:
        steps = tuple(epochs * math.ceil(1 / rate - 1e-9) for epochs in part.epochs)  # 1/(1/49) is 49.000000000000007
    return {"steps": steps, "sampling_rate": rate, "epochs": None, "batch_size": None}


def derive_sum_fields(part: Any, population: Population) -> dict[str, Any]:
    """Derive the fields of a trainer whose sums are all divided by the mean client's expected batch."""
    fields = derive_fields(part, population)
    batches = expected_batch_sizes(fields["sampling_rate"], population)
    return fields | {"expected_batch": part.expected_batch or sum(batches) / len(batches)}


def sum_exposure(part: Any, round: int, counted_noise: Callable[[Noise], Noise]) -> Exposure:
    """Return what a trainer exposes that adds up clipped gradients: one sum for each step.

    One example moves each of a round's S sums by at most ηC/B, and so the update by √S·ηC/B.
    """
    rate = part.learning_rate * part.schedule.factor(round)
    reach = float(rate * part.clip_norm / part.expected_batch * math.sqrt(value_in_round(part.steps, round)))
    example = ExampleBound(sensitivity=reach, passes=1, parts=1, counted_noise=counted_noise)
    return expose_steps(part.steps, part.sampling_rate, own_noise=None, example=example)


def longest_update(part: Any) -> float | None:
    """Return S·η·C of the first round; None before the steps are known."""
    if part.steps is None:
        return None
    return float(value_in_round(part.steps, 0) * part.learning_rate * part.schedule.factor(0) * part.clip_norm)


def example_clip(part: Any) -> float | tuple[float, ...] | None:
    """Return the clip of single examples, or None if it also scales short gradients up."""
    return None if part.automatic else part.clip_norm


def expected_batch_sizes(rate: float | tuple[float, ...], population: Population) -> tuple[float, ...]:
    """Return the expected batch size of each client, which is public."""
    rates = per_client.repeat_value(rate, population.clients)
    return tuple(rate * examples for rate, examples in zip(rates, population.examples, strict=True))


def model_copies(part: Any, population: Population) -> float:
    """Estimate how many model-sized tensors a client needs at once."""
    largest = per_client.largest(derive_fields(part, population)["sampling_rate"]) * max(population.examples)
    return 8.0 + 1.5 * min(float(part.piece), largest + 4 * math.sqrt(largest))


def sum_clipped_gradients(
    loss: Loss,
    params: Params,
    batches: Batches,
    rates: float | Tensor,
    clip: Clip,
    coins: Streams,
    piece: int,
    *,
    shared: bool,
) -> Params:
    """Sum each client's clipped gradients over a new Poisson batch, in double precision.

    Args:
        loss: Loss of a model on examples.
        params: One model for each client.
        batches: The clients' data.
        rates: Sampling rate, one for all or one for each client.
        clip: The norm that every example's gradient is clipped to.
        coins: Random streams that draw the batch.
        piece: Examples of a client whose gradients are held in memory at once.
        shared: Whether all clients have the same model, given without a client axis.
    """
    recordings = loss.recordings if isinstance(loss, ModuleLoss) else Recordings()
    from discreet.algorithms.training.per_example import clipped_sum  # its tables of layers need torch

    clipped = partial(clipped_sum, loss, shared=shared)
    total: Params | None = None
    for batch in batches.draw_poisson(rates, coins, piece):
        summed = recordings.run(("clipped sum", shared), clipped, params, batch, clip)
        # the first piece is copied: a recording's outputs are overwritten when the next piece replays it
        total = map_params(torch.clone, summed) if total is None else add(total, summed)
    if total is not None:
        return total
    return zeros_like(repeat_for_clients(params, batches.clients) if shared else params, torch.float64)

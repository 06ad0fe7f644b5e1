"""Verify that a network isolates examples from each other, clients from each other, and each call from the next.

The check runs before training, on the device and in the precision of training, in training mode, with the same random
numbers for every comparison. Training doesn't rely on what it can't rule out: docs/decisions/0005-example-isolation.md.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor

from discreet.algorithms.training.batches import Batch
from discreet.algorithms.training.gradient_records import Gradient
from discreet.algorithms.training.local_step import client_gradients
from discreet.algorithms.training.per_example import gradients_by_way, plan_for
from discreet.algorithms.training.trainer import Loss
from discreet.params import Params, repeat_for_clients
from discreet.randomness.torch_seed import seed_torch

CLIENTS, EXAMPLES = 2, 2
CALLS_BETWEEN = 3
TOLERANCE = 1e-4  # relative: GPU kernels may add in another order

Rows: TypeAlias = list[Tensor]  # flat gradients
T = TypeVar("T")


def mixes_examples(loss: Loss, params: Params, inputs: Tensor, targets: Tensor) -> bool:
    """Return whether replacing one example changes the gradient of another, for every way to compute them."""
    stacked = repeat_for_clients(params, CLIENTS)
    for batch, changed in _batch_pairs(inputs, targets):
        plan_for(loss, stacked, batch)  # found once, by calls that also draw random numbers
        before, after = (
            _compute_seeded(inputs, partial(gradients_by_way, loss, stacked, each)) for each in (batch, changed)
        )
        for way in before:
            if not _agree(_other_rows(before[way]), _other_rows(after[way])):
                return True
    return False


def mixes_clients(loss: Loss, params: Params, inputs: Tensor, targets: Tensor) -> bool:
    """Return whether replacing one client's data changes another client's gradient."""
    models = (
        (True, params),
        (False, repeat_for_clients(params, CLIENTS)),
    )  # as in the first local step, and in later ones
    for (batch, changed), (shared, model) in zip(_batch_pairs(inputs, targets), models, strict=True):
        before, after = (_client_gradients(loss, model, each, shared=shared) for each in (batch, changed))
        if not _agree(before[1:], after[1:]):
            return True
    return False


def carries_state(loss: Loss, params: Params, inputs: Tensor, targets: Tensor) -> bool:
    """Return whether a call with the same inputs and random numbers gives another result after other calls.

    `loss` must call one and the same module every time.
    """
    (batch, changed), *_ = _batch_pairs(inputs, targets)
    model = repeat_for_clients(params, CLIENTS)
    first = _client_gradients(loss, model, batch, shared=False)
    again = _client_gradients(loss, model, batch, shared=False)
    for _ in range(CALLS_BETWEEN):
        _client_gradients(loss, model, changed, shared=False)
    later = _client_gradients(loss, model, batch, shared=False)
    return not (_agree(first, again) and _agree(first, later))


def _batch_pairs(inputs: Tensor, targets: Tensor) -> list[tuple[Batch, Batch]]:
    """Return two pairs of batches that differ in the first client's first example, of real and of random inputs."""
    index = torch.arange(CLIENTS * EXAMPLES + 1, device=inputs.device) % len(inputs)
    real, labels = inputs[index], targets[index]
    pairs = []
    for values in (real, _random_like(real)):
        other = values[-1:] * -2 + 1 if inputs.is_floating_point() else values[-1:].flip(-1)
        batch = _batch(values[:-1], labels[:-1])
        pairs.append((batch, _batch(torch.cat([other, values[1:-1]]), torch.cat([labels[-1:], labels[1:-1]]))))
    return pairs


def _random_like(inputs: Tensor) -> Tensor:
    """Return normal random numbers or, for integers such as words, the same values in another order."""
    generator = torch.Generator().manual_seed(0)
    if inputs.is_floating_point():
        return torch.randn(inputs.shape, generator=generator).to(inputs)
    return inputs.flatten()[torch.randperm(inputs.numel(), generator=generator)].reshape(inputs.shape)


def _batch(inputs: Tensor, targets: Tensor) -> Batch:
    everyone = torch.ones(CLIENTS, EXAMPLES, dtype=torch.bool, device=inputs.device)
    own_inputs, own_targets = (each.reshape(CLIENTS, EXAMPLES, *each.shape[1:]) for each in (inputs, targets))
    return Batch(own_inputs, own_targets, everyone, everyone[:, 0])


def _client_gradients(loss: Loss, params: Params, batch: Batch, *, shared: bool) -> Rows:
    taken = client_gradients(loss, shared=shared)
    found = _compute_seeded(batch.inputs, partial(taken, params, batch.inputs, batch.targets, batch.mask))
    return [_flat([value[client] for value in found.values()]) for client in range(CLIENTS)]


def _other_rows(found: Mapping[str, Gradient]) -> Rows:
    """Return the gradient of each example except the first, which was replaced."""
    squares = next(iter(found.values())).squared_norms()
    one_hot = torch.eye(len(squares), dtype=squares.dtype, device=squares.device)[1:]
    gradients = [each.zero_nonfinite() for each in found.values()]
    return [_flat([each.weighted_sum(weights[None])[0] for each in gradients]) for weights in one_hot]


def _flat(values: list[Tensor]) -> Tensor:
    return torch.cat([value.detach().flatten() for value in values])


def _agree(some: Rows, others: Rows) -> bool:
    """Return whether all are equal up to rounding; NaN equals NaN."""
    for one, other in zip(some, others, strict=True):
        if torch.equal(one, other):
            continue
        scale = float(one.nan_to_num(0, 0, 0).abs().max())
        if not torch.allclose(one, other, rtol=0, atol=TOLERANCE * scale + 1e-12, equal_nan=True):
            return False
    return True


def _compute_seeded(inputs: Tensor, compute: Callable[[], T]) -> T:
    with fixed_randomness(0, inputs.device):
        return compute()


@contextmanager
def fixed_randomness(seed: int, device: torch.device) -> Iterator[None]:
    """Start the generators of torch, Python and numpy from `seed`, and restore them afterwards."""
    python, arrays = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        with seed_torch(seed, device):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(arrays)

"""Group the local steps of a round, so that one CUDA graph holds them all and no state is copied in between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TypeAlias

from discreet.algorithms.training.batches import Batch
from discreet.lazy_torch import Tensor

Steps: TypeAlias = list[tuple[Batch, Tensor]]  # batches with their learning rates

MOST_STEPS = 16  # in one recording: the time to record grows with them
MOST_BYTES = 2**28  # of the batches of a group, which are in memory at once


def group_steps(steps: Iterable[tuple[Batch, Tensor]]) -> Iterator[Steps]:
    """Yield all steps as one group if they are few and all clients take each of them, on a GPU; else one by one."""
    coming = iter(steps)
    first = list(islice(coming, 1))
    if first and first[0][0].inputs.is_cuda:
        inputs = first[0][0].inputs
        most = min(MOST_STEPS, MOST_BYTES // max(1, inputs.numel() * inputs.element_size()))
        first += islice(coming, max(0, most - 1))
        last = next(coming, None)
        if last is None and all(batch.active is None for batch, _ in first):
            yield first
            return
        coming = chain([] if last is None else [last], coming)
    yield from ([step] for step in chain(first, coming))

"""Seed torch's global generators for a while, and restore them afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from discreet.lazy_torch import torch


@contextmanager
def seed_torch(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Within this context, torch's global generators start from `seed`. Afterwards their state is restored."""
    own = [torch.default_generator]
    if device is not None and device.type == "cuda":
        own.append(torch.cuda.default_generators[torch.cuda.current_device() if device.index is None else device.index])
    before = [generator.get_state() for generator in own]
    try:
        for generator in own:  # torch.manual_seed would do, and takes a millisecond
            generator.manual_seed(seed)
        yield
    finally:
        for generator, state in zip(own, before, strict=True):
            generator.set_state(state)

"""Keep a user's autocast out of a round: what is clipped, summed and noised must not be rounded to 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from discreet.lazy_torch import torch

P = ParamSpec("P")
T = TypeVar("T")


def in_full_precision(function: Callable[P, T]) -> Callable[P, T]:
    """Make `function` run without autocast, whatever context its caller is in. A model's own autocast still works."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
            return function(*args, **kwargs)

    return run

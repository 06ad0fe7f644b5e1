"""The announced norm that updates are measured in: a clip norm, or the bound that training guarantees."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

from discreet.algorithms.broadcast import CLIP
from discreet.algorithms.mechanisms.mechanism import Mechanism, State
from discreet.errors import InvalidInput
from discreet.lazy_torch import torch
from discreet.params import Params
from discreet.part import LARGEST_NORM, SMALLEST_NORM


class AnnouncedClip(Mechanism, Protocol):
    """A mechanism that measures updates in its own clip norm, or without one in the bound of training."""

    @property
    @abstractmethod
    def clip_norm(self) -> float | None:
        """The norm that updates are clipped to; None where training bounds them."""

    def init(self, params: Params) -> State:
        """Return the state that holds the announced norm, on the model's device."""
        return {CLIP: torch.zeros((), dtype=torch.float64, device=next(iter(params.values())).device)}

    def announce(self, state: State, bound: float | None) -> Params:
        """Announce the clip norm, else the trainer's bound; positive even if a rate has decayed to zero."""
        norm = self.clip_norm or bound
        assert norm is not None  # an algorithm without either is refused when it is built
        if norm > LARGEST_NORM:
            raise InvalidInput(
                f"An update is measured in a norm of at most {LARGEST_NORM:g}, and training bounds it by {norm:g}.",
                fix="Lower the learning rate or the gradient clip, or give a clip_norm.",
            )
        return {CLIP: torch.full_like(state[CLIP], max(norm, SMALLEST_NORM))}

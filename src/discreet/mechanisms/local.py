"""Each client for itself: it adds noise that is enough before anything leaves it, so nobody need be trusted."""

from dataclasses import replace
from typing import Literal, Self

import torch
from torch import Tensor

from discreet.broadcast import Broadcast
from discreet.clipping import clip
from discreet.mechanisms.mechanism import State
from discreet.params import Params, add, scale
from discreet.part import Multiplier, Positive, part
from discreet.privacy.events import GaussianNoise, LaplaceNoise, Noise
from discreet.randomness import Rows

CLIP = "clip"
SMALLEST = 1e-30  # to divide by


@part
class LocalGaussian:
    """Clip the update to `clip_norm` in L2, add N(0, (noise_multiplier·clip_norm)²) to each coordinate.

    Guarantee: all of a client's data, replaced by any other, against the server and everybody after it. Two updates
    lie up to 2·clip_norm apart, which the relation counts. Without `clip_norm` it is the bound that training keeps by
    its making: ζ·Ση over a round's local iterations (paper 003).
    """

    kind: Literal["local_gaussian"] = "local_gaussian"
    clip_norm: Positive | None = None
    noise_multiplier: Multiplier | None = None  # none yet: found from the promise

    @property
    def private(self) -> bool:
        return True

    @property
    def order(self) -> int:
        return 2

    def with_noise(self, noise_multiplier: float) -> Self:
        return self if self.noise_multiplier is not None else replace(self, noise_multiplier=noise_multiplier)

    def fitted(self, cohort: float) -> Self:
        return self

    def init(self, params: Params) -> State:
        return _state(params)

    def announce(self, state: State, bound: float | None) -> Params:
        return _announced(state, self.clip_norm or bound)

    def bound(self, delta: Params, broadcast: Broadcast) -> Params:
        return _unit(delta, broadcast, self.order)

    def share(self, encoded: Params, broadcast: Broadcast, rows: Rows) -> Params:
        assert self.noise_multiplier is not None
        return add(encoded, scale(rows.open().normal(_one(encoded)), self.noise_multiplier))

    def on_server(
        self, total: Params, state: State, broadcast: Broadcast, cohort: float, noise: Rows
    ) -> tuple[Params, State]:
        return _in_its_units(total, broadcast), state

    def noise(self) -> Noise | None:
        return None

    def own_noise(self) -> Noise | None:
        return None if self.noise_multiplier is None else GaussianNoise(noise_multiplier=self.noise_multiplier)

    def clipped(self, norms: Tensor, broadcast: Broadcast) -> Tensor:
        return norms > broadcast.announced[CLIP].to(norms.device)


@part
class LocalLaplace:
    """Clip the update to `clip_norm` in L1, add Laplace noise of scale noise_multiplier·clip_norm to each coordinate.

    Guarantee: as LocalGaussian's, and pure: it holds with delta 0.
    """

    kind: Literal["local_laplace"] = "local_laplace"
    clip_norm: Positive | None = None
    noise_multiplier: Multiplier | None = None

    @property
    def private(self) -> bool:
        return True

    @property
    def order(self) -> int:
        return 1

    def with_noise(self, noise_multiplier: float) -> Self:
        return self if self.noise_multiplier is not None else replace(self, noise_multiplier=noise_multiplier)

    def fitted(self, cohort: float) -> Self:
        return self

    def init(self, params: Params) -> State:
        return _state(params)

    def announce(self, state: State, bound: float | None) -> Params:
        return _announced(state, self.clip_norm or bound)

    def bound(self, delta: Params, broadcast: Broadcast) -> Params:
        return _unit(delta, broadcast, self.order)

    def share(self, encoded: Params, broadcast: Broadcast, rows: Rows) -> Params:
        assert self.noise_multiplier is not None
        return add(encoded, scale(rows.open().laplace(_one(encoded)), self.noise_multiplier))

    def on_server(
        self, total: Params, state: State, broadcast: Broadcast, cohort: float, noise: Rows
    ) -> tuple[Params, State]:
        return _in_its_units(total, broadcast), state

    def noise(self) -> Noise | None:
        return None

    def own_noise(self) -> Noise | None:
        return None if self.noise_multiplier is None else LaplaceNoise(noise_multiplier=self.noise_multiplier)

    def clipped(self, norms: Tensor, broadcast: Broadcast) -> Tensor:
        """At least these: an L1 norm is never below the L2 norm that is looked at."""
        return norms > broadcast.announced[CLIP].to(norms.device)


def _state(params: Params) -> State:
    """A number on the model's device, in which each round's clip is announced."""
    return {CLIP: torch.zeros((), dtype=torch.float64, device=next(iter(params.values())).device)}


def _announced(state: State, bound: float | None) -> Params:
    assert bound is not None  # an algorithm without either is refused when it is built
    return {CLIP: torch.full_like(state[CLIP], max(bound, SMALLEST))}  # a rate that decayed to nothing moves nothing


def _unit(delta: Params, broadcast: Broadcast, order: int) -> Params:
    norm = broadcast.announced[CLIP]
    return {name: value / norm.to(value.dtype) for name, value in clip(delta, norm, order).items()}


def _one(block: Params) -> Params:
    return {name: value[0] for name, value in block.items()}


def _in_its_units(total: Params, broadcast: Broadcast) -> Params:
    return {name: value * broadcast.announced[CLIP].to(value.dtype) for name, value in total.items()}

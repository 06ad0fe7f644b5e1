"""The Gaussian mechanism with its noise shared out: each client adds a part of it, and only the sum has enough."""

import math
from dataclasses import replace
from typing import Literal, Self

from torch import Tensor

from discreet.broadcast import Broadcast
from discreet.clipping import clip as clipped
from discreet.errors import UnsoundCombination
from discreet.mechanisms.mechanism import State
from discreet.params import Params, add, scale
from discreet.part import Count, Multiplier, Positive, part
from discreet.privacy.events import GaussianNoise, Noise
from discreet.randomness import Rows


@part
class DistributedGaussian:
    """Clip each update to `clip_norm`; each of `shares` clients adds N(0, (noise_multiplier·clip_norm)²/shares).

    Guarantee: client level, against those who see released models, when whoever sums is trusted and as many clients
    contribute as there are shares. One upload by itself carries noise_multiplier/√shares, and that is all that is
    promised against a server who sees uploads in clear.
    """

    kind: Literal["distributed_gaussian"] = "distributed_gaussian"
    clip_norm: Positive
    noise_multiplier: Multiplier | None = None  # of the sum; none yet: found from the promise
    shares: Count | None = None  # the cohort, where none is given

    @property
    def private(self) -> bool:
        return True

    @property
    def order(self) -> int:
        return 2

    def with_noise(self, noise_multiplier: float) -> Self:
        return self if self.noise_multiplier is not None else replace(self, noise_multiplier=noise_multiplier)

    def fitted(self, cohort: float) -> Self:
        if self.shares is not None and self.shares > cohort:
            raise UnsoundCombination(
                f"The noise is cut into {self.shares} shares, and {cohort:g} clients bring one each: some would lack.",
                fix="Leave shares out, and it follows from the cohort.",
            )
        return self if self.shares is not None else replace(self, shares=int(cohort))

    def init(self, params: Params) -> State:
        return {}

    def announce(self, state: State, bound: float | None) -> Params:
        return {}

    def bound(self, delta: Params, broadcast: Broadcast) -> Params:
        return scale(clipped(delta, self.clip_norm), 1 / self.clip_norm)

    def share(self, encoded: Params, broadcast: Broadcast, rows: Rows) -> Params:
        assert self.noise_multiplier is not None
        assert self.shares is not None
        drawn = rows.open().normal({name: value[0] for name, value in encoded.items()})
        return add(encoded, scale(drawn, self.noise_multiplier / math.sqrt(self.shares)))

    def on_server(
        self, total: Params, state: State, broadcast: Broadcast, cohort: float, noise: Rows
    ) -> tuple[Params, State]:
        return scale(total, self.clip_norm), state

    def noise(self) -> Noise | None:
        return None if self.noise_multiplier is None else GaussianNoise(noise_multiplier=self.noise_multiplier)

    def own_noise(self) -> Noise | None:
        if self.noise_multiplier is None or self.shares is None:
            return None
        return GaussianNoise(noise_multiplier=self.noise_multiplier / math.sqrt(self.shares))

    def clip(self, broadcast: Broadcast) -> float | Tensor | None:
        return self.clip_norm

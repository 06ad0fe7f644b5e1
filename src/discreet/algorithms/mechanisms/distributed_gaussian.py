"""The distributed Gaussian mechanism: each client adds a share of the noise, and only the sum has enough."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, Self

from discreet.algorithms import per_client
from discreet.algorithms.broadcast import CLIP, Broadcast
from discreet.algorithms.clipping import clip as clipped
from discreet.algorithms.honest_upload import HonestUpload
from discreet.algorithms.mechanisms.announced_clip import AnnouncedClip
from discreet.algorithms.mechanisms.mechanism import State
from discreet.errors import UnsoundCombination
from discreet.lazy_torch import Tensor
from discreet.params import Params, add, scale
from discreet.part import ClipNorm, Count, Multiplier, part
from discreet.privacy.events import GaussianNoise, Noise
from discreet.randomness.streams import Rows
from discreet.secure_sums.lattice.grid import Grid


@part
class DistributedGaussian(AnnouncedClip):
    """Clip each update to `clip_norm`; each client adds one of `shares` of N(0, (noise_multiplier·clip_norm)²).

    Without `clip_norm` it protects examples: training bounds how far one example moves an update (Heikkilä 2025), and
    that bound replaces the clip norm.

    The server adds the shares of absent clients. With one share for each client that may join, the sum carries the same
    noise however many join, and hides who did.

    Guarantee: client level, or example level without `clip_norm`, against those who see released models, if the server
    that sums is trusted. One upload by itself carries noise_multiplier/√shares, and that is all that is promised
    against a server who sees uploads in clear.
    """

    kind: Literal["distributed_gaussian"] = "distributed_gaussian"
    clip_norm: ClipNorm | None = None
    noise_multiplier: Multiplier | None = None  # of the sum; None: computed from the promise
    shares: Count | None = None  # None: one for each client that may join

    is_private = True
    norm_order = 2
    extra_values = 0

    @property
    def unit(self) -> Literal["client", "example"]:
        return "example" if self.clip_norm is None else "client"

    def with_noise(self, noise_multiplier: float | tuple[float, ...]) -> Self:
        return per_client.fill_noise(self, per_client.require_single(noise_multiplier))

    def for_cohort(self, fewest: int, most: int) -> Self:
        if self.shares is not None and self.shares > most:
            raise UnsoundCombination(
                f"The noise has {self.shares} shares, and {most} clients bring one each: some would be missing.",
                fix="Leave shares out: then there is one for each client that may join.",
            )
        return self if self.shares is not None else replace(self, shares=most)

    def for_moments(self, bound: float, noise_multiplier: float | None) -> Self:
        clip = None if self.clip_norm is None else bound
        return replace(self, clip_norm=clip, noise_multiplier=noise_multiplier)

    def bound(self, delta: Params, broadcast: Broadcast) -> Params:
        bounded = delta if self.clip_norm is None else clipped(delta, self.clip_norm)
        return scale(bounded, 1 / broadcast.announcement[CLIP])

    def add_noise_share(self, encoded: Params, broadcast: Broadcast, rows: Rows) -> Params:
        assert self.noise_multiplier is not None
        assert self.shares is not None
        exact = {name: value.double() for name, value in encoded.items()}
        drawn = rows.open().normal({name: value[0] for name, value in exact.items()})
        return add(exact, scale(drawn, self.noise_multiplier / math.sqrt(self.shares)))

    def release_sum(
        self, total: Params, state: State, broadcast: Broadcast, cohort: float, contributors: int, noise: Rows
    ) -> tuple[Params, State]:
        assert self.noise_multiplier is not None
        assert self.shares is not None
        if contributors < self.shares:
            drawn = {name: value[0] for name, value in noise.open().normal(total).items()}
            total = add(total, scale(drawn, self.noise_multiplier * math.sqrt(1 - contributors / self.shares)))
        return scale(total, broadcast.announcement[CLIP]), state

    def sum_noise(
        self, grid: Grid | None = None, known_shares: int = 0, contributors: int | None = None
    ) -> Noise | None:
        if self.noise_multiplier is None or self.shares is None or known_shares >= self.shares:
            return None
        return GaussianNoise(noise_multiplier=self.noise_multiplier * math.sqrt(1 - known_shares / self.shares))

    def upload_noise(self, grid: Grid | None = None) -> Noise | None:
        if self.noise_multiplier is None or self.shares is None:
            return None
        return GaussianNoise(noise_multiplier=self.noise_multiplier / math.sqrt(self.shares))

    def honest_upload(self) -> HonestUpload | None:
        if self.noise_multiplier is None or self.shares is None:
            return None
        return HonestUpload(norm=1.0, order=2, deviation=self.noise_multiplier / math.sqrt(self.shares))

    def clip_threshold(self, broadcast: Broadcast) -> float | Tensor | None:
        return self.clip_norm

    def noise_deviation(self, clients: Sequence[int]) -> float | None:
        if self.noise_multiplier is None or self.shares is None:
            return None
        return self.noise_multiplier * max(1.0, math.sqrt(len(clients) / self.shares))

"""Integer noise in shares for secure sums: Skellam, whose sums are again Skellam, or discrete Gaussian."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, Self

from discreet.algorithms import per_client
from discreet.algorithms.broadcast import CLIP, Broadcast
from discreet.algorithms.clipping import clip as clipped
from discreet.algorithms.mechanisms.announced_clip import AnnouncedClip
from discreet.algorithms.mechanisms.integer_shares import IntegerShares
from discreet.algorithms.mechanisms.mechanism import State
from discreet.errors import UnsoundCombination
from discreet.lazy_torch import Tensor, torch
from discreet.params import Params, add, scale
from discreet.part import ClipNorm, Count, Index, Multiplier, part
from discreet.privacy.events import DistributedDiscreteGaussianNoise, Noise, SkellamNoise
from discreet.privacy.skellam import l2_after_rounding
from discreet.randomness.streams import Rows
from discreet.secure_sums.lattice.grid import Grid
from discreet.secure_sums.lattice.rounding import l2_of_rounded_sum


@part
class IntegerNoise(AnnouncedClip):
    """Clip to `clip_norm`, round onto the lattice, and add one of `shares` of integer noise: only the sum has enough.

    Without `clip_norm` it protects examples: training bounds how far one example moves an update. There are as many
    shares as clients of the smallest cohort that neither collude nor drop out: at most `colluding` and `dropouts` do.
    noise_multiplier is that of the sum, relative to the clip norm before rounding.

    Guarantee: client level, or example level without `clip_norm`, against those who see only sums: the server of a
    secure sum together with `colluding` clients, another client, and the public. What rounding adds to a sensitivity is
    counted. The integers are exact: there is no floating point between the rounding and the sum.
    """

    kind: Literal["skellam", "discrete_gaussian"]
    clip_norm: ClipNorm | None = None
    noise_multiplier: Multiplier | None = None  # of the sum; None: computed from the promise
    colluding: Index = 0
    dropouts: Index = 0
    shares: Count | None = None  # follows from the smallest cohort

    is_private = True
    norm_order = 2
    extra_values = 0

    @property
    def unit(self) -> Literal["client", "example"]:
        return "example" if self.clip_norm is None else "client"

    @property
    def integer_shares(self) -> IntegerShares:
        return IntegerShares(self.kind, self.shares, self.colluding, self.dropouts)

    def with_noise(self, noise_multiplier: float | tuple[float, ...]) -> Self:
        return per_client.fill_noise(self, per_client.require_single(noise_multiplier))

    def for_cohort(self, fewest: int, most: int) -> Self:
        honest = fewest - self.colluding - self.dropouts
        if fewest < 1:
            raise UnsoundCombination(
                "Some client must join every round to bring noise shares, and a Poisson draw may be empty.",
                fix="Draw cohorts of a fixed size, or let everyone join.",
            )
        if honest < 1 or (self.shares is not None and self.shares > honest):
            raise UnsoundCombination(
                f"Of {fewest} clients, {self.colluding} may collude and {self.dropouts} drop out; {max(honest, 0)} are "
                f"left to bring {'any' if self.shares is None else self.shares} shares of noise.",
                fix="Allow for fewer colluding clients and drop-outs, or for a larger cohort.",
            )
        return self if self.shares is not None else replace(self, shares=honest)

    def for_moments(self, bound: float, noise_multiplier: float | None) -> Self:
        clip = None if self.clip_norm is None else bound
        return replace(self, clip_norm=clip, noise_multiplier=noise_multiplier)

    def bound(self, delta: Params, broadcast: Broadcast) -> Params:
        """Integers that training put on the lattice stay as they are: training has bounded each of its sums."""
        on_lattice = any(value.dtype == torch.int64 for value in delta.values())
        if on_lattice and self.clip_norm is not None:
            raise UnsoundCombination(
                "An update must be clipped before it is rounded onto the lattice, and this one was rounded first.",
                fix="Round after the clip, or leave clip_norm out to protect single examples.",
            )
        if on_lattice:
            return delta
        bounded = delta if self.clip_norm is None else clipped(delta, self.clip_norm)
        # in double precision: in single precision a row at the clip norm may get a norm above 1, which is refused
        return {name: value.double() / broadcast.announcement[CLIP] for name, value in bounded.items()}

    def add_noise_share(self, encoded: Params, broadcast: Broadcast, rows: Rows) -> Params:
        assert self.noise_multiplier is not None
        assert self.shares is not None
        assert broadcast.encoding is not None
        one, streams = {name: value[0] for name, value in encoded.items()}, rows.open()
        variance = (self.noise_multiplier * broadcast.encoding.scale) ** 2 / self.shares
        if self.kind == "skellam":  # the noise of all sums at once is Skellam too
            return add(encoded, streams.skellam(one, variance))
        for _ in range(broadcast.encoding.times):
            encoded = add(encoded, streams.discrete_gaussian(one, variance / broadcast.encoding.times))
        return encoded

    def release_sum(
        self, total: Params, state: State, broadcast: Broadcast, cohort: float, contributors: int, noise: Rows
    ) -> tuple[Params, State]:
        return scale(total, broadcast.announcement[CLIP]), state

    def sum_noise(
        self, grid: Grid | None = None, known_shares: int = 0, contributors: int | None = None
    ) -> Noise | None:
        if self.noise_multiplier is None or self.shares is None or grid is None:
            return None
        whole = (self.noise_multiplier * grid.scale) ** 2 / grid.times
        # Shares that the observer doesn't know. The observer counts as one of the colluding clients.
        present = self.shares if contributors is None else contributors - self.colluding
        honest = present - max(0, known_shares - self.colluding)
        if honest < 1:
            return None
        if self.kind == "skellam":
            return SkellamNoise(
                variance=whole * honest / self.shares,
                l2_sensitivity=self._sensitivity(grid),
                dimension=grid.dimension,
            )
        return DistributedDiscreteGaussianNoise(
            variance=whole / self.shares,
            shares=honest,
            l2_sensitivity=self._sensitivity(grid),
            dimension=grid.dimension,
        )

    def upload_noise(self, grid: Grid | None = None) -> Noise | None:
        return None  # nobody sees a single upload

    def clip_threshold(self, broadcast: Broadcast) -> float | Tensor | None:
        return self.clip_norm

    def noise_deviation(self, clients: Sequence[int]) -> float | None:
        if self.noise_multiplier is None or self.shares is None:
            return None
        return self.noise_multiplier * math.sqrt(len(clients) / self.shares)

    def _sensitivity(self, grid: Grid) -> float:
        if self.unit == "client":
            return l2_after_rounding(grid.scale, grid.dimension)
        return l2_of_rounded_sum(grid.scale / math.sqrt(grid.times), grid.dimension, grid.added)

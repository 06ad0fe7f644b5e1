"""Local noise: each client adds enough noise before anything leaves it, so that nobody must be trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Self

from discreet.algorithms import per_client
from discreet.algorithms.broadcast import CLIP, Broadcast
from discreet.algorithms.clipping import clip as clipped
from discreet.algorithms.honest_upload import HonestUpload
from discreet.algorithms.mechanisms.announced_clip import AnnouncedClip
from discreet.algorithms.mechanisms.mechanism import State
from discreet.lazy_torch import Tensor
from discreet.params import Params, add, scale
from discreet.part import ClipNorm, Multiplier, PerClient, part
from discreet.privacy.events import GaussianNoise, LaplaceNoise, Noise
from discreet.randomness.streams import Rows
from discreet.secure_sums.lattice.grid import Grid


@part
class LocalNoise(AnnouncedClip):
    """Clip the update to `clip_norm`, add Gaussian or Laplace noise of noise_multiplier·clip_norm to each coordinate.

    Gaussian noise goes with the L2 norm, Laplace noise with L1. Without `clip_norm`, training bounds the update: ζ·Ση
    over a round's local iterations (Fu et al. 2021). noise_multiplier may be a list of one value for each client.

    Guarantee: all of a client's data, replaced by any other, against the server and everyone who sees less than the
    server. Two updates may be 2·clip_norm apart, which the relation counts. Laplace noise is pure: delta is 0.
    """

    kind: Literal["local_gaussian", "local_laplace"]
    clip_norm: ClipNorm | None = None
    noise_multiplier: PerClient[Multiplier] | None = None  # None: computed from the promise

    is_private = True
    unit = "client"
    extra_values = 0
    is_local = True

    @property
    def norm_order(self) -> int:
        return 1 if self.kind == "local_laplace" else 2

    def with_noise(self, noise_multiplier: float | tuple[float, ...]) -> Self:
        return per_client.fill_noise(self, noise_multiplier)

    def bound(self, delta: Params, broadcast: Broadcast) -> Params:
        norm = broadcast.announcement[CLIP]
        return clipped(delta, norm, self.norm_order, unit=1 / norm)

    def add_noise_share(self, encoded: Params, broadcast: Broadcast, rows: Rows) -> Params:
        assert self.noise_multiplier is not None
        one, streams = {name: value[0] for name, value in encoded.items()}, rows.open()
        drawn = streams.laplace(one) if self.kind == "local_laplace" else streams.normal(one)
        device = next(iter(encoded.values())).device
        deviation = per_client.client_rows(self.noise_multiplier, rows.clients, device)
        return add(encoded, per_client.scale_by(drawn, deviation))

    def release_sum(
        self, total: Params, state: State, broadcast: Broadcast, cohort: float, contributors: int, noise: Rows
    ) -> tuple[Params, State]:
        return scale(total, broadcast.announcement[CLIP]), state

    def sum_noise(
        self, grid: Grid | None = None, known_shares: int = 0, contributors: int | None = None
    ) -> Noise | None:
        return None

    def upload_noise(self, grid: Grid | None = None) -> Noise | None:
        if self.noise_multiplier is None:
            return None
        assert isinstance(self.noise_multiplier, float)  # called for clients with equal settings
        kind = LaplaceNoise if self.kind == "local_laplace" else GaussianNoise
        return kind(noise_multiplier=self.noise_multiplier)

    def honest_upload(self) -> HonestUpload | None:
        if self.noise_multiplier is None:
            return None
        assert isinstance(self.noise_multiplier, float)  # called for clients with equal settings
        return HonestUpload(norm=1.0, order=self.norm_order, deviation=self.noise_multiplier)

    def clip_threshold(self, broadcast: Broadcast) -> float | Tensor | None:
        """Return the announced clip norm. For Laplace noise it is in L1, which is never below the L2 norm."""
        return broadcast.announcement[CLIP]

    def noise_deviation(self, clients: Sequence[int]) -> float | None:
        noise = self.noise_multiplier
        if noise is None:
            return None
        multipliers = (noise[client] if isinstance(noise, tuple) else noise for client in clients)
        variance = 2 if self.kind == "local_laplace" else 1  # of noise of multiplier 1
        return math.sqrt(variance * sum(multiplier**2 for multiplier in multipliers))

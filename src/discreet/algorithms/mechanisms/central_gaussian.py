"""The central Gaussian mechanism: updates are clipped, and a trusted server adds the noise (McMahan et al. 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

from discreet.algorithms import per_client
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.clipping import clip as clipped
from discreet.algorithms.honest_upload import HonestUpload
from discreet.algorithms.mechanisms.mechanism import Mechanism, State
from discreet.algorithms.noise_addition import add_noise
from discreet.lazy_torch import Tensor
from discreet.params import Params, round_to_types, scale
from discreet.part import ClipNorm, Multiplier, part
from discreet.privacy.events import GaussianNoise, Noise
from discreet.randomness.streams import Rows
from discreet.secure_sums.lattice.grid import Grid


@part
class Gaussian(Mechanism):
    """Clip each update to `clip_norm`, sum, add N(0, (noise_multiplier·clip_norm)²).

    Guarantee: client level, against those who see only the released models. The server sees updates in clear.
    """

    kind: Literal["gaussian"] = "gaussian"
    clip_norm: ClipNorm
    noise_multiplier: Multiplier | None = None  # None: computed from the promise

    is_private = True
    unit = "client"
    norm_order = 2
    extra_values = 0

    def with_noise(self, noise_multiplier: float | tuple[float, ...]) -> Self:
        return per_client.fill_noise(self, per_client.require_single(noise_multiplier))

    def for_moments(self, bound: float, noise_multiplier: float | None) -> Gaussian:
        return Gaussian(clip_norm=bound, noise_multiplier=noise_multiplier)

    def bound(self, delta: Params, broadcast: Broadcast) -> Params:
        return clipped(delta, self.clip_norm, unit=1 / self.clip_norm)

    def add_noise_share(self, encoded: Params, broadcast: Broadcast, rows: Rows) -> Params:
        return encoded

    def release_sum(
        self, total: Params, state: State, broadcast: Broadcast, cohort: float, contributors: int, noise: Rows
    ) -> tuple[Params, State]:
        assert self.noise_multiplier is not None
        drawn = noise.open().normal(round_to_types(total, broadcast.params))
        rows = {name: value[0] for name, value in drawn.items()}
        return scale(add_noise(total, rows, self.noise_multiplier), self.clip_norm), state

    def sum_noise(
        self, grid: Grid | None = None, known_shares: int = 0, contributors: int | None = None
    ) -> Noise | None:
        return None if self.noise_multiplier is None else GaussianNoise(noise_multiplier=self.noise_multiplier)

    def upload_noise(self, grid: Grid | None = None) -> Noise | None:
        return None

    def honest_upload(self) -> HonestUpload | None:
        return HonestUpload(norm=1.0, order=2, deviation=0.0)

    def clip_threshold(self, broadcast: Broadcast) -> float | Tensor | None:
        return self.clip_norm

    def noise_deviation(self, clients: Sequence[int]) -> float | None:
        return self.noise_multiplier

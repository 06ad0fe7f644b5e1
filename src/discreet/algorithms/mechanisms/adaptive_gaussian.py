"""The central Gaussian mechanism whose clip norm follows a quantile of the update norms (Andrew et al. 2021)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Self

from discreet.algorithms import per_client
from discreet.algorithms.broadcast import CLIP, Broadcast
from discreet.algorithms.clipping import ROUNDING
from discreet.algorithms.clipping import clip as clipped
from discreet.algorithms.honest_upload import HonestUpload
from discreet.algorithms.mechanisms.central_gaussian import Gaussian
from discreet.algorithms.mechanisms.mechanism import Mechanism, State
from discreet.algorithms.noise_addition import add_noise
from discreet.lazy_torch import Tensor, torch
from discreet.params import Params, norms, round_to_types, scale, scale_rows
from discreet.part import LARGEST_NORM, SMALLEST_NORM, ClipNorm, Multiplier, Positive, Probability, Rate, part
from discreet.privacy.events import GaussianNoise, Noise
from discreet.randomness.streams import Rows
from discreet.secure_sums.lattice.grid import Grid

FLAG = "below the clip"


@part
class AdaptiveGaussian(Mechanism):
    """Each client sends its clipped update and a flag whether it was below the clip; the server adds noise to both.

    The vector is (a·Δ/C, ±c) with a² + c² = 1, so its norm is at most 1 and one Gaussian noise covers both: the
    guarantee is that of `Gaussian` with the same noise_multiplier, and the flag takes c² of the signal. Then
    C ← C·exp(−rate·(share below − quantile)). The noise scales with the clip, so the guarantee doesn't depend on data.

    Guarantee: client level, against those who see only the released models.
    """

    kind: Literal["adaptive_gaussian"] = "adaptive_gaussian"
    clip_norm: ClipNorm  # in the first round
    quantile: Rate = 0.5
    rate: Positive = 0.2
    flag: Probability = 0.1  # c: a larger flag tracks the quantile better, and leaves less of the norm to the update
    noise_multiplier: Multiplier | None = None  # None: computed from the promise

    is_private = True
    unit = "client"
    norm_order = 2
    extra_values = 1
    server_choices = frozenset({CLIP})

    def with_noise(self, noise_multiplier: float | tuple[float, ...]) -> Self:
        return per_client.fill_noise(self, per_client.require_single(noise_multiplier))

    def init(self, params: Params) -> State:
        device = next(iter(params.values())).device
        return {CLIP: torch.tensor(self.clip_norm, dtype=torch.float64, device=device)}

    def announce(self, state: State, bound: float | None) -> Params:
        return {CLIP: state[CLIP]}

    def for_moments(self, bound: float, noise_multiplier: float | None) -> Gaussian:
        return Gaussian(clip_norm=bound, noise_multiplier=noise_multiplier)

    def bound(self, delta: Params, broadcast: Broadcast) -> Params:
        norm = broadcast.announcement[CLIP]
        unit = clipped(delta, norm, unit=self.update_share / norm)
        below = norms(delta) <= norm  # a norm that is not finite counts as above
        sign = below.to(next(iter(delta.values())).dtype) * 2 - 1
        whole = unit | {FLAG: self.flag * sign}
        sizes = norms(whole)  # with a flag next to 1, the update leaves no room for rounding, here and in a sum
        return scale_rows(torch.where(sizes > (1 + ROUNDING) / 2, ROUNDING, torch.ones_like(sizes)), whole)

    def add_noise_share(self, encoded: Params, broadcast: Broadcast, rows: Rows) -> Params:
        return encoded

    def release_sum(
        self, total: Params, state: State, broadcast: Broadcast, cohort: float, contributors: int, noise: Rows
    ) -> tuple[Params, State]:
        assert self.noise_multiplier is not None
        norm = broadcast.announcement[CLIP]
        with_flag = {FLAG: next(iter(total.values())).new_zeros(())} | total  # an empty cohort sends no flag
        drawn = noise.open().normal(round_to_types(with_flag, broadcast.params))
        noisy = add_noise(with_flag, {name: value[0] for name, value in drawn.items()}, self.noise_multiplier)
        below = (noisy.pop(FLAG).double() / (self.flag * cohort) + 1) / 2
        moved = norm * torch.exp(-self.rate * (below.clamp(0, 1) - self.quantile))
        return scale(noisy, norm / self.update_share), {CLIP: moved.clamp(SMALLEST_NORM, LARGEST_NORM)}

    def sum_noise(
        self, grid: Grid | None = None, known_shares: int = 0, contributors: int | None = None
    ) -> Noise | None:
        return None if self.noise_multiplier is None else GaussianNoise(noise_multiplier=self.noise_multiplier)

    def upload_noise(self, grid: Grid | None = None) -> Noise | None:
        return None

    def honest_upload(self) -> HonestUpload | None:
        return HonestUpload(norm=self.update_share, order=2, deviation=0.0, extra=self.flag)

    def clip_threshold(self, broadcast: Broadcast) -> float | Tensor | None:
        return broadcast.announcement[CLIP]

    def noise_deviation(self, clients: Sequence[int]) -> float | None:
        return self.noise_multiplier

    @property
    def update_share(self) -> float:
        return math.sqrt(1 - self.flag**2)

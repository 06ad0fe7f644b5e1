"""Parts as a user would write them, one sound and the others with a fault that their declarations hide."""

from typing import Any

import torch

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.clipping import Clip, clip
from discreet.algorithms.training.exposure import expose_steps
from discreet.algorithms.training.per_example import clipped_sum
from discreet.params import add, repeat_for_clients, scale
from discreet.privacy.events import GaussianNoise, PoissonSampled
from discreet.randomness.purposes import Purpose

CLIP, NOISE = 0.5, 1.5


def compose(**parts: Any) -> Algorithm:
    """Compose an algorithm of parts that may be anybody's."""
    return Algorithm(**parts)


class Central:
    """A sound central Gaussian mechanism."""

    is_private = True
    unit = "client"
    norm_order = 2
    extra_values = 0

    def bound(self, delta: Any, broadcast: Any) -> Any:
        return scale(clip(delta, CLIP), 1 / CLIP)

    def add_noise_share(self, encoded: Any, broadcast: Any, rows: Any) -> Any:
        return encoded

    def draw(self, total: Any, noise: Any) -> Any:
        return {name: NOISE * value[0] for name, value in noise.open().normal(total).items()}

    def release_sum(self, total: Any, state: Any, broadcast: Any, cohort: Any, contributors: Any, noise: Any) -> Any:
        return scale(add(total, self.draw(total, noise)), CLIP), state

    def sum_noise(self, grid: Any = None, known_shares: int = 0, contributors: Any = None) -> Any:
        return GaussianNoise(noise_multiplier=NOISE)

    def upload_noise(self, grid: Any = None) -> Any:
        return None

    def noise_deviation(self, clients: Any) -> Any:
        return NOISE


class HalfNoise(Central):
    """Adds half of the noise that it declares."""

    def draw(self, total: Any, noise: Any) -> Any:
        return scale(super().draw(total, noise), 0.5)


class SameNoise(Central):
    """Adds the same noise in every round of every run."""

    def draw(self, total: Any, noise: Any) -> Any:
        return {
            name: torch.linspace(-NOISE, NOISE, value.numel()).reshape(value.shape).to(value)
            for name, value in total.items()
        }


class ClipAfterNoise(Central):
    """Adds each client's noise before the clip, which then shrinks it."""

    def bound(self, delta: Any, broadcast: Any) -> Any:
        return scale(delta, 1 / CLIP)

    def add_noise_share(self, encoded: Any, broadcast: Any, rows: Any) -> Any:
        one = {name: value[0] for name, value in encoded.items()}
        return clip(add(encoded, scale(rows.open().normal(one), NOISE)), 1.0)

    def release_sum(self, total: Any, state: Any, *rest: Any) -> Any:
        return scale(total, CLIP), state

    def sum_noise(self, grid: Any = None, known_shares: int = 0, contributors: Any = None) -> Any:
        return None

    def upload_noise(self, grid: Any = None) -> Any:
        return GaussianNoise(noise_multiplier=NOISE)


class OftenPoisson:
    """Draws clients twice as often as it declares."""

    relation = "add_or_remove"
    rate = 0.25

    def sample(self, population: Any, round: int, generator: torch.Generator) -> list[int]:
        return torch.nonzero(torch.rand(population.clients, generator=generator) < 2 * self.rate).flatten().tolist()

    def expected_cohort(self, population: Any) -> float:
        return self.rate * population.clients

    def amplify(self, noise: Any, population: Any) -> Any:
        return PoissonSampled(sampling_rate=self.rate, event=noise)


class OwnCountDp:
    """DP-SGD that divides the sum by how many examples are there, which is private."""

    def train(self, loss: Any, broadcast: Any, batches: Any, rows: Any) -> Any:
        batch = batches.full_batch()
        total = clipped_sum(loss, repeat_for_clients(broadcast.params, batches.clients), batch, Clip(CLIP))
        counts = (batch.inputs.abs().sum(dim=-1) > 0).sum(dim=1).clamp(min=1)
        noise = rows.for_purpose(Purpose.NOISE).open().normal(broadcast.params)
        public = batch.mask.shape[1]
        return {name: -(value / counts[:, None] + NOISE * CLIP / public * noise[name]) for name, value in total.items()}

    def exposure(self, round: int) -> Any:
        return expose_steps((1,), 1.0, own_noise=GaussianNoise(noise_multiplier=NOISE), example=None)

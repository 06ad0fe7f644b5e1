"""DP-SGD on the client: per-example clipping, Poisson batches, noise on the sum (Abadi et al. 2016)."""

import math
from dataclasses import replace
from typing import Literal, Self

import torch

from discreet.batches import Batches
from discreet.broadcast import Broadcast
from discreet.params import Params, add, per_client, repeated, scale, subtract, zeros_like
from discreet.part import Count, Multiplier, NonNegative, Positive, Rate, part
from discreet.population import Population
from discreet.privacy.events import Event, GaussianNoise, PoissonSampled, Repeated
from discreet.randomness import Rows, Streams
from discreet.training.descent import Descent
from discreet.training.per_example import clipped_sum
from discreet.training.schedules import Constant, Schedule
from discreet.training.trainer import Loss


@part
class DpSgd:
    """`steps` noisy steps, each on a Poisson sample of the client's examples.

    Guarantee: one example moves the sum of a step by at most `clip_norm`, whatever its gradient; the sum carries
    N(0, (noise_multiplier·clip_norm)²) even when nobody was drawn, and is divided by the expected batch size,
    which is public.
    """

    kind: Literal["dp_sgd"] = "dp_sgd"
    steps: Count
    sampling_rate: Rate
    clip_norm: Positive
    noise_multiplier: Multiplier | None = None  # none yet: found from the promise
    learning_rate: Positive
    momentum: NonNegative = 0.0
    weight_decay: NonNegative = 0.0
    schedule: Schedule = Constant()
    piece: Count = 256  # examples a client whose gradients are held at once: bounds memory, changes no result

    def train(self, loss: Loss, broadcast: Broadcast, batches: Batches, rows: Rows) -> Params:
        assert self.noise_multiplier is not None
        start = repeated(broadcast.params, batches.clients)
        state = Descent.start(start, self.momentum)
        rate = self.learning_rate * self.schedule.factor(broadcast.round)
        expected = torch.tensor([self.sampling_rate * size for size in batches.sizes], dtype=torch.float64)
        inverse = (1 / expected).to(batches.inputs.device)
        noises, coins = rows.at("noise").open(), rows.at("batch").open()
        for _ in range(self.steps):
            summed = self._clipped_sum(loss, state.params, batches, coins)
            noise = noises.normal(broadcast.params)
            noisy = add(summed, scale(noise, self.noise_multiplier * self.clip_norm))
            mean = per_client(inverse, noisy)
            state = state.step(mean, rate=rate, momentum=self.momentum, weight_decay=self.weight_decay)
        return subtract(state.params, start)

    def with_noise(self, noise_multiplier: float) -> Self:
        return self if self.noise_multiplier is not None else replace(self, noise_multiplier=noise_multiplier)

    def event(self, population: Population) -> Event | None:
        if self.noise_multiplier is None:
            return None
        noise = GaussianNoise(noise_multiplier=self.noise_multiplier)
        return Repeated(count=self.steps, event=PoissonSampled(sampling_rate=self.sampling_rate, event=noise))

    def copies(self, population: Population) -> float:
        expected = self.sampling_rate * max(population.examples)
        return 6.0 + 1.5 * min(float(self.piece), expected + 4 * math.sqrt(expected))

    def _clipped_sum(self, loss: Loss, params: Params, batches: Batches, coins: Streams) -> Params:
        total = zeros_like(params)
        for batch in batches.poisson(self.sampling_rate, coins, self.piece):
            total = add(total, clipped_sum(loss, params, batch, self.clip_norm))
        return total

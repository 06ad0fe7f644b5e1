"""Noisy steps that clip the whole batch gradient (Kim, Günlü & Schaefer 2021): twice the sensitivity of DP-SGD."""

from dataclasses import replace
from typing import Literal, Self

import torch
from torch import Tensor

from discreet.algorithms import per_client
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.clipping import clip
from discreet.algorithms.population import Population
from discreet.algorithms.training import poisson_batches
from discreet.algorithms.training.batches import Batches
from discreet.algorithms.training.gradient_step import Descent, round_learning_rate
from discreet.algorithms.training.local_step import client_gradients
from discreet.algorithms.training.per_round import PerRound, sum_over_rounds, value_in_round
from discreet.algorithms.training.schedules import AnySchedule, Constant
from discreet.algorithms.training.trainer import Loss, UpdateSums
from discreet.params import Params, add, repeat_for_clients, subtract, zeros_like
from discreet.part import Count, Multiplier, PerClient, Positive, Rate, part
from discreet.privacy.events import Event, GaussianNoise, Noise, PoissonSampled, Repeated
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import Rows, Streams


@part
class MinibatchDp:
    """`steps` a round: the mean gradient over a Poisson sample, clipped to `clip_norm`, plus noise.

    Rate, clip and noise may be lists of one value for each client.

    Guarantee: one example turns one clipped mean into another, up to 2·clip_norm away, so noise of
    noise_multiplier·clip_norm counts half. The noise is added to the clipped mean itself, even if no example was drawn.
    """

    kind: Literal["minibatch_dp"] = "minibatch_dp"
    steps: PerRound = (1,)
    sampling_rate: PerClient[Rate]
    clip_norm: PerClient[Positive]
    noise_multiplier: PerClient[Multiplier] | None = None  # None: computed from the promise
    learning_rate: Positive
    schedule: AnySchedule = Constant()
    piece: Count = 4096  # examples of a client in memory at once; changes no result

    def for_population(self, population: Population) -> Self:
        per_client.check_client_values(self, population)
        return self

    def train(self, loss: Loss, broadcast: Broadcast, batches: Batches, rows: Rows) -> Params:
        assert self.noise_multiplier is not None
        start = repeat_for_clients(broadcast.params, batches.clients)
        state = Descent.start(start, momentum=0.0)
        rate = round_learning_rate(self.learning_rate, self.schedule, broadcast)
        rates = per_client.client_rows(
            self.sampling_rate, rows.clients, torch.device("cpu")
        )  # batches are drawn on the CPU
        clips = per_client.client_rows(self.clip_norm, rows.clients, batches.inputs.device)
        spread = per_client.client_rows(self.noise_multiplier, rows.clients, batches.inputs.device) * clips
        noises, coins = rows.for_purpose(Purpose.NOISE).open(), rows.for_purpose(Purpose.BATCH).open()
        for _ in range(value_in_round(self.steps, broadcast.round)):
            clipped = clip(self._mean(loss, state.params, batches, rates, coins), clips)
            noise = per_client.scale_by(noises.normal(broadcast.params), spread)
            state = state.step(add(clipped, noise), rate=rate, momentum=0.0, weight_decay=0.0)
        return subtract(state.params, start)

    def with_noise(self, noise_multiplier: float | tuple[float, ...]) -> Self:
        return self if self.noise_multiplier is not None else replace(self, noise_multiplier=noise_multiplier)

    def training_event(self, population: Population, rounds: range) -> Event | None:
        if self.noise_multiplier is None:
            return None
        assert isinstance(self.sampling_rate, float)  # called for clients with equal settings
        assert isinstance(self.noise_multiplier, float)
        noise = GaussianNoise(noise_multiplier=self.noise_multiplier / 2)
        sampled = PoissonSampled(sampling_rate=self.sampling_rate, event=noise)
        return Repeated(count=sum_over_rounds(self.steps, rounds), event=sampled)

    def max_update_norm(self, round: int) -> float | None:
        return None

    def check_model(self, loss: Loss, params: Params, inputs: Tensor) -> None:
        return

    @property
    def has_uneven_rounds(self) -> bool:
        return len(self.steps) > 1

    def with_two_steps(self) -> Self:
        return replace(self, steps=(2,))

    def model_copies(self, population: Population) -> float:
        return 6.0

    def examples_per_step(self, population: Population) -> tuple[float, ...]:
        return poisson_batches.expected_batch_sizes(self.sampling_rate, population)

    def example_sensitivity(self, round: int) -> float | None:
        return None

    def example_event(self, noise: Noise, population: Population, rounds: range) -> Event | None:
        return None

    def update_sums(self, round: int) -> UpdateSums:
        return UpdateSums()

    def _mean(self, loss: Loss, params: Params, batches: Batches, rates: float | Tensor, coins: Streams) -> Params:
        """Return each client's mean gradient over all pieces of its batch; zero if the batch is empty."""
        total, drawn = zeros_like(params), torch.zeros(batches.clients, device=batches.inputs.device)
        for batch in batches.draw_poisson(rates, coins, self.piece):
            here = batch.mask.sum(dim=1)
            mean = client_gradients(loss, shared=False)(params, batch.inputs, batch.targets, batch.mask)
            total = add(total, per_client.scale_by(mean, here))
            drawn += here
        return per_client.scale_by(total, 1 / drawn.double().clamp(min=1))

"""Noisy steps that clip the whole batch gradient (Kim, Günlü & Schaefer 2021): twice the sensitivity of DP-SGD."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, Self

from discreet.algorithms import per_client
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.clipping import clip
from discreet.algorithms.honest_upload import HonestUpload
from discreet.algorithms.population import Population
from discreet.algorithms.training import own_noise, poisson_batches
from discreet.algorithms.training.batches import Batches
from discreet.algorithms.training.dp_sgd import DpSgd, one_noisy_step
from discreet.algorithms.training.exposure import Exposure, expose_steps
from discreet.algorithms.training.gradient_step import Descent, round_learning_rate
from discreet.algorithms.training.local_step import client_gradients
from discreet.algorithms.training.per_round import PerRound, value_in_round
from discreet.algorithms.training.schedules import AnySchedule, Constant
from discreet.algorithms.training.trainer import LocalTrainer, Loss
from discreet.algorithms.training.work_advice import PAID_BY_STEP, STEPS, WorkAdvice
from discreet.lazy_torch import Tensor, torch
from discreet.params import Params, add, repeat_for_clients, subtract, zeros_like
from discreet.part import ClipNorm, Count, Multiplier, PerClient, Positive, Rate, part
from discreet.privacy.events import GaussianNoise
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import Rows, Streams


@part
class MinibatchDp(LocalTrainer):
    """`steps` a round: the mean gradient over a Poisson sample, clipped to `clip_norm`, plus noise.

    Rate, clip and noise may be lists of one value for each client.

    Guarantee: one example turns one clipped mean into another, up to 2·clip_norm away, so noise of
    noise_multiplier·clip_norm counts half. The noise is added to the clipped mean itself, even if no example was drawn.
    """

    kind: Literal["minibatch_dp"] = "minibatch_dp"
    steps: PerRound = (1,)
    sampling_rate: PerClient[Rate]
    clip_norm: PerClient[ClipNorm]
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
        return per_client.fill_noise(self, noise_multiplier)

    def for_moments(self, bound: float, noise_multiplier: float | None) -> DpSgd:
        return one_noisy_step(bound, noise_multiplier)

    def exposure(self, round: int) -> Exposure:
        assert isinstance(self.sampling_rate, float)  # called for clients with equal settings
        assert not isinstance(self.noise_multiplier, tuple)
        noise = None
        if self.noise_multiplier is not None:
            noise = GaussianNoise(noise_multiplier=self.noise_multiplier / 2)
        return expose_steps(self.steps, self.sampling_rate, own_noise=noise, example=None)

    def honest_upload(self, round: int, examples: int) -> HonestUpload | None:
        if self.noise_multiplier is None:
            return None
        return own_noise.honest_upload(self, round, 1.0, value_in_round(self.steps, round), momentum=0.0)

    def noise_to_signal(self, weights: Sequence[float], population: Population) -> float:
        means = (1.0,) * population.clients  # the mean itself is clipped
        return own_noise.noise_to_signal(self, weights, means, momentum=0.0)

    def work_advice(self) -> WorkAdvice:
        return WorkAdvice(value_in_round(self.steps, 0), None, STEPS, PAID_BY_STEP)

    def with_local_work(self, amount: int) -> Self:
        return replace(self, steps=(amount,))

    def with_example_rate(self, rate: float) -> Self:
        return replace(self, sampling_rate=rate)

    def with_two_steps(self) -> Self:
        return replace(self, steps=(2,))

    def model_copies(self, population: Population) -> float:
        return 6.0

    def examples_per_step(self, population: Population) -> tuple[float, ...]:
        return poisson_batches.expected_batch_sizes(self.sampling_rate, population)

    def _mean(self, loss: Loss, params: Params, batches: Batches, rates: float | Tensor, coins: Streams) -> Params:
        """Return each client's mean gradient over all pieces of its batch; zero if the batch is empty."""
        total, drawn = (
            zeros_like(params),
            torch.zeros(batches.clients, dtype=torch.float64, device=batches.inputs.device),
        )
        for batch in batches.draw_poisson(rates, coins, self.piece):
            here = batch.mask.sum(dim=1)
            mean = client_gradients(loss, shared=False)(params, batch.inputs, batch.targets, batch.mask)
            total = add(total, per_client.scale_by(mean, here))
            drawn += here
        return per_client.scale_by(total, 1 / drawn.clamp(min=1))

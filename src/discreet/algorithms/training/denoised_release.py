"""Local DP-SGD whose noise stays in the client's state: what is sent is the sum of gradients without it."""

import math
from dataclasses import replace
from typing import Literal, Self

from discreet.algorithms import per_client
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.clipping import Clip
from discreet.algorithms.noise_addition import add_noise
from discreet.algorithms.population import Population
from discreet.algorithms.training import poisson_batches
from discreet.algorithms.training.batches import Batches
from discreet.algorithms.training.exposure import Exposure
from discreet.algorithms.training.gradient_step import round_learning_rate
from discreet.algorithms.training.per_round import PerRound, value_in_round
from discreet.algorithms.training.poisson_trainer import PoissonSumTrainer
from discreet.algorithms.training.schedules import AnySchedule, Constant
from discreet.algorithms.training.trainer import Loss
from discreet.algorithms.training.work_advice import PAID_BY_STEP, STEPS, WorkAdvice
from discreet.errors import Unsupported
from discreet.lazy_torch import torch
from discreet.params import ClientModels, Params, add, repeat_for_clients, scale, subtract, zeros_like
from discreet.part import ClipNorm, Count, Flag, Multiplier, Positive, Rate, part
from discreet.privacy.events import GaussianNoise, Noise
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import Rows


@part
class DenoisedRelease(PoissonSumTrainer):
    """`steps` Poisson batches a round: w ← w − η/B · (g + N(0, σ_L²C²)), and −η/B · Σg is sent.

    g = Σ_{i in batch} clip(∇ℓ_i(w), C) at the client's own state w, B is the mean client's expected batch, the same for
    all, and σ_L = `state_noise`: given, or `ratio` times the noise multiplier of the sum.

    Guarantee: a step is the Gaussian mechanism applied twice to one batch: with σ_L on the state, and with σ_Z, the
    noise relative to this trainer's sensitivity, on what is sent. Together they reveal as much as one with 1/σ² =
    1/σ_L² + 1/σ_Z². States are counted as if they were seen, although nobody sees them.
    """

    kind: Literal["denoised_release"] = "denoised_release"
    steps: PerRound | None = None
    epochs: PerRound | None = None
    sampling_rate: Rate | None = None
    batch_size: Count | None = None
    clip_norm: ClipNorm
    automatic: Flag = False
    state_noise: Multiplier | None = None  # None: `ratio` times the noise of the sum
    ratio: Positive = 1.0
    learning_rate: Positive
    schedule: AnySchedule = Constant()
    piece: Count = 512  # examples of a client whose gradients are in memory at once; changes no result
    expected_batch: Positive | None = None  # of the mean client; follows from the client sizes

    def train(self, loss: Loss, broadcast: Broadcast, batches: Batches, rows: Rows) -> Params:
        assert self.steps is not None
        assert self.sampling_rate is not None
        assert self.expected_batch is not None
        assert self.state_noise is not None
        state = repeat_for_clients(broadcast.params, batches.clients)
        step = round_learning_rate(self.learning_rate, self.schedule, broadcast) / self.expected_batch
        clip, total = Clip(self.clip_norm, self.automatic), zeros_like(state, torch.float64)
        coins, noises = rows.for_purpose(Purpose.BATCH).open(), rows.for_purpose(Purpose.NOISE).open()
        for one in range(value_in_round(self.steps, broadcast.round)):
            shared = one == 0 and not isinstance(broadcast.params, ClientModels)
            model = broadcast.params if shared else state
            summed = poisson_batches.sum_clipped_gradients(
                loss, model, batches, self.sampling_rate, clip, coins, self.piece, shared=shared
            )
            noisy = add_noise(summed, noises.normal(broadcast.params), self.state_noise * self.clip_norm)
            state, total = subtract(state, scale(noisy, step)), add(total, summed)
        return scale(total, -step)

    def with_noise(self, noise_multiplier: float | tuple[float, ...]) -> Self:
        if self.state_noise is not None:
            return self
        return replace(self, state_noise=self.ratio * per_client.require_single(noise_multiplier))

    def exposure(self, round: int) -> Exposure:
        return poisson_batches.sum_exposure(self, round, self._noise_with_state)

    def model_copies(self, population: Population) -> float:
        return 4.0 + super().model_copies(population)

    def work_advice(self) -> WorkAdvice:
        return WorkAdvice(value_in_round(self.steps or (1,), 0), None, STEPS, PAID_BY_STEP)

    def _noise_with_state(self, noise: Noise) -> Noise:
        """Return the one noise that reveals as much as this noise on the upload and the state's noise together."""
        if not isinstance(noise, GaussianNoise):
            raise Unsupported(
                f"A client's state has Gaussian noise and its upload has {noise.kind} noise, both on one secret batch: "
                "no accountant here counts the two together.",
                fix='Use mechanism = {kind = "distributed_gaussian"}.',
            )
        sent = noise.noise_multiplier
        own = self.ratio * sent if self.state_noise is None else self.state_noise
        return GaussianNoise(noise_multiplier=1 / math.hypot(1 / own, 1 / sent))

"""DP-SGD on the client: per-example clipping, Poisson batches and noise on the sum (Abadi et al. 2016)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Self

from discreet.algorithms import per_client
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.clipping import Clip
from discreet.algorithms.honest_upload import FALSE_ALARM, HonestUpload
from discreet.algorithms.noise_addition import add_noise
from discreet.algorithms.population import Population
from discreet.algorithms.training import own_noise, poisson_batches
from discreet.algorithms.training.batches import Batches
from discreet.algorithms.training.exposure import Exposure, UpdateSums, expose_steps
from discreet.algorithms.training.gradient_step import Descent, round_learning_rate
from discreet.algorithms.training.per_round import PerRound, value_in_round
from discreet.algorithms.training.poisson_trainer import PoissonTrainer
from discreet.algorithms.training.schedules import AnySchedule, Constant
from discreet.algorithms.training.trainer import Loss
from discreet.algorithms.training.work_advice import PAID_BY_STEP, STEPS, WorkAdvice
from discreet.lazy_torch import torch
from discreet.params import ClientModels, Params, repeat_for_clients, subtract
from discreet.part import ClipNorm, Count, Flag, Multiplier, NonNegative, PerClient, Positive, Rate, part
from discreet.privacy.events import GaussianNoise
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import Rows

ONE_PASS = (  # nosec B105 # no password, but a pass over the data
    "One pass over a client's data per round. The noise depends on the steps of all rounds together, so rounds may go "
    "down as steps go up; PFL (Bhaskar et al. 2025) measured one pass to be best for most of its models. In our runs "
    "of CNNs with its authors' settings and batches of 64, one pass is better than two in 12 of 12 comparisons; linear "
    "models and batches of 256 show no measurable difference (docs/results/pfl.md)."
)


@part
class DpSgd(PoissonTrainer):
    """Noisy steps, each on a Poisson sample of the client's examples.

    A round has `steps` of them, or `epochs`, each with as many steps as use every example once on average. The sampling
    rate is given, or follows from `batch_size` and the largest client, so that all clients take the same steps. Steps
    and epochs may be lists of one value for each round, whose last stays in force. Rate, clip and noise may be lists of
    one value for each client (Kim, Günlü & Schaefer 2021).

    Guarantee: one example moves the sum of a step by at most `clip_norm`, whatever its gradient; the sum carries
    N(0, (noise_multiplier·clip_norm)²) even if no example was drawn, and is divided by the expected batch size, which
    is public.
    """

    kind: Literal["dp_sgd"] = "dp_sgd"
    steps: PerRound | None = None
    epochs: PerRound | None = None
    sampling_rate: PerClient[Rate] | None = None
    batch_size: Count | None = None
    clip_norm: PerClient[ClipNorm]
    automatic: Flag = False  # scale small gradients up to the clip too (Bu et al. 2023)
    noise_multiplier: PerClient[Multiplier] | None = None  # None: computed from the promise
    learning_rate: Positive
    momentum: NonNegative = 0.0
    weight_decay: NonNegative = 0.0
    schedule: AnySchedule = Constant()
    piece: Count = 512  # examples of a client whose gradients are in memory at once; changes no result

    def train(self, loss: Loss, broadcast: Broadcast, batches: Batches, rows: Rows) -> Params:
        assert self.noise_multiplier is not None
        assert self.sampling_rate is not None
        assert self.steps is not None
        start = repeat_for_clients(broadcast.params, batches.clients)
        state = Descent.start(start, self.momentum)
        learning_rate = round_learning_rate(self.learning_rate, self.schedule, broadcast)
        device = batches.inputs.device
        rates = per_client.client_rows(
            self.sampling_rate, rows.clients, torch.device("cpu")
        )  # batches are drawn on the CPU
        inverse = (1 / (rates * torch.tensor(batches.sizes, dtype=torch.float64))).to(device)
        clips = per_client.client_rows(self.clip_norm, rows.clients, device)
        clip = Clip(clips[:, None] if isinstance(clips, torch.Tensor) else clips, self.automatic)
        spread = per_client.client_rows(self.noise_multiplier, rows.clients, device) * clips
        noises, coins = rows.for_purpose(Purpose.NOISE).open(), rows.for_purpose(Purpose.BATCH).open()
        for step in range(value_in_round(self.steps, broadcast.round)):
            shared = step == 0 and not isinstance(broadcast.params, ClientModels)
            summed = poisson_batches.sum_clipped_gradients(
                loss,
                broadcast.params if shared else state.params,
                batches,
                rates,
                clip,
                coins,
                self.piece,
                shared=shared,
            )
            noisy = add_noise(summed, noises.normal(broadcast.params), spread)
            mean = per_client.scale_by(noisy, inverse)
            state = state.step(mean, rate=learning_rate, momentum=self.momentum, weight_decay=self.weight_decay)
        return subtract(state.params, start)

    def with_noise(self, noise_multiplier: float | tuple[float, ...]) -> Self:
        return per_client.fill_noise(self, noise_multiplier)

    def for_moments(self, bound: float, noise_multiplier: float | None) -> DpSgd:
        return one_noisy_step(bound, noise_multiplier)

    def exposure(self, round: int) -> Exposure:
        assert self.steps is not None
        assert isinstance(self.sampling_rate, float)  # called for clients with equal settings
        assert not isinstance(self.noise_multiplier, tuple)
        noise = None if self.noise_multiplier is None else GaussianNoise(noise_multiplier=self.noise_multiplier)
        return expose_steps(self.steps, self.sampling_rate, own_noise=noise, example=None)

    def honest_upload(self, round: int, examples: int) -> HonestUpload | None:
        if self.noise_multiplier is None or self.weight_decay:  # decay moves an update by the model's own length
            return None
        assert self.steps is not None
        assert isinstance(self.sampling_rate, float)  # called for clients with equal settings
        sums = UpdateSums(value_in_round(self.steps, round), self.sampling_rate, passes=1, parts=1)
        clipped, batch = sums.max_examples(examples, FALSE_ALARM), self.sampling_rate * examples
        return own_noise.honest_upload(self, round, batch, clipped, momentum=self.momentum)

    def noise_to_signal(self, weights: Sequence[float], population: Population) -> float:
        batches = self.examples_per_step(population)
        return own_noise.noise_to_signal(self, weights, batches, momentum=self.momentum)

    def work_advice(self) -> WorkAdvice:
        """Recommend one pass over the client's data: the steps that see every example once, on average."""
        now = value_in_round(self.steps or (1,), 0)
        if not isinstance(self.sampling_rate, float):
            return WorkAdvice(now, None, STEPS, PAID_BY_STEP)
        return WorkAdvice(now, math.ceil(1 / self.sampling_rate - 1e-9), STEPS, ONE_PASS)


def one_noisy_step(bound: float, noise_multiplier: float | None) -> DpSgd:
    """Return one step of rate 1 on all examples, whose gradients have at most this norm."""
    return DpSgd(steps=(1,), sampling_rate=1.0, clip_norm=bound, learning_rate=1.0, noise_multiplier=noise_multiplier)

"""DP-SGD on the client: per-example clipping, Poisson batches, noise on the sum (Abadi et al. 2016)."""

import math
from dataclasses import replace
from functools import partial
from typing import Literal, Self

import torch

from discreet.batches import Batches
from discreet.broadcast import Broadcast
from discreet.errors import InvalidInput
from discreet.params import Params, add, per_client, repeated, scale, subtract, zeros_like
from discreet.part import Count, Flag, Multiplier, NonNegative, Positive, Rate, part
from discreet.population import Population
from discreet.privacy.events import Event, GaussianNoise, PoissonSampled, Repeated
from discreet.randomness import Rows, Streams
from discreet.training.descent import Descent, at_round
from discreet.training.module_loss import ModuleLoss
from discreet.training.per_example import Clip, clipped_sum
from discreet.training.per_round import PerRound, at, over
from discreet.training.recorded import Recordings
from discreet.training.schedules import Constant, Schedule
from discreet.training.trainer import Loss

SMALLEST_CLIP = 1e-9


@part
class DpSgd:
    """Noisy steps, each on a Poisson sample of the client's examples.

    A round has `steps` of them, or `epochs` of as many as it takes to see every example once, on average. The rate is
    given, or follows from `batch_size` and the largest client, so that all clients step alike. Steps and epochs may
    differ by round: a list names one for each, and the last holds on.

    Guarantee: one example moves the sum of a step by at most `clip_norm`, whatever its gradient; the sum carries
    N(0, (noise_multiplier·clip_norm)²) even when nobody was drawn, and is divided by the expected batch size,
    which is public.
    """

    kind: Literal["dp_sgd"] = "dp_sgd"
    steps: PerRound | None = None
    epochs: PerRound | None = None
    sampling_rate: Rate | None = None
    batch_size: Count | None = None
    clip_norm: Positive
    automatic: Flag = False  # bring every gradient near the clip, the small ones too (Bu et al. 2023)
    noise_multiplier: Multiplier | None = None  # none yet: found from the promise
    learning_rate: Positive
    momentum: NonNegative = 0.0
    weight_decay: NonNegative = 0.0
    schedule: Schedule = Constant()
    piece: Count = 512  # examples a client whose gradients are held at once: bounds memory, changes no result

    def __post_init__(self) -> None:
        for one, other in (("steps", "epochs"), ("sampling_rate", "batch_size")):
            if (getattr(self, one) is None) == (getattr(self, other) is None):
                raise InvalidInput(
                    f"DP-SGD needs either {one} or {other}, one of the two.", fix="Give one, leave out the other."
                )

        if self.clip_norm < SMALLEST_CLIP:
            raise InvalidInput(
                f"clip_norm must be at least {SMALLEST_CLIP:g}, below which single precision can't measure a gradient, "
                f"and got {self.clip_norm:g}.",
                fix="Scale clip_norm up and the learning rate down by the same factor.",
            )

    def fitted(self, population: Population) -> Self:
        rate = self.sampling_rate
        if rate is None:
            assert self.batch_size is not None
            rate = 1 / math.ceil(max(population.examples) / self.batch_size)
        steps = self.steps
        if steps is None:
            assert self.epochs is not None
            steps = tuple(each * math.ceil(1 / rate - 1e-9) for each in self.epochs)  # 1/(1/49) is 49.000000000000007
        return replace(self, steps=steps, sampling_rate=rate, epochs=None, batch_size=None)

    def train(self, loss: Loss, broadcast: Broadcast, batches: Batches, rows: Rows) -> Params:
        assert self.noise_multiplier is not None
        assert self.sampling_rate is not None
        assert self.steps is not None
        start = repeated(broadcast.params, batches.clients)
        state = Descent.start(start, self.momentum)
        rate = at_round(self.learning_rate, self.schedule, broadcast)
        expected = torch.tensor([self.sampling_rate * size for size in batches.sizes], dtype=torch.float64)
        inverse = (1 / expected).to(batches.inputs.device)
        noises, coins = rows.at("noise").open(), rows.at("batch").open()
        for _ in range(at(self.steps, broadcast.round)):
            summed = self._clipped_sum(loss, state.params, batches, self.sampling_rate, coins)
            noise = noises.normal(broadcast.params)
            noisy = add(summed, scale(noise, self.noise_multiplier * self.clip_norm))
            mean = per_client(inverse, noisy)
            state = state.step(mean, rate=rate, momentum=self.momentum, weight_decay=self.weight_decay)
        return subtract(state.params, start)

    def with_noise(self, noise_multiplier: float) -> Self:
        return self if self.noise_multiplier is not None else replace(self, noise_multiplier=noise_multiplier)

    def event(self, population: Population, rounds: range) -> Event | None:
        if self.noise_multiplier is None:
            return None
        fitted = self.fitted(population)
        assert fitted.steps is not None
        assert fitted.sampling_rate is not None
        noise = GaussianNoise(noise_multiplier=self.noise_multiplier)
        sampled = PoissonSampled(sampling_rate=fitted.sampling_rate, event=noise)
        return Repeated(count=over(fitted.steps, rounds), event=sampled)

    def bound(self, round: int) -> float | None:
        return None

    @property
    def changes(self) -> bool:
        return len(self.steps or self.epochs or ()) > 1

    def brief(self) -> Self:
        return replace(self, steps=(2,), epochs=None)

    def copies(self, population: Population) -> float:
        expected = (self.fitted(population).sampling_rate or 1.0) * max(population.examples)
        return 6.0 + 1.5 * min(float(self.piece), expected + 4 * math.sqrt(expected))

    def _clipped_sum(self, loss: Loss, params: Params, batches: Batches, rate: float, coins: Streams) -> Params:
        recordings = loss.recordings if isinstance(loss, ModuleLoss) else Recordings()
        clip = Clip(self.clip_norm, self.automatic)
        clipped = partial(clipped_sum, loss, clip=clip)
        total = zeros_like(params)
        for batch in batches.poisson(rate, coins, self.piece):
            total = add(total, recordings.play(("clipped sum", clip), clipped, params, batch))
        return total

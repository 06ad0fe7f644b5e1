"""Several batches of gradients a round, all taken at the broadcast model, for noise that is added in shares."""

from dataclasses import replace
from typing import Literal, Self

import torch
from torch import Tensor

from discreet.algorithms.broadcast import CLIP, Broadcast
from discreet.algorithms.population import Population
from discreet.algorithms.training import poisson_batches
from discreet.algorithms.training.batches import Batches
from discreet.algorithms.training.gradient_step import round_learning_rate
from discreet.algorithms.training.per_example import Clip
from discreet.algorithms.training.per_round import PerRound, value_in_round
from discreet.algorithms.training.schedules import AnySchedule, Constant
from discreet.algorithms.training.trainer import Loss, UpdateSums
from discreet.params import Params, add, repeat_for_clients, scale
from discreet.part import Count, Flag, Positive, Rate, part
from discreet.privacy.events import Event, Noise
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import Rows


@part
class BroadcastGradients:
    """The sum over `steps` Poisson batches of clipped gradients at the broadcast model (Heikkilä 2025).

    −η/B · Σ_s Σ_{i in batch s} clip(∇ℓ_i(w), C), with w the broadcast model and B the mean client's expected batch,
    the same for all clients: so every example counts alike, whatever the size of its client.

    Guarantee: one example moves each of the round's sums by at most ηC/B, and nothing that a client computes depends on
    its own noise. So the noise of all clients protects it, however many steps a round has. Training adds no noise.
    """

    kind: Literal["broadcast_gradients"] = "broadcast_gradients"
    steps: PerRound | None = None
    epochs: PerRound | None = None
    sampling_rate: Rate | None = None
    batch_size: Count | None = None
    clip_norm: Positive
    automatic: Flag = False
    learning_rate: Positive
    schedule: AnySchedule = Constant()
    piece: Count = 512  # examples of a client whose gradients are in memory at once; changes no result
    expected_batch: Positive | None = None  # of the mean client; follows from the client sizes

    def __post_init__(self) -> None:
        poisson_batches.check_fields(self)

    def for_population(self, population: Population) -> Self:
        return replace(self, **poisson_batches.derive_sum_fields(self, population))

    def train(self, loss: Loss, broadcast: Broadcast, batches: Batches, rows: Rows) -> Params:
        assert self.steps is not None
        assert self.sampling_rate is not None
        assert self.expected_batch is not None
        start, coins = repeat_for_clients(broadcast.params, batches.clients), rows.for_purpose(Purpose.BATCH).open()
        clip = Clip(self.clip_norm, self.automatic)
        factor = -round_learning_rate(self.learning_rate, self.schedule, broadcast) / self.expected_batch
        encoding, uniform = broadcast.encoding, rows.for_purpose(Purpose.ROUNDING).open().uniform
        exact = (
            None if encoding is None else torch.float64
        )  # in float32, rounding moves a large sum by more than the clip
        total: Params | None = None
        for _ in range(value_in_round(self.steps, broadcast.round)):
            summed = poisson_batches.sum_clipped_gradients(
                loss, start, batches, self.sampling_rate, clip, coins, self.piece, exact
            )
            one = scale(summed, factor)
            if encoding is not None:  # rounded one by one: an example may be in several sums
                one = encoding.encode_sum(scale(one, 1 / broadcast.announcement[CLIP]), uniform)
            total = one if total is None else add(total, one)
        assert total is not None
        return total

    def with_noise(self, noise_multiplier: float | tuple[float, ...]) -> Self:
        return self

    def training_event(self, population: Population, rounds: range) -> Event | None:
        return None

    def max_update_norm(self, round: int) -> float | None:
        return None

    def example_sensitivity(self, round: int) -> float | None:
        return poisson_batches.example_sensitivity(self, round)

    def example_event(self, noise: Noise, population: Population, rounds: range) -> Event | None:
        return poisson_batches.sampled_event(self, noise, population, rounds)

    def update_sums(self, round: int) -> UpdateSums:
        return poisson_batches.update_sums(self, round)

    def check_model(self, loss: Loss, params: Params, inputs: Tensor) -> None:
        return

    @property
    def has_uneven_rounds(self) -> bool:
        return len(self.steps or self.epochs or ()) > 1

    def with_two_steps(self) -> Self:
        return replace(self, steps=(2,), epochs=None)

    def model_copies(self, population: Population) -> float:
        return poisson_batches.model_copies(
            self.for_population(population).sampling_rate or 1.0, self.piece, population
        )

    def examples_per_step(self, population: Population) -> tuple[float, ...]:
        return poisson_batches.expected_batch_sizes(self.for_population(population).sampling_rate or 1.0, population)

"""Several batches of gradients a round, all taken at the broadcast model, for noise that is added in shares."""

from __future__ import annotations

from typing import Literal

from discreet.algorithms.broadcast import CLIP, Broadcast
from discreet.algorithms.clipping import Clip
from discreet.algorithms.training import poisson_batches
from discreet.algorithms.training.batches import Batches
from discreet.algorithms.training.exposure import Exposure, same_noise
from discreet.algorithms.training.gradient_step import round_learning_rate
from discreet.algorithms.training.per_round import PerRound, value_in_round
from discreet.algorithms.training.poisson_trainer import PoissonSumTrainer
from discreet.algorithms.training.schedules import AnySchedule, Constant
from discreet.algorithms.training.trainer import Loss
from discreet.algorithms.training.work_advice import STEPS, WorkAdvice
from discreet.params import ClientModels, Params, add, repeat_for_clients, scale
from discreet.part import ClipNorm, Count, Flag, Positive, Rate, part
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import Rows

BROADCAST_MODEL = (
    "All gradients of a round are taken at the broadcast model, and each sum has a privacy cost. One per round, in "
    "that many more rounds, takes the same noise and updates the model in between; more only save bytes."
)


@part
class BroadcastGradients(PoissonSumTrainer):
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
    clip_norm: ClipNorm
    automatic: Flag = False
    learning_rate: Positive
    schedule: AnySchedule = Constant()
    piece: Count = 512  # examples of a client whose gradients are in memory at once; changes no result
    expected_batch: Positive | None = None  # of the mean client; follows from the client sizes

    def train(self, loss: Loss, broadcast: Broadcast, batches: Batches, rows: Rows) -> Params:
        assert self.steps is not None
        assert self.sampling_rate is not None
        assert self.expected_batch is not None
        coins, shared = rows.for_purpose(Purpose.BATCH).open(), not isinstance(broadcast.params, ClientModels)
        start = broadcast.params if shared else repeat_for_clients(broadcast.params, batches.clients)
        clip = Clip(self.clip_norm, self.automatic)
        factor = -round_learning_rate(self.learning_rate, self.schedule, broadcast) / self.expected_batch
        encoding, uniform = broadcast.encoding, rows.for_purpose(Purpose.ROUNDING).open().uniform
        total: Params | None = None
        for _ in range(value_in_round(self.steps, broadcast.round)):
            summed = poisson_batches.sum_clipped_gradients(
                loss, start, batches, self.sampling_rate, clip, coins, self.piece, shared=shared
            )
            one = scale(summed, factor)
            if encoding is not None:  # rounded one by one: an example may be in several sums
                one = encoding.encode_sum(scale(one, 1 / broadcast.announcement[CLIP]), uniform)
            total = one if total is None else add(total, one)
        assert total is not None
        return total

    def exposure(self, round: int) -> Exposure:
        return poisson_batches.sum_exposure(self, round, same_noise)

    def work_advice(self) -> WorkAdvice:
        return WorkAdvice(value_in_round(self.steps or (1,), 0), 1, STEPS, BROADCAST_MODEL)

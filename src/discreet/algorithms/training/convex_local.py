"""Local passes for linear models, whose steps never move two models apart: one noise a round covers all steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, Self

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.population import Population
from discreet.algorithms.training.batches import Batch, Batches
from discreet.algorithms.training.exposure import ExampleBound, Exposure, expose_steps, same_noise
from discreet.algorithms.training.gradient_step import round_learning_rate
from discreet.algorithms.training.linear_head import LinearHead
from discreet.algorithms.training.margin_clip import MAX_GRADIENT_NORM, SMOOTHNESS, clip_by_margin
from discreet.algorithms.training.schedules import AnySchedule, Constant
from discreet.algorithms.training.trainer import LocalTrainer, Loss
from discreet.algorithms.training.work_advice import STEPS, WorkAdvice
from discreet.errors import InvalidInput
from discreet.lazy_torch import Tensor, functional, torch
from discreet.params import Params
from discreet.part import ClipNorm, Count, NonNegative, Positive, Rate, part
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import Rows
from discreet.user_part import user_parts

FREE_STEPS = (
    "Steps cost nothing here: the ratio of noise to signal of a round is the same for any number of them "
    "(docs/notes/local_steps.md)."
)
PULLED_BACK = (
    "Every pass moves the update further, and lets one example move it further too. Which of the two grows more "
    "depends on strength, passes and batch_size: compare the noise to signal above for other values "
    "(docs/notes/local_steps.md)."
)
MAX_LOGIT = 1e6  # in double precision, logits of this size are off by at most 1e-10


@part
class ConvexLocal(LocalTrainer):
    """`passes` over a client's data in batches of at most B = `batch_size`, with one noiseless step for each batch.

    W ← W − γ/(F²B) · Σ_{i in batch} ĝ_i a_iᵀ − γλ·(W − Wᵗ): a_i are an example's features and the constant 1 of the
    bias, scaled down to a norm of at most F = `feature_bound`; ĝ_i is the gradient of cross-entropy in the logits
    W·a_i, clipped to C = `clip_norm` by its margin; Wᵗ is the broadcast model and λ = `strength`. γ = `learning_rate`
    is the step for features divided by F, and at most 4/(1 + 4λ).

    A secret permutation decides which examples share a batch; every pass has the same batches. B may follow from
    `steps`, those of the largest client. With a `sampling_rate` below 1 each example takes part in a round by an
    independent secret draw.

    Guarantee: with and without one example, two runs separate by γC/(FB) at its step, and every other step is the same
    non-expansive map of both. So one pass moves an update by at most γC/(FB), however many steps it has, and E passes
    by γC/(FB) · Σ_{e<E} (1 − γλ)^{Se}, where S is the fewest steps of any client. Training adds no noise. The number of
    a client's examples is public: one that is removed leaves its place empty.
    """

    kind: Literal["convex_local"] = "convex_local"
    learning_rate: Positive
    clip_norm: ClipNorm
    feature_bound: ClipNorm
    batch_size: Count | None = None
    steps: Count | None = None
    passes: Count = 1
    strength: NonNegative = 0.0
    sampling_rate: Rate = 1.0
    schedule: AnySchedule = Constant()
    fewest_steps: Count | None = None  # of any client in a pass; follows from the clients

    def __post_init__(self) -> None:
        if (self.batch_size is None) == (self.steps is None):
            raise InvalidInput(
                f"{self.kind} needs either batch_size or local steps (local_steps in a recipe, steps in the part), and "
                f"got {'both' if self.steps else 'neither'}.",
                fix="Give one, leave out the other.",
            )
        if all(own.is_loaded for own in user_parts(self)):
            self._rate(0)

    def for_population(self, population: Population) -> Self:
        size = self.batch_size or -(-max(population.examples) // (self.steps or 1))
        fewest = max(1, -(-min(population.examples) // size))
        return replace(self, batch_size=size, steps=None, fewest_steps=fewest)

    def train(self, loss: Loss, broadcast: Broadcast, batches: Batches, rows: Rows) -> Params:
        """Train in double precision, and on the difference to the broadcast model: rounded to the last digit of large
        weights, one example could move an update by far more than its sensitivity."""
        head = LinearHead.detect(loss, broadcast.params, batches.inputs[:1, None])
        table = head.table(broadcast.params)
        self._check_size(table)
        start = table.double()
        moved = start.new_zeros(()).expand(batches.clients, *start.shape)
        rate = round_learning_rate(self.learning_rate, self.schedule, broadcast).to(start.dtype)
        for _ in range(self.passes):
            for batch in self._batches(batches, rows):
                moved = self._step(head, moved, start, rate, batch)
        return head.params(moved)

    def exposure(self, round: int) -> Exposure:
        assert self.batch_size is not None
        assert self.fewest_steps is not None
        rate = self._rate(round)
        between = (1 - rate * self.strength) ** self.fewest_steps  # the part of a difference that is left after a pass
        reach = (
            rate
            * min(self.clip_norm, MAX_GRADIENT_NORM)
            / (self.feature_bound * self.batch_size)
            * sum(between**number for number in range(self.passes))
        )
        example = ExampleBound(sensitivity=reach, passes=self.passes, parts=1, counted_noise=same_noise)
        return expose_steps((1,), self.sampling_rate, own_noise=None, example=example)

    def check_model(self, loss: Loss, params: Params, inputs: Tensor) -> None:
        self._check_size(LinearHead.detect(loss, params, inputs).table(params))

    def with_local_work(self, amount: int) -> Self:
        return replace(self, steps=max(1, round(amount / self.passes)), batch_size=None)

    def with_example_rate(self, rate: float) -> Self:
        return replace(self, sampling_rate=rate)

    def with_two_steps(self) -> Self:
        return replace(self, passes=1)

    def model_copies(self, population: Population) -> float:
        """An example counts twice, by its inputs and its features; neither is larger than the model."""
        return 5.0 + 2 * (self.for_population(population).batch_size or 1)

    def examples_per_step(self, population: Population) -> tuple[float, ...]:
        return tuple(self.sampling_rate * examples for examples in population.examples)

    def longest_update(self, population: Population) -> float | None:
        if self.batch_size is None:
            return None
        rate = self._rate(0)
        steps = self.passes * sum(population.examples) / population.clients / self.batch_size
        step = rate * min(self.clip_norm, MAX_GRADIENT_NORM) / self.feature_bound * self.sampling_rate
        pull = rate * self.strength
        return step * (steps if not pull else (1 - (1 - pull) ** steps) / pull)

    def work_advice(self) -> WorkAdvice:
        is_free = self.passes == 1 and not self.strength
        return WorkAdvice((self.fewest_steps or 1) * self.passes, None, STEPS, FREE_STEPS if is_free else PULLED_BACK)

    def _rate(self, round: int) -> float:
        """Return the round's learning rate. Refuse one with which a step may move two models apart."""
        rate, most = self.learning_rate * self.schedule.factor(round), 2 / (SMOOTHNESS + 2 * self.strength)
        if not 0 <= rate <= most:
            raise InvalidInput(
                f"learning_rate must be at most {most:g}, above which a step may move two models apart, and got "
                f"{rate:g}.",
                fix="Lower it; feature_bound may be lowered too, which makes the same step larger.",
            )
        return rate

    def _batches(self, batches: Batches, rows: Rows) -> Iterator[Batch]:
        """Draw the batches of a pass. Every pass has the same: streams restart, so examples keep place and draw."""
        assert self.batch_size is not None
        steps = [-(-size // self.batch_size) for size in batches.sizes]
        drawn = batches.draw_shuffled(self.batch_size, steps, rows.for_purpose(Purpose.BATCHES).open())
        if self.sampling_rate == 1:
            yield from drawn
            return
        # one draw for each place; a secret permutation fills the places, so each example has a draw of its own
        joined = rows.for_purpose(Purpose.COINS).open().uniform(batches.sizes) < self.sampling_rate
        lacking = max(steps) * self.batch_size - joined.shape[1]
        table = functional.pad(joined, (0, lacking)).to(batches.inputs.device)
        for step, batch in enumerate(drawn):
            here = table[:, step * self.batch_size :][:, : batch.mask.shape[1]]
            yield batch._replace(mask=batch.mask & here)

    def _check_size(self, table: Tensor) -> None:
        largest = float(table.norm(dtype=torch.float64)) * self.feature_bound
        if not largest <= MAX_LOGIT:
            raise InvalidInput(
                f"The model's weights reach logits of {largest:.3g}, and above {MAX_LOGIT:g} rounding would move an "
                "update by more than one example may.",
                fix="Start with smaller weights, or lower the learning rate.",
            )

    def _step(self, head: LinearHead, moved: Tensor, start: Tensor, rate: Tensor, batch: Batch) -> Tensor:
        """Step from one W − Wᵗ to the next. The broadcast weights are never added, so small differences stay exact."""
        assert self.batch_size is not None
        features = head.features(batch.inputs, self.feature_bound).double()
        logits = features @ start.T + features @ moved.transpose(1, 2)
        gradients = clip_by_margin(logits, batch.targets, self.clip_norm) * batch.mask[..., None]
        total = gradients.transpose(1, 2) @ features
        after = moved * (1 - rate * self.strength) - rate / (self.feature_bound**2 * self.batch_size) * total
        return after if batch.active is None else torch.where(batch.active[:, None, None], after, moved)

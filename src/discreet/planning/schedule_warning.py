"""A warning before a run: a learning rate schedule that ends long before the last round."""

from collections.abc import Iterator

from discreet.algorithms.training.gradient_descent import GradientDescent
from discreet.algorithms.training.per_round import sum_over_rounds
from discreet.algorithms.training.schedules import Cosine
from discreet.algorithms.training.trainer import LocalTrainer
from discreet.privacy.wording import compact


def schedule_warnings(trainer: LocalTrainer, rounds: int) -> Iterator[str]:
    """Yield a sentence if a cosine schedule is at its end for more than the last round or iteration."""
    by_round = getattr(trainer, "local", trainer)  # that of each shard
    schedule = getattr(by_round, "schedule", None)
    if not isinstance(schedule, Cosine):
        return
    what, total = "round", rounds
    if isinstance(by_round, GradientDescent):
        what, total = "iteration", sum_over_rounds(by_round.iterations, range(rounds))
    if schedule.length < total - 1:
        yield (
            f"The cosine schedule has a length of {schedule.length:,}, and there are {total:,} {what}s: from {what} "
            f"{schedule.length + 1:,} on the learning rate stays at {compact(schedule.lowest)} of its first value. "
            f"Write length = {total}."
        )

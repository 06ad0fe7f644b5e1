"""The local SGD that recipes share."""

from typing import Any

from discreet.algorithms.training import LocalSgd
from discreet.algorithms.training.schedules import AnySchedule, Constant, Exponential


def local_sgd(
    learning_rate: float,
    batch_size: int,
    epochs: int | None,
    steps: int | None,
    momentum: float,
    weight_decay: float = 0.0,
    schedule: AnySchedule = Constant(),
    **fields: Any,
) -> LocalSgd:
    """Build plain local SGD: one epoch a round unless epochs or steps are given.

    Args:
        learning_rate: Learning rate of the local steps.
        batch_size: Examples in a local batch.
        epochs: Passes over a client's data in a round.
        steps: Local steps in a round, instead of epochs.
        momentum: Momentum of the local steps.
        weight_decay: Weight decay of the local steps.
        schedule: How the learning rate changes from round to round.
        fields: Further fields of `LocalSgd`, such as perturbation or regulariser.
    """
    return LocalSgd(
        learning_rate=learning_rate,
        batch_size=batch_size,
        epochs=1 if epochs is None and steps is None else epochs,
        steps=steps,
        momentum=momentum,
        weight_decay=weight_decay,
        schedule=schedule,
        **fields,
    )


def exponential_schedule(decay: float) -> AnySchedule:
    """Return a schedule that multiplies the learning rate by `decay` after each round."""
    return Constant() if decay == 1 else Exponential(decay=decay)

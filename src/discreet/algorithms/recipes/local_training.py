"""The local SGD that recipes share."""

from typing import Any

from discreet.algorithms.training import LocalSgd


def local_sgd(
    learning_rate: float, batch_size: int, epochs: int | None, steps: int | None, momentum: float, **pieces: Any
) -> LocalSgd:
    """One epoch, unless epochs or steps are given."""
    return LocalSgd(
        learning_rate=learning_rate,
        batch_size=batch_size,
        epochs=1 if epochs is None and steps is None else epochs,
        steps=steps,
        momentum=momentum,
        **pieces,
    )

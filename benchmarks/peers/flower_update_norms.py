"""Flower: the clip of an update that is zero, and of one that holds NaN."""

import numpy as np
from flwr.supercore.differential_privacy import clip_inputs_inplace

from peers.fault import Fault


def measure() -> list[Fault]:
    """Clip an update of zeros, and one with NaN beside a huge value."""
    return [zero_update(), nan_update()]


def zero_update() -> Fault:
    """Clip an update that is exactly zero."""
    update = [np.zeros(3)]
    try:
        clip_inputs_inplace(update, 1.0)
        outcome = f"{update[0].tolist()}"
    except ZeroDivisionError:
        outcome = "ZeroDivisionError: the round is lost"
    return Fault(
        library="flwr",
        title="An update of exactly zero is divided by its norm.",
        expected="zeros",
        measured=outcome,
        is_seen=update[0].tolist() != [0, 0, 0] or "Error" in outcome,
        remark="A client whose model doesn't change sends such an update.",
        ours="A zero update stays zero (`tests/algorithms/test_clipping.py`).",
    )


def nan_update() -> Fault:
    """Clip an update whose first value is not a number."""
    update = [np.array([np.nan, 1e6])]
    clip_inputs_inplace(update, 1.0)
    return Fault(
        library="flwr",
        title="An update that holds NaN is not clipped.",
        expected="a norm of at most 1, or a refusal",
        measured=f"its other value is still {update[0][1]:g}",
        is_seen=not abs(update[0][1]) <= 1,
        remark="The model is then NaN too, so that training ends; but the sum was released.",
        ours="Such an update becomes zero (`tests/algorithms/test_clipping.py`).",
    )

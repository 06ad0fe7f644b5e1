"""Two pieces of code have the same digest if they do the same, wherever they are defined."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from discreet.experiment.run_directory.code_digest import code_digest

BEFORE = """\
import torch
from torch import nn

SCALE = 2.0
WEIGHTS = torch.tensor([1.0, 2.0])


def helper(values):
    return values * SCALE


class Net(nn.Linear):
    gain = 3

    def forward(self, inputs):
        return helper(super().forward(inputs)) * self.gain


def loss(outputs, targets, power=2):
    def one(output):
        return abs(output) ** power if len({"a", "b", "c"}) else None

    return (one(outputs - targets) * WEIGHTS).sum()
"""


def names(text: str) -> dict[str, Any]:
    """Return the names that a file with this text defines."""
    found: dict[str, Any] = {"__name__": "somebodys_own"}
    exec(compile(text, "own.py", "exec"), found)
    return found


def of_text(text: str) -> str:
    torch.manual_seed(0)
    own = names(text)
    return code_digest(own["Net"](2, 2), own["loss"])


def test_where_code_stands_and_what_is_said_beside_it_does_not_count():
    assert of_text("# A comment, and lines.\n\n\n" + BEFORE.replace("SCALE = 2.0", "SCALE = 2.0  # twice")) == of_text(
        BEFORE
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("values * SCALE", "values / SCALE"),
        ("SCALE = 2.0", "SCALE = 2.5"),
        ("[1.0, 2.0]", "[1.0, 2.5]"),
        ("gain = 3", "gain = 4"),
        ("* self.gain", "+ self.gain"),
        ("power=2", "power=3"),
        ("abs(output)", "float(output)"),
        ('"c"}', '"d"}'),
    ],
)
def test_what_it_does_counts_also_in_what_it_calls(old: str, new: str):
    assert old in BEFORE
    assert of_text(BEFORE.replace(old, new)) != of_text(BEFORE)


def scale_by(share: float) -> Callable[[Tensor], Tensor]:
    return lambda values: values * share


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        (scale_by(1.0), scale_by(1.0), scale_by(2.0)),
        (partial(scale_by, 1.0), partial(scale_by, 1.0), partial(scale_by, 2.0)),
        (nn.CrossEntropyLoss(), nn.CrossEntropyLoss(), nn.CrossEntropyLoss(label_smoothing=0.1)),
        (nn.Dropout(0.5), nn.Dropout(0.5), nn.Dropout(0.4)),
        (nn.Dropout(0.5), nn.Dropout(0.5), nn.Dropout(0.5).eval()),
        (nn.Sequential(nn.ReLU()), nn.Sequential(nn.ReLU()), nn.Sequential(nn.Tanh())),
        ({8, 0}, {0, 8}, {0, 9}),  # which Python lists in two orders
    ],
)
def test_values_that_code_holds_count(one: Any, same: Any, other: Any):
    assert code_digest(one) == code_digest(same)
    assert code_digest(one) != code_digest(other)


def test_of_trained_weights_the_shape_counts_and_of_frozen_ones_every_bit():
    one, two = nn.Linear(2, 2), nn.Linear(2, 2)
    assert code_digest(one, trained=one.parameters()) == code_digest(two, trained=two.parameters())
    assert code_digest(one, trained=[one.bias]) != code_digest(two, trained=[two.bias])
    wide = nn.Linear(3, 2)
    assert code_digest(one, trained=one.parameters()) != code_digest(wide, trained=wide.parameters())


def test_functions_that_call_each_other_come_to_an_end():
    own = names("def even(n):\n    return n == 0 or odd(n - 1)\n\ndef odd(n):\n    return n != 0 and even(n - 1)\n")
    assert code_digest(own["even"]) != code_digest(own["odd"])


@pytest.mark.slow  # each process loads torch
def test_another_process_finds_the_same_digest():
    program = "from tests.experiment.test_code_digest import BEFORE, of_text; print(of_text(BEFORE))"
    found = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    ]
    assert found == [of_text(BEFORE)] * 2

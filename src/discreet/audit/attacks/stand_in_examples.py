"""Examples of nobody's, in the shape of a task: the built-in digits, or random rows where inputs are no images."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from discreet.data.tasks.digits import CENTRE, FILE, WHITE
from discreet.data.tasks.task import Task

DIGIT_SIDE = 8
OWN_DATA = "the clients' own data"


@dataclass(frozen=True)
class Victims:
    """Examples whose gradients are attacked.

    Attributes:
        inputs: The inputs.
        targets: The targets.
        origin: Whose they are, in words.
    """

    inputs: Tensor
    targets: Tensor
    origin: str


def stand_in_examples(task: Task, generator: torch.Generator) -> Victims:
    """Return digits, enlarged to the task's images, in random order; for other inputs random rows between −1 and 1.

    Labels are those of the digits, as far as the task has as many classes; the targets of a regression are random.
    """
    with np.load(FILE) as digits:
        pixels, labels = (torch.from_numpy(digits[name]) for name in ("pixels", "labels"))
    order = torch.randperm(len(labels), generator=generator)
    shape = image_shape(task)
    if shape is None:
        inputs = 2 * torch.rand(len(order), *task.input_shape, generator=generator) - 1
    else:
        images = (pixels[order].float() / WHITE).reshape(-1, 1, DIGIT_SIDE, DIGIT_SIDE)
        if shape[:2] != (DIGIT_SIDE, DIGIT_SIDE):
            images = functional.interpolate(images, size=shape[:2], mode="bilinear", align_corners=False)
        low, high = input_range(task)
        inputs = (low + (high - low) * images).expand(-1, shape[2], -1, -1).reshape(-1, *task.input_shape)
    if task.kind == "regression":
        targets = torch.randn(len(order), *task.train.targets.shape[1:], generator=generator)
    else:
        targets = labels[order].long() % task.classes
    origin = "random rows, which are nobody's" if shape is None else "the built-in digits, which are public"
    return Victims(inputs, targets, origin)


def own_examples(task: Task, per_client: int, least: int = 1) -> Victims:
    """Return the clients' own examples: so many of the first client, then of the second, and so on.

    After the last client the first one goes on, until there are `least`. A client with too few starts again.
    """
    train = task.train
    turns = -(-least // (per_client * len(train.sizes)))
    places = [
        start + (turn * per_client + place) % size
        for turn in range(turns)
        for start, size in zip(train.starts, train.sizes, strict=True)
        for place in range(per_client)
    ]
    inputs, targets = train.examples_at(torch.tensor(places))
    return Victims(inputs.cpu(), targets.cpu(), OWN_DATA)


def image_shape(task: Task) -> tuple[int, int, int] | None:
    """Return height, width and channels of the task's images. None if its inputs are no images."""
    shape = task.input_shape
    if len(shape) == 3 and shape[0] in (1, 3):
        return shape[1], shape[2], shape[0]
    return (DIGIT_SIDE, DIGIT_SIDE, 1) if task.name == "digits" and math.prod(shape) == DIGIT_SIDE**2 else None


def input_range(task: Task) -> tuple[float, float]:
    """Return the range of values in which stand-in inputs are made, and reconstructions are shown."""
    if task.name == "digits":
        return -CENTRE, 1 - CENTRE
    return (0.0, 1.0) if image_shape(task) is not None else (-1.0, 1.0)

"""Gradient inversion: rebuild a client's examples from what the server sees, with and without privacy."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import torch
from torch import Tensor

from discreet.audit.attacks.gradient_inversion import (
    MOST_STEPS,
    find_first_layer,
    invert_by_optimisation,
    invert_first_layer,
)
from discreet.audit.attacks.server_view import server_views
from discreet.audit.attacks.stand_in_examples import (
    OWN_DATA,
    Victims,
    image_shape,
    input_range,
    own_examples,
    stand_in_examples,
)
from discreet.errors import InvalidInput
from discreet.experiment.job import Job
from discreet.params import Params
from discreet.privacy.guarantee import Guarantee
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey

PICTURES = 4
RECOVERED, RECOGNISABLE = 0.9, 0.5  # correlations from which on a reconstruction is called so
SMALLEST_ERROR = 1e-20  # of a reconstruction, so that its ratio is finite
ANALYTIC, OPTIMISATION = "analytic", "optimisation"


@dataclass(frozen=True)
class Reconstruction:
    """What one view of the server gives away.

    Attributes:
        view: What the server sees, by its name.
        inputs: The reconstructed inputs, in the order of the originals.
        errors: Mean squared error of each.
        correlations: Correlation of each with its original, after the mean of all examples was taken off both.
    """

    view: str
    inputs: Tensor
    errors: list[float]
    correlations: list[float]

    def psnr(self, value_range: tuple[float, float]) -> list[float]:
        """Return the peak signal-to-noise ratio of each reconstruction, in decibels."""
        width = value_range[1] - value_range[0]
        return [10 * math.log10(width**2 / max(error, SMALLEST_ERROR)) for error in self.errors]

    def verdict(self) -> str:
        """Say in words what was recovered, by the mean correlation."""
        mean = sum(self.correlations) / len(self.correlations)
        if mean > RECOVERED:
            return "recovers the examples"
        return "recovers the examples in part" if mean > RECOGNISABLE else "can't recover the examples"


@dataclass(frozen=True)
class InversionAttack:
    """Originals beside what the server can rebuild of them.

    Attributes:
        origin: Whose the originals are.
        shape: Height, width and channels of an image. None for rows of numbers.
        value_range: The range of the inputs.
        method: How they were rebuilt: analytic or optimisation.
        batch: Examples in the client's batch.
        originals: The inputs.
        reconstructions: One for each view of the server.
    """

    origin: str
    shape: tuple[int, int, int] | None
    value_range: tuple[float, float]
    method: str
    batch: int
    originals: Tensor
    reconstructions: list[Reconstruction]

    def sentences(self) -> list[str]:
        """Return the result in plain words."""
        return [
            f"With {each.view}, the server {each.verdict()} (mean correlation with the originals "
            f"{sum(each.correlations) / len(each.correlations):.2f})."
            for each in self.reconstructions
        ]

    def to_plain(self) -> dict[str, Any]:
        """Return the attack as plain data, for JSON. Pixels are whole numbers from 0 to 255."""
        return {
            "attack": "inversion",
            "origin": self.origin,
            "on_data": self.origin == OWN_DATA,
            "method": self.method,
            "batch": self.batch,
            "shape": None if self.shape is None else list(self.shape),
            "originals": self._pixels(self.originals),
            "views": [
                {
                    "name": each.view,
                    "verdict": each.verdict(),
                    "mean_squared_errors": each.errors,
                    "psnr": each.psnr(self.value_range),
                    "correlations": each.correlations,
                    "reconstructions": self._pixels(each.inputs),
                }
                for each in self.reconstructions
            ],
            "sentences": self.sentences(),
        }

    def _pixels(self, inputs: Tensor) -> list[list[int]]:
        """Return inputs as numbers from 0 to 255, image rows first and channels last."""
        low, high = self.value_range
        images = inputs.double()
        if self.shape is not None and images.dim() == 4:
            images = images.permute(0, 2, 3, 1)
        pixels = ((images.reshape(len(images), -1) - low) / (high - low) * 255).clamp(0, 255).round()
        return [[int(pixel) for pixel in image] for image in pixels.tolist()]


def attack_inversion(
    job: Job,
    guarantee: Guarantee | None,
    *,
    batch: int = 1,
    on_data: bool = False,
    steps: int = MOST_STEPS,
    key: RunKey | None = None,
    watch: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> InversionAttack:
    """Rebuild examples from what the server sees of one round: raw, summed, and as the experiment sends it.

    A batch of one example at a fully connected first layer is rebuilt by the ratio of the gradients of weight and bias,
    which is exact without noise; anything else by optimisation.

    Args:
        job: The experiment, whose first model is broadcast.
        guarantee: What is certified for it. None without privacy.
        batch: Examples in the client's batch, from 1 to 4.
        on_data: Attack the clients' own examples, and not stand-in ones.
        steps: Steps of an optimisation.
        key: Where noise and stand-in examples come from. None for a fresh key.
        watch: Called with what is done, how many reconstructions are done, and their number.

    Raises:
        InvalidInput: The batch is out of range, or inputs are whole numbers.
    """
    if not 1 <= batch <= PICTURES:
        raise InvalidInput(f"The batch must have 1 to {PICTURES} examples, and got {batch}.")
    if not job.data.inputs.is_floating_point():
        raise InvalidInput("Inputs that are whole numbers, such as words, can't be rebuilt from a gradient.")
    key = key or RunKey.generate()
    generator = key.generator(Purpose.ATTACK, "inversion")
    examples = own_examples(job.task, batch, PICTURES) if on_data else stand_in_examples(job.task, generator)
    like = job.task.train.inputs if on_data else examples.inputs
    value_range = _find_range(like) if on_data else input_range(job.task)
    layer = find_first_layer(job) if batch == 1 else None
    shape = image_shape(job.task)
    starts = range(0, PICTURES, batch) if batch == 1 else range(1)
    views, found = server_views(job, guarantee), []
    originals, common = examples.inputs[: len(starts) * batch].double(), like.double().mean(dim=0).cpu()
    for view in views:
        rebuilt = []
        for place, start in enumerate(starts):
            some = Victims(examples.inputs.roll(-start, 0), examples.targets.roll(-start, 0), examples.origin)
            seen = view.observe(job, some, batch, RunKey(key.secret[:31] + bytes([start]), is_seeded=True))
            if layer is not None:
                inputs = invert_first_layer(seen, layer).reshape(1, *job.task.input_shape)
            else:
                inputs = _search(job, seen, some.targets[:batch], value_range, generator, shape is not None, steps)
            rebuilt.append(inputs)
            watch(view.name, place + 1, len(starts))
        found.append(_compare(view.name, originals, torch.cat(rebuilt).cpu(), common, value_range))
    method = OPTIMISATION if layer is None else ANALYTIC
    return InversionAttack(examples.origin, shape, value_range, method, batch, originals, found)


def _search(
    job: Job,
    seen: Params,
    targets: Tensor,
    value_range: tuple[float, float],
    generator: torch.Generator,
    is_image: bool,
    steps: int,
) -> Tensor:
    return invert_by_optimisation(job, seen, targets, value_range, generator, is_image=is_image, steps=steps)


def _find_range(inputs: Tensor) -> tuple[float, float]:
    low, high = (float(value) for value in torch.aminmax(inputs))
    return low, max(high, low + 1e-6)


def _compare(
    view: str, originals: Tensor, rebuilt: Tensor, common: Tensor, value_range: tuple[float, float]
) -> Reconstruction:
    """Match reconstructions with originals, since a batch has no order, and measure them inside the value range.

    What all examples have in common is no secret of one: correlations are those of the differences from their mean.
    """
    rebuilt = rebuilt.clamp(*value_range)
    flat, guesses = (values.reshape(len(values), -1) for values in (originals, rebuilt))
    errors = (flat[:, None] - guesses[None]).square().mean(dim=2)
    order = min(permutations(range(len(flat))), key=lambda places: float(errors[range(len(flat)), places].sum()))
    chosen = [float(errors[row, column]) for row, column in enumerate(order)]
    centre = common.flatten()
    correlations = [_correlation(flat[row] - centre, guesses[column] - centre) for row, column in enumerate(order)]
    return Reconstruction(view, rebuilt[list(order)], chosen, correlations)


def _correlation(left: Tensor, right: Tensor) -> float:
    left, right = left - left.mean(), right - right.mean()
    return float(left @ right / (left.norm() * right.norm()).clamp(min=1e-12))

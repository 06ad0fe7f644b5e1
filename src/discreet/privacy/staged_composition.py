"""Compose millions of steps in two stages: blocks of them on a fine grid, then the blocks on a coarser one.

The grid of n steps must have a spacing of about 1/√n of what may be added to ε, and its window is as wide as the whole
composition's losses. Beyond some 10⁷ steps no grid holds both. A block of √n steps has a narrower window, and √n blocks
allow a wider spacing.

Guarantee: a block's composed losses are split onto the coarser grid as a step's losses are, so that the result still
dominates. What a block leaves out is counted once for each block, and so is the rounding of its transform.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.privacy.noise_pairs import Array
from discreet.privacy.sampling_schemes import Atoms
from discreet.privacy.spectrum import ROUNDING, Spectrum, compose

LONG = 10**5  # steps that are worth blocks of their own
LARGEST_STEP = 2**20  # points of one step in a block's grid


@dataclass(frozen=True)
class _Block:
    """Atoms that enter the second stage, how often they happen, and what each of them lacks of its tilted mass."""

    atoms: Callable[[Array], Atoms]
    pilot: Atoms
    count: int
    left_out: float = 0.0


def compose_in_stages(
    atoms: Callable[[int, Array], Atoms],
    pilots: Sequence[Atoms],
    counts: Sequence[int],
    *,
    tilt: float,
    variance: float,
    near: float,
) -> Spectrum:
    """Compose the steps as `compose` does, on grids that add about `variance` to the variance of the loss in all."""
    blocks = []
    fine = math.sqrt(6 * (variance / 2) / sum(counts))
    for i, (pilot, count) in enumerate(zip(pilots, counts, strict=True)):

        def step(edges: Array, which: int = i) -> Atoms:
            return atoms(which, edges)

        if count < LONG:
            blocks.append(_Block(step, pilot, count))
            continue
        times = math.isqrt(count)
        blocks.append(_compose_block(step, pilot, count // times, times, tilt, fine, near))
        if count % times:
            blocks.append(_compose_block(step, pilot, count % times, 1, tilt, fine, near))
    times = sum(block.count for block in blocks)
    whole = compose(
        lambda which, edges: blocks[which].atoms(edges),
        [block.pilot for block in blocks],
        [block.count for block in blocks],
        tilt=tilt,
        spacing=math.sqrt(6 * (variance / 2) / times),
        near=near,
    )
    left_out = whole.left_out + sum(block.count * block.left_out for block in blocks)
    return replace(whole, left_out=left_out, rounding=whole.rounding + ROUNDING * sum(counts) / 1e6, is_finest=True)


def _compose_block(
    step: Callable[[Array], Atoms], pilot: Atoms, length: int, times: int, tilt: float, spacing: float, near: float
) -> _Block:
    """Compose `length` steps into atoms that happen `times` times.

    A transform's rounding is relative in each frequency, so by Parseval its error has a Euclidean norm of at most
    `noise` times that of the weights, and an absolute sum of at most the root of their number times that.
    """
    block = compose(
        lambda _, edges: step(edges),
        [pilot],
        [length],
        tilt=tilt,
        spacing=spacing,
        near=near,
        largest_step=LARGEST_STEP,
    )
    kept = np.flatnonzero(block.weights > 0)
    weights = block.weights[kept]
    losses: Array = (block.first + kept.astype(np.float64)) * block.spacing
    composed = Atoms(losses, np.log(weights) + block.log_scale - tilt * losses)
    rounding = block.noise * float(np.linalg.norm(weights)) * math.sqrt(block.weights.size)
    return _Block(lambda _: composed, composed, times, block.left_out + rounding)

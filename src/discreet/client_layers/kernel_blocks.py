"""Block sizes of the kernels, by a fixed table from the shapes of one client.

Nothing is measured at run time: a measurement could choose differently in the next run, which would change its bits,
and it can't be made while a CUDA graph is recorded. `benchmarks/kernels.py --tune` measures; the table is edited by
hand. The number of clients has no influence, so a client's bits don't depend on who shares its block.
"""

from typing import NamedTuple

from discreet.client_layers.precision import GradientPrecision

FEW_CHANNELS = 16  # below it, taps and channels are one axis, so that little is padded
SPLIT_FROM = 1024  # positions that one block adds up before they are divided among several
BUSY = 16  # blocks of one client that are enough to fill a GPU together with other clients


class Blocks(NamedTuple):
    """The tile that one program computes, and how.

    Attributes:
        m: Rows, or positions that are summed at once.
        n: Outputs.
        k: Channels, or taps and channels where they are packed.
        packed: Whether taps and channels are one axis.
        warps: Warps of a program.
        stages: Loads in flight.
        splits: Parts that a sum over positions is divided into.
    """

    m: int
    n: int
    k: int
    packed: bool
    warps: int
    stages: int
    splits: int = 1


def output_blocks(rows: int, outer: int, inner: int, taps: int, precision: GradientPrecision) -> Blocks:
    """Return the blocks of a sum over taps.

    Args:
        rows: Outputs of one client: images × height × width.
        outer: Outputs of a group.
        inner: Channels of a group.
        taps: Taps of the kernel.
        precision: In which products are computed.
    """
    packed = inner < FEW_CHANNELS
    n = _tile(outer, 128 if precision == "bf16" else 64)
    m = 64 if rows <= 64 or precision == "float32" else 128
    if packed:
        return Blocks(m, n, min(64, _power_of_two(taps * inner)), True, 4, 2)
    deep = {"float32": 16, "tf32": 32, "bf16": 64}[precision]
    return Blocks(m, n, min(deep, _power_of_two(inner)), False, 8 if m * n >= 128 * 128 else 4, 3)


def weight_blocks(rows: int, outer: int, inner: int, taps: int, precision: GradientPrecision) -> Blocks:
    """Return the blocks of a sum over positions, with the arguments of `output_blocks`."""
    packed = inner < FEW_CHANNELS
    columns = taps * inner if packed else inner
    n = _tile(outer, 64 if packed or precision == "float32" else 128)
    k = _tile(columns, 128 if precision == "bf16" and not packed else 64)
    tiles = -(-outer // n) * (-(-columns // k)) * (1 if packed else taps)
    splits = max(1, min(-(-BUSY // tiles), rows // SPLIT_FROM))
    deep = {"float32": 16, "tf32": 32, "bf16": 64}[precision]
    # Hopper's instructions for four warps take TF32 by positions only, which costs a transposing load of each operand
    warps = 2 if precision == "tf32" else 8 if n * k >= 128 * 128 else 4
    stages = 4 if precision == "tf32" and n * k <= 64 * 64 else 3
    return Blocks(min(deep, _power_of_two(rows)), n, k, packed, warps, stages, splits)


def _tile(size: int, largest: int) -> int:
    """Return the largest power of two that wastes at most a quarter of the work, and at least 16."""
    tile = largest
    while tile > 16 and 4 * (-(-size // tile) * tile) > 5 * size:
        tile //= 2
    return tile


def _power_of_two(size: int) -> int:
    """Return the next power of two, and at least 16, the smallest block of tensor cores."""
    return max(16, 1 << (size - 1).bit_length())

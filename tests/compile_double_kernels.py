"""Compile the kernels for sums in double precision for two generations of GPUs, which needs Triton and no GPU.

Run as `python -m tests.compile_double_kernels`, in a process in which Triton does not interpret.
"""

import argparse
import itertools
import re
import sys
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler import compile as compile_source

from discreet.double_kernels import NARROW, TILES, WIDE, WIDE_TILE, add_rows, add_values, scale_rows

GENERATIONS = (80, 90)
LIMITS = {"shared": 48 * 1024}  # bytes that a program may have on every GPU
SINGLE = re.compile(r"\b(?:add|sub|mul|fma|mad|sqrt|div)\.[a-z.]*f32\b|\bftz\b|\bmma\b|\batom\b")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--generation", type=int, choices=GENERATIONS, default=90)
    target = parser.parse_args().generation
    for width, (rows, squared, root) in itertools.product(
        (NARROW, WIDE), (("*fp32", True, True), ("*fp32", True, False), ("*fp32", False, False), ("*fp64", False, True))
    ):
        options = {"SQUARED": squared, "ROOT": root, "BLOCK": width}
        warps = 1 if width == NARROW else 4
        sys.stdout.write(f"add_values, {options}, {rows}: {compile_kernel(add_values, options, rows, warps, target)}\n")
    for (high, wide), rows in itertools.product((*TILES.values(), WIDE_TILE), ("*fp32", "*fp64")):
        options = {"WEIGHTED": rows == "*fp32", "ROWS": high, "COLUMNS": wide}
        sys.stdout.write(f"add_rows, {options}, {rows}: {compile_kernel(add_rows, options, rows, 4, target)}\n")
    options = {"BLOCK": WIDE}
    sys.stdout.write(f"scale_rows, {options}: {compile_kernel(scale_rows, options, '*fp32', 4, target)}\n")


def compile_kernel(kernel: Any, options: dict[str, Any], rows: str, warps: int, generation: int) -> str:
    """Compile one kernel, check that it computes in double precision alone, and say how much shared memory it takes."""
    types = {"rows": rows, "weights": "*fp64" if options.get("WEIGHTED") else rows, "factors": "*fp64"}
    types["out"] = "*fp32" if kernel is scale_rows else "*fp64"
    signature = {name: "constexpr" if name in options else types.get(name, "i32") for name in kernel.arg_names}
    known = {(kernel.arg_names.index(name),): value for name, value in options.items()}
    source = ASTSource(kernel, signature=signature, constexprs=known)
    found = compile_source(source, target=GPUTarget("cuda", generation, 32), options={"num_warps": warps})
    assert found.metadata.shared <= LIMITS["shared"]
    in_single = SINGLE.search(found.asm["ptx"])
    assert in_single is None, in_single
    return f"{found.metadata.shared} bytes"


if __name__ == "__main__":
    main()

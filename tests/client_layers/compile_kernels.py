"""Compile the kernels for two generations of GPUs, which needs Triton and no GPU, and print what each one takes.

Run as `python -m tests.client_layers.compile_kernels`, in a process in which Triton does not interpret.
"""

import argparse
import sys
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler import compile as compile_source

from discreet.client_layers.kernel_blocks import Blocks, output_blocks, weight_blocks
from discreet.client_layers.kernel_launch import BY_TRITON
from discreet.client_layers.precision import GradientPrecision
from discreet.client_layers.triton_kernels import add_parts, sum_over_positions, sum_over_taps

SHARED_MEMORY = {80: 163 * 1024, 90: 227 * 1024}  # bytes that a program may have, by generation
PRECISIONS: tuple[GradientPrecision, ...] = ("float32", "tf32", "bf16")
IMAGES, PARTS = ("images", "weights", "gradients"), ("bias", "out", "parts")  # what a kernel points to


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--generation", type=int, choices=SHARED_MEMORY, default=90)
    target = parser.parse_args().generation
    taken = compile_kernel(add_parts, {"TAPS": 9, "BLOCK": 1024}, "float32", 4, 3, target)
    sys.stdout.write(f"add_parts: {taken}\n")
    for precision in PRECISIONS:
        for channels, outputs, stride in ((3, 32, 1), (32, 64, 2), (128, 128, 1)):
            shape = (7840, outputs, channels, 9, precision)
            for kernel, blocks in ((sum_over_taps, output_blocks(*shape)), (sum_over_positions, weight_blocks(*shape))):
                options = constants(blocks, channels, stride, precision)
                if kernel is sum_over_taps:
                    options["HAS_BIAS"] = True
                taken = compile_kernel(kernel, options, precision, blocks.warps, blocks.stages, target)
                sys.stdout.write(f"{kernel.__name__}, {channels} to {outputs}, {precision}: {taken}\n")


def constants(blocks: Blocks, channels: int, stride: int, precision: GradientPrecision) -> dict[str, Any]:
    """Return the constants of both large kernels for a kernel of 3 × 3."""
    return {
        "STEP_HIGH": stride,
        "STEP_WIDE": stride,
        "TAPS_HIGH": 3,
        "TAPS_WIDE": 3,
        "PACKED": channels if blocks.packed else 0,
        "IN_BF16": precision == "bf16",
        "PRECISION": BY_TRITON[precision],
        "BLOCK_M": blocks.m,
        "BLOCK_N": blocks.n,
        "BLOCK_K": blocks.k,
        "groups": 1,
    }


def compile_kernel(
    kernel: Any, options: dict[str, Any], precision: GradientPrecision, warps: int, stages: int, generation: int
) -> str:
    """Compile one kernel and say which instructions and how much shared memory it takes."""
    names = kernel.arg_names
    types = dict.fromkeys(IMAGES, "*bf16" if precision == "bf16" else "*fp32") | dict.fromkeys(PARTS, "*fp32")
    signature = {name: "constexpr" if name in options else types.get(name, "i32") for name in names}
    aligned = {(place,): [["tt.divisibility", 16]] for place, name in enumerate(names) if name in types}
    known = {(names.index(name),): value for name, value in options.items() if name in names}
    source = ASTSource(kernel, signature=signature, constexprs=known, attrs=aligned)
    target = GPUTarget("cuda", generation, 32)
    found = compile_source(source, target=target, options={"num_warps": warps, "num_stages": stages})
    assert found.metadata.shared <= SHARED_MEMORY[generation]
    kinds = [kind for kind in ("wgmma.mma_async", "mma.sync") if kind in found.asm["ptx"]]
    return f"{found.metadata.shared} bytes, {' and '.join(kinds) or 'no tensor cores'}"


if __name__ == "__main__":
    main()

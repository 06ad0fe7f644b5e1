"""Convolutions whose weights differ by client: the kernels of `client_layers` beside cuDNN's, which vmap falls back to.

Layers are those of pfl-research's CNN, of a CNN with kernels of 5 × 5, and of ResNet-18 on 32 × 32 pixels. Times are of
the GPU alone: each product is recorded as a CUDA graph and replayed. Errors are relative to float32, in the norm.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from typing import NamedTuple

import results
import torch
from torch import Tensor

from discreet.client_layers import batched_convolution
from discreet.client_layers.convolution_shape import ConvolutionSettings
from discreet.client_layers.kernel_blocks import Blocks, output_blocks, weight_blocks
from discreet.client_layers.precision import GradientPrecision
from discreet.client_layers.tensor_core_switches import tensor_cores

KINDS = ("output", "input gradient", "weight gradient")
PRECISIONS: tuple[GradientPrecision, ...] = ("float32", "tf32", "bf16")
OURS, CUDNN = "discreet", "cuDNN"
REPLAYS, TURN = 20, 0.05  # at most so many replays of a product, or so many seconds
WORKERS = 8  # processes that compile kernels


class Layer(NamedTuple):
    """A convolution of so many clients with so many images each."""

    name: str
    clients: int
    images: int
    channels: int
    outputs: int
    size: int
    kernel: int
    stride: int = 1
    padding: int = 0

    def settings(self, precision: GradientPrecision) -> ConvolutionSettings:
        return ConvolutionSettings((self.stride, self.stride), (self.padding, self.padding), (1, 1), 1, precision)

    @property
    def output_size(self) -> int:
        """Height and width of the output."""
        return (self.size + 2 * self.padding - self.kernel) // self.stride + 1

    @property
    def operations(self) -> int:
        """Additions and multiplications of one product."""
        rows = self.clients * self.images * self.output_size**2
        return 2 * rows * self.channels * self.outputs * self.kernel**2

    @property
    def words(self) -> str:
        step = f", stride {self.stride}" if self.stride > 1 else ""
        return f"{self.channels} → {self.outputs}, {self.kernel} × {self.kernel}{step}, {self.size} × {self.size}"


LAYERS = (
    Layer("pfl", 50, 10, 3, 32, 32, 3),
    Layer("pfl", 50, 10, 32, 64, 30, 3),
    Layer("wide", 50, 10, 64, 128, 14, 3),
    Layer("5 × 5", 50, 50, 1, 32, 28, 5, 1, 2),
    Layer("5 × 5", 50, 50, 32, 64, 14, 5, 1, 2),
    Layer("ResNet-18", 50, 50, 3, 64, 32, 3, 1, 1),
    Layer("ResNet-18", 50, 50, 64, 64, 32, 3, 1, 1),
    Layer("ResNet-18", 50, 50, 64, 128, 32, 3, 2, 1),
    Layer("ResNet-18", 50, 50, 64, 128, 32, 1, 2),
    Layer("ResNet-18", 50, 50, 128, 128, 16, 3, 1, 1),
    Layer("ResNet-18", 50, 50, 128, 256, 16, 3, 2, 1),
    Layer("ResNet-18", 50, 50, 256, 256, 8, 3, 1, 1),
    Layer("ResNet-18", 50, 50, 256, 512, 8, 3, 2, 1),
    Layer("ResNet-18", 50, 50, 512, 512, 4, 3, 1, 1),
)


class Task(NamedTuple):
    """One product to compile or to measure; blocks are those of the table unless they are given."""

    layer: Layer
    kind: str
    precision: GradientPrecision
    blocks: Blocks | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=100.0, help="measure no further layer after so long (100)")
    parser.add_argument("--layer", type=int, action="append", help=f"measure these only, of 0 to {len(LAYERS) - 1}")
    parser.add_argument("--precision", choices=PRECISIONS, action="append", help="measure these only")
    parser.add_argument("--kind", choices=KINDS, action="append", help="tune these only")
    parser.add_argument("--tune", action="store_true", help="try other block sizes, and print the fastest of each")
    results.add_options(parser, "kernels")
    options = parser.parse_args()
    layers = [LAYERS[number] for number in options.layer or range(len(LAYERS))]
    precisions = tuple(options.precision or PRECISIONS)
    if options.merge is None and not torch.cuda.is_available():
        sys.exit("The kernels run on a GPU, and torch finds none here.")
    if options.tune:
        tune(layers, precisions, tuple(options.kind or KINDS), options.seconds)
        return
    results.publish("kernels", options, lambda: measure(layers, precisions, options.seconds), page)


def measure(layers: list[Layer], precisions: tuple[GradientPrecision, ...], seconds: float) -> results.Entry:
    """Measure every product of these layers, ours and cuDNN's, until the time is up."""
    end = time.perf_counter() + seconds
    compile_kernels([Task(*each) for each in product(layers, KINDS, precisions)])
    rows, left = [], list(layers)
    while left and time.perf_counter() < end:
        layer = left.pop(0)
        rows += [row for kind in KINDS for row in measure_product(layer, kind, precisions)]
        torch.cuda.empty_cache()
    return {
        "device": "cuda",
        "machine": results.machine("cuda"),
        "versions": results.versions("discreet", "torch", "triton"),
        "rows": rows,
        "left out": [layer.words for layer in left],
    }


def measure_product(layer: Layer, kind: str, precisions: tuple[GradientPrecision, ...]) -> Iterator[dict[str, object]]:
    """Yield a row for each way to compute one product: cuDNN without and with TF32, and ours in each precision."""
    operands = make_operands(layer)
    with tensor_cores(allowed=False):
        exact = by_cudnn(layer, kind, operands)()
    for allowed in (False, True):
        with tensor_cores(allowed=allowed):
            yield describe(layer, kind, CUDNN, "tf32" if allowed else "float32", by_cudnn(layer, kind, operands), exact)
    for precision in precisions:
        run = by_kernels(Task(layer, kind, precision), operands)
        yield describe(layer, kind, OURS, precision, run, exact)


def describe(
    layer: Layer, kind: str, who: str, precision: str, run: Callable[[], Tensor], exact: Tensor
) -> dict[str, object]:
    seconds = time_replays(run)
    error = float((run() - exact).norm(dtype=torch.float64) / exact.norm(dtype=torch.float64))
    return {
        "network": layer.name,
        "layer": layer.words,
        "clients": layer.clients,
        "images": layer.images,
        "product": kind,
        "by": who,
        "precision": precision,
        "milliseconds": seconds * 1e3,
        "teraflops": layer.operations / seconds / 1e12,
        "error": error,
    }


Operands = tuple[Tensor, Tensor, Tensor]


def make_operands(layer: Layer) -> Operands:
    """Return inputs, weights and gradients of the outputs. Images are channels last, as layers pass them on."""
    generator = torch.Generator("cuda").manual_seed(0)
    sizes = (
        (layer.clients, layer.images, layer.size, layer.size, layer.channels),
        (layer.clients, layer.images, layer.output_size, layer.output_size, layer.outputs),
    )
    x, gy = (torch.randn(size, device="cuda", generator=generator).permute(0, 1, 4, 2, 3) for size in sizes)
    weights = (layer.clients, layer.outputs, layer.channels, layer.kernel, layer.kernel)
    return x, torch.randn(weights, device="cuda", generator=generator), gy


def by_cudnn(layer: Layer, kind: str, operands: Operands) -> Callable[[], Tensor]:
    """Return the product as vmap computes it: one convolution in which each client is a group."""
    settings = layer.settings("float32")
    x, w, gy = (value.contiguous() for value in operands)
    if kind == KINDS[0]:
        return lambda: batched_convolution.torch_outputs(x, w, None, settings)
    if kind == KINDS[1]:
        return lambda: batched_convolution.torch_input_gradients(gy, w, settings, (layer.size, layer.size))
    return lambda: batched_convolution.torch_weight_gradients(x, gy, settings, (layer.kernel, layer.kernel))


def by_kernels(task: Task, operands: Operands) -> Callable[[], Tensor]:
    """Return the product as our kernels compute it, with the copies that they need."""
    from discreet.client_layers import kernel_operators

    layer, settings, (x, w, gy) = task.layer, task.layer.settings(task.precision), operands
    if task.kind == KINDS[0]:
        return lambda: kernel_operators.outputs(x, w, None, settings, task.blocks)
    if task.kind == KINDS[1]:
        return lambda: kernel_operators.input_gradients(gy, w, settings, (layer.size, layer.size), task.blocks)
    return lambda: kernel_operators.weight_gradients(x, gy, settings, (layer.kernel, layer.kernel), task.blocks)


def time_replays(run: Callable[[], Tensor]) -> float:
    """Return the median seconds of a product that was recorded as a CUDA graph."""
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = run()
    graph.replay()
    times: list[float] = []
    while len(times) < REPLAYS and sum(times) < TURN:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    del graph, kept
    return statistics.median(times)


def compile_kernels(tasks: Iterable[Task]) -> None:
    """Compile the kernels of these products in several processes, whose results Triton keeps on the disk."""
    waiting = list(tasks)
    print(f"Compiling the kernels of {len(waiting)} products.", file=sys.stderr)
    with ProcessPoolExecutor(min(WORKERS, len(os.sched_getaffinity(0))), get_context("spawn")) as pool:
        failed = [problem for problem in pool.map(try_once, waiting, chunksize=4) if problem]
    for problem in failed:
        print(problem, file=sys.stderr)


def try_once(task: Task) -> str | None:
    """Run a product once, on two clients with its own number of images. Return what is wrong with it."""
    layer = task.layer._replace(clients=2)
    try:
        by_kernels(task, make_operands(layer))()
        torch.cuda.synchronize()
    except Exception as error:  # noqa: BLE001 - a block size that doesn't fit is left out
        return f"{layer.words}, {task.kind}, {task.precision}, {task.blocks}: {type(error).__name__}: {error!s:.200}"
    return None


def tune(
    layers: list[Layer], precisions: tuple[GradientPrecision, ...], kinds: tuple[str, ...], seconds: float
) -> None:
    """Print the fastest block sizes of each product beside those of the table."""
    end = time.perf_counter() + seconds
    for layer, precision in product(layers, precisions):
        if time.perf_counter() > end:
            print(f"left out: {layer.words}, {precision}")
            continue
        tasks = [Task(layer, kind, precision, each) for kind in kinds for each in block_choices(layer, kind, precision)]
        compile_kernels(tasks)
        operands = make_operands(layer)
        for kind in kinds:
            found = []
            for task in (task for task in tasks if task.kind == kind):
                try:
                    found.append((time_replays(by_kernels(task, operands)), task.blocks))
                except Exception:  # noqa: BLE001 - named when it was compiled
                    torch.cuda.synchronize()
            shown = "; ".join(f"{time * 1e3:.3f} ms {tuple(blocks or ())}" for time, blocks in sorted(found)[:3])
            default = time_replays(by_kernels(Task(layer, kind, precision), operands))
            print(f"{layer.words}, {kind}, {precision}: table {default * 1e3:.3f} ms; {shown}", flush=True)
        torch.cuda.empty_cache()


def block_choices(layer: Layer, kind: str, precision: GradientPrecision) -> list[Blocks]:
    """Return block sizes to try: those of the table, with other tiles, warps and stages."""
    inner, outer = (layer.outputs, layer.channels) if kind == KINDS[1] else (layer.channels, layer.outputs)
    rows, taps = layer.images * layer.output_size**2, layer.kernel**2
    choose = weight_blocks if kind == KINDS[2] else output_blocks
    table = choose(rows, outer, inner, taps, precision)
    depths = (32, 64) if precision == "bf16" else (16, 32)
    if kind == KINDS[2]:
        sizes = ((64, 64), (128, 64), (64, 128), (128, 128), (32, 128), (32, 256))
        tiles = ((m, n, k) for m in depths for n, k in sizes)
    else:
        tiles = ((m, n, k) for k in depths for m, n in ((64, 64), (128, 64), (128, 128), (256, 64), (64, 128)))
    width = table.k if table.packed else None
    return [
        table._replace(m=m, n=min(n, max(16, table.n * 2)), k=width or k, warps=warps, stages=stages)
        for m, n, k in tiles
        for warps, stages in ((2, 3), (4, 3), (8, 3), (2, 4), (4, 4))
    ]


def page(entries: results.Entries) -> str:
    """Return the page: a table of the products, and each network's sum."""
    return "\n".join(_lines(entries["cuda"]))


def _lines(entry: results.Entry) -> Iterator[str]:
    yield "# Convolutions whose weights differ by client\n"
    yield "Written by `benchmarks/kernels.py --write`."
    yield (__doc__ or "").partition("\n\n")[2].replace("\n", " ").strip() + "\n"
    yield results.provenance(entry["machine"], entry["versions"]) + "\n"
    ways = list(dict.fromkeys((row["by"], row["precision"]) for row in entry["rows"]))
    heads = " | ".join(f"{who}, {precision}" for who, precision in ways)
    yield f"Milliseconds; in brackets the relative error.\n\n| network | layer | product | {heads} |"
    yield f"|---|---|---|{'---:|' * len(ways)}"
    found = {(row["network"], row["layer"], row["product"], row["by"], row["precision"]): row for row in entry["rows"]}
    for network, layer, kind in dict.fromkeys(key[:3] for key in found):
        rows = [found.get((network, layer, kind, *way)) for way in ways]
        cells = (f"{row['milliseconds']:.3f} ({row['error']:.0e})" if row else "" for row in rows)
        yield f"| {network} | {layer} | {kind} | {' | '.join(cells)} |"
    yield f"\n## Each network's products together\n\nMilliseconds.\n\n| network | {heads} |\n|---|{'---:|' * len(ways)}"
    for network in dict.fromkeys(row["network"] for row in entry["rows"]):
        sums = (
            sum(row["milliseconds"] for key, row in found.items() if key[0] == network and key[3:] == way)
            for way in ways
        )
        yield f"| {network} | {' | '.join(f'{each:.2f}' for each in sums)} |"
    if entry["left out"]:
        yield f"\nNot measured, since the time was up: {'; '.join(entry['left out'])}."
    yield ""


if __name__ == "__main__":
    main()

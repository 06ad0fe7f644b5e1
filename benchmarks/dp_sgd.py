"""Example-level DP-SGD for several clients: one step of all of them, ours beside Opacus's best mode, interleaved.

Both clip every example's gradient and add noise to the sum; neither loads data while the clock runs. Opacus trains
one client after the other, as every framework around it does; we train them as one block.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import results
import torch
from torch import Tensor, nn

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.training import DpSgd
from discreet.data.federation import Federation
from discreet.models.user_module.supervised_module import SupervisedModule
from discreet.randomness.streams import RunKey

OURS = "discreet"
MODES = ("hooks", "ghost", "functorch")


def network() -> nn.Module:
    """The 26,010-parameter CNN of Papernot et al. for 28×28 images."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, stride=2, padding=2),
        nn.Tanh(),
        nn.MaxPool2d(2, stride=1),
        nn.Conv2d(16, 32, 4, stride=2),
        nn.Tanh(),
        nn.MaxPool2d(2, stride=1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.Tanh(),
        nn.Linear(32, 10),
    )


def linear() -> nn.Module:
    return nn.Linear(64, 10)


def ours(module: nn.Module, data: Federation, clients: int, batch: int, steps: int) -> Callable[[], None]:
    params = {name: value.detach().clone() for name, value in module.named_parameters()}
    loss = SupervisedModule(module, "classification").loss
    trainer = DpSgd(
        steps=(steps,),
        sampling_rate=batch / data.sizes[0],
        clip_norm=1.0,
        noise_multiplier=1.0,
        learning_rate=0.1,
        piece=max(64, int(1.5 * batch)),
    )
    everyone = list(range(clients))
    key, device = RunKey.from_seed(0), data.inputs.device
    rounds = iter(range(10**9))

    def run() -> None:
        round = next(rounds)
        trainer.train(loss, Broadcast(round, params, {}), data.block(everyone), key.rows(round, b"", everyone, device))

    return run


def opacus(
    make: Callable[[], nn.Module], data: Federation, clients: int, batch: int, steps: int, mode: str
) -> Callable[[], None]:
    """Opacus in one of its modes: per-sample gradients by hooks or functorch, or ghost clipping."""
    from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    device = data.inputs.device
    settings = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "expected_batch_size": batch}
    models: list[tuple[nn.Module, torch.optim.Optimizer, Callable[[Tensor, Tensor], Tensor]]] = []
    for _ in range(clients):
        module = make().to(device)
        inner = torch.optim.SGD(module.parameters(), lr=0.1)
        if mode == "ghost":
            wrapped = GradSampleModuleFastGradientClipping(module, max_grad_norm=1.0)
            optimiser = DPOptimizerFastGradientClipping(inner, **settings)
            criterion = DPLossFastGradientClipping(wrapped, optimiser, nn.CrossEntropyLoss())
        else:
            wrapped = GradSampleModule(module, force_functorch=mode == "functorch")
            optimiser, criterion = DPOptimizer(inner, **settings), nn.CrossEntropyLoss()
        models.append((wrapped, optimiser, criterion))
    generator = torch.Generator().manual_seed(0)

    def run() -> None:
        for client, (wrapped, optimiser, criterion) in enumerate(models):
            start, size = data.starts[client], data.sizes[client]
            for _ in range(steps):
                coins = torch.rand(size, generator=generator)
                index = (torch.nonzero(coins < batch / size).flatten() + start).to(device)
                optimiser.zero_grad()
                criterion(wrapped(data.inputs[index]), data.targets[index]).backward()  # type: ignore[no-untyped-call]
                optimiser.step()

    return run


def race(contestants: dict[str, Callable[[], None]], repeats: int, device: torch.device) -> dict[str, float]:
    """Median seconds of each, run in turns so that all meet the same machine."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(repeats + 1):
        for name, run in contestants.items():
            if device.type == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
            run()
            if device.type == "cuda":
                torch.cuda.synchronize()
            if turn:  # the first turn warms up
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


@dataclass(frozen=True)
class Shape:
    """So many clients with `examples` each, and how many of them are expected in a batch."""

    make: Callable[[], nn.Module]
    form: tuple[int, ...]
    clients: int
    batch: int
    examples: int
    steps: int
    goals: dict[str, float]  # by device: how many times as fast as the best Opacus

    def federation(self, device: torch.device) -> Federation:
        torch.manual_seed(0)
        count = self.clients * self.examples
        inputs, targets = torch.randn(count, *self.form), torch.randint(10, (count,))
        return Federation(inputs, targets, (self.examples,) * self.clients).move_to(device)


SHAPES = {
    "CNN, 10 clients, batches of 256": Shape(network, (1, 28, 28), 10, 256, 3000, 1, {"cpu": 1.0, "cuda": 4.0}),
    "linear, 50 clients, batches of 10": Shape(linear, (64,), 50, 10, 40, 4, {"cpu": 10.0, "cuda": 10.0}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=results.DEVICES)
    parser.add_argument("--repeats", type=int, default=7, help="of each measurement; medians are shown (7)")
    results.add_options(parser, "dp_sgd")
    options = parser.parse_args()
    results.publish("dp_sgd", options, lambda: measure(options.device, options.repeats), page)


def measure(name: str, repeats: int) -> results.Entry:
    device = torch.device(name)
    return {
        "device": name,
        "machine": results.machine(name),
        "versions": results.versions("discreet", "opacus", "torch"),
        "repeats": repeats,
        "results": {shape: _race_libraries(each, repeats, device) for shape, each in SHAPES.items()},
    }


def _race_libraries(shape: Shape, repeats: int, device: torch.device) -> dict[str, Any]:
    data = shape.federation(device)
    sizes = (shape.clients, shape.batch, shape.steps)
    contestants = {OURS: ours(shape.make().to(device), data, *sizes)}
    for mode in MODES:
        contestants[f"opacus {mode}"] = opacus(shape.make, data, *sizes, mode)
    seconds = race(contestants, repeats, device)
    best = min(value for name, value in seconds.items() if name != OURS)
    return {"seconds": seconds, "ratio_to_best_opacus": best / seconds[OURS]}


# The page.


def page(entries: results.Entries) -> str:
    return "\n".join(
        [
            "# How fast DP-SGD is for several clients",
            "",
            "Written by `benchmarks/dp_sgd.py --write`, which measures one device at a time (`make bench` prints it).",
            "Both sides clip every example's gradient and add noise to the sum. Opacus trains one client after the "
            "other, in each of its modes; we train them as one block. Nobody loads data while the clock runs.",
            "",
            "## Goals",
            "",
            "A ratio is the time of Opacus's fastest mode over ours.",
            "",
            "| | measured | goal | |",
            "|---|---:|---:|---|",
            *[_goal(device, shape, entries) for shape in SHAPES for device in results.DEVICES],
            *[line for device, entry in entries.items() for line in _section(device, entry)],
            "",
        ]
    )


def _goal(device: str, shape: str, entries: results.Entries) -> str:
    what, goal = f"{shape}: on {results.DEVICES[device]}", SHAPES[shape].goals[device]
    asked = "≥ 1× (aim 1.5×)" if goal == 1 else f"≥ {goal:g}×"
    if device not in entries:
        return f"| {what} | – | {asked} | not measured |"
    ratio = entries[device]["results"][shape]["ratio_to_best_opacus"]
    return f"| {what} | {ratio:.1f}× | {asked} | {results.verdict(ratio >= goal)} |"


def _section(device: str, entry: results.Entry) -> Iterator[str]:
    yield from ("", f"## On {results.DEVICES[device]}", "")
    yield f"{results.provenance(entry['machine'], entry['versions'])} Medians of {entry['repeats']} turns."
    for shape, found in entry["results"].items():
        steps = SHAPES[shape].steps
        yield from ("", f"**{shape}**: {'one step' if steps == 1 else f'{steps} steps'} of every client", "")
        yield from ("| | ms | ratio |", "|---|---:|---:|")
        for name, seconds in found["seconds"].items():
            yield f"| {name} | {1000 * seconds:.2f} | {seconds / found['seconds'][OURS]:.1f} |"


if __name__ == "__main__":
    main()

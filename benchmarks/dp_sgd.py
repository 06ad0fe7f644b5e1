"""Example-level DP-SGD for several clients: one step of all of them, ours beside Opacus's best mode, interleaved.

Both clip every example's gradient and add noise to the sum; neither loads data while the clock runs. Opacus trains
one client after the other, as every framework around it does; we train them as one block.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from discreet.broadcast import Broadcast
from discreet.federation import Federation
from discreet.randomness import RunKey
from discreet.training import DpSgd
from discreet.training.module_loss import ModuleLoss

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


def losses(outputs: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(outputs, targets, reduction="none")


def ours(module: nn.Module, data: Federation, clients: int, batch: int, steps: int) -> Callable[[], None]:
    params = {name: value.detach().clone() for name, value in module.named_parameters()}
    loss = ModuleLoss.of(module, losses)
    trainer = DpSgd(
        steps=steps,
        sampling_rate=batch / data.sizes[0],
        clip_norm=1.0,
        noise_multiplier=1.0,
        learning_rate=0.1,
        piece=max(64, int(1.5 * batch)),
    )
    everyone = list(range(clients))
    key, device = RunKey.seed(0), data.inputs.device
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


SHAPES = {
    "cnn, 10 clients × 256": (network, (1, 28, 28), 10, 256, 3000, 1),
    "linear, 50 clients × 10": (linear, (64,), 50, 10, 40, 4),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    results: dict[str, dict[str, Any]] = {}
    for shape, (make, form, clients, batch, size, steps) in SHAPES.items():
        torch.manual_seed(0)
        inputs = torch.randn(clients * size, *form)
        data = Federation(inputs, torch.randint(10, (clients * size,)), (size,) * clients).to(device)
        contestants = {"discreet": ours(make().to(device), data, clients, batch, steps)}
        for mode in MODES:
            contestants[f"opacus {mode}"] = opacus(make, data, clients, batch, steps, mode)
        seconds = race(contestants, arguments.repeats, device)
        best = min(value for name, value in seconds.items() if name != "discreet")
        results[shape] = {"seconds": seconds, "ratio_to_best_opacus": best / seconds["discreet"]}
    if arguments.json:
        print(json.dumps({"device": arguments.device, "results": results}, indent=2))
        return
    for shape, found in results.items():
        print(f"{shape}  ({arguments.device})")
        for name, value in found["seconds"].items():
            print(f"  {name:<20}{value * 1e3:10.2f} ms")
        print(f"  best Opacus ÷ ours   {found['ratio_to_best_opacus']:9.2f}\n")


if __name__ == "__main__":
    main()

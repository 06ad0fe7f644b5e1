"""Memory and time of one step of DP-SGD beside one of plain SGD: ours, and Opacus's ghost clipping if it is installed.

Each measurement is a process of its own, since the memory that a process needed at most never falls again. All take
turns, so that they meet the same machine. `--against FOLDER` adds the package in another folder (its `src`), such as
the state before a change. It prints JSON; a batch that does not fit is a result, too.
"""

import argparse
import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import results
import torch
from speed.networks import papernot_cnn, resnet18
from torch import Tensor, nn

SGD, OURS, WHOLE, OPACUS, BEFORE = "sgd", "discreet", "discreet, batch in one piece", "opacus ghost", "before"
PIECE = 512  # the default of `DpSgd.piece`
WORDS, LENGTH, WIDTH, CLASSES = 2000, 64, 128, 10
SOURCE = Path(__file__).parents[1] / "src"


class Block(nn.Module):
    """A block of a transformer: attention with one head, and two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first_norm, self.second_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.first_norm(x)
        scores = (self.query(inner) @ self.key(inner).transpose(1, 2) / WIDTH**0.5).softmax(dim=2)
        x = x + self.out(scores @ self.value(inner))
        down: Tensor = self.down(nn.functional.gelu(self.up(self.second_norm(x))))
        return x + down


class Transformer(nn.Module):
    """Two blocks over embedded words and positions, and the mean of what comes out."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks, self.last = nn.ModuleList([Block(), Block()]), nn.Linear(WIDTH, CLASSES)

    def forward(self, words: Tensor) -> Tensor:
        x = self.words(words) + self.places(torch.arange(LENGTH, device=words.device))
        for block in self.blocks:
            x = block(x)
        outputs: Tensor = self.last(x.mean(dim=1))
        return outputs


def images(*form: int) -> Callable[[int], Tensor]:
    return lambda count: torch.randn(count, *form)


@dataclass(frozen=True)
class Case:
    """A network, its inputs, how many clients train it, and the batches of each on a CPU and on a GPU."""

    make: Callable[[], nn.Module]
    inputs: Callable[[int], Tensor]
    clients: int
    cpu: tuple[int, ...]
    cuda: tuple[int, ...]


CASES = {
    "cnn": Case(papernot_cnn, images(1, 28, 28), 10, (256,), (256,)),
    "resnet18": Case(resnet18, images(3, 32, 32), 1, (32,), (512, 4096)),
    "transformer": Case(Transformer, lambda count: torch.randint(WORDS, (count, LENGTH)), 2, (128,), (512,)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=results.DEVICES)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--turns", type=int, default=1, help="processes for each measurement (1)")
    parser.add_argument("--steps", type=int, default=3, help="timed steps in each process; the least time counts (3)")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="also measure the package in this folder")
    parser.add_argument("--one", nargs=3, metavar=("CASE", "WAY", "BATCH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        case, way, batch = options.one
        print(json.dumps(measure_here(CASES[case], way, int(batch), torch.device(options.device), options.steps)))
        return
    print(json.dumps(measure(options), indent=1))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure all cases in turns, each in a process of its own."""
    plan = [
        (name, batch, way)
        for name in options.cases
        for batch in getattr(CASES[name], options.device)
        for way in ways(batch, options.against is not None)
    ]
    found: dict[tuple[str, int, str], list[dict[str, Any]]] = {key: [] for key in plan}
    for _ in range(options.turns):
        for key in plan:
            found[key].append(measure_apart(*key, options))
            print(*key, json.dumps(found[key][-1]), file=sys.stderr, flush=True)  # what is left if the run is ended
    return {
        "device": options.device,
        "machine": results.machine(options.device),
        "versions": results.versions("discreet", "opacus", "torch"),
        "load": os.getloadavg(),
        "results": [
            {"case": name, "batch": batch, "way": way, **summary(found[name, batch, way])} for name, batch, way in plan
        ],
    }


def ways(batch: int, against: bool) -> list[str]:
    chosen = [SGD, OURS]
    if batch > PIECE:
        chosen.append(WHOLE)
    if against:
        chosen.append(BEFORE)
    if importlib.util.find_spec("opacus") is not None:
        chosen.append(OPACUS)
    return chosen


def measure_apart(case: str, batch: int, way: str, options: argparse.Namespace) -> dict[str, Any]:
    source = options.against if way == BEFORE else SOURCE
    command = [sys.executable, __file__, "--device", options.device, "--steps", str(options.steps)]
    command += ["--one", case, way, str(batch)]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}"}
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def summary(turns: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over the turns; the first error, if there is one."""
    errors = [turn["error"] for turn in turns if "error" in turn]
    if errors:
        return {"error": errors[0]}
    return {key: statistics.median(turn[key] for turn in turns) for key in turns[0]}


def measure_here(case: Case, way: str, batch: int, device: torch.device, steps: int) -> dict[str, float]:
    """Take steps in this process: the least time of one, and the memory beyond model and data.

    The length of an update of ours shows that two versions did the same work.
    """
    torch.manual_seed(0)
    module, count = case.make(), case.clients * batch
    inputs, targets = case.inputs(count).to(device), torch.randint(CLASSES, (count,)).to(device)
    run: Callable[[], float | None]
    if way in (SGD, OPACUS):
        run = (plain if way == SGD else opacus_ghost)(module.to(device), inputs, targets, case.clients)
    else:
        run = ours(module, inputs, targets, case.clients, batch if way == WHOLE else PIECE)
    before = highest_memory(device)
    times = []
    for _ in range(steps + 1):  # the first one warms up
        start = time.perf_counter()
        length = run()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    found = {"seconds": min(times[1:]), "megabytes": (highest_memory(device) - before) / 1e6}
    if device.type == "cuda":
        found["megabytes reserved"] = torch.cuda.max_memory_reserved() / 1e6
    return found if length is None else {**found, "length": length}


def highest_memory(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def plain(module: nn.Module, inputs: Tensor, targets: Tensor, clients: int) -> Callable[[], None]:
    """One ordinary step for each client, one after the other."""
    optimiser = torch.optim.SGD(module.parameters(), lr=0.1)

    def run() -> None:
        for own, labels in zip(inputs.chunk(clients), targets.chunk(clients), strict=True):
            optimiser.zero_grad()
            nn.functional.cross_entropy(module(own), labels).backward()  # type: ignore[no-untyped-call]
            optimiser.step()

    return run


def ours(module: nn.Module, inputs: Tensor, targets: Tensor, clients: int, piece: int) -> Callable[[], float]:
    """One step of DP-SGD of all clients on all their examples, by the trainer. Returns the length of the update."""
    from discreet.algorithms.broadcast import Broadcast
    from discreet.algorithms.training import DpSgd
    from discreet.data.federation import Federation
    from discreet.models.user_module.supervised_module import SupervisedModule
    from discreet.params import norms
    from discreet.randomness.streams import RunKey

    params = {name: value.detach().clone().to(inputs.device) for name, value in module.named_parameters()}
    loss = SupervisedModule(module.to(inputs.device), "classification").loss
    trainer = DpSgd(steps=(1,), sampling_rate=1.0, clip_norm=1.0, noise_multiplier=1e-3, learning_rate=0.1, piece=piece)
    data, key = Federation(inputs, targets, (len(inputs) // clients,) * clients), RunKey.from_seed(0)
    everyone = list(range(clients))

    def run() -> float:
        rows = key.rows(0, b"", everyone, inputs.device)
        update = trainer.train(loss, Broadcast(0, params, {}), data.block(everyone), rows)
        return float(norms(update)[0])

    return run


def opacus_ghost(module: nn.Module, inputs: Tensor, targets: Tensor, clients: int) -> Callable[[], None]:
    """Opacus's ghost clipping, one client after the other."""
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    wrapped = GradSampleModuleFastGradientClipping(module, max_grad_norm=1.0)
    optimiser = DPOptimizerFastGradientClipping(
        torch.optim.SGD(module.parameters(), lr=0.1),
        noise_multiplier=1e-3,
        max_grad_norm=1.0,
        expected_batch_size=len(inputs) // clients,
    )
    criterion = DPLossFastGradientClipping(wrapped, optimiser, nn.CrossEntropyLoss())

    def run() -> None:
        for own, labels in zip(inputs.chunk(clients), targets.chunk(clients), strict=True):
            optimiser.zero_grad()
            criterion(wrapped(own), labels).backward()
            optimiser.step()

    return run


if __name__ == "__main__":
    main()

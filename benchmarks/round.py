"""One round of pfl-research's CIFAR-10 benchmark, ours beside theirs, in one run.

1,000 clients of 50 images, 50 of them a round, one epoch in batches of 10, a CNN of 1,626,442 parameters, client-level
clipping and Gaussian noise on both sides. The images are synthetic: neither side's time depends on what they show.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any, get_args

import results
import torch
from torch import Tensor, nn

from discreet.algorithms.recipes.dp_fedavg import dp_fedavg
from discreet.algorithms.sampling import FixedSize
from discreet.client_layers.precision import GradientPrecision
from discreet.data.federation import Federation
from discreet.engines.embedded import EmbeddedEngine, fitting_block_size
from discreet.engines.engine import Simulation
from discreet.models.user_module.supervised_module import SupervisedModule
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey

CLIENTS, EXAMPLES, COHORT, BATCH = 1000, 50, 50, 10
TURNS = 3
GOAL_MS, GOAL = 25.0, 20.0  # on a GPU: a round's milliseconds, and times as fast as pfl-research
OURS, PFL = "discreet", "pfl"


def network() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.25),
        nn.Flatten(),
        nn.Linear(12544, 128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, 10),
    )


def ours(inputs: Tensor, targets: Tensor, precision: GradientPrecision) -> Callable[[], None]:
    module = network().to(inputs.device)
    params = {name: value.detach().clone() for name, value in module.named_parameters()}
    assert sum(value.numel() for value in params.values()) == 1_626_442
    algorithm = dp_fedavg(
        learning_rate=0.1, batch_size=BATCH, clip_norm=0.4, sampling=FixedSize(cohort=COHORT), noise_multiplier=0.5
    )
    key = RunKey.generate()  # as in a run that protects somebody: broadcasts are digested into the keys
    data = Federation(inputs, targets, (EXAMPLES,) * CLIENTS)
    simulation = Simulation(algorithm, data, SupervisedModule(module, "classification").loss, key, precision=precision)
    state, rounds, population = [algorithm.init(params)], iter(range(10**9)), data.population
    engine = EmbeddedEngine(simulation, fitting_block_size(simulation, algorithm.broadcast(state[0], 0)))

    def run() -> None:
        number = next(rounds)
        cohort = algorithm.sampling.sample(population, number, key.generator(Purpose.SAMPLING, number))
        broadcast = algorithm.broadcast(state[0], number)
        gathered = engine.gather(broadcast, cohort)
        noise = simulation.rows(broadcast, [-1]).for_purpose(Purpose.SERVER)
        state[0] = algorithm.server_step(
            state[0], broadcast, gathered.total, len(gathered.contributors), population, noise
        )

    return run


def pfl(inputs: Tensor, targets: Tensor) -> Callable[[int], list[float]]:
    """Runs so many rounds of pfl and returns what each took."""
    import numpy as np
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.base import TrainingProcessCallback
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam.base import NNTrainHyperParams
    from pfl.metrics import Metrics, Weighted
    from pfl.model.pytorch import PyTorchModel
    from pfl.privacy import CentrallyAppliedPrivacyMechanism, GaussianMechanism

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = network()

        def forward(self, inputs: Tensor) -> Tensor:
            outputs: Tensor = self.layers(inputs)
            return outputs

        def loss(self, inputs: Tensor, targets: Tensor, eval: bool = False) -> Tensor:
            self.eval() if eval else self.train()
            return nn.functional.cross_entropy(self(inputs), targets)

        @torch.no_grad()
        def metrics(self, inputs: Tensor, targets: Tensor, eval: bool = True) -> dict[str, Any]:
            return {"loss": Weighted(float(self.loss(inputs, targets, eval=True)), len(targets))}

    class Clock(TrainingProcessCallback):  # type: ignore[misc]
        def __init__(self) -> None:
            self.marks: list[float] = []

        def after_central_iteration(
            self, aggregate_metrics: Any, model: Any, *, central_iteration: int
        ) -> tuple[bool, Any]:
            if inputs.device.type == "cuda":
                torch.cuda.synchronize()
            self.marks.append(time.perf_counter())
            return False, Metrics()

    def client(number: int) -> Dataset:
        part = slice(number * EXAMPLES, (number + 1) * EXAMPLES)
        return Dataset(raw_data=[inputs[part], targets[part]], user_id=str(number))

    np.random.seed(0)
    users = list(range(CLIENTS))
    data = FederatedDataset(client, get_user_sampler("minimize_reuse", users))
    mechanism = CentrallyAppliedPrivacyMechanism(GaussianMechanism(clipping_bound=0.4, relative_noise_stddev=0.5))
    backend = SimulatedBackend(training_data=data, val_data=data, postprocessors=[mechanism])
    module = Net()
    model = PyTorchModel(module, torch.optim.SGD, torch.optim.SGD(module.parameters(), lr=1.0))

    def run(rounds: int) -> list[float]:
        clock = Clock()
        settings = NNAlgorithmParams(
            central_num_iterations=rounds, evaluation_frequency=10**9, train_cohort_size=COHORT, val_cohort_size=0
        )
        local = NNTrainHyperParams(local_num_epochs=1, local_learning_rate=0.1, local_batch_size=BATCH)
        FederatedAveraging().run(settings, backend, model, local, None, [clock], send_metrics_to_platform=False)
        return [after - before for before, after in zip(clock.marks, clock.marks[1:], strict=False)]

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=results.DEVICES)
    parser.add_argument("--rounds", type=int, default=30, help="of ours in each turn; medians are shown (30)")
    parser.add_argument("--precision", default="tf32", choices=get_args(GradientPrecision), help="of ours (tf32)")
    parser.add_argument("--without-pfl", action="store_true", help="measure ours only")
    results.add_options(parser, "round")
    options = parser.parse_args()
    results.publish(
        "round",
        options,
        lambda: measure(options.device, options.rounds, options.precision, alone=options.without_pfl),
        page,
    )


def measure(name: str, rounds: int, precision: GradientPrecision, *, alone: bool) -> results.Entry:
    if not alone and find_spec("pfl") is None:
        # it isn't among the requirements: it pins an older dp-accounting than the one we are measured beside
        print("pfl-research isn't installed here (pip install pfl==0.6.0), so only ours is measured.", file=sys.stderr)
        alone = True
    found = race(torch.device(name), rounds, precision, alone=alone)
    medians = {who: statistics.median(values) for who, values in found.items() if values}
    return {
        "device": name,
        "machine": results.machine(name),
        "versions": results.versions("discreet", "pfl", "torch"),
        "rounds": rounds,
        "precision": precision,
        "seconds": medians,
        "ratio": medians[PFL] / medians[OURS] if PFL in medians else None,
    }


def race(device: torch.device, rounds: int, precision: GradientPrecision, *, alone: bool) -> dict[str, list[float]]:
    """Seconds a round of both, in turns, so that both meet the same machine."""
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")  # TF32, which ours sets by its own precision
    inputs = torch.randn(CLIENTS * EXAMPLES, 3, 32, 32, device=device)
    targets = torch.randint(10, (CLIENTS * EXAMPLES,), device=device)
    mine = ours(inputs, targets, precision)
    theirs = None if alone else pfl(inputs, targets)
    found: dict[str, list[float]] = {}
    for turn in range(TURNS):
        if turn <= 1:  # the first turn warms up
            found = {OURS: [], PFL: []}
        found[OURS] += [_time_run(mine, device) for _ in range(rounds)]
        if theirs is not None:
            found[PFL] += theirs(max(3, rounds // 5))
    return found


def _time_run(run: Callable[[], None], device: torch.device) -> float:
    _wait(device)
    start = time.perf_counter()
    run()
    _wait(device)
    return time.perf_counter() - start


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


# The page.


def page(entries: results.Entries) -> str:
    return "\n".join(
        [
            "# How fast a round is",
            "",
            "Written by `benchmarks/round.py --write`, which measures one device at a time.",
            f"One round of pfl-research's CIFAR-10 benchmark: {CLIENTS:,} clients of {EXAMPLES} images, {COHORT} of "
            f"them a round, one epoch in batches of {BATCH}, a CNN of 1,626,442 parameters, client-level clipping and "
            "Gaussian noise on both sides. The images are synthetic: neither side's time depends on what they show.",
            "",
            "## Goals",
            "",
            "| | measured | goal | |",
            "|---|---:|---:|---|",
            *_goals(entries.get("cuda")),
            *[line for device, entry in entries.items() for line in _section(device, entry)],
            "",
        ]
    )


def _goals(entry: results.Entry | None) -> Iterator[str]:
    """They are about a GPU."""
    ours = None if entry is None else 1000 * entry["seconds"][OURS]
    ratio = None if entry is None else entry["ratio"]
    yield _goal("one round on a GPU", ours, f"≤ {GOAL_MS:g} ms", lambda ms: f"{ms:.1f} ms", lambda ms: ms <= GOAL_MS)
    yield _goal("times as fast as pfl-research", ratio, f"≥ {GOAL:g}×", lambda x: f"{x:.1f}×", lambda x: x >= GOAL)


def _goal(
    what: str, value: float | None, asked: str, said: Callable[[float], str], met: Callable[[float], bool]
) -> str:
    if value is None:
        return f"| {what} | – | {asked} | not measured |"
    return f"| {what} | {said(value)} | {asked} | {results.verdict(met(value))} |"


def _section(device: str, entry: results.Entry) -> Iterator[str]:
    yield from ("", f"## On {results.DEVICES[device]}", "")
    turns = f"Medians of {entry['rounds'] * (TURNS - 1)} rounds of ours; both sides took turns."
    precision = f" Precision of ours: {entry['precision']}." if "precision" in entry and device == "cuda" else ""
    yield f"{results.provenance(entry['machine'], entry['versions'])} {turns}{precision}"
    yield from ("", "| | ms a round | ratio |", "|---|---:|---:|")
    for name, seconds in entry["seconds"].items():
        yield f"| {name} | {1000 * seconds:.2f} | {seconds / entry['seconds'][OURS]:.1f} |"


if __name__ == "__main__":
    main()

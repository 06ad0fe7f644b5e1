"""One round of pfl-research's CIFAR-10 benchmark, ours beside theirs, in one run.

1,000 clients of 50 images, 50 of them a round, one epoch in batches of 10, a CNN of 1,626,442 parameters, client-level
clipping and Gaussian noise on both sides. The images are synthetic: neither side's time depends on what they show.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from discreet.algorithms import dp_fedavg
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import Simulation
from discreet.federation import Federation
from discreet.randomness import RunKey
from discreet.sampling import FixedSize
from discreet.tasks.supervised import Supervised

CLIENTS, EXAMPLES, COHORT, BATCH = 1000, 50, 50, 10


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


def ours(inputs: Tensor, targets: Tensor) -> Callable[[], None]:
    module = network().to(inputs.device)
    params = {name: value.detach().clone() for name, value in module.named_parameters()}
    assert sum(value.numel() for value in params.values()) == 1_626_442
    algorithm = dp_fedavg(
        learning_rate=0.1, batch_size=BATCH, clip_norm=0.4, sampling=FixedSize(cohort=COHORT), noise_multiplier=0.5
    )
    key = RunKey.seed(0)
    data = Federation(inputs, targets, (EXAMPLES,) * CLIENTS)
    engine = EmbeddedEngine(Simulation(algorithm, data, Supervised(module, "classification").loss, key))
    state, rounds, population = [algorithm.init(params)], iter(range(10**9)), data.population

    def run() -> None:
        number = next(rounds)
        cohort = algorithm.sampling.sample(population, number, key.generator("sampling", number))
        gathered = engine.gather(algorithm.broadcast(state[0], number), cohort)
        noise = key.rows(number, b"", [-1], inputs.device)
        state[0] = algorithm.server_step(state[0], gathered.total, population, noise)

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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--without-pfl", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    torch.manual_seed(0)
    inputs = torch.randn(CLIENTS * EXAMPLES, 3, 32, 32, device=device)
    targets = torch.randint(10, (CLIENTS * EXAMPLES,), device=device)
    mine = ours(inputs, targets)
    theirs = None if arguments.without_pfl else pfl(inputs, targets)
    found: dict[str, list[float]] = {"discreet": [], "pfl": []}
    for turn in range(3):  # in turns, so that both meet the same machine
        for _ in range(arguments.rounds):
            if device.type == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
            mine()
            if device.type == "cuda":
                torch.cuda.synchronize()
            found["discreet"].append(time.perf_counter() - start)
        if theirs is not None:
            found["pfl"] += theirs(max(3, arguments.rounds // 5))
        if turn == 0:
            found = {"discreet": [], "pfl": []}  # the first turn warms up
    medians = {name: statistics.median(values) for name, values in found.items() if values}
    ratio = medians["pfl"] / medians["discreet"] if "pfl" in medians else None
    if arguments.json:
        print(json.dumps({"device": arguments.device, "seconds": medians, "ratio": ratio}))
        return
    for name, value in medians.items():
        print(f"{name:<10}{value * 1e3:10.2f} ms a round")
    if ratio:
        print(f"pfl ÷ ours{ratio:10.1f}")


if __name__ == "__main__":
    main()

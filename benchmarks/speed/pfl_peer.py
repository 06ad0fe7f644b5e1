"""pfl-research as a peer: its own simulation of federated averaging, with its own clipping and Gaussian noise."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from discreet.data.federation import Federation
from speed.averaging import NOISE, LocalWork
from speed.case import Contestant, Setting
from speed.networks import MakeNetwork, checked_loss, seeded_network
from speed.precision import peer_autocast


def pfl(make: MakeNetwork, data: Federation, work: LocalWork, setting: Setting) -> Callable[[], Contestant] | None:
    """Return pfl's side; None where it is not installed. It trains whole epochs, which are `work.steps` batches."""
    return None if find_spec("pfl") is None else lambda: _contestant(make, data, work, setting)


def _contestant(make: MakeNetwork, data: Federation, work: LocalWork, setting: Setting) -> Contestant:
    import numpy as np
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam.base import NNTrainHyperParams
    from pfl.metrics import Weighted
    from pfl.model.pytorch import PyTorchModel
    from pfl.privacy import CentrallyAppliedPrivacyMechanism, GaussianMechanism

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = seeded_network(make)

        def forward(self, inputs: Tensor) -> Tensor:
            outputs: Tensor = self.layers(inputs)
            return outputs

        def loss(self, inputs: Tensor, targets: Tensor, eval: bool = False) -> Tensor:
            self.eval() if eval else self.train()
            with peer_autocast(setting.device, setting.precision):
                return nn.functional.cross_entropy(self(inputs), targets)

        @torch.no_grad()
        def metrics(self, inputs: Tensor, targets: Tensor, eval: bool = True) -> dict[str, Any]:
            return {"loss": Weighted(float(self.loss(inputs, targets, eval=True)), len(targets))}

    def client(number: int) -> Dataset:
        part = slice(data.starts[number], data.starts[number] + data.sizes[number])
        return Dataset(raw_data=[data.inputs[part], data.targets[part]], user_id=str(number))

    np.random.seed(0)
    users = list(range(len(data.sizes)))
    held = FederatedDataset(client, get_user_sampler("minimize_reuse", users))
    noise = GaussianMechanism(clipping_bound=work.clip, relative_noise_stddev=NOISE)
    backend = SimulatedBackend(
        training_data=held, val_data=held, postprocessors=[CentrallyAppliedPrivacyMechanism(noise)]
    )
    module = Net().to(data.inputs.device)
    model = PyTorchModel(module, torch.optim.SGD, torch.optim.SGD(module.parameters(), lr=1.0))
    settings = NNAlgorithmParams(
        central_num_iterations=1, evaluation_frequency=10**9, train_cohort_size=work.cohort, val_cohort_size=0
    )
    local = NNTrainHyperParams(local_num_epochs=1, local_learning_rate=work.learning_rate, local_batch_size=work.batch)

    def run() -> None:
        FederatedAveraging().run(settings, backend, model, local, None, [], send_metrics_to_platform=False)

    def loss() -> float:
        weights = {name: value.detach() for name, value in module.layers.named_parameters()}
        return checked_loss(module.layers, weights, data)

    return Contestant(run, loss)

"""DP-FedAvg and DP-FedSAM: a round of ours, and the same round as a plain loop of PyTorch over the clients."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.recipes.central_noise import compose_central_gaussian
from discreet.algorithms.sampling import FixedSize
from discreet.algorithms.training import LocalSgd
from discreet.algorithms.training.gradient_rules import Sam
from discreet.client_layers.precision import GradientPrecision
from discreet.data.federation import Federation
from discreet.engines.embedded import EmbeddedEngine, fitting_block_size
from discreet.engines.engine import Simulation
from discreet.models.user_module.supervised_module import SupervisedModule
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey
from speed.case import COMPILED, OURS, Contestant, Setting
from speed.networks import MakeNetwork, checked_loss, seeded_network
from speed.precision import peer_autocast

NOISE = 1e-6  # noise multiplier: drawn and added as any other, and too small to hide that a side skips work


@dataclass(frozen=True)
class LocalWork:
    """What both sides do in a round.

    Attributes:
        cohort: Clients that join.
        batch: Examples in a local batch.
        steps: Local steps of every client.
        learning_rate: Learning rate of the local steps.
        clip: The norm that updates are clipped to.
        rho: How far SAM looks; None for plain steps.
    """

    cohort: int
    batch: int
    steps: int
    learning_rate: float = 0.1
    clip: float = 1.0
    rho: float | None = None

    def algorithm(self) -> Algorithm:
        trainer = LocalSgd(
            learning_rate=self.learning_rate,
            batch_size=self.batch,
            steps=self.steps,
            perturbation=None if self.rho is None else Sam(rho=self.rho),
        )
        return compose_central_gaussian(trainer, self.clip, NOISE, 1.0, FixedSize(cohort=self.cohort))


def ours(
    make: MakeNetwork, data: Federation, work: LocalWork, setting: Setting, *, compile: bool = True
) -> dict[str, Callable[[], Contestant]]:
    """Return our sides: the round of the training loop without its files, and with `compile` in compiled steps too."""
    sides = {OURS: partial(_our_contestant, make, data, work, setting.precision, compile=False)}
    if compile:
        sides[COMPILED] = partial(_our_contestant, make, data, work, setting.precision, compile=True)
    return dict(sides)


def _our_contestant(
    make: MakeNetwork, data: Federation, work: LocalWork, precision: GradientPrecision, *, compile: bool
) -> Contestant:
    module = seeded_network(make).to(data.inputs.device)
    params = {name: value.detach().clone() for name, value in module.named_parameters() if value.requires_grad}
    algorithm, population, key = work.algorithm().for_population(data.population), data.population, RunKey.from_seed(0)
    loss = SupervisedModule(module, "classification").loss
    simulation = Simulation(algorithm, data, loss, key, precision=precision, compile=compile)
    state, rounds = [algorithm.init(params)], iter(range(10**9))
    engine = EmbeddedEngine(simulation, fitting_block_size(simulation, algorithm.broadcast(state[0], 0)))

    def run() -> None:
        number = next(rounds)
        cohort = algorithm.sampling.sample(population, number, key.generator(Purpose.SAMPLING, number))
        broadcast = algorithm.broadcast(state[0], number)
        gathered = engine.gather(broadcast, cohort)
        noise = simulation.rows(broadcast, [-1]).for_purpose(Purpose.SERVER)
        joined = len(gathered.contributors)
        state[0] = algorithm.server_step(state[0], broadcast, gathered.total, joined, population, noise)

    return Contestant(run, lambda: checked_loss(module, state[0].params, data))


def sequential_loop(
    make: MakeNetwork, data: Federation, work: LocalWork, setting: Setting, clients: int | None = None
) -> Callable[[], Contestant]:
    """Return the plain loop: one client after the other by autograd and torch.optim, without waiting for the device.

    With `clients`, only so many of the cohort are trained, and the time is scaled up.
    """
    played = work.cohort if clients is None else min(clients, work.cohort)

    def build() -> Contestant:
        device = data.inputs.device
        module, generator = seeded_network(make).to(device), torch.Generator().manual_seed(1)
        local: list[Tensor] = [value for value in module.parameters() if value.requires_grad]
        names = [name for name, value in module.named_parameters() if value.requires_grad]
        current = [value.detach().clone() for value in local]
        optimizer = torch.optim.SGD(local, lr=work.learning_rate)

        def gradient(inputs: Tensor, targets: Tensor) -> None:
            optimizer.zero_grad()
            with peer_autocast(setting.device, setting.precision):
                loss = nn.functional.cross_entropy(module(inputs), targets)
            loss.backward()  # type: ignore[no-untyped-call]

        def train(client: int) -> None:
            start, size = data.starts[client], data.sizes[client]
            orders = [torch.randperm(size, generator=generator) for _ in range(-(-work.steps * work.batch // size) + 1)]
            pieces = [piece for order in orders for piece in torch.split(order, work.batch)][: work.steps]
            for piece in pieces:
                index = (piece + start).to(device, non_blocking=True)
                inputs, targets = data.inputs[index], data.targets[index]
                gradient(inputs, targets)
                if work.rho is not None:
                    _sam_gradient(local, partial(gradient, inputs, targets), work.rho)
                optimizer.step()

        def run() -> None:
            total = [torch.zeros_like(value) for value in current]
            for client in torch.randperm(len(data.sizes), generator=generator)[:played].tolist():
                with torch.no_grad():
                    torch._foreach_copy_(local, current)
                train(client)
                with torch.no_grad():
                    update = torch._foreach_sub([value.detach() for value in local], current)
                    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(update)))
                    torch._foreach_mul_(update, (work.clip / norm).clamp(max=1.0))
                    torch._foreach_add_(total, update)
            with torch.no_grad():
                for value, whole in zip(current, total, strict=True):
                    whole += torch.randn_like(whole) * (NOISE * work.clip)
                    value += whole / played

        return Contestant(
            run, lambda: checked_loss(module, dict(zip(names, current, strict=True)), data), work.cohort / played
        )

    return build


def _sam_gradient(local: list[Tensor], again: Callable[[], None], rho: float) -> None:
    """Replace the gradients at w by those at w + ρ·g/‖g‖ (Foret et al. 2021)."""
    with torch.no_grad():
        gradients = [value.grad.clone() for value in local if value.grad is not None]
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
        ahead = list(torch._foreach_mul(gradients, rho / (norm + 1e-12)))
        torch._foreach_add_(local, ahead)
    again()
    with torch.no_grad():
        torch._foreach_sub_(local, ahead)

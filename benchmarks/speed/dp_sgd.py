"""DP-SGD for several clients: ours as one block, Opacus and a plain loop of torch.func one client after the other."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.training import DpSgd
from discreet.client_layers.precision import GradientPrecision, gradient_precision
from discreet.data.federation import Federation
from discreet.models.user_module.supervised_module import SupervisedModule
from discreet.params import Params
from discreet.randomness.streams import RunKey
from speed.averaging import NOISE
from speed.case import OURS, Contestant, Setting, Sides
from speed.networks import MakeNetwork, checked_loss, seeded_network
from speed.precision import peer_autocast

MODES = ("hooks", "ghost", "functorch")  # of Opacus
CLIP = 1.0


@dataclass(frozen=True)
class PrivateWork:
    """What both sides do: so many steps of every client, with this many examples expected in a Poisson batch."""

    batch: int
    steps: int
    learning_rate: float


def sides(make: MakeNetwork, data: Federation, work: PrivateWork, setting: Setting) -> Sides:
    """Return ours, the plain loop and, where it is installed, Opacus in each of its modes."""
    found: Sides = {
        OURS: lambda: _ours(make, data, work, setting.precision),
        "plain loop": lambda: _plain_loop(make, data, work, setting),
    }
    if find_spec("opacus") is not None:
        for mode in MODES:
            found[f"opacus {mode}"] = lambda mode=mode: _opacus(make, data, work, setting, mode)  # type: ignore[misc]
    return found


def _ours(make: MakeNetwork, data: Federation, work: PrivateWork, precision: GradientPrecision) -> Contestant:
    """Every call starts at the same weights, as a round does; the loss is that after the last call."""
    module, device = seeded_network(make).to(data.inputs.device), data.inputs.device
    params = {name: value.detach().clone() for name, value in module.named_parameters()}
    loss, everyone, key = (
        SupervisedModule(module, "classification").loss,
        list(range(len(data.sizes))),
        RunKey.from_seed(0),
    )
    trainer = DpSgd(
        steps=(work.steps,),
        sampling_rate=work.batch / data.sizes[0],
        clip_norm=CLIP,
        noise_multiplier=NOISE,
        learning_rate=work.learning_rate,
        piece=max(64, int(1.5 * work.batch)),
    )
    rounds, last = iter(range(10**9)), [{name: torch.zeros_like(value)[None] for name, value in params.items()}]

    def run() -> None:
        number = next(rounds)
        rows = key.rows(number, b"", everyone, device)
        with gradient_precision(precision, device):
            last[0] = trainer.train(loss, Broadcast(number, params, {}), data.block(everyone), rows)

    def mean_loss() -> float:
        models = (
            {name: value + last[0][name][at].to(value.dtype) for name, value in params.items()}
            for at in range(len(last[0][next(iter(params))]))
        )
        return _mean(checked_loss(module, model, data) for model in models)

    return Contestant(run, mean_loss)


def _plain_loop(make: MakeNetwork, data: Federation, work: PrivateWork, setting: Setting) -> Contestant:
    """Per-example gradients by torch.func, one client after the other."""
    device = data.inputs.device
    module = seeded_network(make).to(device)
    start = {name: value.detach().clone() for name, value in module.named_parameters()}
    models = [start] * len(data.sizes)
    generator = torch.Generator().manual_seed(1)

    def loss(params: Params, inputs: Tensor, target: Tensor) -> Tensor:
        with peer_autocast(setting.device, setting.precision):
            return nn.functional.cross_entropy(functional_call(module, params, (inputs[None],)), target[None])

    per_example = vmap(grad(loss), in_dims=(None, 0, 0))

    @torch.no_grad()
    def step(params: Params, inputs: Tensor, targets: Tensor) -> Params:
        gradients = per_example(params, inputs, targets)
        squares = [value.flatten(1).square().sum(dim=1) for value in gradients.values()]
        factors = (CLIP / torch.stack(squares).sum(dim=0).sqrt()).clamp(max=1.0)
        moved = {}
        for name, value in gradients.items():
            total = torch.einsum("n,n...->...", factors, value)
            total += torch.randn_like(total) * (NOISE * CLIP)
            moved[name] = params[name] - work.learning_rate / work.batch * total
        return moved

    def run() -> None:
        for client, params in enumerate(models):
            for _ in range(work.steps):
                index = _draw_batch(data, client, work, generator)
                params = step(params, data.inputs[index], data.targets[index])
            models[client] = params

    return Contestant(run, lambda: _mean(checked_loss(module, model, data) for model in models))


def _opacus(make: MakeNetwork, data: Federation, work: PrivateWork, setting: Setting, mode: str) -> Contestant:
    """Opacus in one of its modes: per-sample gradients by hooks or functorch, or ghost clipping."""
    from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    settings = {"noise_multiplier": NOISE, "max_grad_norm": CLIP, "expected_batch_size": work.batch}
    models: list[tuple[nn.Module, torch.optim.Optimizer, Callable[[Tensor, Tensor], Tensor]]] = []
    for _ in data.sizes:
        module = seeded_network(make).to(data.inputs.device)
        inner = torch.optim.SGD(module.parameters(), lr=work.learning_rate)
        if mode == "ghost":
            wrapped = GradSampleModuleFastGradientClipping(module, max_grad_norm=CLIP)
            optimizer = DPOptimizerFastGradientClipping(inner, **settings)
            criterion = DPLossFastGradientClipping(wrapped, optimizer, nn.CrossEntropyLoss())
        else:
            wrapped = GradSampleModule(module, force_functorch=mode == "functorch")
            optimizer, criterion = DPOptimizer(inner, **settings), nn.CrossEntropyLoss()
        models.append((wrapped, optimizer, criterion))
    generator = torch.Generator().manual_seed(1)

    def run() -> None:
        for client, (wrapped, optimizer, criterion) in enumerate(models):
            for _ in range(work.steps):
                index = _draw_batch(data, client, work, generator)
                optimizer.zero_grad()
                with peer_autocast(setting.device, setting.precision):
                    loss = criterion(wrapped(data.inputs[index]), data.targets[index])
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()

    plain = seeded_network(make).to(data.inputs.device)

    def mean_loss() -> float:
        return _mean(
            checked_loss(
                plain, {name: value.detach() for name, value in inner_module(wrapped).named_parameters()}, data
            )
            for wrapped, _, _ in models
        )

    return Contestant(run, mean_loss)


def inner_module(wrapped: nn.Module) -> nn.Module:
    """The network inside Opacus's wrapper."""
    inner = wrapped._module
    assert isinstance(inner, nn.Module)
    return inner


def _draw_batch(data: Federation, client: int, work: PrivateWork, generator: torch.Generator) -> Tensor:
    start, size = data.starts[client], data.sizes[client]
    coins = torch.rand(size, generator=generator)
    return (torch.nonzero(coins < work.batch / size).flatten() + start).to(data.inputs.device)


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)

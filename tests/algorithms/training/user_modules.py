"""Modules as users write them: sound, mixing examples, keeping state, or not supported by torch.func."""

import copy
import random
import types
import weakref
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

FEATURES, CLASSES, WORDS, LENGTH = 8, 3, 10, 6


class Forward(nn.Module):
    """Two layers with `middle(self, hidden)` in between."""

    def __init__(self, middle: Callable[["Forward", Tensor], Tensor], **attributes: Any) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(FEATURES, 6), nn.Linear(6, CLASSES)
        self.middle = types.MethodType(middle, self)
        for name, value in attributes.items():
            if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(self.middle(self.first(x)))
        return out


def insert_middle(middle: Callable[[Any, Tensor], Tensor], **attributes: Any) -> Callable[[], nn.Module]:
    return lambda: Forward(middle, **copy.deepcopy(attributes))


def stack(*layers: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(nn.Linear(FEATURES, 6), *(each() for each in layers), nn.Linear(6, CLASSES))


class MixingLinear(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x - x.mean(dim=0))


def _patch_layer(method: bool) -> nn.Module:
    module = nn.Sequential(nn.Linear(FEATURES, 6), nn.Tanh(), nn.Linear(6, CLASSES))

    def less_the_mean(self: nn.Linear, x: Tensor) -> Tensor:
        return functional.linear(x - x.mean(dim=0) if self.training else x, self.weight, self.bias)

    first = module[0]
    first.forward = types.MethodType(less_the_mean, first) if method else lambda x: less_the_mean(first, x)
    return module


def _hook_layer(pre: bool) -> nn.Module:
    module = nn.Sequential(nn.Linear(FEATURES, 6), nn.Tanh(), nn.Linear(6, CLASSES))
    if pre:
        module[0].register_forward_pre_hook(lambda layer, given: (given[0] - given[0].mean(dim=0),))
    else:
        module[0].register_forward_hook(lambda layer, given, out: out - out.mean(dim=0))
    return module


class TiedLayers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(FEATURES, FEATURES), nn.Linear(FEATURES, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(self.first(self.first(x).tanh()) @ self.first.weight)
        return out


class OldFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # type: ignore[override]
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
        return grad * 2


class NewFunction(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:  # type: ignore[override]
        return x - x.mean(dim=0)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        return

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
        return grad


class Quantise(torch.autograd.Function):
    """A function whose own vmap rule gets all examples at once and scales them by the largest."""

    @staticmethod
    def forward(x: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        scale = (x.abs().max() / 8).clamp(min=1)
        return x / scale, scale

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output[1])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> Tensor:  # type: ignore[override]
        return grad / ctx.saved_tensors[0]

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor) -> Any:
        out, scale = Quantise.apply(x)
        return (out, scale), (in_dims[0], None)


def _queue(length: int) -> Callable[[Tensor], Tensor]:
    """Keep inputs in a closure, which a copy of the module does not cover."""
    kept: list[Tensor] = []

    def push(x: Tensor) -> Tensor:
        kept.append(x.detach())
        return x + kept[-length].mean(dim=0) if len(kept) > length else x

    return push


class Store:
    """A shared object: its copy is itself."""

    def __init__(self) -> None:
        self.kept: list[Tensor] = []

    def __deepcopy__(self, memo: Any) -> "Store":
        return self


def _bank_in_a_store(self: Any, x: Tensor) -> Tensor:
    self.store.kept.append(x.detach().mean(dim=0))
    return x + self.store.kept[-12] if len(self.store.kept) > 12 else x


def _bank_behind_a_weak_reference(self: Any, x: Tensor) -> Tensor:
    kept = self.reference().kept
    kept.append(x.detach().mean(dim=0))
    return x + kept[-12] if len(kept) > 12 else x


STORES = [Store()]


def _bank_in_a_list(self: Any, x: Tensor) -> Tensor:
    self.bank.append(x.detach())
    return x + sum(each.mean(dim=0) for each in self.bank) if self.training else x


def _bank_in_an_attribute(self: Any, x: Tensor) -> Tensor:
    before, self.kept = self.kept, x.detach().mean(dim=0)
    return x if before is None else x + before


def _bank_after_a_while(self: Any, x: Tensor) -> Tensor:
    self.bank.append(x.detach().mean(dim=0))
    return x + self.bank[0] if len(self.bank) > 12 else x


def _keep_in_an_attribute(self: Any, x: Tensor) -> Tensor:
    self.kept = x
    return x


def _keep_in_a_list(self: Any, x: Tensor) -> Tensor:
    self.kept.append(x.detach())
    return x


KEPT: list[Tensor] = []


def _bank_in_a_global(self: Any, x: Tensor) -> Tensor:
    KEPT.append(x.detach().mean(dim=0))
    return x + KEPT[-2].to(x.device) if len(KEPT) > 1 else x


class BankInTheClass(Forward):
    bank: list[Tensor] = []  # noqa: RUF012

    def forward(self, x: Tensor) -> Tensor:
        self.bank.append(x.detach().mean(dim=0))
        out: Tensor = self.last(self.first(x + self.bank[-2] if len(self.bank) > 1 else x).tanh())
        return out


def _hidden_state(self: Any, x: Tensor) -> Tensor:
    self.hidden = torch.tanh(x + self.hidden)
    return self.hidden


def _running_mean(self: Any, x: Tensor) -> Tensor:
    self.running.mul_(0.9).add_(0.1 * x.detach().mean(dim=0))
    return x - self.running


def _assigned_running_mean(self: Any, x: Tensor) -> Tensor:
    self.running = 0.9 * self.running + 0.1 * x.detach().mean(dim=0)
    return x - self.running


def _calls(self: Any, x: Tensor) -> Tensor:
    self.calls += 1
    return x * (1 + self.calls)


def _cache_mask(self: Any, x: Tensor) -> Tensor:
    if self.mask is None:
        self.mask = torch.ones(6, dtype=x.dtype, device=x.device)
    return x * self.mask


def _own_batch_norm(self: Any, x: Tensor) -> Tensor:
    return (x - x.mean(dim=0)) / (x.var(dim=0, unbiased=False) + 1e-5).sqrt()


def _by_numpy(self: Any, x: Tensor) -> Tensor:
    return torch.from_numpy(np.tanh(x.detach().numpy())).to(x)


def _fixed_point(self: Any, x: Tensor) -> Tensor:
    z = torch.zeros_like(x)
    for _ in range(5):
        z = torch.tanh(z @ self.square + x)
    return z


class TakesSequences(nn.Module):
    def __init__(self, middle: nn.Module, width: int = 6) -> None:
        super().__init__()
        self.embed, self.middle, self.last = nn.Embedding(WORDS, 8), middle, nn.Linear(width, CLASSES)

    def forward(self, words: Tensor) -> Tensor:
        out = self.middle(self.embed(words))
        out = out[0] if isinstance(out, tuple) else out
        logits: Tensor = self.last(out.mean(dim=1))
        return logits


class Cells(nn.Module):
    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.embed, self.cell, self.last = nn.Embedding(WORDS, 8), cell, nn.Linear(6, CLASSES)

    def forward(self, words: Tensor) -> Tensor:
        state: Any = None
        for step in self.embed(words).unbind(dim=1):
            state = self.cell(step, state)
        out: Tensor = self.last(state[0] if isinstance(state, tuple) else state)
        return out


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag, self.last = nn.EmbeddingBag(WORDS, 6), nn.Linear(6, CLASSES)

    def forward(self, words: Tensor) -> Tensor:
        out: Tensor = self.last(self.bag(words))
        return out


def _weight_norm() -> nn.Module:
    return nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(FEATURES, 6)), nn.Linear(6, CLASSES))


def _compiled_in_place() -> nn.Module:
    module = nn.Sequential(nn.Linear(FEATURES, 6), nn.Linear(6, CLASSES))
    module.compile(backend="eager")
    return module


def _freeze_norm() -> nn.Module:
    module = nn.Sequential(nn.Linear(FEATURES, 6), nn.BatchNorm1d(6), nn.Linear(6, CLASSES))
    module[1].eval().requires_grad_(False)
    return module


def _image(*layers: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        body = nn.Sequential(nn.Unflatten(1, (1, 2, 4)), *(each() for each in layers), nn.Flatten())
        return nn.Sequential(body, nn.Linear(body(torch.zeros(1, FEATURES)).shape[1], CLASSES))

    return build


VECTORS: dict[str, Callable[[], nn.Module]] = {
    # sound
    "linear": lambda: nn.Linear(FEATURES, CLASSES),
    "perceptron": stack(nn.ReLU),
    "gelu": stack(nn.GELU),
    "dropout": stack(lambda: nn.Dropout(0.5)),
    "layer norm": stack(lambda: nn.LayerNorm(6)),
    "group norm": stack(lambda: nn.GroupNorm(2, 6)),
    "softmax over features": stack(lambda: nn.Softmax(dim=1)),
    "glu": lambda: nn.Sequential(nn.Linear(FEATURES, 6), nn.GLU(), nn.Linear(3, CLASSES)),
    "prelu": stack(nn.PReLU),
    "own code": insert_middle(lambda self, x: x.square()),
    "residual": insert_middle(lambda self, x: x + torch.tanh(x)),
    "a weight of its own": insert_middle(lambda self, x: x * self.scale, scale=nn.Parameter(torch.ones(6))),
    "a single number": insert_middle(lambda self, x: x * self.scale, scale=nn.Parameter(torch.ones(()))),
    "an unused weight": insert_middle(lambda self, x: x, unused=nn.Parameter(torch.ones(4))),
    "a buffer": insert_middle(lambda self, x: x[:, self.order], order=torch.arange(5, -1, -1)),
    "used twice": TiedLayers,
    "frozen batch norm": _freeze_norm,
    "weight norm": _weight_norm,
    "a gate": insert_middle(lambda self, x: x * x.softmax(dim=1)),
    "noise": insert_middle(lambda self, x: x + 0.1 * torch.randn_like(x)),
    "a fixed point": insert_middle(_fixed_point, square=nn.Parameter(0.1 * torch.eye(6))),
    "checkpoint": insert_middle(lambda self, x: checkpoint(torch.tanh, x, use_reentrant=False)),
    "cached mask": insert_middle(_cache_mask, mask=None),
    "an input kept in an attribute": insert_middle(_keep_in_an_attribute, kept=None),
    "inputs kept in a list": insert_middle(_keep_in_a_list, kept=[]),
    "bilinear": insert_middle(lambda self, x: self.pair(x, x), pair=nn.Bilinear(6, 6, 6)),
    "cosine": insert_middle(lambda self, x: functional.normalize(x, dim=1)),
    "python's random numbers": insert_middle(lambda self, x: x * (2 if random.random() < 0.5 else 1)),
    "scripted": lambda: torch.jit.script(nn.Sequential(nn.Linear(FEATURES, 6), nn.ReLU(), nn.Linear(6, CLASSES))),
    # images of these numbers
    "convolution": _image(lambda: nn.Conv2d(1, 4, 2), nn.ReLU),
    "grouped convolution": _image(lambda: nn.Conv2d(1, 4, 2), lambda: nn.Conv2d(4, 4, 1, groups=2)),
    "transposed convolution": _image(lambda: nn.ConvTranspose2d(1, 2, 2)),
    "max pool": _image(lambda: nn.Conv2d(1, 4, 1), lambda: nn.MaxPool2d(2)),
    "instance norm": _image(lambda: nn.Conv2d(1, 4, 1), lambda: nn.InstanceNorm2d(4)),
    "pixel shuffle": _image(lambda: nn.Conv2d(1, 4, 1), lambda: nn.PixelShuffle(2)),
    "upsample": _image(lambda: nn.Conv2d(1, 2, 1), lambda: nn.Upsample(scale_factor=2)),
    "channel dropout": _image(lambda: nn.Conv2d(1, 4, 1), lambda: nn.Dropout2d(0.5)),
    # these mix examples
    "batch mean": insert_middle(lambda self, x: x - x.mean(dim=0)),
    "batch mean in training": insert_middle(lambda self, x: x - x.mean(dim=0) if self.training else x),
    "own batch norm": insert_middle(_own_batch_norm),
    "batch norm": stack(lambda: nn.BatchNorm1d(6)),
    "softmax over examples": insert_middle(lambda self, x: x.softmax(dim=0)),
    "sorted": insert_middle(lambda self, x: x.sort(dim=0).values),
    "running sum": insert_middle(lambda self, x: x.cumsum(dim=0)),
    "rolled": insert_middle(lambda self, x: x.roll(1, dims=0)),
    "largest": insert_middle(lambda self, x: x.amax(dim=0).expand_as(x)),
    "attention over examples": insert_middle(lambda self, x: (x @ x.T).softmax(dim=1) @ x),
    "size of the batch": insert_middle(lambda self, x: x * len(x)),
    "only large batches": insert_middle(lambda self, x: x - x.mean(dim=0) if len(x) > 16 else x),
    "a subclass of Linear": lambda: nn.Sequential(MixingLinear(FEATURES, 6), nn.Linear(6, CLASSES)),
    "a patched forward": lambda: _patch_layer(method=False),
    "a patched bound method": lambda: _patch_layer(method=True),
    "a forward hook": lambda: _hook_layer(pre=False),
    "a pre-hook": lambda: _hook_layer(pre=True),
    "a new function over the batch": insert_middle(lambda self, x: NewFunction.apply(x)),
    "a vmap rule of its own": insert_middle(lambda self, x: Quantise.apply(x)[0]),
    # these keep state
    "a bank in a list": insert_middle(_bank_in_a_list, bank=[]),
    "a bank in an attribute": insert_middle(_bank_in_an_attribute, kept=None),
    "a bank used after a while": insert_middle(_bank_after_a_while, bank=[]),
    "a bank in a global": insert_middle(_bank_in_a_global),
    "a bank in the class": lambda: BankInTheClass(lambda self, x: x),
    "a hidden state": insert_middle(_hidden_state, hidden=0.0),
    "a running mean": insert_middle(_running_mean, running=torch.zeros(6)),
    "an assigned running mean": insert_middle(_assigned_running_mean, running=torch.zeros(6)),
    "a count of calls": insert_middle(_calls, calls=0),
    "a bank in a closure": lambda: Forward(lambda self, x: self.push(x), push=_queue(12)),
    "a bank in a store": lambda: Forward(_bank_in_a_store, store=Store()),
    "a bank behind a weak reference": lambda: Forward(_bank_behind_a_weak_reference, reference=weakref.ref(STORES[0])),
    "spectral norm": lambda: nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(FEATURES, CLASSES))),
    # torch.func does not support these
    "an old function": insert_middle(lambda self, x: OldFunction.apply(x)),
    "compiled": lambda: cast(nn.Module, torch.compile(nn.Linear(FEATURES, CLASSES), backend="eager")),
    "compiled in place": _compiled_in_place,
    "a branch on data": insert_middle(lambda self, x: x if x.sum() > 0 else -x),
    "item": insert_middle(lambda self, x: x * x.sum().item()),
    "numpy": insert_middle(_by_numpy),
    "nonzero": insert_middle(lambda self, x: x * len(x.nonzero())),
}
SEQUENCES: dict[str, Callable[[], nn.Module]] = {
    "embedding": lambda: TakesSequences(nn.Identity(), 8),
    "embedding bag": Bag,
    "gru": lambda: TakesSequences(nn.GRU(8, 6, batch_first=True)),
    "lstm": lambda: TakesSequences(nn.LSTM(8, 6, batch_first=True)),
    "gru over examples": lambda: TakesSequences(nn.GRU(8, 6)),
    "gru cell": lambda: Cells(nn.GRUCell(8, 6)),
    "lstm cell": lambda: Cells(nn.LSTMCell(8, 6)),
    "rnn cell": lambda: Cells(nn.RNNCell(8, 6)),
    "transformer": lambda: TakesSequences(nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), 8),
    "transformer over examples": lambda: TakesSequences(nn.TransformerEncoderLayer(8, 2, 8), 8),
    "conv over words": lambda: TakesSequences(nn.Conv1d(LENGTH, LENGTH, 3), 6),
}
ALL = {**VECTORS, **SEQUENCES}

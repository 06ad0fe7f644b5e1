"""Tasks with two or three parameters, small enough that a round is played a million times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.training import Loss
from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.errors import InvalidInput
from discreet.params import Params

MAGNITUDES = (1.0, 30.0, 0.1)  # of an input: most clips lie between them


@dataclass(frozen=True)
class ToyTask:
    """A model, its loss, and the examples that neighbouring data sets are made of.

    Attributes:
        params: The broadcast model.
        loss: Loss of a model on examples, one number for each.
        input_size: Number of values in an input.
        targets: The targets that an example may have.
        magnitudes: Norms of the inputs that are tried first.
    """

    params: Params
    loss: Loss
    input_size: int
    targets: tuple[float, ...] = (0,)
    magnitudes: tuple[float, ...] = MAGNITUDES

    def tensors(self, examples: Sequence[tuple[tuple[float, ...], float]]) -> tuple[Tensor, Tensor]:
        """Return inputs and targets of examples. An input of zeros is a blank: no model has a gradient there."""
        like = next(iter(self.params.values()))
        inputs = torch.tensor([list(values) for values, _ in examples], dtype=like.dtype, device=like.device)
        whole = all(float(target).is_integer() for target in self.targets)
        dtype = torch.int64 if whole else like.dtype
        return inputs, torch.tensor([target for _, target in examples], device=like.device).to(dtype)

    def move_to(self, device: torch.device) -> ToyTask:
        """Return a copy whose model is on the device; examples follow it."""
        return replace(self, params={name: value.to(device) for name, value in self.params.items()})

    def check_blank(self) -> None:
        """Refuse a loss that has a gradient at an input of zeros, which stands for an example that is left out.

        Raises:
            InvalidInput: The gradient is not zero at the broadcast model.
        """
        for target in self.targets:
            inputs, targets = self.tensors([((0.0,) * self.input_size, target)])
            found = torch.func.grad(lambda params, i=inputs, t=targets: self.loss(params, i, t).sum())(self.params)
            largest = max(float(value.abs().max()) for value in found.values())
            if largest != 0:
                raise InvalidInput(
                    f"An input of zeros stands for an example that is left out, so its gradient must be zero, and it "
                    f"has {largest:.3g}.",
                    fix="Multiply the loss by the input, or leave out the bias.",
                )


def switch_task(parameters: int = 2, *, threshold: float = 0.0, dtype: torch.dtype = torch.float64) -> ToyTask:
    """Return a task with all kinds of gradients: one that data chooses, and one that the model's own state switches.

    An example of target 0 has the gradient −x everywhere. One of target 1 pushes the first parameter by the norm of x,
    up where the last parameter is above `threshold` and down where it is not: so it tells what the state was.
    """

    def loss(params: Params, inputs: Tensor, targets: Tensor) -> Tensor:
        model = params["w"]
        switched = torch.where(model[-1] > threshold, 1.0, -1.0).to(model.dtype)
        pushed = inputs.norm(dim=-1) * model[0] * switched
        return -torch.where(targets == 1, pushed, inputs @ model)

    return ToyTask({"w": torch.zeros(parameters, dtype=dtype)}, loss, parameters, targets=(0, 1))


def logistic_task(parameters: int = 2, dtype: torch.dtype = torch.float64) -> ToyTask:
    """Return logistic regression of two classes without a bias: one linear layer under cross-entropy."""
    module = nn.Linear(parameters // 2, 2, bias=False, device="meta", dtype=dtype)
    loss = ModuleLoss.from_module(module, lambda outputs, labels: cross_entropy(outputs, labels, reduction="none"))
    params = {"weight": torch.zeros(2, parameters // 2, dtype=dtype)}
    return ToyTask(params, loss, parameters // 2, targets=(0, 1))


def default_task(algorithm: Algorithm) -> ToyTask:
    """Return the task that the algorithm's training takes: the one with a switch, else logistic regression."""
    task = switch_task()
    inputs, _ = task.tensors([((0.0,) * task.input_size, 0)])
    try:
        algorithm.trainer.check_model(task.loss, task.params, inputs[:, None])
    except InvalidInput:
        return logistic_task(4)
    return task

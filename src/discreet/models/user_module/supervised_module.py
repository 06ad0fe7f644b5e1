"""A user's own nn.Module with a loss and a metric: one loss an example, for the trainers to differentiate."""

import copy
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from discreet.algorithms.training.isolation_check import carries_state, mixes_clients, mixes_examples
from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.shipped_modules import runs_only_shipped_code
from discreet.algorithms.training.unsupported_layers import check_layers
from discreet.data.tasks.task import Kind, Task
from discreet.errors import InvalidInput
from discreet.models.user_module import module_trial
from discreet.models.user_module.fresh_copy import fresh_copy
from discreet.models.user_module.reachable_tensors import reachable_tensors
from discreet.models.user_module.vectorised_layers import VectorisedLayers, without_weight_flattening
from discreet.params import Params

LossFunction: TypeAlias = Callable[[Tensor, Tensor], Tensor]  # (outputs, targets) -> one loss an example, or their mean
Metric: TypeAlias = Callable[[Tensor, Tensor], Any]  # (outputs, targets) -> a number, or several by name

EVALUATED_AT_ONCE = 1024
TRIED = 32  # examples a check looks at


class SupervisedModule:
    """The module is copied and never changed; it trains in the mode (`train()` or `eval()`) it comes in.

    `params` are its trainable parameters; frozen ones and buffers are held apart and stay as they are. Code that torch
    or this package does not ship runs on a fresh copy in every call, so that it carries nothing to the next one.
    """

    loss: ModuleLoss

    def __init__(
        self, module: nn.Module, kind: Kind, loss: LossFunction | None = None, metric: Metric | None = None
    ) -> None:
        if not isinstance(module, nn.Module):
            raise InvalidInput(f"A model must be a torch.nn.Module, and got {type(module).__name__}.")
        check_layers(module)
        self.kind = kind
        self._user_loss, self._metric = loss, metric
        self._set_module(module_trial.copy_module(module))
        if not self.params:
            raise InvalidInput("The module has no trainable parameter.", fix="Set requires_grad_(True) on some.")

    @property
    def user_functions(self) -> tuple[LossFunction | None, Metric | None]:
        """The user's own loss and metric; None where the task's are used."""
        return self._user_loss, self._metric

    def __setstate__(self, state: dict[str, Any]) -> None:
        """In another process, or in a copy, the same tensors are other objects."""
        self.__dict__.update(state)
        self._first_tensors = reachable_tensors(self._module, self._user_loss)

    def move_to(self, device: torch.device, dtype: torch.dtype | None = None) -> "SupervisedModule":
        """The same on another device or in another precision; done once, it spares a copy at every step."""
        moved = copy.copy(self)
        moved._set_module(copy.deepcopy(self._module).to(device, dtype))
        return moved

    def _loss(self, params: Params, inputs: Tensor, targets: Tensor) -> Tensor:
        """One loss an example (a `training.Loss`), under torch.func's grad and vmap or without."""
        module = fresh_copy(self._module) if self._needs_copies else self._module
        with VectorisedLayers(), without_weight_flattening(module):
            outputs = functional_call(module, {**self._frozen_tensors(params), **params}, (inputs,))
            losses = self._losses(outputs, targets)
        self._check_nothing_kept()
        return losses

    def _check_nothing_kept(self) -> None:
        """Refuse code that holds a tensor it did not hold before: the next call would see it."""
        if self._needs_copies and reachable_tensors(self._module, self._user_loss).keys() - self._first_tensors.keys():
            raise module_trial.stateful_model_error()

    def evaluate(self, params: Params, inputs: Tensor, targets: Tensor) -> dict[str, float]:
        """Loss, accuracy or mean squared error, and the user's metric, in eval mode; nothing where there is no data."""
        if not len(inputs):
            return {}
        module = self.module_with_params(params)
        with torch.no_grad():
            outputs = torch.cat([self._tensor(module(chunk)) for chunk in _split_chunks(inputs)])
            pieces = zip(_split_chunks(outputs), _split_chunks(targets), strict=True)
            losses = torch.cat([self._losses(*piece) for piece in pieces])
            return self._compute_metrics(outputs, targets) | {"loss": float(losses.double().mean())}

    def module_with_params(self, params: Params) -> nn.Module:
        """A plain copy of the module holding these parameters, on their device, in eval mode."""
        name, now = next(iter(params.items()))
        module = copy.deepcopy(self._module).to(now.device)
        if now.dtype != self.params[name].dtype:
            module = module.to(now.dtype)
        with torch.no_grad():
            for name, value in module.named_parameters():
                if name in params:
                    value.copy_(params[name])
        return module.eval()

    def check(self, task: Task) -> None:
        """Try some examples, so that what can't work is said in a sentence before training starts."""
        inputs, targets = self._sample_examples(task)
        outputs = module_trial.try_forward(self._module, inputs, task.input_shape)
        self._check_outputs(self._tensor(outputs), task)
        module_trial.check_examples_independent(self._module, inputs)
        self._check_user_loss(outputs, targets)
        if self._metric is not None:
            module_trial.metric_values(self._metric, self._tensor(outputs), targets)
        each = vmap(grad(self._single), in_dims=(None, 0, 0), randomness="different")
        module_trial.try_differentiate(each, self.params, inputs[:2], targets[:2])

    def verify_isolation(self, task: Task, params: Params) -> str:
        """Verify on the device and in the precision of `params` that examples, clients and calls don't mix.

        A network that mixes examples in a whole batch is given one example at a time from here on. Returns what was
        verified, for a guarantee's card.
        """
        like = next(iter(params.values()))
        inputs, targets = (each.to(like.device) for each in self._sample_examples(task))
        inputs = inputs.to(like.dtype) if inputs.is_floating_point() else inputs
        given = params, inputs, targets
        if self._needs_copies and module_trial.try_differentiate(
            carries_state, self._without_copies(like.device)._loss, *given
        ):
            raise module_trial.stateful_model_error()
        if module_trial.try_differentiate(mixes_examples, self.loss, *given):
            self.loss = ModuleLoss(self._module, self._loss)  # one example at a time
            if module_trial.try_differentiate(mixes_examples, self.loss, *given):
                raise module_trial.stateful_model_error()
        if module_trial.try_differentiate(mixes_clients, self.loss, *given):
            raise module_trial.stateful_model_error()
        return module_trial.describe_verification(type(self._module).__name__, like, own_code=self._needs_copies)

    def _without_copies(self, device: torch.device) -> "SupervisedModule":
        """One that calls the same module every time, so that state it keeps shows."""
        found = self.move_to(device)
        found._needs_copies = False
        return found

    def _sample_examples(self, task: Task) -> tuple[Tensor, Tensor]:
        """A few examples, of many clients and labels."""
        examples = sum(task.train.sizes)
        index = torch.linspace(0, examples - 1, min(examples, TRIED), dtype=torch.float64).long()
        device = next(iter(self.params.values())).device
        inputs, targets = (each.to(device) for each in task.train.examples_at(index))
        return inputs, targets

    def _set_module(self, module: nn.Module) -> None:
        own = {name: value.detach().clone() for name, value in module.named_parameters()}
        trained = {name for name, value in module.named_parameters() if value.requires_grad}
        self._module = module
        self.params: Params = {name: value for name, value in own.items() if name in trained}
        self._frozen_params: Params = {name: value for name, value in own.items() if name not in trained}
        self._frozen_params |= dict(module.named_buffers())
        self._first_tensors = reachable_tensors(module, self._user_loss)
        self._needs_copies = not (runs_only_shipped_code(module) and self._user_loss is None)
        self.loss = ModuleLoss(module, self._loss, independent=True)

    def _single(self, params: Params, example: Tensor, target: Tensor) -> Tensor:
        return self.loss(params, example[None], target[None])[0]

    def _frozen_tensors(self, params: Params) -> Params:
        """What is held, on the parameters' device, and in their precision where that was changed."""
        name, now = next(iter(params.items()))
        changed = now.dtype if now.dtype != self.params[name].dtype else None
        return {
            name: value.to(now.device, changed if value.is_floating_point() else None, copy=self._needs_copies)
            for name, value in self._frozen_params.items()
        }

    def _losses(self, outputs: Any, targets: Tensor) -> Tensor:
        predicted, examples = self._tensor(outputs), len(targets)
        if self.kind == "regression":
            predicted = _align_shapes(predicted, targets)
        if self._user_loss is not None:
            own = fresh_copy(self._user_loss) if self._needs_copies else self._user_loss
            return self._losses_one_by_one(own, predicted, targets)
        losses = _default_loss(self.kind, predicted, targets)
        if losses.shape[0] != examples:
            raise InvalidInput(f"The model's outputs make {losses.shape[0]} losses for {examples} examples.")
        return losses if losses.dim() == 1 else losses.flatten(start_dim=1).mean(dim=1)

    def _losses_one_by_one(self, own: LossFunction, outputs: Tensor, targets: Tensor) -> Tensor:
        """Each example's loss alone, whatever the user's function would make of a batch."""

        def alone(output: Tensor, target: Tensor) -> Tensor:
            return _check_loss_type(own(output[None], target[None])).mean()

        return vmap(alone, randomness="different")(outputs, targets)

    def _check_user_loss(self, outputs: Any, targets: Tensor) -> None:
        """A batch's loss that is not made of its examples' losses mixes them, and each is taken alone here."""
        if self._user_loss is None:
            self._losses(outputs, targets)
            return
        predicted = _align_shapes(outputs, targets) if self.kind == "regression" else outputs
        whole = _check_loss_type(module_trial.call_user_function("loss", self._user_loss, predicted, targets))
        if whole.dim() and whole.shape[0] != len(targets):
            raise InvalidInput(
                f"The loss gave the shape {tuple(whole.shape)} for {len(targets)} examples.",
                fix='It must give one number an example (reduction="none"), or their mean.',
            )
        losses = module_trial.try_differentiate(self._losses, outputs, targets)
        if whole.dim():
            expected = [(whole if whole.dim() == 1 else whole.flatten(start_dim=1).mean(dim=1), losses)]
        else:
            expected = [(whole, losses.mean()), (whole, losses.sum())]
        if not any(torch.allclose(found, each, rtol=1e-3, atol=1e-5) for found, each in expected):
            raise InvalidInput(
                "The loss of a batch is not made of its examples' losses, so it mixes them.",
                fix='Give one loss an example, for instance by reduction="none".',
            )

    def _check_outputs(self, outputs: Tensor, task: Task) -> None:
        if self._user_loss is not None or self.kind == "regression":
            return
        if outputs.dim() < 2 or outputs.shape[1] < task.classes:
            raise InvalidInput(
                f"The model gives outputs of the shape {tuple(outputs.shape)} for {len(outputs)} examples, and "
                f"{task.classes} classes need ({len(outputs)}, {task.classes}).",
                fix=f"Let its last layer have {task.classes} outputs.",
            )

    def _tensor(self, outputs: Any) -> Tensor:
        if not isinstance(outputs, Tensor):
            raise InvalidInput(
                f"The model's forward() must give one tensor, and gave {type(outputs).__name__}.",
                fix="Wrap it in a module that picks the output to learn from.",
            )
        return outputs

    def _compute_metrics(self, outputs: Tensor, targets: Tensor) -> dict[str, float]:
        found = {}
        if self.kind == "regression":
            found["mse"] = float((_align_shapes(outputs, targets) - targets).double().square().mean())
        elif outputs.numel() == targets.numel():  # one number for two classes: its sign decides
            found["accuracy"] = float(((outputs.reshape(targets.shape) > 0) == targets).double().mean())
        elif outputs.dim() == targets.dim() + 1:
            found["accuracy"] = float((outputs.argmax(dim=1) == targets).double().mean())
        if self._metric is not None:
            try:
                found |= module_trial.metric_values(self._metric, outputs, targets)
            except InvalidInput:  # it worked before training; what it can't measure now must not end a run
                found[getattr(self._metric, "__name__", "metric")] = math.nan
        return found


def _split_chunks(values: Tensor) -> list[Tensor]:
    return [values[first : first + EVALUATED_AT_ONCE] for first in range(0, len(values), EVALUATED_AT_ONCE)]


def _default_loss(kind: Kind, outputs: Tensor, targets: Tensor) -> Tensor:
    if kind == "regression":
        return (outputs - targets).square()
    if outputs.dim() != targets.dim() + 1:
        raise InvalidInput(
            f"The model gave outputs of the shape {tuple(outputs.shape)} for labels of the shape "
            f"{tuple(targets.shape)}.",
            fix="It must give one number a class, as (examples, classes).",
        )
    return functional.cross_entropy(outputs, targets, reduction="none")


def _align_shapes(outputs: Tensor, targets: Tensor) -> Tensor:
    """(n, 1) and (n,) mean the same; left alone they would broadcast to (n, n)."""
    if outputs.numel() != targets.numel():
        raise InvalidInput(
            f"The model gave outputs of the shape {tuple(outputs.shape)} for targets of the shape "
            f"{tuple(targets.shape)}.",
            fix="It must give as many numbers as an example has targets.",
        )
    return outputs.reshape(targets.shape)


def _check_loss_type(value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise InvalidInput(
            f"The loss must give a tensor, and gave {type(value).__name__}.", fix="Leave out .item() and float()."
        )
    return value

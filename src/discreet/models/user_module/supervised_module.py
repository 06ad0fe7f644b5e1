"""An nn.Module with a loss and a metric. The loss is one number per example, which local trainers differentiate."""

import copy
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from discreet.algorithms.input_scale import InputScale
from discreet.algorithms.training.isolation_check import carries_state, mixes_clients, mixes_examples
from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.shipped_modules import runs_only_shipped_code
from discreet.algorithms.training.unsupported_layers import check_layers
from discreet.data.tasks.task import Kind, Task
from discreet.errors import InvalidInput
from discreet.models.standardised_model import standardise_inputs
from discreet.models.user_module import module_trial
from discreet.models.user_module.example_losses import LossFunction, align_shapes, check_loss, example_losses
from discreet.models.user_module.fresh_copy import fresh_copy
from discreet.models.user_module.reachable_tensors import reachable_tensors
from discreet.models.user_module.tensor_places import find_tensor_places
from discreet.models.user_module.vectorised_layers import VectorisedLayers, without_weight_flattening
from discreet.params import Params

Metric: TypeAlias = Callable[[Tensor, Tensor], Any]  # (outputs, targets) -> a number, or several by name

EVALUATION_BATCH = 1024
CHECKED = 32  # examples that a check uses


class SupervisedModule:
    """A module ready for training. The user's module is copied and never changed.

    It trains in the mode, `train()` or `eval()`, that the module was passed in. Code that neither torch nor this
    package ships runs on a fresh copy in every call, so that it carries nothing to the next call.

    Attributes:
        params: The trainable parameters. Frozen parameters and buffers keep their values.
        loss: The loss of each example, as a function of the parameters.
        kind: Classification or regression.
    """

    loss: ModuleLoss

    def __init__(
        self, module: nn.Module, kind: Kind, loss: LossFunction | None = None, metric: Metric | None = None
    ) -> None:
        """Copy the module, and refuse layers that can't be trained.

        Args:
            loss: The user's loss. None: cross-entropy for a classification, squared error for a regression.
            metric: The user's metric, evaluated in addition to loss and accuracy.
        """
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
        """The user's loss and metric. None for each that the user did not pass."""
        return self._user_loss, self._metric

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Find the tensors again: in another process or in a copy they are other objects."""
        self.__dict__.update(state)
        self._first_tensors = reachable_tensors(self._module, self._user_loss)

    def move_to(self, device: torch.device, dtype: torch.dtype | None = None) -> "SupervisedModule":
        """Return a copy on another device or in another precision."""
        moved = copy.copy(self)
        moved._set_module(copy.deepcopy(self._module).to(device, dtype))
        return moved

    def _loss(self, params: Params, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return one loss per example. Works under torch.func's grad and vmap too."""
        module = fresh_copy(self._module) if self._needs_copies else self._module
        with VectorisedLayers(), without_weight_flattening(module):
            tensors = {**self._frozen_tensors(params), **params}
            in_place = {place: tensors[name] for place, name in self._places.items() if name in tensors}
            outputs = functional_call(module, in_place, (inputs,), tie_weights=False)
            losses = self._losses(outputs, targets)
        self._check_nothing_kept()
        return losses

    def _check_nothing_kept(self) -> None:
        """Refuse code that keeps a new tensor, because the next call would see it."""
        if self._needs_copies and reachable_tensors(self._module, self._user_loss).keys() - self._first_tensors.keys():
            raise module_trial.stateful_model_error()

    def evaluate(
        self, params: Params, inputs: Tensor, targets: Tensor, input_scale: InputScale | None = None
    ) -> dict[str, float]:
        """Return loss, accuracy or mean squared error, and the user's metric, in eval mode. Empty without data.

        With an `input_scale`, inputs are standardised for the network, and its outputs are put back into the target's
        units.
        """
        if not len(inputs):
            return {}
        module = standardise_inputs(self.module_with_params(params), input_scale)
        with torch.no_grad():
            outputs = torch.cat([self._tensor(module(chunk)) for chunk in _split_chunks(inputs)])
            pieces = zip(_split_chunks(outputs), _split_chunks(targets), strict=True)
            losses = torch.cat([self._losses(*piece) for piece in pieces])
            return self._compute_metrics(outputs, targets) | {"loss": float(losses.double().mean())}

    def count_correct(
        self, params: Params, inputs: Tensor, targets: Tensor, input_scale: InputScale | None = None
    ) -> int:
        """Count the examples whose most likely class is their label, in eval mode.

        Guarantee: one example moves the count by at most 1. A network that runs code of the user's own, or that mixes
        the examples of a batch, gets one example at a time, each on a fresh copy.
        """
        module = standardise_inputs(self.module_with_params(params), input_scale)
        is_alone = self._needs_copies or not self.loss.independent
        size, right = 1 if is_alone else EVALUATION_BATCH, 0
        with torch.no_grad():
            for chunk, labels in zip(_split_chunks(inputs, size), _split_chunks(targets, size), strict=True):
                outputs = self._tensor((fresh_copy(module) if is_alone else module)(chunk))
                right += int(_predicts(outputs, labels).reshape(len(labels), -1).all(dim=1).sum())
        return right

    def module_with_params(self, params: Params) -> nn.Module:
        """Return a plain copy of the module with these parameters, on their device, in eval mode."""
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
        """Try some examples, and refuse a model, loss or metric that can't be trained with.

        Raises:
            InvalidInput: The outputs, the loss or the metric have the wrong form, or examples are mixed.
        """
        inputs, targets = self._sample_examples(task)
        outputs = module_trial.try_forward(self._module, inputs, task.input_shape)
        self._check_outputs(self._tensor(outputs), task)
        module_trial.check_examples_independent(self._module, inputs)
        if self._user_loss is None:
            self._losses(outputs, targets)
        else:
            check_loss(self.kind, self._user_loss, outputs, targets, self._losses)
        if self._metric is not None:
            module_trial.metric_values(self._metric, self._tensor(outputs), targets)
        gradients = vmap(grad(self._single_loss), in_dims=(None, 0, 0), randomness="different")
        module_trial.try_differentiate(gradients, self.params, inputs[:2], targets[:2])
        module_trial.check_nothing_trained_is_kept_apart(
            reachable_tensors(self._module, self._user_loss), lambda: self.loss(self.params, inputs, targets)
        )

    def verify_isolation(self, task: Task, params: Params) -> str:
        """Verify that examples, clients and calls don't affect each other, on the device and in the dtype of `params`.

        A network that mixes the examples of a batch gets one example at a time from now on.

        Returns:
            A sentence for the card that says what was verified.

        Raises:
            InvalidInput: The model keeps state.
        """
        like = next(iter(params.values()))
        inputs, targets = (values.to(like.device) for values in self._sample_examples(task))
        inputs = inputs.to(like.dtype) if inputs.is_floating_point() else inputs
        arguments = params, inputs, targets
        if self._needs_copies and module_trial.try_differentiate(
            carries_state, self._without_copies(like.device)._loss, *arguments
        ):
            raise module_trial.stateful_model_error()
        if module_trial.try_differentiate(mixes_examples, self.loss, *arguments):
            self.loss = ModuleLoss(self._module, self._loss)  # one example at a time
            if module_trial.try_differentiate(mixes_examples, self.loss, *arguments):
                raise module_trial.stateful_model_error()
        if module_trial.try_differentiate(mixes_clients, self.loss, *arguments):
            raise module_trial.stateful_model_error()
        return module_trial.describe_verification(type(self._module).__name__, like, own_code=self._needs_copies)

    def _without_copies(self, device: torch.device) -> "SupervisedModule":
        """Return one that calls the same module every time, so that state it keeps becomes visible."""
        single = self.move_to(device)
        single._needs_copies = False
        return single

    def _sample_examples(self, task: Task) -> tuple[Tensor, Tensor]:
        """Return a few examples, spread over clients and labels."""
        examples = sum(task.train.sizes)
        index = torch.linspace(0, examples - 1, min(examples, CHECKED), dtype=torch.float64).long()
        device = next(iter(self.params.values())).device
        inputs, targets = (values.to(device) for values in task.train.examples_at(index))
        return inputs, targets

    def _set_module(self, module: nn.Module) -> None:
        """Store the module, and separate its trainable parameters from frozen ones and buffers."""
        own = {name: value.detach().clone() for name, value in module.named_parameters()}
        trained = {name for name, value in module.named_parameters() if value.requires_grad}
        self._module = module
        self._places = find_tensor_places(module)
        self.params: Params = {name: value for name, value in own.items() if name in trained}
        self._frozen_params: Params = {name: value for name, value in own.items() if name not in trained}
        self._frozen_params |= dict(module.named_buffers())
        self._first_tensors = reachable_tensors(module, self._user_loss)
        self._needs_copies = not (runs_only_shipped_code(module) and self._user_loss is None)
        self.loss = ModuleLoss(module, self._loss, independent=True)

    def _single_loss(self, params: Params, example: Tensor, target: Tensor) -> Tensor:
        return self.loss(params, example[None], target[None])[0]

    def _frozen_tensors(self, params: Params) -> Params:
        """Return frozen parameters and buffers on the device of `params`, and in their dtype if it was changed."""
        name, now = next(iter(params.items()))
        changed = now.dtype if now.dtype != self.params[name].dtype else None
        return {
            name: value.to(now.device, changed if value.is_floating_point() else None, copy=self._needs_copies)
            for name, value in self._frozen_params.items()
        }

    def _losses(self, outputs: Any, targets: Tensor) -> Tensor:
        """Return one loss per example."""
        own = fresh_copy(self._user_loss) if self._needs_copies else self._user_loss
        return example_losses(self.kind, own, self._tensor(outputs), targets)

    def _check_outputs(self, outputs: Tensor, task: Task) -> None:
        """Refuse outputs with fewer numbers than classes, unless the user's own loss reads them."""
        if self._user_loss is not None or self.kind == "regression":
            return
        if outputs.dim() < 2 or outputs.shape[1] < task.classes:
            raise InvalidInput(
                f"The model returns outputs of the shape {tuple(outputs.shape)} for {len(outputs)} examples, and "
                f"{task.classes} classes need ({len(outputs)}, {task.classes}).",
                fix=f"Let its last layer have {task.classes} outputs.",
            )

    def _tensor(self, outputs: Any) -> Tensor:
        if not isinstance(outputs, Tensor):
            raise InvalidInput(
                f"The model's forward() must return one tensor, and returned {type(outputs).__name__}.",
                fix="Wrap it in a module that returns the output to learn from.",
            )
        return outputs

    def _compute_metrics(self, outputs: Tensor, targets: Tensor) -> dict[str, float]:
        """Return accuracy or mean squared error, and the user's metric."""
        metrics = {}
        if self.kind == "regression":
            metrics["mse"] = float((align_shapes(outputs, targets) - targets).double().square().mean())
        elif outputs.numel() == targets.numel() or outputs.dim() == targets.dim() + 1:
            metrics["accuracy"] = float(_predicts(outputs, targets).double().mean())
        if self._metric is not None:
            try:
                metrics |= module_trial.metric_values(self._metric, outputs, targets)
            except InvalidInput:  # it worked before training, and must not end a run now
                metrics[module_trial.metric_name(self._metric)] = math.nan
        return metrics


def _predicts(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return which targets are predicted. One number for two classes predicts by its sign, several by the largest."""
    if outputs.numel() == targets.numel():
        return (outputs.reshape(targets.shape) > 0) == targets
    return outputs.argmax(dim=1) == targets


def _split_chunks(values: Tensor, size: int = EVALUATION_BATCH) -> list[Tensor]:
    return [values[first : first + size] for first in range(0, len(values), size)]

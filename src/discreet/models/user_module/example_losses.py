"""The loss of each example: torch's for the kind of task, or the user's own, which never sees a batch."""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.func import vmap
from torch.nn import functional

from discreet.data.tasks.task import Kind
from discreet.errors import InvalidInput
from discreet.models.user_module import module_trial

LossFunction: TypeAlias = Callable[[Tensor, Tensor], Tensor]  # (outputs, targets) -> a loss per example, or their mean


def example_losses(kind: Kind, own: LossFunction | None, outputs: Tensor, targets: Tensor) -> Tensor:
    """Return one loss per example.

    Args:
        own: The user's loss. None: cross-entropy for a classification, squared error for a regression.
    """
    predicted = align_shapes(outputs, targets) if kind == "regression" else outputs
    if own is not None:
        return _losses_one_by_one(own, predicted, targets)
    losses = _default_losses(kind, predicted, targets)
    if len(losses) != len(targets):
        raise InvalidInput(f"The model's outputs make {len(losses)} losses for {len(targets)} examples.")
    return _mean_per_example(losses)


def check_loss(kind: Kind, own: LossFunction, outputs: Tensor, targets: Tensor, losses: Callable[..., Tensor]) -> None:
    """Refuse a loss of a batch that is not the mean, the sum or the list of its examples' losses: it mixes them.

    Args:
        losses: Returns the loss of each example, given the outputs and the targets.
    """
    predicted = align_shapes(outputs, targets) if kind == "regression" else outputs
    whole = _check_loss_type(module_trial.call_user_function("loss", own, predicted, targets))
    if whole.dim() and len(whole) != len(targets):
        raise InvalidInput(
            f"The loss returned the shape {tuple(whole.shape)} for {len(targets)} examples.",
            fix='It must return one number per example (reduction="none"), or their mean.',
        )
    separate = module_trial.try_differentiate(losses, outputs, targets)
    if whole.dim():
        expected = [(_mean_per_example(whole), separate)]
    else:
        expected = [(whole, separate.mean()), (whole, separate.sum())]
    if not any(torch.allclose(batch, single, rtol=1e-3, atol=1e-5) for batch, single in expected):
        raise InvalidInput(
            "The loss of a batch is not the mean or sum of its examples' losses, so it mixes examples.",
            fix='Return one loss per example, for instance with reduction="none".',
        )


def align_shapes(outputs: Tensor, targets: Tensor) -> Tensor:
    """Give outputs the shape of the targets. Without it, (n, 1) and (n,) would broadcast to (n, n)."""
    if outputs.numel() != targets.numel():
        raise InvalidInput(
            f"The model returned outputs of the shape {tuple(outputs.shape)} for targets of the shape "
            f"{tuple(targets.shape)}.",
            fix="It must return as many numbers as an example has targets. Labels of classes are whole numbers: "
            "targets.long().",
        )
    return outputs.reshape(targets.shape)


def _default_losses(kind: Kind, outputs: Tensor, targets: Tensor) -> Tensor:
    if kind == "regression":
        return (outputs - targets).square()
    if outputs.dim() != targets.dim() + 1:
        raise InvalidInput(
            f"The model returned outputs of the shape {tuple(outputs.shape)} for labels of the shape "
            f"{tuple(targets.shape)}.",
            fix="It must return one number per class, as (examples, classes), and an example has one label: "
            "targets.squeeze(1) for a column, targets.argmax(1) for one-hot labels.",
        )
    return functional.cross_entropy(outputs, targets, reduction="none")


def _losses_one_by_one(own: LossFunction, outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the loss of each example separately, so that the user's function never sees a batch."""

    def single(output: Tensor, target: Tensor) -> Tensor:
        return _check_loss_type(own(output[None], target[None])).mean()

    return vmap(single, randomness="different")(outputs, targets)


def _mean_per_example(losses: Tensor) -> Tensor:
    """Average the losses of an example that has several."""
    return losses if losses.dim() == 1 else losses.flatten(start_dim=1).mean(dim=1)


def _check_loss_type(value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise InvalidInput(
            f"The loss must return a tensor, and returned {type(value).__name__}.", fix="Leave out .item() and float()."
        )
    return value

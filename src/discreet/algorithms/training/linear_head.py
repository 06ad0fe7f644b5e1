"""Detect a model of one linear layer under cross-entropy, and compute the features that enter that layer."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.algorithms.clipping import clip_factors
from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.trainer import Loss
from discreet.client_layers.precision import in_float32
from discreet.errors import InvalidInput
from discreet.lazy_torch import Tensor, functional, nn, torch
from discreet.params import Params

PLAN_KEY = "linear head"


@dataclass(frozen=True)
class LinearHead:
    """A model whose logits are weight·a + bias.

    Attributes:
        weight: Name of the weight.
        bias: Name of the bias, if there is one.
        front: Layers without parameters whose flattened output is a; None if a is the input.
    """

    weight: str
    bias: str | None
    front: nn.Module | None

    @classmethod
    def detect(cls, loss: Loss, params: Params, inputs: Tensor) -> LinearHead:
        """Return the model's linear head. Only the shape of `inputs`, a batch, is used.

        Raises:
            InvalidInput: If the model is another one.
        """
        if not isinstance(loss, ModuleLoss):
            return _detect(loss, params, inputs)
        if PLAN_KEY not in loss.plans:
            with in_float32():
                loss.plans[PLAN_KEY] = _detect(loss, params, inputs)
        head: LinearHead = loss.plans[PLAN_KEY]
        return head

    def table(self, params: Params) -> Tensor:
        """Return weight and bias as one matrix: the bias is the weight of a feature that is always 1."""
        weight = params[self.weight]
        return weight if self.bias is None else torch.cat([weight, params[self.bias][..., None]], dim=-1)

    def params(self, table: Tensor) -> Params:
        """Split the matrix into weight and bias again."""
        if self.bias is None:
            return {self.weight: table}
        return {self.weight: table[..., :-1], self.bias: table[..., -1]}

    def features(self, inputs: Tensor, bound: float) -> Tensor:
        """Return each example's features with the constant of the bias, scaled down to an L2 norm of at most `bound`.

        Each example is scaled by itself, so that no example affects another. Axes: clients, examples, features.
        """
        flat = inputs.flatten(0, 1)
        with torch.no_grad():
            seen = (flat if self.front is None else self.front(flat)).reshape(*inputs.shape[:2], -1)
        if self.bias is not None:
            seen = torch.cat([seen, seen.new_ones(*seen.shape[:2], 1)], dim=-1)
        lengths = torch.linalg.vector_norm(seen, dim=-1, keepdim=True, dtype=torch.float64)
        return torch.where(torch.isfinite(lengths), seen, 0) * clip_factors(lengths, bound).to(seen.dtype)


def _detect(loss: Loss, params: Params, inputs: Tensor) -> LinearHead:
    """Check names and shapes, then that the loss of synthetic weights and inputs is cross-entropy of the logits."""
    tables = [name for name, value in params.items() if value.dim() == 2]
    rows = [name for name, value in params.items() if value.dim() == 1]
    front = _front(loss) if isinstance(loss, ModuleLoss) else None
    if len(tables) != 1 or len(rows) > 1 or len(params) != 1 + len(rows) or len(params[tables[0]]) < 2:
        raise _refusal(f"parameters of the shapes {[tuple(each.shape) for each in params.values()]}")
    head = LinearHead(tables[0], rows[0] if rows else None, front)
    weights = {
        name: _synthetic(value.shape, value) for name, value in params.items()
    }  # not zeros, where many losses agree
    table = head.table(weights)
    classes = len(table)
    examples = _synthetic(torch.Size((1, classes, *inputs.shape[2:])), table)
    features = head.features(examples, float("inf"))
    if features.shape[-1] != table.shape[-1]:
        raise _refusal(f"{features.shape[-1]} features for a layer of {table.shape[-1]}")
    targets = torch.arange(classes, device=table.device)
    expected = functional.cross_entropy((features @ table.T)[0], targets, reduction="none")
    try:
        found = loss(weights, examples[0], targets)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise _refusal("a loss that doesn't take classes") from error
    if found.shape != expected.shape or not torch.allclose(found, expected, rtol=1e-3, atol=1e-4):
        raise _refusal("another loss, or layers of another kind")
    return head


def _synthetic(shape: torch.Size, like: Tensor) -> Tensor:
    return torch.arange(shape.numel(), dtype=like.dtype, device=like.device).cos().reshape(shape)


def _front(loss: ModuleLoss) -> nn.Module | None:
    """Return all layers before the last, if there are any."""
    from discreet.algorithms.training.example_isolation import isolates_examples  # its list of functions needs torch

    module = loss.module
    if type(module) is nn.Linear:
        return None
    if type(module) is not nn.Sequential or not len(module) or type(module[-1]) is not nn.Linear:
        raise _refusal(f"a {type(module).__name__}")
    front = module[:-1]
    if front.state_dict() or not isolates_examples(loss):
        raise _refusal("layers before it that have weights, or that may mix examples")
    return front


def _refusal(got: str) -> InvalidInput:
    return InvalidInput(
        f"This training takes a model of one linear layer under cross-entropy, and got {got}.",
        fix='Use model = {kind = "linear"}, with task = {kind = "features", …} for fixed features; or recipe = '
        '"denoised_release" or "shards", which take any model.',
    )

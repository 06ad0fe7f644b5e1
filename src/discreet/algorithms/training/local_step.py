"""The local step that plain SGD and gradient descent share, for a block of clients."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.training.batches import Batch
from discreet.algorithms.training.client_turns import copy_for_clients, take_turns
from discreet.algorithms.training.cuda_graphs import Recordings
from discreet.algorithms.training.gradient_rules import AnyGradientClip, AnyPerturbation, AnyRegulariser
from discreet.algorithms.training.gradient_step import Descent
from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.trainer import Loss
from discreet.lazy_torch import Tensor, torch
from discreet.params import ClientModels, Params, add, repeat_for_clients, subtract


@dataclass(frozen=True)
class LocalStep:
    """Take the gradient of the loss, at a perturbed point if asked; clip it; add the regulariser's; step.

    Only the gradient of the loss is clipped: the regulariser's doesn't depend on data.
    """

    perturbation: AnyPerturbation | None = None
    regulariser: AnyRegulariser | None = None
    gradient_clip: AnyGradientClip | None = None
    momentum: float = 0.0
    weight_decay: float = 0.0

    def run_steps(
        self, loss: Loss, broadcast: Broadcast, clients: int, steps: Iterable[tuple[Batch, Tensor]]
    ) -> Params:
        """Return each client's update after these steps, each a batch with its learning rate."""
        recordings = loss.recordings if isinstance(loss, ModuleLoss) else Recordings()
        start = {} if self.regulariser is None else broadcast.params  # a recording copies all its inputs
        state: Descent | None = None
        for batch, rate in steps:
            if take_turns(loss, broadcast.params, batch):
                state = state or Descent.start(copy_for_clients(broadcast.params, clients), self.momentum)
                self._step_in_turns(loss, state, start, rate, batch)
            elif state is None:
                first = partial(self._first_step, loss, clients)
                state = recordings.run((self, "first"), first, broadcast.params, rate, batch)
            else:
                state = recordings.run((self, "next"), partial(self._later_step, loss), state, start, rate, batch)
        assert state is not None
        return subtract(state.params, repeat_for_clients(broadcast.params, clients))

    def update_bound(self, rates: float) -> tuple[float, int] | tuple[None, None]:
        """Return ζ·Ση for the sum of a round's rates, and the order of that norm.

        Both are None if anything but clipped gradients moves the model.
        """
        if self.gradient_clip is None or self.regulariser is not None or self.momentum or self.weight_decay:
            return None, None
        return self.gradient_clip.bound * rates, self.gradient_clip.norm_order

    @property
    def model_copies(self) -> float:
        """Model-sized tensors: model, gradient, velocity, update, the new state; and those of the options."""
        return 5.0 + 2 * (self.perturbation is not None) + (self.regulariser is not None)

    def _first_step(self, loss: Loss, clients: int, params: Params, rate: Tensor, batch: Batch) -> Descent:
        """One ordinary pass serves clients that still have the same weights; those of several runs never have."""
        shared = not isinstance(params, ClientModels)
        start = params if shared else repeat_for_clients(params, clients)
        gradient = client_gradients(loss, shared=shared)(start, batch.inputs, batch.targets, batch.mask)
        state = Descent.start(repeat_for_clients(params, clients), self.momentum)
        return self._apply(loss, state, gradient, params, rate, batch)

    def _later_step(self, loss: Loss, state: Descent, start: Params, rate: Tensor, batch: Batch) -> Descent:
        gradient = client_gradients(loss, shared=False)(state.params, batch.inputs, batch.targets, batch.mask)
        return self._apply(loss, state, gradient, start, rate, batch)

    def _step_in_turns(self, loss: Loss, state: Descent, start: Params, rate: Tensor, batch: Batch) -> None:
        """Let each client step by itself, and write its new state where the old one was."""
        taking = range(len(batch.mask)) if batch.active is None else batch.active.nonzero().flatten().tolist()
        for client in taking:
            before, own = state.select(client), batch.select(client)
            after = self._later_step(loss, before, start, rate, own)
            for old, new in zip(before.tensors(), after.tensors(), strict=True):
                old.copy_(new)

    def _apply(
        self, loss: Loss, state: Descent, gradient: Params, start: Params, rate: Tensor, batch: Batch
    ) -> Descent:
        if self.perturbation is not None:
            point = self.perturbation.perturb(state.params, gradient)
            gradient = client_gradients(loss, shared=False)(point, batch.inputs, batch.targets, batch.mask)
        if self.gradient_clip is not None:
            gradient = self.gradient_clip.clip_gradient(gradient)
        if self.regulariser is not None:
            gradient = add(gradient, self.regulariser.gradient(state.params, start))
        return state.step(
            gradient, rate=rate, momentum=self.momentum, weight_decay=self.weight_decay, active=batch.active
        )


def client_gradients(loss: Loss, *, shared: bool) -> Callable[..., Params]:
    """Return a function that computes each client's gradient of its mean loss over its examples.

    Args:
        loss: Loss of a model on examples.
        shared: Whether all clients have the same model, given without a client axis.
    """

    def mean(params: Params, inputs: Tensor, targets: Tensor, mask: Tensor) -> Tensor:
        losses = loss(params, inputs, targets)
        return torch.where(mask, losses, 0).sum() / mask.sum().clamp(min=1)

    one_client = torch.func.grad(mean)
    gradients: Callable[..., Params] = torch.func.vmap(
        one_client, in_dims=(None if shared else 0, 0, 0, 0), randomness="different"
    )

    def alone(params: Params, inputs: Tensor, targets: Tensor, mask: Tensor) -> Params:
        """Differentiate by ordinary autograd, without what functorch adds to each operation."""
        own = params if shared else {name: value[0] for name, value in params.items()}
        own = {name: value.detach().requires_grad_() for name, value in own.items()}
        with torch.enable_grad():
            loss_of_client = mean(own, inputs[0], targets[0], mask[0])
            found = torch.autograd.grad(loss_of_client, list(own.values()), materialize_grads=True)
        return {name: value[None] for name, value in zip(own, found, strict=True)}

    def compute(params: Params, inputs: Tensor, targets: Tensor, mask: Tensor) -> Params:
        way = alone if len(inputs) == 1 else gradients  # vmap costs more than it gives, as on a real client's machine
        return way(params, inputs, targets, mask)

    return compute

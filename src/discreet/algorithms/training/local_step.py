"""The local step that plain SGD and gradient descent share, for a block of clients."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.training.batches import Batch
from discreet.algorithms.training.client_turns import take_turns
from discreet.algorithms.training.cuda_graphs import Recordings
from discreet.algorithms.training.gradient_rules import AnyGradientClip, AnyPerturbation, AnyRegulariser
from discreet.algorithms.training.gradient_step import Descent
from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.round_batches import RoundBatches
from discreet.algorithms.training.step_groups import Steps, group_steps
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

    def run_steps(self, loss: Loss, broadcast: Broadcast, batches: RoundBatches, rates: Sequence[Tensor]) -> Params:
        """Return each client's update after these steps, each a batch with its learning rate."""
        clients, shared = batches.data.clients, not isinstance(broadcast.params, ClientModels)
        rows = repeat_for_clients(broadcast.params, clients)
        model = broadcast.params if shared else rows
        start = {} if self.regulariser is None else model  # a recording copies all its inputs
        recordings = loss.recordings if isinstance(loss, ModuleLoss) else Recordings(may_compile=False)
        take = partial(self._take_steps, loss, recordings, shared)
        if take_turns(loss, broadcast.params, batches):
            return _in_turns(recordings, (self, "turn"), take, model, start, batches, rates)
        state: Descent | None = None
        for group in group_steps(zip(batches, rates, strict=True)):
            state = recordings.run((self, shared), take, model if state is None else None, state, start, group)
        assert state is not None
        return subtract(state.params, rows)

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

    def _take_steps(
        self,
        loss: Loss,
        recordings: Recordings,
        shared: bool,
        model: Params | None,
        state: Descent | None,
        start: Params,
        steps: Steps,
    ) -> Descent:
        """Take steps from a state; the first ones of a round from a model, which clients may share."""
        for batch, rate in steps:
            if state is None:
                first = partial(self._first_step, loss, shared)
                state = recordings.run_compiled((self, "first", shared), first, model, start, rate, batch)
            else:
                later = partial(self._later_step, loss)
                state = recordings.run_compiled((self, "later"), later, state, start, rate, batch)
        assert state is not None
        return state

    def _first_step(
        self, loss: Loss, shared: bool, model: Params, start: Params, rate: Tensor, batch: Batch
    ) -> Descent:
        """One ordinary pass serves clients that still have the same weights; those of several runs never have."""
        gradient = client_gradients(loss, shared=shared)(model, batch.inputs, batch.targets, batch.mask)
        rows = repeat_for_clients(model, len(batch.mask)) if shared else model
        return self._apply(loss, Descent.start(rows, self.momentum), gradient, start, rate, batch)

    def _later_step(self, loss: Loss, state: Descent, start: Params, rate: Tensor, batch: Batch) -> Descent:
        gradient = client_gradients(loss, shared=False)(state.params, batch.inputs, batch.targets, batch.mask)
        return self._apply(loss, state, gradient, start, rate, batch)

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


def _in_turns(
    recordings: Recordings,
    name: Hashable,
    take: Callable[..., Descent],
    model: Params,
    start: Params,
    batches: RoundBatches,
    rates: Sequence[Tensor],
) -> Params:
    """Let each client take all its steps by itself, and return the updates."""
    updates = {key: value.new_empty(batches.data.clients, *value.shape) for key, value in model.items()}
    for client in range(batches.data.clients):
        steps = zip(batches.of_client(client), rates, strict=True)
        state: Descent | None = None
        for group in group_steps((batch, rate) for batch, rate in steps if batch is not None):
            state = recordings.run(name, take, model if state is None else None, state, start, group)
        for key, rows in updates.items():
            if state is None:
                rows[client] = 0
            else:
                torch.sub(state.params[key][0], model[key], out=rows[client])
    return updates


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

"""One step of gradient descent for a block of clients, with momentum and weight decay."""

from __future__ import annotations

from typing import NamedTuple

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.training.schedules import Schedule
from discreet.lazy_torch import Tensor, torch
from discreet.params import Params, align_axes, zeros_like


class Descent(NamedTuple):
    """Models and velocities, one row for each client. Velocity starts at zero in every round."""

    params: Params
    velocity: Params | None

    @classmethod
    def start(cls, params: Params, momentum: float) -> Descent:
        """Return the state before the first step."""
        return cls(params, zeros_like(params) if momentum else None)

    def step(
        self,
        gradient: Params,
        *,
        rate: Tensor,
        momentum: float,
        weight_decay: float,
        active: Tensor | None = None,
    ) -> Descent:
        """Step w ← w − rate·v with v ← momentum·v + gradient + weight_decay·w. Inactive clients don't move."""
        if weight_decay:
            gradient = {name: value + weight_decay * self.params[name] for name, value in gradient.items()}
        velocity = self.velocity
        if velocity is not None:
            velocity = {name: momentum * value + gradient[name] for name, value in velocity.items()}
        direction = gradient if velocity is None else velocity
        # addcmul passes over the model once; value - rate·direction would pass twice
        params = {name: value.addcmul(direction[name], -rate.to(value.dtype)) for name, value in self.params.items()}
        if active is None:
            return Descent(params, velocity)
        return Descent(
            _select_active(active, params, self.params),
            velocity and _select_active(active, velocity, self.velocity or {}),
        )


def round_learning_rate(learning_rate: float, schedule: Schedule, broadcast: Broadcast) -> Tensor:
    """Return the learning rate of a round."""
    return step_learning_rate(learning_rate, schedule, broadcast.round, broadcast)


def step_learning_rate(learning_rate: float, schedule: Schedule, k: int, broadcast: Broadcast) -> Tensor:
    """Return the k-th learning rate on the model's device, where a recorded CUDA graph can read it without a copy."""
    device = next(iter(broadcast.params.values())).device
    return torch.full((), learning_rate * schedule.factor(k), dtype=torch.float64, device=device)


def _select_active(active: Tensor, new: Params, old: Params) -> Params:
    return {name: torch.where(align_axes(active, value), value, old[name]) for name, value in new.items()}

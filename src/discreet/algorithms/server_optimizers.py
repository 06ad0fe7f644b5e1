"""How the server moves the model by the mean update."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal, Protocol, TypeAlias

from pydantic import Field

from discreet.contract import contract
from discreet.lazy_torch import torch
from discreet.own_part import OwnPart
from discreet.params import Params, add, map_params, scale, zeros_like
from discreet.part import NonNegative, Positive, part

State: TypeAlias = Params


@contract("server optimiser", is_postprocessing=True)
class ServerOptimizer(Protocol):
    """The contract of a server optimiser, which sees only what is released: no guarantee depends on it."""

    def init(self, params: Params) -> State:
        """Return the state before the first round; by default there is none."""
        return {}

    @abstractmethod
    def step(self, params: Params, mean: Params, state: State) -> tuple[Params, State]:
        """Return the model moved by the mean update, and the next state."""


@part
class ServerSgd(ServerOptimizer):
    """w ← w + rate·v with v ← momentum·v + mean. A rate of 1 without momentum is federated averaging."""

    kind: Literal["sgd"] = "sgd"
    learning_rate: Positive = 1.0
    momentum: NonNegative = 0.0

    def init(self, params: Params) -> State:
        return zeros_like(params) if self.momentum else {}

    def step(self, params: Params, mean: Params, state: State) -> tuple[Params, State]:
        if not self.momentum:
            return add(params, scale(mean, self.learning_rate)), state
        velocity = add(scale(state, self.momentum), mean)
        return add(params, scale(velocity, self.learning_rate)), velocity


@part
class ServerAdam(ServerOptimizer):
    """Adam on the mean update (Reddi et al. 2021, FedAdam), with bias correction."""

    kind: Literal["adam"] = "adam"
    learning_rate: Positive = 0.01
    first_decay: NonNegative = 0.9
    second_decay: NonNegative = 0.99
    stability: Positive = 1e-3

    def init(self, params: Params) -> State:
        first = {f"first.{name}": torch.zeros_like(value) for name, value in params.items()}
        second = {f"second.{name}": torch.zeros_like(value) for name, value in params.items()}
        return {"steps": torch.zeros((), dtype=torch.float64)} | first | second

    def step(self, params: Params, mean: Params, state: State) -> tuple[Params, State]:
        steps = state["steps"] + 1
        first = {n: self.first_decay * state[f"first.{n}"] + (1 - self.first_decay) * m for n, m in mean.items()}
        second = {
            n: self.second_decay * state[f"second.{n}"] + (1 - self.second_decay) * m * m for n, m in mean.items()
        }
        first_scale = float(1 / (1 - self.first_decay**steps))
        second_scale = float(1 / (1 - self.second_decay**steps))
        moved = map_params(
            lambda w, m, v: w + self.learning_rate * (m * first_scale) / ((v * second_scale).sqrt() + self.stability),
            params,
            first,
            second,
        )
        after = {f"first.{n}": m for n, m in first.items()} | {f"second.{n}": v for n, v in second.items()}
        return moved, {"steps": steps} | after


AnyServer: TypeAlias = Annotated[ServerSgd | ServerAdam, Field(discriminator="kind"), OwnPart(ServerOptimizer)]

"""A server optimiser or a schedule that breaks its contract is refused, with a sentence that says how."""

import math
from typing import Any

import pytest
import torch

from discreet.params import add, scale
from discreet.testing import PartFailed, check_schedule, check_server_optimizer


class SignStep:
    """A sound server optimiser, as a user would write it."""

    def step(self, params: Any, mean: Any, state: Any) -> Any:
        return {name: value + 0.01 * torch.sign(mean[name]) for name, value in params.items()}, state


def test_a_sound_server_optimiser_of_a_users_own_passes() -> None:
    assert check_server_optimizer(SignStep()) == [
        "Took 20 steps of the server twice: the results were equal and finite, and no argument was changed."
    ]


class HiddenMomentum(SignStep):
    def __init__(self) -> None:
        self.velocity: Any = None

    def step(self, params: Any, mean: Any, state: Any) -> Any:
        self.velocity = mean if self.velocity is None else add(scale(self.velocity, 0.9), mean)
        return add(params, self.velocity), state


class InPlace(SignStep):
    def step(self, params: Any, mean: Any, state: Any) -> Any:
        for name, value in params.items():
            value += mean[name]
        return params, state


class StateInPlace(SignStep):
    def init(self, params: Any) -> Any:
        return {"steps": torch.zeros(())}

    def step(self, params: Any, mean: Any, state: Any) -> Any:
        state["steps"] += 1
        return add(params, mean), state


class NumberInState(SignStep):
    def init(self, params: Any) -> Any:
        return {"steps": 0}


class ListAsState(SignStep):
    def init(self, params: Any) -> Any:
        return [torch.zeros(3)]


class NotFinite(SignStep):
    def step(self, params: Any, mean: Any, state: Any) -> Any:
        return {name: value + mean[name] / mean[name].norm() for name, value in params.items()}, state


class OtherType(SignStep):
    def step(self, params: Any, mean: Any, state: Any) -> Any:
        return {name: value.double() for name, value in params.items()}, state


class Random(SignStep):
    def step(self, params: Any, mean: Any, state: Any) -> Any:
        return {name: value + torch.randn_like(value) for name, value in params.items()}, state


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (HiddenMomentum, r"The same 1 steps from the same model gave two results. Keep all that a step depends on"),
        (InPlace, r"A step changed one of its arguments in place. Return new tensors"),
        (StateInPlace, r"A step changed one of its arguments in place"),
        (NumberInState, r"The state must hold tensors, and 'steps' is a int"),
        (ListAsState, r"ListAsState: init must return a dict, and returned an object of the class list"),
        (NotFinite, r"A step by a finite update gave a model that is not finite"),
        (OtherType, r"A step must return the model's tensors with their names, shapes and types"),
        (Random, r"The same 1 steps from the same model gave two results"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_server_optimiser_that_breaks_its_contract_is_refused(wrong: Any, sentence: str) -> None:
    with pytest.raises(PartFailed, match=sentence):
        check_server_optimizer(wrong())


class Factor:
    def __init__(self, compute: Any) -> None:
        self.compute = compute

    def factor(self, k: int) -> float:
        return self.compute(k)  # type: ignore[no-any-return]


def test_a_sound_schedule_of_a_users_own_passes() -> None:
    assert check_schedule(Factor(lambda k: 0.99**k)) == [
        "Read 1,000 factors of the schedule twice: finite, not negative, and the same."
    ]


@pytest.mark.parametrize(
    ("compute", "sentence"),
    [
        (lambda k: 1 - k / 10, r"A factor must be finite and not negative, and factor 11 is -0.1"),
        (lambda k: math.inf if k == 3 else 1, r"factor 3 is inf"),
        (lambda k: float(torch.rand(())), r"Factor 0 was \S+ at first and then"),
    ],
)
def test_a_schedule_that_breaks_its_contract_is_refused(compute: Any, sentence: str) -> None:
    with pytest.raises(PartFailed, match=sentence):
        check_schedule(Factor(compute))

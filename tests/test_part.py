"""Parts: strict numbers, frozen records, and conversion to plain data and back."""

import dataclasses
import importlib
import importlib.util
import math
import pkgutil
from typing import Annotated, Any, ClassVar, get_args, get_origin, get_type_hints
from unittest.mock import Mock

import numpy as np
import pytest
from torch import nn

import discreet
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.mechanisms import AnyMechanism, Gaussian
from discreet.algorithms.sampling import Poisson
from discreet.algorithms.training import DpSgd, LocalSgd
from discreet.errors import InvalidInput
from discreet.experiment.promise.promise import Privacy
from discreet.part import Count, Flag, Index, NonNegative, Positive, Probability, Rate, Real, from_plain, part, to_plain


@part
class Sample:
    real: Real = 0.0
    positive: Positive = 1.0
    non_negative: NonNegative = 0.0
    rate: Rate = 0.5
    probability: Probability = 0.5
    count: Count = 1
    index: Index = 0
    flag: Flag = False


NUMBERS = ["real", "positive", "non_negative", "rate", "probability", "count", "index"]


@pytest.mark.parametrize("field", NUMBERS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, True, "0.5", "1", None, [1], 10**400, 1 + 0j])
def test_no_number_takes_what_is_not_a_finite_number(field: str, bad: Any) -> None:
    with pytest.raises(InvalidInput, match=field):
        Sample(**{field: bad})


OUT_OF_RANGE: dict[str, list[Any]] = {
    "positive": [0, -1],
    "non_negative": [-1e-300],
    "rate": [0, 1.0001],
    "probability": [0, 1],
    "count": [0, 1.0],
    "index": [-1, 0.5],
    "flag": [1, "yes"],
}


@pytest.mark.parametrize(("field", "bad"), [(field, bad) for field, values in OUT_OF_RANGE.items() for bad in values])
def test_each_number_keeps_to_its_range(field: str, bad: Any) -> None:
    with pytest.raises(InvalidInput, match=field):
        Sample(**{field: bad})


def test_whole_numbers_and_numpy_numbers_are_numbers() -> None:
    made = Sample(positive=2, rate=np.float32(0.5), count=np.int64(3))  # type: ignore[arg-type]
    assert (made.positive, made.rate, made.count) == (2.0, 0.5, 3)
    assert type(made.positive) is float
    assert type(made.count) is int


def test_an_error_is_one_sentence_with_what_was_got() -> None:
    with pytest.raises(InvalidInput) as caught:
        Sample(positive=-3)
    assert str(caught.value) == "Sample: positive: must be above 0, and got -3.0."


def test_an_unknown_field_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="clip_nrom"):
        from_plain(Sample, {"clip_nrom": 1})


def test_a_part_comes_back_equal_from_plain_data() -> None:
    made = Sample(positive=0.1, count=7, flag=True)
    assert from_plain(Sample, to_plain(made)) == made
    assert hash(from_plain(Sample, to_plain(made))) == hash(made)


def test_a_part_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Sample().positive = 2.0  # type: ignore[misc]


def every_part() -> list[type]:
    """Return all parts of the package, found by importing all its modules."""
    found = {}
    needed = {  # by packages that are not installed everywhere
        "flwr": ("discreet.engines.flower",),
        "triton": (
            "discreet.double_kernels",
            *(
                f"discreet.client_layers.{name}"
                for name in ("kernel_launch", "kernel_operators", "kernel_trial", "triton_kernels")
            ),
        ),
    }
    absent = tuple(name for package in needed if not importlib.util.find_spec(package) for name in needed[package])
    for module in pkgutil.walk_packages(discreet.__path__, "discreet."):
        if module.name.startswith(absent):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and hasattr(value, "__pydantic_validator__"):
                found[f"{value.__module__}.{value.__qualname__}"] = value
    return list(found.values())


@pytest.mark.parametrize("kind", every_part(), ids=lambda kind: kind.__qualname__)
def test_no_part_has_a_bare_number(kind: type) -> None:
    bare = [name for name, hint in get_type_hints(kind, include_extras=True).items() if holds_bare_number(hint)]
    assert not bare, f"{kind.__qualname__}: {bare} would take NaN, infinity, True or text: use a number of part.py"


def holds_bare_number(hint: Any) -> bool:
    if get_origin(hint) is ClassVar:  # nobody can set it
        return False
    if get_origin(hint) is Annotated:
        inner, *checks = get_args(hint)
        if inner in (int, float, bool):
            return not checks
        return holds_bare_number(inner)
    return hint in (int, float, bool, complex) or any(holds_bare_number(each) for each in get_args(hint))


def test_the_walk_finds_parts_and_bare_numbers() -> None:
    assert len(every_part()) > 8
    assert holds_bare_number(tuple[float, ...])
    assert holds_bare_number(float | None)
    assert not holds_bare_number(tuple[Positive, ...] | None)


def test_what_is_allowed_is_said_in_the_words_of_a_file() -> None:
    with pytest.raises(InvalidInput, match=r"^Privacy: against: must be .server., .client. or .public., and got .cat."):
        Privacy(unit="example", against="cat", epsilon=1, delta=1e-5)  # type: ignore[arg-type]
    person = r'\{ kind = "person", column = "patient", at_most = 20 \}'
    with pytest.raises(InvalidInput, match=rf'^Privacy: unit: must be "example", "client" or .*, such as {person}'):
        Privacy(unit="patient", against="server", epsilon=1, delta=1e-5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"kind must be one of 'none', 'gaussian', .*, and got 'gauss'"):
        from_plain(AnyMechanism, {"kind": "gauss"})


@pytest.mark.parametrize("kind", [DpSgd, Gaussian, Poisson, Algorithm, Privacy])
def test_a_part_cannot_be_subclassed(kind: type) -> None:
    with pytest.raises(InvalidInput, match=f"Quiet is a subclass of {kind.__name__}, and a guarantee would be"):
        type("Quiet", (kind,), {"train": lambda *given: None})


def test_an_object_that_only_passes_for_a_part_is_refused() -> None:
    disguised = Mock(spec=Gaussian(clip_norm=1.0, noise_multiplier=1.0), kind="gaussian")
    with pytest.raises(InvalidInput, match="must be a part itself, and got an object of the class Mock"):
        Algorithm(trainer=LocalSgd(learning_rate=1.0, batch_size=1, steps=1), mechanism=disguised)


def test_a_part_whose_method_was_replaced_is_refused() -> None:
    quiet = Gaussian(clip_norm=1.0, noise_multiplier=1.0)
    object.__setattr__(quiet, "release_sum", lambda total, *rest: (total, {}))
    with pytest.raises(InvalidInput, match="its 'release_sum' was replaced"):
        Algorithm(trainer=LocalSgd(learning_rate=1.0, batch_size=1, steps=1), mechanism=quiet)


def test_a_part_whose_constant_was_replaced_is_refused() -> None:
    quiet = Gaussian(clip_norm=1.0, noise_multiplier=1.0)
    object.__setattr__(quiet, "is_private", False)
    with pytest.raises(InvalidInput, match="its 'is_private' was replaced"):
        Algorithm(trainer=LocalSgd(learning_rate=1.0, batch_size=1, steps=1), mechanism=quiet)


class RegisteringMixin:
    """A mixin with its own hook, which would hide ours."""

    def __init_subclass__(cls, **more: Any) -> None:
        return


def test_a_mixin_does_not_make_a_subclass_of_a_part_a_part() -> None:
    class Quiet(RegisteringMixin, Gaussian):
        pass

    quiet = Quiet(clip_norm=1.0, noise_multiplier=1.0)
    with pytest.raises(InvalidInput, match="must be a part itself, and got an object of the class Quiet"):
        Algorithm(trainer=LocalSgd(learning_rate=1.0, batch_size=1, steps=1), mechanism=quiet)
    with pytest.raises(InvalidInput, match="Quiet is a subclass of"):
        part(Quiet)


def test_a_subclass_of_an_algorithm_is_not_trained() -> None:
    class Loud(RegisteringMixin, Algorithm):
        pass

    trainer = LocalSgd(learning_rate=1.0, batch_size=1, steps=1)
    clients = discreet.clients_from_arrays([[0.0]] * 4, [0, 1, 0, 1], sizes=[2, 2])
    with pytest.raises(InvalidInput, match="of the class Algorithm, and got an object of the class Loud"):
        discreet.train(nn.Linear(1, 2), clients, rounds=1, algorithm=Loud(trainer=trainer))

"""What `help` and a notebook's `?` show are plain types: no validator, no path of a module."""

import inspect
import pydoc
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import pytest
from pydantic import BeforeValidator

import discreet
from discreet import parts
from discreet.errors import InvalidInput
from discreet.part import Count, PerClient, Positive, part
from discreet.plain_signature import show_plain_types, type_text

NOISE = ("Annotated", "Validator", "FieldInfo", "discreet.", "typing.", "object at 0x", "Union[", "<class")
FUNCTIONS = [name for name in discreet.__all__ if inspect.isfunction(getattr(discreet, name))]
PARTS = [name for name in dir(parts) if "__signature__" in dir(getattr(parts, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_shows_plain_types(name: str):
    shown = str(inspect.signature(getattr(discreet, name)))
    assert [word for word in NOISE if word in shown] == []


@pytest.mark.parametrize("kind", [discreet.Privacy, discreet.Person, *(getattr(parts, name) for name in PARTS)])
def test_every_part_shows_plain_types(kind: type):
    shown = str(inspect.signature(kind))
    assert [word for word in NOISE if word in shown] == []


def test_the_promise_in_full():
    assert str(inspect.signature(discreet.Privacy)) == (
        "(*, unit: Literal['example', 'client'] | Person, against: Literal['server', 'client', 'public'], "
        "epsilon: float | tuple[float, ...], delta: float)"
    )
    page = pydoc.plain(pydoc.render_doc(discreet.Privacy))
    assert "Privacy(*, unit: Literal['example', 'client'] | Person" in page
    assert "Annotated" not in page


def test_a_recipe_takes_what_its_signature_says_and_is_still_checked():
    signature = inspect.signature(discreet.pfl)
    assert str(signature.parameters["sampling_rate"]) == "sampling_rate: float | Sequence[float] | None = None"
    assert str(signature.return_annotation) == "Algorithm"
    with pytest.raises(InvalidInput, match="sampling_rate"):
        discreet.pfl(learning_rate=1.0, clip_norm=1.0, sampling_rate=1.5)


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (Positive, "float"),
        (Count | None, "int | None"),
        (PerClient[Positive], "float | tuple[float, ...]"),  # type: ignore[misc]
        (Callable[[int], Sequence[str]], "Callable[[int], Sequence[str]]"),
        (Callable[..., Any], "Callable[..., Any]"),
        (Annotated[Literal["a", "b"], BeforeValidator(str)], "Literal['a', 'b']"),
        ("Algorithm", "Algorithm"),
        (type[int], "type[int]"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # hints print addresses, which differ by process
)
def test_a_type_is_written_as_a_user_would(hint: Any, text: str):
    assert type_text(hint) == text


def test_a_name_that_only_type_checkers_know_is_shown_as_it_is_written():
    def measure(path: "Unknown", times: int = 2, **more: int) -> "Unknown":  # type: ignore[name-defined]  # noqa: F821
        return path

    assert str(inspect.signature(show_plain_types(measure))) == "(path: Unknown, times: int = 2, **more) -> Unknown"


def test_a_record_of_a_users_own_shows_its_defaults():
    @part
    class Clip:
        norm: Positive
        names: tuple[str, ...] = ("a",)

    assert str(inspect.signature(Clip)) == "(*, norm: float, names: tuple[str, ...] = ('a',))"
    assert not hasattr(Clip(norm=1.0), "__signature__")


@pytest.mark.parametrize("value", [3, "text", int, None])
def test_what_is_no_function_stays_as_it_is(value: object):
    assert show_plain_types(value) is value

"""Signatures with plain types for `help`, `inspect.signature` and notebooks: no validators and no paths of modules."""

import dataclasses
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ForwardRef, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

F = TypeVar("F")


class TypeText:
    """An annotation that is shown as this text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeText) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


class RecordSignature:
    """The signature of a record class as an attribute of the class, computed when it is asked for."""

    def __init__(self, record: type) -> None:
        self.record = record

    def __get__(self, instance: object | None, owner: type) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("__signature__")
        return _record_signature(self.record)


def show_plain_types(function: F) -> F:
    """Give a function a signature with plain types, and return the function; anything else is returned as it is.

    The annotations, by which arguments are checked, stay as they are.
    """
    if isinstance(function, types.FunctionType) and "__signature__" not in vars(function):
        function.__signature__ = _function_signature(function)  # type: ignore[attr-defined]
    return function


def type_text(hint: Any) -> str:
    """Write a type as a user would: `float | None` rather than a path to its validator."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is None or hint is type(None):
        return "None"
    if hint is Ellipsis:
        return "..."
    if isinstance(hint, str | ForwardRef):
        return hint if isinstance(hint, str) else hint.__forward_arg__
    if isinstance(hint, list):  # the arguments of a Callable
        return f"[{', '.join(map(type_text, hint))}]"
    if origin is Annotated:
        return type_text(arguments[0])
    if origin in (Union, types.UnionType):
        return " | ".join(dict.fromkeys(map(type_text, arguments)))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    name = getattr(origin or hint, "__name__", None) or str(hint).rpartition(".")[2]
    return f"{name}[{', '.join(map(type_text, arguments))}]" if origin is not None and arguments else name


def _function_signature(function: Callable[..., Any]) -> inspect.Signature:
    hints, signature = _read_hints(function), inspect.signature(function)
    return signature.replace(
        parameters=[_show_parameter(parameter, hints) for parameter in signature.parameters.values()],
        return_annotation=_annotation(hints, "return", signature.return_annotation),
    )


def _show_parameter(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> inspect.Parameter:
    if parameter.kind is parameter.VAR_KEYWORD:  # the docstring lists the keywords
        return parameter.replace(annotation=parameter.empty)
    return parameter.replace(annotation=_annotation(hints, parameter.name, parameter.annotation))


def _record_signature(record: Any) -> inspect.Signature:
    hints = _read_hints(record)
    parameters = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(field),
            annotation=_annotation(hints, field.name, field.type),
        )
        for field in dataclasses.fields(record)
        if field.init
    ]
    return inspect.Signature(parameters)


def _default(field: "dataclasses.Field[Any]") -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return inspect.Parameter.empty if field.default_factory is dataclasses.MISSING else TypeText("...")


def _annotation(hints: Mapping[str, Any], name: str, written: Any) -> Any:
    hint = hints.get(name, written)
    return hint if hint is inspect.Parameter.empty else TypeText(type_text(hint))


def _read_hints(owner: Any) -> dict[str, Any]:
    """Return the types without their validators; nothing if an annotation is for type checkers only."""
    try:
        return get_type_hints(owner)
    except (NameError, TypeError):  # a name that is not imported at run time, or one that stands in for a type
        return {}

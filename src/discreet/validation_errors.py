"""What is wrong with a record, in one sentence: the one translation of pydantic's validation errors."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import ValidationError
from pydantic.dataclasses import is_pydantic_dataclass

ONE_FOR_ALL, ONE_FOR_EACH = "one for all", "one for each"  # the two branches of a number per client
BRANCHES = ("literal[", "function-", ONE_FOR_ALL, ONE_FOR_EACH)  # steps of a path that no file has
LONGEST_VALUE = 60  # characters of a value in an error


def describe_value(value: Any) -> str:
    """Return a value as an error shows it: in one line, cut where it is long."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # noqa: BLE001 - a caller's own object may raise anything, and Python an error for huge numbers
        return (
            "a number of thousands of digits"
            if isinstance(value, int)
            else f"an object of the class {type(value).__name__}"
        )
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def describe_error(error: ValidationError) -> str:
    """Return the first problem that pydantic found, in our words; the others are counted.

    This form is for records that are built in Python: it names the class and its field.
    """
    first, *others = error.errors(include_url=False)
    path = ".".join(str(step) for step in first["loc"] if not str(step).startswith(BRANCHES))
    where = ": ".join(filter(None, [error.title if error.title.isidentifier() else "", path]))
    message = _describe_problem(first)
    got = "" if "got" in message or first["type"] == "missing" else f", and got {describe_value(first['input'])}"
    return f"{where}: {message}{got}.".removeprefix(": ") + (f" ({len(others)} more like this.)" if others else "")


def describe_file_error(kind: type, error: ValidationError) -> str:
    """Return the first problem with a file that was read into a record of this kind.

    This form is for files: it names the key as the file does, and lists the keys that are allowed there.
    """
    first = error.errors(include_url=False, include_context=False)[0]
    *above, last = first["loc"] or ("",)
    path, holder = _follow(kind, above)
    where = ".".join([*path, str(last)])
    match first["type"]:
        case "unexpected_keyword_argument":
            allowed = sorted({name for record in _records(holder) for name in record.__pydantic_fields__})
            near = get_close_matches(str(last), allowed, n=1)
            maybe = f" (did you mean {near[0]!r}?)" if near else ""
            return f"There is no key {where!r}{maybe}; allowed are: {', '.join(allowed)}."
        case "missing":
            return f"{where} is missing."
        case "union_tag_not_found":
            kinds = [str(_tag(record)) for record in _records(_follow(kind, first["loc"])[1])]
            return f"{where} needs a kind; there are: {', '.join(kinds)}."
        case "dataclass_type":
            return f"{where or 'The experiment'} must be a table, and got {describe_value(first['input'])}."
        case _:
            return describe_error(error).removeprefix(f"{kind.__name__}: ")


def _describe_problem(problem: Any) -> str:
    """Return what is allowed. Pydantic speaks of tags and inputs, where people see words in a file."""
    context = problem.get("ctx", {})
    match problem["type"]:
        case "union_tag_invalid":
            return f"kind must be one of {context['expected_tags']}, and got {describe_value(context['tag'])}"
        case "union_tag_not_found":
            return "kind is missing"
        case "literal_error":
            return f"must be {context['expected']}"
        case "missing":
            return "is missing"
        case "too_short":
            return "must not be empty"
        case "unexpected_keyword_argument":
            return "is not known here"
        case _:
            return str(problem["msg"]).removeprefix("Value error, ").rstrip(".")


def _follow(kind: Any, steps: Iterable[Any]) -> tuple[list[str], Any]:
    """Return where these steps lead, as a file would name the way, and the type that is there.

    Pydantic names the kind of a part as a step of its own, which no file does.
    """
    path = []
    for step in steps:
        records = list(_records(kind))
        tagged = [record for record in records if _tag(record) == step]
        if tagged:
            kind = tagged[0]
            continue
        path.append(str(step))
        holders = [record for record in records if step in record.__pydantic_fields__]
        kind = holders[0].__pydantic_fields__[step].annotation if holders else Any
    return path, kind


def _records(kind: Any) -> Iterator[Any]:
    """The records that a type annotation names."""
    if isinstance(kind, type) and is_pydantic_dataclass(kind):
        yield kind
    for inner in get_args(kind):
        yield from _records(inner)


def _tag(record: Any) -> Any:
    """The `kind` of a record, or None."""
    field = record.__pydantic_fields__.get("kind")
    return field.default if field else None

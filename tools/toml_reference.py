"""Write docs/reference/toml.md: every key of an experiment's file, read from the records that check it.

Descriptions come from the `Attributes:` section of a record's docstring, else from the comment behind a field.
`--check` only says whether the page is up to date.
"""

import dataclasses
import inspect
import io
import re
import sys
import tokenize
import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from generated_file import ROOT, write_or_check

from discreet import part
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.recipes.registry import RECIPES
from discreet.experiment.configuration.experiment_file import Experiment

PAGE = ROOT / "docs" / "reference" / "toml.md"
WORDS = {
    "Real": "number",
    "Number": "number",
    "Positive": "number above 0",
    "ClipNorm": "number between 1e-30 and 1e30",
    "NonNegative": "number of at least 0",
    "Rate": "number above 0, at most 1",
    "Share": "share of at least 0, below 1",
    "Probability": "probability above 0, below 1",
    "Flag": "true or false",
    "Count": "whole number of at least 1",
    "Index": "whole number of at least 0",
    "Multiplier": "number above 0",
    "Moderate": "number of at least 0",
    "Variance": "number above 0",
    "Steps": "number of at least 1",
}
ALIASES = [(getattr(part, name), text) for name, text in WORDS.items()]
PLAIN = {str: "text", int: "whole number", float: "number", bool: "true or false", dict: "table", Any: "any value"}


def type_text(kind: Any) -> str:
    """Describe a type as a person writes its values in TOML."""
    for alias, text in ALIASES:
        if kind == alias:
            return text
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in PLAIN:
        return PLAIN[kind]
    if origin is Literal:
        return " or ".join(f"`{value!r}`".replace("'", '"') for value in arguments)
    if origin is Annotated:
        return type_text(arguments[0])
    if origin in (Union, types.UnionType):
        texts = dict.fromkeys(type_text(each) for each in arguments if each is not type(None))
        return " or ".join(texts)
    if origin in (tuple, list):
        return f"list of {type_text(arguments[0])}"
    if origin is dict:
        return "table"
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return f"table ({kind.__name__})"
    return getattr(kind, "__name__", str(kind))


def records(kind: Any) -> list[type]:
    """Return the records that a field's type can hold."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return [kind]
    return list(dict.fromkeys(found for each in get_args(kind) for found in records(each)))


def descriptions(record: type) -> dict[str, str]:
    """Return what the docstring's attributes, or the comments behind the fields, say of each field.

    Inherited fields are described by the record that defines them.
    """
    texts: dict[str, str] = {}
    for owner in reversed([each for each in record.__mro__ if dataclasses.is_dataclass(each)]):
        texts |= dict(_comments(owner))
        section = re.search(r"Attributes:\n(.*?)(?:\n\S|\Z)", inspect.cleandoc(owner.__doc__ or ""), re.DOTALL)
        if section:
            for name, text in re.findall(r"^ +(\w+): (.*(?:\n {8,}.*)*)", section.group(1), re.MULTILINE):
                texts[name] = " ".join(text.split())
    return texts


def _comments(record: type) -> Iterator[tuple[str, str]]:
    source = inspect.getsource(record)
    for line in tokenize.generate_tokens(io.StringIO(source).readline):
        if line.type == tokenize.COMMENT and (field := re.match(r"\s+(\w+):", line.line)):
            yield field.group(1), line.string.lstrip("# ")


def default_text(value: Any) -> str:
    """Write a default as TOML would have it; empty where a key is optional and unset."""
    if value is None:
        return "not set"
    if dataclasses.is_dataclass(value):
        return f'`kind = "{getattr(value, "kind", type(value).__name__)}"`'
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value!r}`".replace("'", '"')


def rows(record: type) -> Iterator[str]:
    """Yield the lines of a table of the record's keys."""
    hints, texts = get_type_hints(record, include_extras=True), descriptions(record)
    yield "| key | value | default | |"
    yield "|---|---|---|---|"
    for field in dataclasses.fields(record):
        if field.name == "kind":
            continue
        default = getattr(field.default, "default", field.default)
        factory = getattr(field.default, "default_factory", None) or field.default_factory
        if factory is not dataclasses.MISSING and factory is not None:
            default = factory()
        required = default is dataclasses.MISSING or str(default) == "PydanticUndefined"
        shown = "required" if required else default_text(default)
        several = len(records(hints[field.name])) > 1
        value = "table with a `kind`" if several else type_text(hints[field.name])
        yield f"| `{field.name}` | {value} | {shown} | {texts.get(field.name, '')} |"


def summary(record: type) -> str:
    """Return the record's docstring up to its sections, as one paragraph a blank line."""
    text = (inspect.getdoc(record) or "").split("\nAttributes:")[0].strip()
    return "\n\n".join(" ".join(block.split()) for block in text.split("\n\n"))


def title(record: type) -> str:
    """Return how a file names the record: by its `kind`, by any of several kinds, or by its class."""
    kind = get_type_hints(record, include_extras=True).get("kind")
    if kind is None:
        return record.__name__
    if get_origin(kind) is Literal:
        return " or ".join(f'`kind = "{value}"`' for value in get_args(kind))
    return '`kind = "file.py:Name"`'


def section(record: type, level: int, heading: str) -> Iterator[str]:
    """Yield the record's heading, its docstring and the table of its keys."""
    yield f"{'#' * level} {heading}\n"
    yield summary(record) + "\n"
    if [field for field in dataclasses.fields(record) if field.name != "kind"]:
        yield from rows(record)
        yield ""
    else:
        yield "It has no further keys.\n"


def choices(record: type, name: str, level: int) -> Iterator[str]:
    """Yield a section for every kind that the field `name` of the record can hold."""
    for kind in records(get_type_hints(record, include_extras=True)[name]):
        yield from section(kind, level, title(kind))


def nested_records(shown: list[type]) -> Iterator[str]:
    """Yield a section for every record inside those that were shown, and inside these again."""
    for outer in shown:  # it grows
        for name, hint in get_type_hints(outer, include_extras=True).items():
            for record in records(hint):
                if record not in shown:
                    shown.append(record)
                    yield from section(record, 3, f"`{name}`: {title(record)}")


def recipes(level: int) -> Iterator[str]:
    for name, recipe in RECIPES.items():
        yield f'{"#" * level} `recipe = "{name}"`\n'
        yield " ".join((inspect.getdoc(recipe.function) or "").split("\n\n")[0].split()) + "\n"
        yield "| key | default |"
        yield "|---|---|"
        for key, parameter in recipe.parameters.items():
            empty = parameter.default is parameter.empty
            yield f"| `{key}` | {'required' if empty else default_text(parameter.default)} |"
        yield ""


def page() -> str:
    lines = [
        "# TOML reference\n",
        "Written by `tools/toml_reference.py` from the records that check a file. An experiment is one TOML file; an "
        "unknown key is refused. `--set a.b=c` overrides any key on the command line, and `discreet init` writes a "
        "commented file to start from, and a schema beside it by which editors complete and check it.\n",
        *section(Experiment, 2, "The file"),
        *section(records(get_type_hints(Experiment, include_extras=True)["privacy"])[0], 2, "`[privacy]`: the promise"),
        "## `[task]`: the data\n",
        *choices(Experiment, "task", 3),
        "## `[model]`: the network\n",
        *choices(Experiment, "model", 3),
        "## `[algorithm]` by recipe\n",
        "`discreet algorithms NAME` says what each recipe's arguments do.\n",
        *recipes(3),
        "## `[algorithm]` part by part\n",
        *section(Algorithm, 3, "The parts"),
    ]
    parts = get_type_hints(Algorithm, include_extras=True)
    for name, hint in parts.items():
        if len(records(hint)) > 1:
            lines += [f"### `[algorithm.{name}]`\n", *choices(Algorithm, name, 4)]
    searched = records(get_type_hints(Experiment, include_extras=True)["tune"])[0]
    lines += section(searched, 2, "`[tune]`: what `discreet tune` searches")
    lines += ["## `[engine]`: who computes\n", *choices(Experiment, "engine", 3), "## Tables inside these\n"]
    hints = [*get_type_hints(Experiment, include_extras=True).values(), *parts.values()]
    lines += nested_records([Experiment, *(record for hint in hints for record in records(hint))])
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    return write_or_check({PAGE: page()}, "toml_reference.py")


if __name__ == "__main__":
    sys.exit(main())

"""Write experiment.schema.json: a JSON Schema of an experiment's file, read from the records that check it.

Editors complete and check a file with it. It is never stricter than the records: what it refuses, they refuse.
`--check` only says whether the file is up to date.
"""

import dataclasses
import inspect
import json
import re
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from generated_file import ROOT, write_or_check
from pydantic import BeforeValidator, Discriminator
from pydantic.fields import FieldInfo
from toml_reference import descriptions, records, summary

from discreet import part
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.recipes.recipe import Recipe
from discreet.algorithms.recipes.registry import RECIPES
from discreet.algorithms.training.per_round import PerRound
from discreet.data.tables.column_kinds import Values
from discreet.experiment.configuration.algorithm_table import AnyAlgorithm
from discreet.experiment.configuration.experiment_file import Experiment
from discreet.own_part import OwnPart
from discreet.part import to_plain
from discreet.privacy.release import View
from discreet.user_code import Reference, kind_tag

FILE = ROOT / "src" / "discreet" / "experiment" / "configuration" / "experiment.schema.json"
Schema: TypeAlias = dict[str, Any]
COUNT: Schema = {"type": "integer", "minimum": 1}
REFERENCE: Schema = {"type": "string", "pattern": ":"}
OWN: Schema = {
    "type": "object",
    "description": "A part of your own: a class as file.py:Class or package.module:Class, and its arguments.",
    "properties": {"kind": REFERENCE},
    "required": ["kind"],
}
ALIASES: list[tuple[Any, Schema]] = [
    (part.Real, {"type": "number"}),
    (part.Number, {"type": "number"}),
    (part.Positive, {"type": "number", "exclusiveMinimum": 0}),
    (part.ClipNorm, {"type": "number", "minimum": part.SMALLEST_NORM, "maximum": part.LARGEST_NORM}),
    (part.NonNegative, {"type": "number", "minimum": 0}),
    (part.Rate, {"type": "number", "exclusiveMinimum": 0, "maximum": 1}),
    (part.Share, {"type": "number", "minimum": 0, "exclusiveMaximum": 1}),
    (part.Probability, {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
    (part.Flag, {"type": "boolean"}),
    (part.Count, COUNT),
    (part.Index, {"type": "integer", "minimum": 0}),
    (part.Multiplier, {"type": "number", "exclusiveMinimum": 0}),
    (part.Moderate, {"type": "number", "minimum": 0}),
    (part.Variance, {"type": "number", "exclusiveMinimum": 0}),
    (part.Steps, {"type": "number", "minimum": 1}),
    (PerRound, {"anyOf": [COUNT, {"type": "array", "items": COUNT, "minItems": 1}]}),
    (Reference, REFERENCE),
]
PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    dict: {"type": "object"},
    Any: {},
    object: {},
}


class SchemaWriter:
    """Turns types into schemas, and keeps the definition of each record that it has met."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}
        self._records: dict[str, type] = {}

    def schema_of(self, hint: Any) -> Schema:
        """Return the schema of the values that a file may have where a field has this type."""
        if hint == AnyAlgorithm:
            return self._algorithm()
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return self._annotated_schema(*arguments)
        if hint in PLAIN:
            return PLAIN[hint]
        if hint == View:
            return {"enum": [*arguments, "clients"]}  # another word for client
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin in (Union, types.UnionType):
            return _join_choices(self.schema_of(choice) for choice in arguments if choice is not type(None))
        if isinstance(origin, type) and issubclass(origin, Sequence):
            return {"type": "array", "items": self.schema_of(arguments[0])}
        if origin is dict:
            return {"type": "object", "additionalProperties": self.schema_of(arguments[1])}
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            return self._reference(hint)
        raise TypeError(f"{hint} has no schema: write one in tools/experiment_schema.py.")

    def _annotated_schema(self, kind: Any, *notes: Any) -> Schema:
        for alias, schema in ALIASES:
            base, *expected = get_args(alias)
            if kind == base and all(note in notes for note in expected):
                return schema
        is_tagged = any(
            note.discriminator in ("kind", kind_tag) for note in notes if isinstance(note, Discriminator | FieldInfo)
        )
        schema = self._tagged_schema(kind) if is_tagged else self.schema_of(kind)
        names = [name for record in records(kind) for name in _kinds(record)]
        if names and any(isinstance(note, BeforeValidator) for note in notes):  # a kind is short for its table
            schema = _join_choices([{"enum": names}, schema])
        if any(isinstance(note, OwnPart) for note in notes):
            schema = _join_choices([schema, OWN])
        return schema

    def _tagged_schema(self, union: Any) -> Schema:
        """Return the schema of a union that is told apart by `kind`, which must then be written."""
        choices = []
        for choice in get_args(union):
            if records(choice) and get_origin(choice) is not types.UnionType and len(records(choice)) == 1:
                found = self._reference(records(choice)[0])
                choices.append({"allOf": [found], "required": ["kind"]} if _kinds(records(choice)[0]) else found)
            else:
                choices.append(self.schema_of(choice))
        return _join_choices(choices)

    def _reference(self, record: type) -> Schema:
        name = record.__name__
        if self._records.setdefault(name, record) is not record:  # two records have this name
            name = f"{record.__module__.rpartition('.')[2]}.{name}"
            self._records[name] = record
        if name not in self.definitions:
            self.definitions[name] = {}  # a record may hold itself
            self.definitions[name] = self.table(record)
        return {"$ref": f"#/definitions/{name}"}

    def table(self, record: type) -> Schema:
        """Return the schema of a table that becomes this record."""
        hints, texts = get_type_hints(record, include_extras=True), descriptions(record)
        properties, required = {}, []
        for field in dataclasses.fields(record):
            default, is_required = _default(field)
            if (record, field.name) == (Values, "values"):  # numbers become texts
                schema: Schema = {"type": "array", "items": {"type": ["string", "number", "boolean"]}}
            else:
                schema = self.schema_of(hints[field.name])
            properties[field.name] = _describe(schema, texts.get(field.name, ""), default)
            required += [field.name] if is_required else []
        return _table(summary(record), properties, required)

    def _algorithm(self) -> Schema:
        """Return the schema of an algorithm: a recipe with its own keys, a recipe of one's own, or the parts."""
        recipes = [self._recipe(name, recipe) for name, recipe in RECIPES.items()]
        own = {
            "type": "object",
            "description": "A recipe of your own: a function as file.py:function, and its arguments.",
            "properties": {"recipe": REFERENCE},
            "required": ["recipe"],
        }
        return _join_choices([*recipes, own, self._reference(Algorithm)])

    def _recipe(self, name: str, recipe: Recipe) -> Schema:
        hints = get_type_hints(recipe.function, include_extras=True)
        texts, properties, required = _argument_texts(recipe.function), {}, ["recipe"]
        properties["recipe"] = {"const": name, "description": recipe.summary}
        for key, parameter in recipe.parameters.items():
            is_required = parameter.default is parameter.empty
            default = None if is_required else _plain(parameter.default)
            properties[key] = _describe(self.schema_of(hints[key]), texts.get(key, ""), default)
            required += [key] if is_required else []
        return _table(recipe.description, properties, required)


def _table(description: str, properties: Schema, required: list[str]) -> Schema:
    schema = {"type": "object", "description": _one_line(description), "properties": properties}
    return {**schema, **({"required": required} if required else {}), "additionalProperties": False}


def _describe(schema: Schema, text: str, default: Any) -> Schema:
    """Add what an editor shows beside a key. In draft 7 nothing may stand beside a reference."""
    if text and "anyOf" in schema:  # an editor shows the text of the alternative that it completes
        plain = [{"description": text, **choice} if "$ref" not in choice else choice for choice in schema["anyOf"]]
        schema = {**schema, "anyOf": plain}
    about = {**({"description": text} if text else {}), **({} if default is None else {"default": default})}
    return {"allOf": [schema], **about} if about and "$ref" in schema else {**schema, **about}


def _join_choices(schemas: Iterable[Schema]) -> Schema:
    """Return the schema of a value that fits one of several, without unions inside unions."""
    flat: list[Schema] = []
    for schema in schemas:
        flat += schema["anyOf"] if set(schema) == {"anyOf"} else [schema]
    distinct = [schema for number, schema in enumerate(flat) if schema not in flat[:number]]
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}


def _kinds(record: type) -> tuple[Any, ...]:
    kind = get_type_hints(record, include_extras=True).get("kind")
    return get_args(kind) if get_origin(kind) is Literal else () if kind is None else (":",)


def _default(field: Any) -> tuple[Any, bool]:
    """Return a field's default as plain data, and whether a file must write the field."""
    default = getattr(field.default, "default", field.default)
    factory = getattr(field.default, "default_factory", None) or field.default_factory
    if factory is not dataclasses.MISSING and factory is not None:
        default = factory()
    is_required = default is dataclasses.MISSING or str(default) == "PydanticUndefined"
    return (None, True) if is_required else (_plain(default), False)


def _plain(value: Any) -> Any:
    plain = to_plain(value) if dataclasses.is_dataclass(value) else value
    return list(plain) if isinstance(plain, tuple) else plain


def _argument_texts(function: Callable[..., Any]) -> dict[str, str]:
    """Return what the `Args:` section of a docstring says of each argument."""
    section = re.search(r"\nArgs:\n(.*?)(?:\n\S|\Z)", inspect.getdoc(function) or "", re.DOTALL)
    found = re.findall(r"^    (\w+): (.*(?:\n {8,}.*)*)", section[1], re.MULTILINE) if section else []
    return {name: _one_line(text) for name, text in found}


def _one_line(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def experiment_schema() -> Schema:
    """Return the schema of a whole file."""
    writer = SchemaWriter()
    table = writer.table(Experiment)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "An experiment of Discreet",
        **table,
        "definitions": dict(sorted(writer.definitions.items())),
    }


def main() -> int:
    text = json.dumps(experiment_schema(), indent=1, ensure_ascii=False) + "\n"
    return write_or_check({FILE: text}, "experiment_schema.py")


if __name__ == "__main__":
    sys.exit(main())

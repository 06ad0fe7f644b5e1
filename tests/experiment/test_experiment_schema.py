"""The JSON Schema of an experiment's file: it accepts every valid file, and refuses common mistakes."""

import ast
import copy
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from discreet.algorithms.recipes.registry import RECIPES
from discreet.errors import DiscreetError
from discreet.experiment.configuration import experiment_schema, toml_document
from discreet.experiment.configuration.experiment_file import Experiment
from discreet.experiment.configuration.starter_files import BUILT_IN, OWN_TABLE, promise_texts
from discreet.experiment.configuration.starter_rules import TableShape

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads(experiment_schema.schema_text())
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
START = tomllib.loads(BUILT_IN)
PARTS = """\
rounds = 2
metric = { kind = "mine.py:Metric", digits = 3 }
task = { kind = "mnist", partition = { kind = "dirichlet", alpha = 0.5 } }
model = { kind = "mlp", hidden = [16], activation = "tempered_sigmoid" }
engine = { kind = "reference" }

[privacy]
unit = { kind = "person", column = "patient", at_most = 3 }
against = "server"
epsilon = [1.0, 2]
delta = 1e-5

[algorithm]
sampling = { kind = "mine.py:Sampler", rate = 0.5 }
mechanism = { kind = "gaussian", clip_norm = 1.0 }

[algorithm.trainer]
kind = "local_sgd"
learning_rate = 0.1
batch_size = 8
epochs = 1
schedule = { kind = "inverse", decay = 0.1 }
"""


def find_texts() -> Iterator[tuple[str, str]]:
    """Find the experiments of this repository: files, fences of its pages, and texts in its tests."""
    yield "the built-in experiment", BUILT_IN
    yield (
        "the starter for a table",
        OWN_TABLE.format(
            held_out="each client's rows",
            table='kind = "csv"\npath = "t"\nclient = "c"\nlabel = "l"\nranges = "r"',
            **promise_texts("example", "server", TableShape(columns=3, sizes=(50, 60, 70))),
        ),
    )
    for folder in ("experiments", "tests", "docs"):
        for path in sorted((ROOT / folder).rglob("*.toml")):
            yield str(path.relative_to(ROOT)), path.read_text()
    for path in [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]:
        for number, fence in enumerate(re.findall(r"^```toml\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL)):
            yield f"{path.relative_to(ROOT)}, fence {number}", fence
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "[algorithm]" in node.value:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


def is_accepted(data: dict[str, Any]) -> bool:
    """Return whether a file with this content is read. None of the code that it names runs."""
    try:
        toml_document.build_record(Experiment, data)
    except DiscreetError:
        return False
    return True


def find_experiments() -> dict[str, dict[str, Any]]:
    experiments = {}
    for name, text in find_texts():
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
        if {"task", "algorithm"} <= data.keys() and is_accepted(data):
            experiments[name] = data
    return experiments


EXPERIMENTS = find_experiments()


def complaints(data: dict[str, Any]) -> list[str]:
    return [f"{list(error.absolute_path)}: {error.message}" for error in VALIDATOR.iter_errors(data)]


def test_the_schema_is_a_schema():
    jsonschema.Draft7Validator.check_schema(SCHEMA)


def test_every_experiment_of_this_repository_is_valid():
    assert len(EXPERIMENTS) > 100
    assert {name: found for name, data in EXPERIMENTS.items() if (found := complaints(data))} == {}


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_is_valid_with_its_own_arguments_and_no_others(name: str):
    given = {"recipe": name, **json.loads(json.dumps(RECIPES[name].example, default=list))}
    assert complaints({**START, "algorithm": given}) == []
    assert complaints({**START, "algorithm": {**given, "clip_nrom": 1.0}}) != []


def test_parts_one_by_one_and_parts_of_ones_own_are_valid():
    data = tomllib.loads(PARTS)
    assert is_accepted(data)
    assert complaints(data) == []
    own = {"recipe": "mine.py:compose", "anything": [1, 2]}
    assert complaints({**data, "algorithm": own, "model": {"kind": "net.py:Net", "arguments": {"width": 3}}}) == []


def tables(data: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, value in data.items():
        if isinstance(value, dict):
            yield from tables(value, (*path, name))


def mistakes(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the file with one more key, one key less, or a value of another type or size, for each of its keys."""
    for path in tables(data):
        changed = copy.deepcopy(data)
        table = changed
        for name in path:
            table = table[name]
        for name in [*table, "no_such_key"]:
            before = table.pop(name, None)
            yield copy.deepcopy(changed)
            for value in (
                "text",
                "a.py:b",
                -1,
                0,
                1,
                0.5,
                2.5,
                10**13,
                True,
                [],
                [1],
                ["text"],
                [[1]],
                {},
                {"kind": "iid"},
            ):
                table[name] = value
                yield copy.deepcopy(changed)
            table.pop(name)
            if before is not None:
                table[name] = before


DIVERSE = {str(sorted(tables(data))) + str(data["algorithm"].get("recipe")): data for data in EXPERIMENTS.values()}


@pytest.mark.parametrize("number", range(0, len(DIVERSE), 5))
def test_what_the_schema_refuses_is_refused_when_the_file_is_read(number: int):
    refused = 0
    for data in mistakes(list(DIVERSE.values())[number]):
        if found := complaints(data):
            refused += 1
            assert not is_accepted(data), (found, data)
    assert refused > 50


@pytest.mark.parametrize(
    "change",
    [
        {"round": 3},
        {"rounds": "3"},
        {"rounds": 0},
        {"device": "tpu"},
        {"task": {"kind": "digit"}},
        {"task": {"clients": 3}},
        {"task": {"kind": "digits", "partition": "random"}},
        {"model": {"kind": "linear", "hidden": [3]}},
        {"privacy": {**START["privacy"], "epsilon": -1}},
        {"privacy": {**START["privacy"], "against": "everyone"}},
        {"privacy": {"unit": "example", "against": "server", "epsilon": 1.0}},
        {"algorithm": {"recipe": "pfl", "local_steps": 1}},
        {"algorithm": {"recipe": "plf", "local_steps": 1}},
    ],
)
def test_a_common_mistake_is_refused_by_both(change: dict[str, Any]):
    assert complaints(START | change) != []
    assert not is_accepted(START | change)


def test_an_editor_can_show_what_each_key_means():
    described = SCHEMA["properties"]
    assert described["rounds"]["description"] == "Number of rounds."
    assert all("description" in schema for schema in described.values())
    for name in ("Privacy", "Digits", "TableTask", "Mlp"):
        keys = {key: schema for key, schema in SCHEMA["definitions"][name]["properties"].items() if key != "kind"}
        assert all("description" in schema for schema in keys.values())

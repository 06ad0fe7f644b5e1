"""The built-in experiment of `discreet run`, and the files that `discreet init` writes to start from."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from discreet.data.tables.file_reader import open_table
from discreet.data.tables.person_rows import PersonRows
from discreet.data.tables.ranges import load_ranges
from discreet.data.tables.table import Table, as_texts
from discreet.errors import InvalidInput, nearest_names
from discreet.experiment.configuration.starter_rules import TableShape, starter_settings
from discreet.privacy.release import Person, Unit, View

BUILT_IN = """\
# Ten clients hold scanned digits. Each protects its examples from the server.
rounds = 100                     # seed = 7 makes it repeatable, and then it protects nobody
task   = { kind = "digits", clients = 10, partition = "iid" }
model  = { kind = "linear" }

[privacy]                        # the promise; the noise is computed from it
unit = "example"
against = "server"
epsilon = 2.0
delta = 1e-4

[algorithm]
recipe = "pfl"
local_steps = 1
sampling_rate = 0.5
clip_norm = 0.5
learning_rate = 3.0
"""

OPTIONS = """\

# Also possible, with what is used when they are left out:
#   evaluate_every = 5               how often the model is tried on test data; about twenty times a run
#   evaluate_training = false        true: on at most 10,000 training examples too, which shows the gap
#   checkpoint_every = 1             rounds between two points from which `discreet run --resume` goes on
#   engine = { kind = "embedded" }   or "reference": one client after the other; memory_gb bounds the first
#   dtype = "float32"                or "float64"
#   precision = "float32"            or "tf32" or "bf16", on a GPU
#   compile = false                  true: faster local steps, after up to minutes of compiling
#   device = "auto"                  or "cpu", "cuda"
#   loss = "mine.py:my_loss"         a function of (outputs, targets); metric = "mine.py:my_metric" likewise
# They stand above the first [table].
"""


def starter_file(
    path: Path | None,
    client: str | None,
    label: str | None,
    ranges: Path,
    *,
    beside: Path,
    unit: Unit = "example",
    against: View = "server",
) -> str:
    """Return the text of an experiment to start from: the digits, or a user's own table.

    Of a table, header and clients are read. Its settings follow from public numbers (starter_rules.py).

    Args:
        ranges: The file of public ranges. If it is there, it says which columns are inputs; otherwise all of them are.
        beside: The folder of the experiment's file.
        unit: Whose data the promise protects.
        against: From whom.
    """
    if path is None:
        return BUILT_IN + OPTIONS
    table = open_table(path)
    for option, name in (("--client", client), ("--label", label)):
        if name not in table.columns:
            problem = f"{option} is missing." if name is None else f"{path} has no column {name!r}."
            raise InvalidInput(problem, fix=f"Its columns: {nearest_names(table.columns, name or '')}.")
    assert client is not None
    assert label is not None
    if isinstance(unit, Person) and unit.column not in table.columns:
        columns = nearest_names(table.columns, unit.column)
        raise InvalidInput(f"{path} has no column {unit.column!r}.", fix=f"Its columns: {columns}.")
    task = {
        "kind": table.kind,
        "path": _relative_path(path, beside),
        "client": client,
        "label": label,
        "ranges": str(ranges),
    }
    lines = "\n".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in task.items())
    not_inputs = {client, label, *([unit.column] if isinstance(unit, Person) else [])}
    person = unit if isinstance(unit, Person) else None
    shape = _read_shape(table, client, not_inputs | _ignored_columns(ranges, beside), person)
    held_out = "each client's rows" if person is None else "the persons, with all their rows"
    return OWN_TABLE.format(table=lines, held_out=held_out, **promise_texts(unit, against, shape)) + OPTIONS


def _relative_path(path: Path, folder: Path) -> str:
    """Return the path relative to the folder of the experiment's file."""
    return Path(os.path.relpath(path, folder)).as_posix()


def _ignored_columns(ranges: Path, folder: Path) -> set[str]:
    """Return the columns that the file of ranges leaves out; none if there is no such file yet."""
    if not any(path.is_file() for path in (folder / ranges, ranges)):
        return set()
    return {name for name, column in load_ranges(ranges, folder).columns.items() if column == "ignore"}


def _read_shape(table: Table, client: str, not_inputs: set[str], person: Person | None) -> TableShape:
    """Count the rows of each client that may be trained on, and the columns that are inputs.

    How many rows of persons are left out is not public, so that no setting may follow from it.

    Raises:
        InvalidInput: The table has no rows, or a person is in more clients than was declared.
    """
    sizes: Counter[str] = Counter()
    kept = None if person is None else PersonRows(person)
    for chunk in table.chunks():
        clients = as_texts(chunk.cells(table.columns.index(client)))
        if person is not None and kept is not None:
            persons = as_texts(chunk.cells(table.columns.index(person.column)))
            clients = [name for name, who in zip(clients, persons, strict=True) if kept.uses(who, name)]
        sizes.update(clients)
    if not sizes:
        raise InvalidInput(f"{table.path} names its columns and has no rows.", fix="Its settings follow from them.")
    return TableShape(len(set(table.columns) - not_inputs), tuple(sizes.values()))


OWN_TABLE = """\
rounds = {rounds:<23} # seed = 7 makes it repeatable, and then it protects nobody
model = {{ kind = "linear" }}      # or {{ kind = "mlp" }}, or your own: {{ kind = "mine.py:Net" }}

[task]                           # `discreet data check` says whether the table fits
{table}
test_fraction = 0.2              # of {held_out}, kept for evaluation, which no guarantee covers

[privacy]                        # the promise; the noise is computed from it
unit = {unit}
against = "{against}"{viewers}
epsilon = {epsilon}
delta = {delta:<24} # below 1 / the number of {units}

[algorithm]                      # for {shape}
{algorithm}"""

SERVER = """\
learning_rate = 1.0              # of the clients; the server decides how far the model moves:
server = {{ kind = "adam", learning_rate = {server_rate} }}
"""

BY_ROW = """\
{recipe}
local_steps = 1
sampling_rate = {sampling_rate:<16} # of a client's rows, in each step
clip_norm = {clip_norm:<20} # of a row's gradient
"""

BY_CLIENT = """\
{recipe}
steps = 1                        # of a client in a round
batch_size = {batch_size:<19} # of its rows
clip_norm = {clip_norm:<20} # of a client's update
"""

SHARED = "each client adds a share of the noise; a secure sum shows the server only the sum"
RECIPES = {
    "ddp_fedavg": SHARED,
    "ddp_fedavg_client": SHARED,
    "dp_fedavg": "clients train and send clipped updates; the server, which is trusted, adds the noise",
    "pfl": "each client adds enough noise itself, since a secure sum needs three clients",
}

VIEWERS = {
    "server": "               # who sees every message; another client also knows its own noise: see --against clients",
    "client": "               # the other clients, who see the released models",
    "public": "               # those who see only released models",
}


def promise_texts(unit: Unit, against: View, shape: TableShape) -> dict[str, Any]:
    """Return the parts of a starter file for this promise and table: words, the recipe that keeps it, and settings."""
    settings, clients = starter_settings(shape, unit), len(shape.sizes)
    quoted = f'"{unit}"'
    if isinstance(unit, Person):
        quoted = unit.as_toml()
    if unit == "client":
        recipe, template = "dp_fedavg" if against == "public" else "ddp_fedavg_client", BY_CLIENT
    else:
        recipe, template = "ddp_fedavg" if settings.is_sum_hidden else "pfl", BY_ROW
    named = f'recipe = "{recipe}"'
    return {
        "rounds": settings.rounds,
        "unit": quoted,
        "against": against,
        "viewers": VIEWERS[against],
        "units": {"client": "clients", "example": "rows"}.get(str(unit), "persons"),
        "epsilon": "8.0" if unit == "client" else "2.0",
        "delta": f"{settings.delta:.0e}".replace("e-0", "e-"),
        "shape": f"{_count(shape.columns, 'column')}, {_count(shape.rows, 'row')} and {_count(clients, 'client')}",
        "algorithm": (template + SERVER).format(recipe=f"{named:<32} # {RECIPES[recipe]}", **settings._asdict()),
    }


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

"""The built-in experiment of `discreet run`, and the files that `discreet init` writes to start from."""

import json
import os
from pathlib import Path

from discreet.data.tables.file_reader import open_table
from discreet.errors import InvalidInput
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
    """Return the text of an experiment to start from: the digits, or a user's own table, whose header is read.

    Args:
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
            raise InvalidInput(problem, fix=f"Its columns: {', '.join(table.columns)}.")
    task = {
        "kind": table.kind,
        "path": _relative_path(path, beside),
        "client": client,
        "label": label,
        "ranges": str(ranges),
    }
    lines = "\n".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in task.items())
    if isinstance(unit, Person) and unit.column not in table.columns:
        raise InvalidInput(f"{path} has no column {unit.column!r}.", fix=f"Its columns: {', '.join(table.columns)}.")
    return OWN_TABLE.format(table=lines, **promise_texts(unit, against)) + OPTIONS


def _relative_path(path: Path, folder: Path) -> str:
    """Return the path relative to the folder of the experiment's file."""
    return Path(os.path.relpath(path, folder)).as_posix()


OWN_TABLE = """\
rounds = {rounds:<23} # seed = 7 makes it repeatable, and then it protects nobody
model = {{ kind = "linear" }}      # or {{ kind = "mlp" }}, or your own: {{ kind = "mine.py:Net" }}

[task]                           # `discreet data check` says whether the table fits
{table}
test_fraction = 0.2              # of each client's rows, kept for evaluation, which no guarantee covers

[privacy]                        # the promise; the noise is computed from it
unit = {unit}
against = "{against}"{viewers}
epsilon = {epsilon}
delta = 1e-5                     # well below 1 / the number of {units}

[algorithm]
{algorithm}"""

BY_EXAMPLE = """\
recipe = "pfl"                   # DP-SGD on every client, then the mean of their models
local_steps = 1
sampling_rate = 0.25             # of a client's rows, in each step
clip_norm = 1.0                  # of a row's gradient
learning_rate = 1.0
"""

BY_EXAMPLE_UNSEEN = """\
recipe = "ddp_fedavg"            # each client adds a share of the noise; a secure sum shows the server only the sum
local_steps = 1
sampling_rate = 0.25             # of a client's rows, in each step
clip_norm = 1.0                  # of a row's gradient
learning_rate = 1.0
"""

BY_CLIENT = """\
recipe = "dp_fedavg"             # clients train and send clipped updates; the server, which is trusted, adds the noise
epochs = 1                       # passes over a client's rows in a round
batch_size = 50
clip_norm = 1.0                  # of a client's update
learning_rate = 0.3
"""

BY_CLIENT_UNSEEN = """\
recipe = "ddp_fedavg_client"     # each client adds a share of the noise; a secure sum shows the server only the sum
epochs = 1                       # passes over a client's rows in a round
batch_size = 50
clip_norm = 1.0                  # of a client's update
learning_rate = 0.3
"""

VIEWERS = {
    "server": "               # who sees every message, and so everyone who sees less",
    "client": "               # the other clients, who see the released models",
    "public": "               # those who see only released models",
}


def promise_texts(unit: Unit, against: View) -> dict[str, str]:
    """Return the parts of a starter file for this promise: its words, the recipe that keeps it, and the rounds."""
    quoted = f'"{unit}"'
    if isinstance(unit, Person):
        quoted = unit.as_toml()
    if unit == "client":
        recipe, rounds, epsilon = (BY_CLIENT if against == "public" else BY_CLIENT_UNSEEN), 30, "8.0"
    else:
        recipe, rounds, epsilon = (BY_EXAMPLE_UNSEEN if against == "client" else BY_EXAMPLE), 100, "2.0"
    return {
        "rounds": str(rounds),
        "unit": quoted,
        "against": against,
        "viewers": VIEWERS[against],
        "units": {"client": "clients", "example": "rows"}.get(str(unit), "persons"),
        "epsilon": epsilon,
        "algorithm": recipe,
    }

"""The built-in experiment of `discreet run`, and the files that `discreet init` writes to start from."""

import json
import os
from pathlib import Path

from discreet.data.tables.file_reader import open_table
from discreet.errors import InvalidInput

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


def starter_file(path: Path | None, client: str | None, label: str | None, ranges: Path, *, beside: Path) -> str:
    """Return the text of an experiment to start from: the digits, or a user's own table, whose header is read."""
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
    return OWN_TABLE.format(table=lines) + OPTIONS


def _relative_path(path: Path, folder: Path) -> str:
    """Return the path relative to the folder of the experiment's file."""
    return Path(os.path.relpath(path, folder)).as_posix()


OWN_TABLE = """\
rounds = 100                     # seed = 7 makes it repeatable, and then it protects nobody
model = {{ kind = "linear" }}      # or {{ kind = "mlp" }}, or your own: {{ kind = "mine.py:Net" }}

[task]                           # `discreet data check` says whether the table fits
{table}
test_fraction = 0.2              # of each client's rows, kept for evaluation, which no guarantee covers

[privacy]                        # the promise; the noise is computed from it
unit = "example"                 # one row; "client" for all rows of one client (recipe dp_fedavg); or one person:
                                 # {{ kind = "person", column = "patient", at_most = 3 }}, of whose rows 3 are used
against = "server"               # or "public": those who only see released models
epsilon = 2.0
delta = 1e-5                     # well below 1 / the number of rows

[algorithm]
recipe = "pfl"                   # DP-SGD on every client, then the mean of their models
local_steps = 1
sampling_rate = 0.25             # of a client's rows, in each step
clip_norm = 0.5
learning_rate = 1.0
"""

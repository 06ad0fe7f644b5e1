"""Differentially private federated learning whose ε you can believe."""

import sys

if sys.argv[:1] == ["-m"] and any(
    (word.partition("m")[2] if word.startswith("-") else word).partition(".")[0]
    == "discreet"  # also -um and -mdiscreet
    for word in sys.orig_argv
):
    # `python -m discreet` looks for torch, numpy and all others in the current folder first, which may be that of
    # another person's experiment. Python's own start-up has imported some files from there by now, if they exist.
    sys.path[:] = sys.path if sys.flags.safe_path else sys.path[1:]

import importlib
from typing import Any

# By its name, like all that follows: the package itself imports none of its folders. It loads no torch.
_extras = importlib.import_module("discreet.extras")
_signature = importlib.import_module("discreet.plain_signature")
_RECIPES = importlib.import_module("discreet.algorithms.recipes.registry").RECIPES

_WHERE = {
    "Callback": "discreet.experiment.loop.callbacks",
    "Person": "discreet.privacy.release",
    "Privacy": "discreet.experiment.promise.promise",
    "Run": "discreet.api",
    "Session": "discreet.experiment.loop.session",
    "attack": "discreet.api.run_attack",
    "audit_run": "discreet.api",
    "clients_from_arrays": "discreet.data.tasks.from_arrays",
    "clients_from_csv": "discreet.data.tables.table_task",
    "clients_from_datasets": "discreet.data.tasks.from_datasets",
    "clients_from_parquet": "discreet.data.tables.table_task",
    "load": "discreet.api",
    "session": "discreet.api",
    "tracker": "discreet.experiment.loop.tracker",
    "train": "discreet.api",
    **{name: recipe.module for name, recipe in _RECIPES.items()},
}

__all__ = ["__version__", *_WHERE]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import discreet` loads no torch and asks no git."""
    if name == "__version__":
        return importlib.import_module("discreet.code_version").read_code_version().version
    if name not in _WHERE:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    try:
        found = getattr(importlib.import_module(_WHERE[name]), name)
        if name in _RECIPES:
            found = importlib.import_module("discreet.algorithms.recipes.argument_names").explain_arguments(found)
        return _signature.show_plain_types(found)
    except ModuleNotFoundError as error:
        raise _extras.missing_extra(error, f"discreet.{name}") or error from None


def __dir__() -> list[str]:
    return sorted(__all__)

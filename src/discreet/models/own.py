"""A user's own model, loss or metric, named in a file: `net.py:Net` or `package.module:Net`, from this machine only."""

import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import torch
from pydantic import BeforeValidator, Field
from torch import nn

from discreet.errors import InvalidInput
from discreet.models.shape import initialised
from discreet.part import part
from discreet.tasks.task import Task

FORM = re.compile(r"(?P<place>[^:]+(:[\\/][^:]+)?):(?P<name>[^\W\d]\w*)")  # a drive letter may have its colon


def _reference(value: Any) -> str:
    if not isinstance(value, str) or not FORM.fullmatch(value) or "://" in value:
        raise ValueError(f"must be file.py:Name or package.module:Name on this machine, and got {value!r}")
    return value


Reference = Annotated[str, BeforeValidator(_reference)]


@part
class Own:
    """A class or function that makes an nn.Module from `arguments`; it gets the task too if it asks for `task`."""

    kind: Reference
    arguments: dict[str, Any] = Field(default_factory=dict)

    def build(self, task: Task, generator: torch.Generator) -> nn.Module:
        make = local(self.kind)
        try:
            asks = "task" in inspect.signature(make).parameters
            with initialised(generator):
                made = make(**self.arguments, **({"task": task} if asks else {}))
        except TypeError as error:
            raise InvalidInput(
                f"{self.kind} can't be made from {sorted(self.arguments) or 'no arguments'}: {error}.",
                fix="Give what it needs as arguments = { name = value }.",
            ) from error
        if not isinstance(made, nn.Module):
            raise InvalidInput(f"{self.kind} must make a torch.nn.Module, and made {type(made).__name__}.")
        return made


def local(reference: str, folder: Path | None = None) -> Any:
    """The class or function that `file.py:Name` or `module:Name` names; files are looked up from `folder`."""
    try:
        found = FORM.fullmatch(_reference(reference))
    except ValueError as error:
        raise InvalidInput(f"{error}.") from None
    assert found is not None
    place, name = found["place"], found["name"]
    module = _from_file((folder or Path()) / place) if place.endswith(".py") else _from_name(place)
    try:
        return getattr(module, name)
    except AttributeError:
        raise InvalidInput(f"{place} has no {name!r}.", fix="Check the name after the colon.") from None


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.", fix="Give its path from where the command runs.")
    name = f"discreet_own_{hashlib.blake2b(str(path.resolve()).encode(), digest_size=8).hexdigest()}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles look themselves up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a user's file may fail in any way
        del sys.modules[name]
        raise InvalidInput(f"{path} can't be imported: {type(error).__name__}: {error}.") from error
    return module


def _from_name(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InvalidInput(
            f"Module {name!r} can't be imported: {error}.", fix="Install it, or name a file as path/to/file.py:Name."
        ) from error

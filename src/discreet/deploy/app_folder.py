"""The app folder that server and clients have agreed on, and the digest that identifies it."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from discreet.algorithms.population import Population
from discreet.deploy.deployment import FIRST_MEMBERSHIP, Deployment, read_record
from discreet.deploy.flower_bundle import BUNDLE_FILES
from discreet.engines.engine_table import Flower
from discreet.engines.flower.client_calls import Member
from discreet.errors import InvalidInput, nearest_names
from discreet.experiment.configuration.experiment_file import Experiment, Source
from discreet.part import to_plain
from discreet.paths import Paths
from discreet.randomness.streams import RunKey
from discreet.trust import Trust
from discreet.user_part import load_user_parts

RESOLVED_FILE = "resolved.toml"
CERTIFICATE_FILE = "ca.crt"
# Fields of an experiment that determine what clients do.
AGREED_FIELDS = ("rounds", "seed", "task", "model", "loss", "privacy", "algorithm", "dtype", "precision")
SERVER_FIELDS = ("server", "metric")  # whose code runs at the server only
# Plain file names: they are written into owners' policies, where a line break would begin a line, and name no folder.
PYTHON_NAME = re.compile(r"[\w-]+\.py", re.ASCII)
CODE_PATH = re.compile(r"([\w-]+/)*[\w-]+(\.[\w-]+)+", re.ASCII)
CODE_SUFFIXES = (".py", ".pyc", ".so", ".pyd")  # what Python imports
WEIGHTS_NAME = re.compile(r"[\w-]+(\.[\w-]+)+", re.ASCII)


def public_run_key(experiment: Experiment) -> RunKey:
    """Return the key of public randomness that everybody draws alike: a task's partition, a model's first weights."""
    return RunKey.from_seed(experiment.seed or 0)


def user_files(experiment: Experiment) -> tuple[str, ...]:
    """Return the user's files that clients run or load: Python files and weights in the experiment's folder.

    Raises:
        InvalidInput: The experiment names Python by an installed module. It could differ from machine to machine, and
            no digest covers it.
    """
    whole = to_plain(experiment)
    named = {"kind": experiment.loss} if experiment.loss is not None else {}
    run_by_clients = {name: part for name, part in whole["algorithm"].items() if name != "server"}
    names = set[str]()
    for reference, weights in (
        pair for part in (named, whole["model"], whole["task"], run_by_clients) for pair in _find_references(part)
    ):
        file = reference.rpartition(":")[0]
        if not PYTHON_NAME.fullmatch(file):
            raise InvalidInput(
                "In a deployment, Python must be named as file.py:Name in the experiment's folder, and got "
                f"{reference!r:.60}.",
                fix="Put it into a file there whose name has letters, digits, - and _.",
            )
        if weights is not None and not WEIGHTS_NAME.fullmatch(weights):
            raise InvalidInput(
                f"In a deployment, weights must be a file in the experiment's folder, and got {weights!r:.60}.",
                fix="Put the file there, with a name of letters, digits, ., - and _.",
            )
        names |= {file} if weights is None else {file, weights}
    return tuple(sorted(names))


def _find_references(value: Any) -> Iterator[tuple[str, str | None]]:
    """Yield every `file.py:Name` in plain data with the weights file beside it. Built-in kinds have no colon."""
    if isinstance(value, Mapping):
        kind = value.get("kind")
        if isinstance(kind, str) and ":" in kind:
            yield kind, value.get("weights")
        else:
            value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _find_references(item)


@dataclass(frozen=True)
class AppFolder:
    """The content of the app folder: deployment.toml, resolved.toml (the whole experiment), ca.crt and the cards."""

    folder: Path
    deployment: Deployment
    experiment: Experiment

    @classmethod
    def open(cls, folder: Path) -> "AppFolder":
        """Read the app folder `folder`."""
        return cls(folder, Deployment.open(folder), read_record(Experiment, folder / RESOLVED_FILE))

    @property
    def population(self) -> Population:
        """The clients' declared sizes."""
        sizes = tuple(client.examples for client in self.deployment.clients)
        return Population(examples=sizes, max_multiplicity=self.deployment.max_multiplicity)

    @property
    def engine(self) -> Flower:
        """The settings of the engine: how long to wait for clients."""
        assert isinstance(self.experiment.engine, Flower)  # `discreet deploy init` writes no other engine
        return self.experiment.engine

    @property
    def certificate(self) -> Path:
        return self.folder / CERTIFICATE_FILE

    @cached_property
    def user_files(self) -> tuple[str, ...]:
        """The user's files that clients run or load, with all code in the folder that such a file could import."""
        named = user_files(self.experiment)
        return tuple(sorted({*named, *self._importable_files()})) if named else ()

    def load_user_parts(self, trust: Trust) -> Experiment:
        """Return the experiment with the parts of the user's own that clients run, which runs their code."""
        return load_user_parts(self.experiment, self.folder, trust, skip=SERVER_FIELDS)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that a client is asked to do.

        It covers the algorithm with all its numbers, the model, columns and label, the user's files with the code
        beside them, and the clients' names and sizes, and the number of the membership from the second one on. A
        table's path is that of the stand-in that everybody has. The clients' keys are not covered: cards come later,
        and the owner's policy pins them.
        """
        whole = to_plain(self.experiment)
        agreed = {name: whole[name] for name in AGREED_FIELDS} | {
            "clients": [client.name for client in self.deployment.clients],
            "population": to_plain(self.population),
            "code": self.file_digests,
        }
        if self.deployment.membership != FIRST_MEMBERSHIP:  # policies of older versions have digests without it
            agreed["membership"] = self.deployment.membership
        return hashlib.sha256(json.dumps(agreed, sort_keys=True).encode()).hexdigest()

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """The clients with their public keys, in the clients' order."""
        return tuple(
            Member(card.name, bytes.fromhex(card.identity)) for card in self.deployment.read_cards(self.folder)
        )

    @property
    def agreement(self) -> str:
        """SHA-256 of what a client is asked to do and of all clients' keys."""
        return hashlib.sha256(
            " ".join([self.digest, *(each.identity.hex() for each in self.members)]).encode()
        ).hexdigest()

    def source(self, data_dir: Path | None = None, trust: Trust | None = None) -> Source:
        """Return the experiment with its folder, and with the code that may run there: without `trust`, none."""
        return Source(self.experiment, "", Paths.default(self.folder.resolve(), data_dir, trust))

    def client_number(self, name: str) -> int:
        """Return the number of the client `name`."""
        names = [client.name for client in self.deployment.clients]
        if name not in names:
            raise InvalidInput(
                f"{name!r} is not a client of this deployment.", fix=f"Name one of {nearest_names(names, name)}."
            )
        return names.index(name)

    def _importable_files(self) -> Iterator[str]:
        """Yield the code in the folder, without the generated files of the Flower app."""
        for path in self.folder.rglob("*"):
            name = path.relative_to(self.folder).as_posix()
            if path.suffix not in CODE_SUFFIXES or path.parent.name == "__pycache__" or not path.is_file():
                continue
            if name in BUNDLE_FILES and path.read_bytes() == BUNDLE_FILES[name].encode():
                continue
            if not CODE_PATH.fullmatch(name):
                raise InvalidInput(
                    f"In a deployment, code must have a path of letters, digits, -, _ and /, and got {name!r:.60}.",
                    fix="Rename the file, or remove it from the app folder.",
                )
            yield name

    @cached_property
    def file_digests(self) -> dict[str, str]:
        """Return the SHA-256 of each user's file that clients run or load."""
        digests = {}
        for name in self.user_files:
            try:
                digests[name] = hashlib.sha256((self.folder / name).read_bytes()).hexdigest()
            except OSError as error:
                raise InvalidInput(
                    f"The experiment names {name}, and it can't be read in {self.folder} ({error.strerror}).",
                    fix="Ask the server's operator for the whole app folder.",
                ) from None
        return digests

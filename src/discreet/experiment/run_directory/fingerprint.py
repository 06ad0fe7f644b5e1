"""What a run is made from, as digests: another process can tell that it is the same, and nobody what it is.

Each digest is keyed by the run's key, which is not in the run directory, so nobody can try out guesses at the data. A
seed is no secret: whoever knows it can, as they can take off the noise.
"""

import hashlib
import json
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import discreet
from discreet.data.features.feature_cache import tensor_digest
from discreet.data.federation import Federation
from discreet.experiment.configuration import toml_document
from discreet.experiment.run_directory.code_digest import code_digest
from discreet.experiment.run_directory.module_files import ModuleFiles
from discreet.randomness.streams import params_digest as params_digest
from discreet.user_code import REFERENCE

if TYPE_CHECKING:
    from discreet.experiment.loop.job import Job


@dataclass(frozen=True)
class Fingerprint:
    """One keyed digest for each thing that decides what a run computes; versions are public, and in clear.

    `first_weights` are those of a model before its first round: later ones are in the checkpoint.
    """

    versions: dict[str, str]
    key: str
    experiment: str
    training_data: str
    public_data: str
    test_data: str
    model: str
    own_code: str
    source: str
    device: str
    first_weights: str

    @property
    def digest(self) -> str:
        """One name for all of it."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @classmethod
    def read(cls, data: Any) -> "Fingerprint | None":
        """From run.json; None where another version has written none, or one of other parts."""
        names = {field.name for field in fields(cls)}
        whole = isinstance(data, dict) and data.keys() == names and isinstance(data["versions"], dict)
        return cls(**data) if whole else None


def take_fingerprint(job: "Job") -> Fingerprint:
    """The fingerprint of a job as it is here and now. Clients who hold their data themselves are not looked at."""
    network = job.model.loss.module
    trained = [value for value in network.parameters() if value.requires_grad]

    def keyed_as(name: str, content: Any) -> str:
        return keyed_digest(job.key.secret, f"{name} {json.dumps(content, sort_keys=True)}")

    return Fingerprint(
        versions=versions(),
        key=keyed_as("key", None),
        experiment=keyed_as("experiment", _experiment(job)),
        training_data=keyed_as("training data", _examples(job.data) if job.holds_data else None),
        public_data=keyed_as("public data", None if job.public_data is None else _examples(job.public_data)),
        test_data=keyed_as("test data", [tensor_digest(each) for each in job.test_data]),
        model=keyed_as("model", code_digest(network, trained=trained)),
        own_code=keyed_as("own code", [code_digest(*job.model.user_functions), *_own_files(job)]),
        source=keyed_as("source", discreet_source()),
        device=keyed_as("device", job.device.type),
        first_weights=keyed_as("first weights", params_digest(job.params).hex()),
    )


def client_fingerprint(data: Federation, secret: bytes) -> str:
    """For a client on its own machine: what it was given to train on and the code here, keyed by its own secret."""
    return keyed_digest(secret, "client " + json.dumps([_examples(data), discreet_source(), versions()]))


def keyed_digest(secret: bytes, content: str) -> str:
    return hashlib.blake2b(content.encode(), key=secret[:64], digest_size=32, person=b"discreet resume").hexdigest()


def versions() -> dict[str, str]:
    """Of what computes a round and draws its noise. A later patch of Python runs the same bytecode."""
    return {
        "discreet": discreet.__version__,
        "python": ".".join(platform.python_version_tuple()[:2]),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
    }


@cache
def discreet_source() -> str:
    """One digest for all Python files of this package."""
    folder, found = Path(discreet.__file__).parent, hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        content = path.read_bytes()
        found.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    return found.hexdigest()


def _experiment(job: "Job") -> dict[str, Any]:
    """All of it, but for how long a server waits for real clients: no client agreed on that, and it changes no sum."""
    found = toml_document.parse_toml(job.resolved_text, "resolved.toml")
    if found.get("engine", {}).get("kind") == "flower":
        del found["engine"]
    return found


def _examples(data: Federation) -> dict[str, Any]:
    """All that it holds, whatever that may be one day."""
    held = {field.name: getattr(data, field.name) for field in fields(data)}
    return {name: tensor_digest(value) if isinstance(value, torch.Tensor) else value for name, value in held.items()}


def _own_files(job: "Job") -> list[str]:
    """The Python files that an experiment names, whole, and the user's files that they import."""
    if job.folder is None:
        return []
    found = ModuleFiles()
    for place in {*_places(toml_document.parse_toml(job.resolved_text, "resolved.toml"))}:
        if place.endswith(".py"):
            found.add_file(job.folder / place)
        else:
            found.add_module(place)
    return found.lines()


def _places(value: Any) -> Iterator[str]:
    """What stands before the colon of each `file.py:Name` in plain data."""
    if isinstance(value, str):
        if found := REFERENCE.fullmatch(value):
            yield found["location"]
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _places(each)

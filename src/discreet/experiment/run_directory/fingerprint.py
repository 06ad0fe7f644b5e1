"""Digests of everything that decides what a run computes, by which a resume recognises the same data and code.

Each digest is keyed by the run's key, which is not in the run directory, so nobody can test guesses at the data. A seed
is not secret: someone who knows it can test guesses, and can remove the noise too.
"""

import hashlib
import json
import platform
from collections.abc import Collection
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import discreet
from discreet.algorithms.declarations import client_parts
from discreet.code_version import read_code_version
from discreet.data.features.feature_cache import tensor_digest
from discreet.data.federation import Federation
from discreet.experiment.configuration import toml_document
from discreet.experiment.job import Job
from discreet.experiment.run_directory.code_digest import code_digest
from discreet.module_files import ModuleFiles
from discreet.randomness.streams import params_digest
from discreet.user_code import code_places
from discreet.user_part import user_parts

MODEL_TABLES = ("model", "task")  # of an experiment: what a module is built from


@dataclass(frozen=True)
class Fingerprint:
    """One keyed digest for each thing that decides what a run computes. Versions are public, and stored as they are.

    `first_weights` are those of the model before the first round; later ones are in the checkpoint.
    """

    versions: dict[str, str]
    key: str
    experiment: str
    agreement: str
    training_data: str
    public_data: str
    test_data: str
    validation_data: str
    model: str
    own_code: str
    source: str
    device: str
    first_weights: str

    @property
    def digest(self) -> str:
        """One digest of the whole fingerprint."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @classmethod
    def read(cls, data: Any) -> "Fingerprint | None":
        """Read the fingerprint from run.json. None if another version wrote none, or one with other fields."""
        names = {field.name for field in fields(cls)}
        whole = isinstance(data, dict) and data.keys() == names and isinstance(data["versions"], dict)
        return cls(**data) if whole else None


def take_fingerprint(job: Job) -> Fingerprint:
    """Take the fingerprint of a job. Data that real clients keep themselves is not part of it."""
    network = job.model.loss.module
    trained = [value for value in network.parameters() if value.requires_grad]

    def keyed_value(name: str, content: Any) -> str:
        return keyed_digest(job.key.secret, f"{name} {json.dumps(content, sort_keys=True)}")

    return Fingerprint(
        versions=versions(),
        key=keyed_value("key", None),
        experiment=keyed_value("experiment", _experiment(job)),
        agreement=keyed_value("agreement", None if job.deployment is None else job.deployment.agreement),
        training_data=keyed_value("training data", _examples(job.data) if job.holds_data else None),
        public_data=keyed_value("public data", None if job.public_data is None else _examples(job.public_data)),
        test_data=keyed_value("test data", [tensor_digest(tensor) for tensor in job.test_data]),
        validation_data=keyed_value("validation data", [tensor_digest(tensor) for tensor in job.validation_data or ()]),
        model=keyed_value("model", code_digest(network, trained=trained)),
        own_code=keyed_value("own code", [own_code_digest(job), *own_files(job.folder, job.resolved_text)]),
        source=keyed_value("source", discreet_source()),
        device=keyed_value("device", job.device.type),
        first_weights=keyed_value("first weights", params_digest(job.params).hex()),
    )


def client_fingerprint(data: Federation, secret: bytes) -> str:
    """Return the fingerprint of a real client: its training data and the code here, keyed by its own secret."""
    return keyed_digest(secret, "client " + json.dumps([_examples(data), discreet_source(), versions()]))


def keyed_digest(secret: bytes, content: str) -> str:
    """Return a digest of the content that only someone with the secret can compute."""
    return hashlib.blake2b(content.encode(), key=secret[:64], digest_size=32, person=b"discreet resume").hexdigest()


def versions() -> dict[str, str]:
    """Return the versions of what computes a round and draws its noise. A patch of Python changes no bytecode.

    Commits on the way to a version have its number: whether their code is the same, `discreet_source` says.
    """
    return {
        "discreet": read_code_version().release,
        "python": ".".join(platform.python_version_tuple()[:2]),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
    }


@cache
def discreet_source() -> str:
    """Return one digest of all Python files of this package."""
    folder, total = Path(discreet.__file__).parent, hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        content = path.read_bytes()
        total.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    return total.hexdigest()


def _experiment(job: Job) -> dict[str, Any]:
    """Return the experiment without how long a server waits for real clients, which changes no sum."""
    experiment = toml_document.parse_toml(job.resolved_text, "resolved.toml")
    if not job.settings.engine.is_simulated:
        del experiment["engine"]
    return experiment


def _examples(data: Federation) -> dict[str, Any]:
    """Return every field of the data, with digests in place of tensors."""
    held = {field.name: getattr(data, field.name) for field in fields(data)}
    return {name: tensor_digest(value) if isinstance(value, torch.Tensor) else value for name, value in held.items()}


def own_code_digest(job: Job) -> str:
    """Return a digest of the user's loss and metric and of the user's own parts, with the values that they hold."""
    return code_digest(*job.model.user_functions, *(own.target for own in user_parts(job.algorithm)))


def training_code_digest(job: Job) -> str:
    """Return a digest of what a sum is computed with: the user's loss, the own parts of clients, the network's code.

    The metric and the server optimiser change no sum of a round. The values of the network's tensors don't count: they
    are a copy that nobody else holds.
    """
    loss, _ = job.model.user_functions
    network = job.model.loss.module
    held = [*network.parameters(), *network.buffers()]
    return code_digest(loss, *(own.target for own in client_parts(job.algorithm)), network, trained=held)


def own_files(folder: Path | None, resolved: str, tables: Collection[str] | None = None) -> list[str]:
    """Return name and digest of the Python files that an experiment names, and of the user's files that they import.

    Args:
        folder: The folder that file names are relative to. None for a run from Python, which names none.
        resolved: The text of resolved.toml.
        tables: The keys of the experiment to look at, such as `model`. None for all.
    """
    if folder is None:
        return []
    files, experiment = ModuleFiles(), toml_document.parse_toml(resolved, "resolved.toml")
    looked_at = {key: value for key, value in experiment.items() if tables is None or key in tables}
    for place in {*code_places(looked_at)}:
        if place.endswith(".py"):
            files.add_file(folder / place)
        else:
            files.add_module(place)
    return files.lines()

"""What server and clients have agreed on: the folder that all of them hold, and the digest that names it."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from discreet.deploy.deployment import Deployment, record
from discreet.engines.flower.calls import Member
from discreet.errors import InvalidInput
from discreet.experiment.config import Experiment, Source
from discreet.part import plain
from discreet.places import Places
from discreet.population import Population
from discreet.randomness import RunKey

RESOLVED, CERTIFICATE = "resolved.toml", "ca.crt"
# Of an experiment: what clients do.
AGREED = ("rounds", "seed", "task", "model", "loss", "privacy", "algorithm", "dtype")


def public_draws(experiment: Experiment) -> RunKey:
    """For what all must draw alike, and nobody keeps secret: how a task is dealt out, and a model's first weights."""
    return RunKey.seed(experiment.seed or 0)


@dataclass(frozen=True)
class App:
    """The agreed folder, read: deployment.toml, resolved.toml (the experiment in full), ca.crt and clients' cards."""

    folder: Path
    deployment: Deployment
    experiment: Experiment

    @classmethod
    def open(cls, folder: Path) -> "App":
        return cls(folder, Deployment.open(folder), record(Experiment, folder / RESOLVED))

    @property
    def population(self) -> Population:
        sizes = tuple(each.examples for each in self.deployment.clients)
        return Population(examples=sizes, max_multiplicity=self.deployment.max_multiplicity)

    @property
    def certificate(self) -> Path:
        return self.folder / CERTIFICATE

    @cached_property
    def digest(self) -> str:
        """One short name for all that a client is asked to do: the algorithm with all its numbers, the model, on which
        columns and for which label, and with whom. A table's path is that of the copy that everybody has.

        Who is behind a client's name it doesn't say: cards come later, and the owner's policy pins them.
        """
        whole = plain(self.experiment)
        agreed = {name: whole[name] for name in AGREED} | {
            "clients": [each.name for each in self.deployment.clients],
            "population": plain(self.population),
            "code": self._code(),
        }
        return hashlib.sha256(json.dumps(agreed, sort_keys=True).encode()).hexdigest()

    @cached_property
    def members(self) -> tuple[Member, ...]:
        return tuple(Member(card.name, bytes.fromhex(card.identity)) for card in self.deployment.cards(self.folder))

    def source(self, data_dir: Path | None = None) -> Source:
        return Source(self.experiment, "", Places.of(self.folder.resolve(), data_dir))

    def number(self, name: str) -> int:
        names = [each.name for each in self.deployment.clients]
        if name not in names:
            raise InvalidInput(f"{name!r} is no client of this deployment.", fix=f"Its clients: {', '.join(names)}.")
        return names.index(name)

    def _code(self) -> dict[str, str]:
        """Digests of the users' own files that the experiment names."""
        named = [self.experiment.loss, getattr(self.experiment.model, "kind", None)]
        places = sorted({str(each).rpartition(":")[0] for each in named if each and ":" in str(each)})
        files = {place: self.folder / place for place in places if place.endswith(".py")}
        return {place: hashlib.sha256(path.read_bytes()).hexdigest() for place, path in files.items()}

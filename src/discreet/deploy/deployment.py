"""Who takes part and where the server is: what is public of a deployment, read without anything heavy."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from discreet.errors import InvalidInput
from discreet.experiment import document
from discreet.part import Count, part

DEPLOYMENT, CARDS = "deployment.toml", "clients"
FileName = Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,40}$")]
Key = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]  # Ed25519, public, in hexadecimal


@part
class Declared:
    """A client by its name, and how many examples it trains on: both are public, by declaration."""

    name: FileName
    examples: Count


@part
class Deployment:
    """Where the server is, the key it signs with, and who the clients are."""

    address: str
    server_key: Key
    clients: tuple[Declared, ...]
    max_multiplicity: Count = 1

    def __post_init__(self) -> None:
        names = [each.name for each in self.clients]
        if len(set(names)) < len(names):
            raise InvalidInput(f"Clients must differ in name, and got {', '.join(names)}.")

    @classmethod
    def open(cls, app: Path) -> "Deployment":
        if not (app / DEPLOYMENT).is_file():
            raise InvalidInput(f"{app} holds no {DEPLOYMENT}.", fix="Name the app folder: discreet deploy init")
        made: Deployment = record(cls, app / DEPLOYMENT)
        return made

    def cards(self, app: Path) -> "list[Card]":
        """One of each client, in order; all must be there."""
        return [_card(app / CARDS / f"{each.name}.toml", each.name) for each in self.clients]


@part
class Card:
    """What is public of a client: the key that the SuperLink knows its node by, and the one it signs with."""

    name: FileName
    node_key: str
    identity: Key


def record(kind: Any, path: Path) -> Any:
    """The record that a file describes; what is wrong with it is said with its name."""
    try:
        return document.built(kind, document.parsed(document.text_of(path), str(path)))
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error.problem}", fix=error.fix) from None


def _card(path: Path, name: str) -> Card:
    if not path.is_file():
        raise InvalidInput(
            f"There is no card of {name!r} in {path.parent}.", fix="Each client makes one with: discreet deploy enroll"
        )
    card: Card = record(Card, path)
    if card.name != name:
        raise InvalidInput(f"{path} is the card of {card.name!r}.", fix=f"Ask the owner of {name!r} for its card.")
    return card

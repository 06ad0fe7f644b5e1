"""Who takes part and where the server is: what is public of a deployment, read without anything heavy."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from discreet.deploy.certificates import is_node_key
from discreet.errors import InvalidInput
from discreet.experiment.configuration import toml_document
from discreet.part import Count, Flag, part

DEPLOYMENT_FILE = "deployment.toml"
CARDS_FOLDER = "clients"


def _matching(pattern: str, allowed: str) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"must be {allowed}")
        return text

    return AfterValidator(check)


ClientName = Annotated[str, _matching("[A-Za-z0-9_-]{1,40}", "1 to 40 letters (a to z, A to Z), digits, - and _")]
Hex256 = Annotated[str, _matching("[0-9a-f]{64}", "64 hexadecimal digits")]  # Ed25519, public


@part
class DeclaredClient:
    """A client by its name, and how many examples it trains on: both are public, by declaration."""

    name: ClientName
    examples: Count


@part
class Deployment:
    """Where the server is, the key it signs with, and who the clients are.

    `data_ranges` says that the experiment's ranges were taken from data, which the server's owner accepted.
    """

    address: str
    server_key: Hex256
    clients: tuple[DeclaredClient, ...]
    max_multiplicity: Count = 1
    data_ranges: Flag = False

    def __post_init__(self) -> None:
        check_distinct_names(self.clients)

    @classmethod
    def open(cls, app: Path) -> "Deployment":
        if not (app / DEPLOYMENT_FILE).is_file():
            raise InvalidInput(f"{app} holds no {DEPLOYMENT_FILE}.", fix="Name the app folder: discreet deploy init")
        made: Deployment = read_record(cls, app / DEPLOYMENT_FILE)
        return made

    def read_cards(self, app: Path) -> "list[Card]":
        """One of each client, in order; all must be there."""
        return [_read_card(app / CARDS_FOLDER / f"{each.name}.toml", each.name) for each in self.clients]


@part
class Card:
    """What is public of a client: the key that the SuperLink knows its node by, and the one it signs with."""

    name: ClientName
    node_key: str
    identity: Hex256


def check_distinct_names(clients: Iterable[DeclaredClient]) -> None:
    names = [each.name for each in clients]
    if len(set(names)) < len(names):
        raise InvalidInput(f"Clients must differ in name, and got {', '.join(names)}.")


def read_record(kind: Any, path: Path) -> Any:
    """The record that a file describes; what is wrong with it is said with its name."""
    try:
        return toml_document.build_record(kind, toml_document.parse_toml(toml_document.read_toml_text(path), str(path)))
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error.problem}", fix=error.fix) from None


def _read_card(path: Path, name: str) -> Card:
    if not path.is_file():
        raise InvalidInput(
            f"There is no card of {name!r} in {path.parent}.", fix="Each client makes one with: discreet deploy enroll"
        )
    card: Card = read_record(Card, path)
    if card.name != name:
        raise InvalidInput(f"{path} is the card of {card.name!r}.", fix=f"Ask the owner of {name!r} for its card.")
    if not is_node_key(card.node_key):
        raise InvalidInput(
            f"{path}: node_key must be a public key on an elliptic curve, as OpenSSH writes it, and got "
            f"{card.node_key[:40]!r}.",
            fix=f"Ask the owner of {name!r} for its card.",
        )
    return card

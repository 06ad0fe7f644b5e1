"""The public facts of a deployment: the clients and the server's address. Imports nothing heavy."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from discreet.deploy.certificates import is_node_key
from discreet.durable_files import write_durably
from discreet.errors import InvalidInput
from discreet.experiment.configuration import toml_document
from discreet.file_version import FIRST, check_file_version
from discreet.part import Count, Flag, part, to_plain

DEPLOYMENT_FILE = "deployment.toml"
CARDS_FOLDER = "clients"
FIRST_MEMBERSHIP = 1


def _pattern_validator(pattern: str, allowed: str) -> AfterValidator:
    """Validate that a text matches `pattern`; `allowed` describes the pattern in the error."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"must be {allowed}")
        return text

    return AfterValidator(check)


NAME_PATTERN, NAME_WORDS = "[A-Za-z0-9_-]{1,40}", "1 to 40 letters (a to z, A to Z), digits, - and _"
ClientName = Annotated[str, _pattern_validator(NAME_PATTERN, NAME_WORDS)]
Hex256 = Annotated[str, _pattern_validator("[0-9a-f]{64}", "64 hexadecimal digits")]
"""An Ed25519 public key or a SHA-256 digest, in hexadecimal."""
HexSignature = Annotated[str, _pattern_validator("[0-9a-f]{128}", "128 hexadecimal digits")]
"""An Ed25519 signature, in hexadecimal."""


@part
class DeclaredClient:
    """A client's name and the number of examples it trains on. Both are declared by its owner and public."""

    name: ClientName
    examples: Count


@part
class Deployment:
    """The content of deployment.toml.

    Attributes:
        address: Host and port of the server.
        server_key: Public key with which the server signs its requests.
        clients: The clients. A client's number is its position here.
        max_multiplicity: Number of clients that may hold the same example.
        data_ranges: Whether the experiment's ranges were taken from data, which the server's owner accepted.
        membership: The number of this list of clients; see `membership.Membership`.
        version: The form of the app folder. One of an older version of Discreet names none, and is of the first.
    """

    address: str
    server_key: Hex256
    clients: tuple[DeclaredClient, ...]
    max_multiplicity: Count = 1
    data_ranges: Flag = False
    membership: Count = FIRST_MEMBERSHIP
    version: Count = FIRST

    def __post_init__(self) -> None:
        check_distinct_names(self.clients)

    @classmethod
    def open(cls, app: Path) -> "Deployment":
        """Read deployment.toml in the app folder `app`."""
        if not (app / DEPLOYMENT_FILE).is_file():
            raise InvalidInput(
                f"{app} does not contain {DEPLOYMENT_FILE}.",
                fix="Name the app folder that `discreet deploy init` created.",
            )
        deployment: Deployment = read_record(cls, app / DEPLOYMENT_FILE)
        return deployment

    def read_cards(self, app: Path) -> "list[Card]":
        """Read the card of every client, in the clients' order.

        Raises:
            InvalidInput: A card is missing or does not belong to its client, or two have the same key.
        """
        cards = [read_card(app / CARDS_FOLDER / f"{client.name}.toml", client.name) for client in self.clients]
        check_distinct_keys(cards)
        return cards


@part
class Card:
    """The public keys of a client.

    Attributes:
        name: The client's name.
        node_key: Key by which the SuperLink authenticates the client's node, in OpenSSH's format.
        identity: Key with which the client signs its messages to other clients.
    """

    name: ClientName
    node_key: str
    identity: Hex256


def check_client_name(name: str) -> None:
    """Refuse a name that no client may have, in the words of a command line."""
    if not re.fullmatch(NAME_PATTERN, name):
        raise InvalidInput(f"The name of a client must be {NAME_WORDS}, and got {name!r}.")


def check_distinct_names(clients: Iterable[DeclaredClient]) -> None:
    """Refuse two clients of the same name."""
    names = [client.name for client in clients]
    if repeated := [name for name, times in Counter(names).items() if times > 1]:
        raise InvalidInput(f"Clients must have different names, and got {repeated[0]!r} more than once.")


def check_distinct_keys(cards: Iterable[Card]) -> None:
    """Refuse two cards with a key in common. All keys are public, so a client could write another one's on its card."""
    owners: dict[str, str] = {}
    for card in cards:
        for kind, key in (("node key", card.node_key), ("signing key", card.identity)):
            if (owner := owners.setdefault(key, card.name)) != card.name:
                raise InvalidInput(
                    f"The cards of {owner!r} and {card.name!r} have the same {kind}.",
                    fix="Ask both owners whose key it is, by a way that you trust. The other one has to hand in a card "
                    "with keys of its own.",
                )


def read_record(kind: Any, path: Path) -> Any:
    """Read a TOML file as a record of this kind. Errors name the file."""
    content = toml_document.parse_toml(toml_document.read_toml_text(path), str(path))
    if kind is Deployment:
        check_file_version(content, path)  # before its keys, of which a newer version may have others
    try:
        return toml_document.build_record(kind, content)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error.problem}", fix=error.fix) from None


def write_record(record: Any, path: Path) -> None:
    """Write a record as a TOML file, which `read_record` reads. A crash leaves the old file or the new one."""
    write_durably(path, format_record(record))


def format_record(record: Any) -> bytes:
    """Return the content of a TOML file, which `read_record` reads."""
    return toml_document.format_toml(to_plain(record)).encode()


def read_card(path: Path, name: str) -> Card:
    """Read and check the card of the client `name`."""
    if not path.is_file():
        raise InvalidInput(
            f"There is no card of {name!r} in {path.parent}.",
            fix="Each client creates its card with: discreet deploy enroll. The server's operator puts all cards "
            "there, and hands out the folder again.",
        )
    card: Card = read_record(Card, path)
    if card.name != name:
        raise InvalidInput(f"{path} is the card of {card.name!r}.", fix=f"Ask the owner of {name!r} for its card.")
    if not is_node_key(card.node_key):
        raise InvalidInput(
            f"{path}: node_key must be a public key on an elliptic curve, as OpenSSH writes it without a comment, and "
            f"got {card.node_key[:40]!r}.",
            fix=f"Ask the owner of {name!r} for its card.",
        )
    return card

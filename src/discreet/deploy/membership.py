"""A numbered list of a deployment's clients and their keys, which is in force once every client in it has signed it."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from discreet.deploy.app_folder import AppFolder
from discreet.deploy.deployment import CARDS_FOLDER, FIRST_MEMBERSHIP, Card, ClientName, HexSignature, read_record
from discreet.errors import InvalidInput, shorten_names
from discreet.part import Count, part
from discreet.secure_sums.secagg import key_agreement

GROUP_DIGITS = 4  # hexadecimal digits in a group, to be read out
# 160 bits: a server that forges the cards of both sides may choose both sets, and looks for any two with the same code.
# That takes the square root of all codes in tries: 2^40 for 80 bits, which is feasible, and 2^80 here.
CODE_GROUPS = 10


@part
class MembershipSignature:
    """The content of NAME.signed.toml: a client's signature of a membership.

    Attributes:
        name: The client's name.
        membership: The number of the membership.
        signature: The client's Ed25519 signature of the membership's statement.
    """

    name: ClientName
    membership: Count
    signature: HexSignature


def signature_name(client: str) -> str:
    """Return the name of the file with a client's signature, in its own folder and beside its card."""
    return f"{client}.signed.toml"


@dataclass(frozen=True)
class Membership:
    """Who takes part in which experiment, by which keys.

    The first membership is compared by its owners over the telephone. Every later one is signed by all clients in it,
    so that a server can't add clients of its own, to dilute the others' updates, unless every owner agrees to them.

    Attributes:
        number: It grows by one with each change. A policy accepts one number, and never an earlier one again.
        experiment: Digest of the app folder: the experiment with its noise, the clients' names and sizes.
        cards: The clients' cards, in the clients' order.
    """

    number: int
    experiment: str
    cards: tuple[Card, ...]

    @classmethod
    def open(cls, app: AppFolder) -> "Membership":
        """Read the membership of an app folder.

        Raises:
            InvalidInput: A card is missing or does not belong to its client.
        """
        return cls(app.deployment.membership, app.digest, tuple(app.deployment.read_cards(app.folder)))

    @property
    def statement(self) -> bytes:
        """The bytes that every client signs."""
        lines = "".join(f"{card.name} {card.identity}\n" for card in self.cards)
        return f"discreet membership {self.number}\n{self.experiment}\n{lines}".encode()

    @property
    def code(self) -> str:
        """The digits of the statement. Clients with the same code have the same experiment and the same cards."""
        return format_digest(self.statement, CODE_GROUPS)

    @property
    def is_first(self) -> bool:
        return self.number == FIRST_MEMBERSHIP

    def sign(self, client: str, identity: bytes) -> MembershipSignature:
        """Return the client's signature, by its secret signing key."""
        signature = key_agreement.sign(identity, self.statement).hex()
        return MembershipSignature(name=client, membership=self.number, signature=signature)

    def missing_signatures(self, app: Path) -> list[str]:
        """Return the clients whose valid signature is not in the app folder; nobody for the first membership."""
        return [] if self.is_first else [card.name for card in self.cards if not self._is_signed(app, card)]

    def _is_signed(self, app: Path, card: Card) -> bool:
        path = app / CARDS_FOLDER / signature_name(card.name)
        if not path.is_file():
            return False
        found: MembershipSignature = read_record(MembershipSignature, path)
        key, signature = bytes.fromhex(card.identity), bytes.fromhex(found.signature)
        return found.name == card.name and key_agreement.is_signature_valid(key, self.statement, signature)


def check_in_force(app: AppFolder) -> None:
    """Refuse an app folder whose membership some of its clients have not signed."""
    if app.deployment.membership == FIRST_MEMBERSHIP:
        return
    membership = Membership.open(app)
    if missing := membership.missing_signatures(app.folder):
        raise InvalidInput(
            f"Membership {membership.number} is not in force: {app.folder / CARDS_FOLDER} has no valid signature of it "
            f"by {shorten_names(missing)}.",
            fix="Each client signs it with `discreet deploy accept`; the server's operator puts the files "
            "NAME.signed.toml there, and hands out the app folder again.",
        )


def format_digest(content: bytes, groups: int) -> str:
    """Format the first digits of a SHA-256 in groups, to be read out."""
    digest = hashlib.sha256(content).hexdigest()
    return "-".join(digest[at : at + GROUP_DIGITS] for at in range(0, groups * GROUP_DIGITS, GROUP_DIGITS))

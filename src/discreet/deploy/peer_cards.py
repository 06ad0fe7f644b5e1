"""The cards of all clients: shown as digits for their owners to compare, then pinned in the policy."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from discreet.deploy.certificates import read_key
from discreet.deploy.deployment import Card
from discreet.deploy.policy import POLICY_FILE, ClientFolder, PolicyRefusal
from discreet.durable_files import OWNER, write_durably
from discreet.errors import InvalidInput
from discreet.experiment.configuration import toml_document
from discreet.secure_sums.secagg import key_agreement

GROUP_DIGITS = 4  # hexadecimal digits in a group, to be read out
# 80 bits for one card: an attacker would have to find a key with the same digits as a given one.
CARD_GROUPS = 5
# 160 bits for all cards: a server that forges the cards of both sides may choose both sets, and looks for any two with
# the same code. That takes the square root of all codes in tries: 2^40 for 80 bits, which is feasible, and 2^80 here.
CODE_GROUPS = 10
MEMBERS_COMMENT = """
# All clients, by the keys that they sign with: what `discreet deploy accept` pinned. A sum with others is refused.
"""


@dataclass(frozen=True)
class PeerCards:
    """The cards in the app folder, for a client's owner to compare before the first secure sum."""

    client_folder: ClientFolder
    cards: tuple[Card, ...]

    @classmethod
    def open(cls, folder: Path) -> "PeerCards":
        """Read the cards.

        Raises:
            PolicyRefusal: This client's card has another key, or the cards differ from those that are pinned.
        """
        owned = ClientFolder.open(folder)
        cards = tuple(owned.cards())
        client, identity = owned.policy.client, key_agreement.identity_key(read_key(folder / "identity.key")).hex()
        if [card.identity for card in cards if card.name == client] != [identity]:
            raise PolicyRefusal(
                f"The app folder contains a card of {client!r} that is not this client's own.",
                fix=f"Hand {folder / f'{client}.toml'} to the server's operator, by a way that you trust.",
            )
        return cls(owned, cards)

    @property
    def code(self) -> str:
        """The digits of all cards together. If all clients have the same code, they have the same cards."""
        return _digest_groups(CODE_GROUPS, *self.cards)

    @property
    def fingerprints(self) -> dict[str, str]:
        """The digits of each client's card, to find the card that differs if the codes do."""
        return {card.name: fingerprint(card) for card in self.cards}

    def pin(self, code: str) -> None:
        """Write the cards' keys into the policy, if `code` is the code that the owners compared."""
        if "".join(filter(str.isalnum, code)).lower() != self.code.replace("-", ""):
            raise InvalidInput(
                f"The cards in the app folder have the code {self.code}, and got {code!r}.",
                fix="Find whose card differs, and ask its owner, not the server.",
            )
        if self.client_folder.policy.members is not None:
            return
        path = self.client_folder.folder / POLICY_FILE
        members = toml_document.format_toml({"members": {card.name: card.identity for card in self.cards}})
        write_durably(path, (path.read_text(encoding="utf-8") + MEMBERS_COMMENT + members).encode(), OWNER)


def fingerprint(card: Card) -> str:
    """Return the digits of one card."""
    return _digest_groups(CARD_GROUPS, card)


def _digest_groups(groups: int, *cards: Card) -> str:
    """Format the first digits of the cards' SHA-256 in groups."""
    lines = "".join(f"{card.name} {card.identity}\n" for card in cards)
    digest = hashlib.sha256(f"discreet cards\n{lines}".encode()).hexdigest()
    return "-".join(digest[at : at + GROUP_DIGITS] for at in range(0, groups * GROUP_DIGITS, GROUP_DIGITS))

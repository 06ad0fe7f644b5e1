"""Who the others are: cards that a server handed on, as digits for their owners to compare, and then pinned."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from discreet.deploy.certificates import key_from
from discreet.deploy.deployment import Card
from discreet.deploy.journal import place
from discreet.deploy.policy import POLICY, Owned, Refused
from discreet.errors import InvalidInput
from discreet.experiment.configuration import toml_document
from discreet.secure_sums.secagg import key_agreement

DIGITS = 4  # in a group, to be read out
# 80 bits for one card: its key is its owner's, and nobody finds another one with the same digits.
ONE = 5
# 160 for all of them: a server that shows made-up cards to both sides chooses both, and would look for any two sets
# whose codes agree. That takes the square root of as many tries: 2^40 for 80 bits, which can be done, and 2^80 here.
ALL = 10
PINNED = """
# All clients, by the keys that they sign with: what `discreet deploy accept` pinned. A sum with others is refused.
"""


@dataclass(frozen=True)
class Cards:
    """The cards in the agreed folder, as a node's owner looks at them before a first secure sum."""

    owned: Owned
    cards: tuple[Card, ...]

    @classmethod
    def open(cls, folder: Path) -> "Cards":
        """This client's own card must be its own, and those that were pinned before must be the same."""
        owned = Owned.open(folder)
        cards = tuple(owned.cards())
        client, identity = owned.policy.client, key_agreement.identity_of(key_from(folder / "identity.key")).hex()
        if [card.identity for card in cards if card.name == client] != [identity]:
            raise Refused(
                f"The app folder holds another card of {client!r} than this node's own.",
                fix=f"Hand {folder / f'{client}.toml'} to whoever runs the server, in a way that you trust.",
            )
        return cls(owned, cards)

    @property
    def code(self) -> str:
        """One for all cards together: where it is the same at every client, each holds what the others do."""
        return _digits(ALL, *self.cards)

    @property
    def fingerprints(self) -> dict[str, str]:
        """One for each client, to find the card that differs where the code does."""
        return {card.name: fingerprint(card) for card in self.cards}

    def accept(self, code: str) -> None:
        """Pin them, if they are what the owners read to each other."""
        if "".join(filter(str.isalnum, code)).lower() != self.code.replace("-", ""):
            raise InvalidInput(
                f"The cards in the app folder have the code {self.code}, and got {code!r}.",
                fix="Find whose card differs, and ask its owner, not the server.",
            )
        if self.owned.policy.members is not None:
            return
        path = self.owned.folder / POLICY
        members = toml_document.format_toml({"members": {card.name: card.identity for card in self.cards}})
        place(path, (path.read_text(encoding="utf-8") + PINNED + members).encode())


def fingerprint(card: Card) -> str:
    return _digits(ONE, card)


def _digits(groups: int, *cards: Card) -> str:
    said = "".join(f"{card.name} {card.identity}\n" for card in cards)
    digest = hashlib.sha256(f"discreet cards\n{said}".encode()).hexdigest()
    return "-".join(digest[at : at + DIGITS] for at in range(0, groups * DIGITS, DIGITS))

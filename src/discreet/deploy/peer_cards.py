"""Who the others are: cards that a server handed on, as digits for their owners to compare, and then pinned."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from discreet.deploy.certificates import read_key
from discreet.deploy.deployment import Card
from discreet.deploy.journal import write_durably
from discreet.deploy.policy import POLICY_FILE, ClientFolder, PolicyRefusal
from discreet.errors import InvalidInput
from discreet.experiment.configuration import toml_document
from discreet.secure_sums.secagg import key_agreement

GROUP_DIGITS = 4  # in a group, to be read out
# 80 bits for one card: its key is its owner's, and nobody finds another one with the same digits.
CARD_GROUPS = 5
# 160 for all of them: a server that shows made-up cards to both sides chooses both, and would look for any two sets
# whose codes agree. That takes the square root of as many tries: 2^40 for 80 bits, which can be done, and 2^80 here.
CODE_GROUPS = 10
MEMBERS_COMMENT = """
# All clients, by the keys that they sign with: what `discreet deploy accept` pinned. A sum with others is refused.
"""


@dataclass(frozen=True)
class PeerCards:
    """The cards in the agreed folder, as a node's owner looks at them before a first secure sum."""

    client_folder: ClientFolder
    cards: tuple[Card, ...]

    @classmethod
    def open(cls, folder: Path) -> "PeerCards":
        """This client's own card must be its own, and those that were pinned before must be the same."""
        owned = ClientFolder.open(folder)
        cards = tuple(owned.cards())
        client, identity = owned.policy.client, key_agreement.identity_key(read_key(folder / "identity.key")).hex()
        if [card.identity for card in cards if card.name == client] != [identity]:
            raise PolicyRefusal(
                f"The app folder holds another card of {client!r} than this node's own.",
                fix=f"Hand {folder / f'{client}.toml'} to whoever runs the server, in a way that you trust.",
            )
        return cls(owned, cards)

    @property
    def code(self) -> str:
        """One for all cards together: where it is the same at every client, each holds what the others do."""
        return _digest_groups(CODE_GROUPS, *self.cards)

    @property
    def fingerprints(self) -> dict[str, str]:
        """One for each client, to find the card that differs where the code does."""
        return {card.name: fingerprint(card) for card in self.cards}

    def pin(self, code: str) -> None:
        """Pin them, if they are what the owners read to each other."""
        if "".join(filter(str.isalnum, code)).lower() != self.code.replace("-", ""):
            raise InvalidInput(
                f"The cards in the app folder have the code {self.code}, and got {code!r}.",
                fix="Find whose card differs, and ask its owner, not the server.",
            )
        if self.client_folder.policy.members is not None:
            return
        path = self.client_folder.folder / POLICY_FILE
        members = toml_document.format_toml({"members": {card.name: card.identity for card in self.cards}})
        write_durably(path, (path.read_text(encoding="utf-8") + MEMBERS_COMMENT + members).encode())


def fingerprint(card: Card) -> str:
    return _digest_groups(CARD_GROUPS, card)


def _digest_groups(groups: int, *cards: Card) -> str:
    said = "".join(f"{card.name} {card.identity}\n" for card in cards)
    digest = hashlib.sha256(f"discreet cards\n{said}".encode()).hexdigest()
    return "-".join(digest[at : at + GROUP_DIGITS] for at in range(0, groups * GROUP_DIGITS, GROUP_DIGITS))

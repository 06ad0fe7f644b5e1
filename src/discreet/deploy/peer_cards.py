"""The cards of all clients: shown as digits for their owners to compare, then pinned in the policy and signed."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from discreet.algorithms.declarations import client_parts
from discreet.deploy.app_folder import AppFolder
from discreet.deploy.certificates import read_key
from discreet.deploy.client_ledger import budget_for_run
from discreet.deploy.deployment import Card, write_record
from discreet.deploy.membership import Membership, format_digest, signature_name
from discreet.deploy.policy import POLICY_FILE, ClientFolder, Policy, PolicyRefusal
from discreet.durable_files import OWNER, write_durably
from discreet.engines.secure_terms import plan_session
from discreet.errors import InvalidInput, Unsupported
from discreet.experiment.configuration import toml_document

# 80 bits for one card: an attacker would have to find a key with the same digits as a given one.
CARD_GROUPS = 5
MEMBERS_COMMENT = """
# All clients, by the keys that they sign with: what `discreet deploy accept` pinned. A sum with others is refused.
"""


class Changes(NamedTuple):
    """How a membership differs from the clients that a policy has pinned: names of clients."""

    join: list[str]
    leave: list[str]
    new_keys: list[str]


@dataclass(frozen=True)
class PeerCards:
    """The cards in the app folder, for a client's owner to compare before the first secure sum."""

    client_folder: ClientFolder
    app: AppFolder
    membership: Membership

    @classmethod
    def open(cls, folder: Path) -> "PeerCards":
        """Read the cards.

        Raises:
            PolicyRefusal: This client's card has another key, the cards or the experiment differ from those that the
                policy has for this membership, or the policy has accepted a later one.
        """
        owned = ClientFolder.read(folder)
        policy, app = owned.policy, AppFolder.open(owned.app)
        membership = Membership.open(app)
        if policy.membership >= membership.number:
            policy.allow_membership(membership.number)
            policy.allow_cards(membership.cards)
            if not membership.is_first:  # two experiments are signed under one number only if `algorithms` has both
                policy.allow_algorithm(membership.experiment)
        owned.check_own_card(membership.cards)
        return cls(owned, app, membership)

    @property
    def policy(self) -> Policy:
        return self.client_folder.policy

    @property
    def code(self) -> str:
        """The digits of all cards and the experiment together, which all owners compare."""
        return self.membership.code

    @property
    def fingerprints(self) -> dict[str, str]:
        """The digits of each client's card, to find the card that differs if the codes do."""
        return {card.name: fingerprint(card) for card in self.membership.cards}

    @property
    def changes(self) -> Changes:
        """What is new against the pinned cards. Nothing if none are pinned, or if they are these."""
        pinned = self.policy.members
        now = {card.name: card.identity for card in self.membership.cards}
        if pinned is None:
            return Changes([], [], [])
        return Changes(
            join=[name for name in now if name not in pinned],
            leave=[name for name in pinned if name not in now],
            new_keys=[name for name in now if name in pinned and pinned[name] != now[name]],
        )

    def run_costs(self) -> list[tuple[float, float]]:
        """Return for each budget of the policy the ε that a whole run takes, and the ε that the policy allows.

        A budget that can't count the experiment is left out: the node refuses it when it starts.
        """
        experiment, costs = self.app.experiment, []
        if client_parts(experiment.algorithm):  # only their owner's prices say what they cost
            return []
        for budget in self.policy.budgets:
            try:
                needed = budget_for_run(budget, experiment.algorithm, self.app.population, experiment.rounds)
            except Unsupported:
                continue
            costs.append((needed.epsilon, budget.epsilon))
        return costs

    def pin(self, code: str) -> Path | None:
        """Write the cards' keys into the policy, if `code` is the code that the owners compared.

        A membership after the first one also replaces the experiment that the policy allows, and is signed.

        Returns:
            The file with the signature, for the server's operator; None for the first membership.

        Raises:
            InvalidInput: The code is another one.
            PolicyRefusal: The membership's sums may be smaller than the policy's `minimum_cohort`.
        """
        if "".join(filter(str.isalnum, code)).lower() != self.code.replace("-", ""):
            raise InvalidInput(
                f"The cards in the app folder have the code {self.code}, but you typed {code!r}.",
                fix="Find whose card differs, and ask its owner, not the server.",
            )
        self._check_cohort()
        if self.policy.members is None or self.policy.membership != self.membership.number:
            path = self.client_folder.folder / POLICY_FILE
            write_durably(path, self._accepting_policy(path.read_text(encoding="utf-8")).encode(), OWNER)
        return None if self.membership.is_first else self._write_signature()

    def _check_cohort(self) -> None:
        algorithm = self.app.experiment.algorithm
        if self.membership.is_first or client_parts(algorithm):
            return
        needed = plan_session(algorithm, self.app.population.clients).needed
        if algorithm.aggregation.is_secure and needed < self.policy.minimum_cohort:
            raise PolicyRefusal(
                f"policy.toml has minimum_cohort = {self.policy.minimum_cohort}, and membership "
                f"{self.membership.number} plans sums of at least {needed} clients.",
                fix=f"If sums of {needed} are enough, set minimum_cohort = {needed} in policy.toml, and accept again.",
            )

    def _accepting_policy(self, text: str) -> str:
        """Return the policy's text with this membership accepted."""
        members = {card.name: card.identity for card in self.membership.cards}
        values: dict[str, object] = {}
        if not self.membership.is_first:
            digest = self.membership.experiment
            values = {"membership": self.membership.number, "algorithms": [digest]}
            if self.policy.own_code:  # given to the files that the owner had read
                values["own_code"] = False
            for old in self.policy.algorithms:
                text = text.replace(f"`{old:.12}…`", f"`{digest:.12}…`")  # in the comment above
        if self.policy.members is not None:
            return toml_document.set_values(text, {**values, "members": members})
        pinned = toml_document.format_toml({"members": members})
        return toml_document.set_values(text, values) + MEMBERS_COMMENT + pinned

    def _write_signature(self) -> Path:
        folder, client = self.client_folder.folder, self.policy.client
        path = folder / signature_name(client)
        write_record(self.membership.sign(client, read_key(folder / "identity.key")), path)
        return path


def fingerprint(card: Card) -> str:
    """Return the digits of one card."""
    return format_digest(f"discreet card\n{card.name} {card.identity}\n".encode(), CARD_GROUPS)

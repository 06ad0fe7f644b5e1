"""The policy of a client's owner: what a server may ask for, in a file on the client's own disk."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from discreet.algorithms.declarations import client_parts
from discreet.deploy.certificates import read_key
from discreet.deploy.deployment import FIRST_MEMBERSHIP, Card, ClientName, Deployment, Hex256
from discreet.deploy.file_switch import finish_switch
from discreet.errors import InvalidInput, UnsoundCombination, shorten_names
from discreet.experiment.configuration import toml_document
from discreet.file_version import FIRST, check_file_version
from discreet.part import Count, Flag, part
from discreet.privacy.events import Noise
from discreet.privacy.ledger import Budget
from discreet.secure_sums.secagg.key_agreement import identity_key
from discreet.secure_sums.secagg.session_terms import Terms

if TYPE_CHECKING:  # heavy imports, needed for types only
    from discreet.algorithms.algorithm import Algorithm
    from discreet.engines.secure_terms import SessionPlan

POLICY_FILE = "policy.toml"
Period: TypeAlias = Literal["ever", "year", "quarter", "month"]
PERIODS: tuple[Period, ...] = get_args(Period)


class PolicyRefusal(UnsoundCombination):
    """The policy of the data's owner does not allow a request."""


@part
class AcceptedPart:
    """A part of the experiment's own code that the owner has read, and what one round of it costs here.

    Attributes:
        sha256: The digest of its file.
        price: What one round reveals, in the owner's own judgement: noise relative to the most that one unit of a
            budget moves what leaves this client. It is a floor: what the algorithm declares counts where it is more.
    """

    sha256: Hex256
    price: Noise


@part
class Policy:
    """The content of policy.toml.

    Attributes:
        client: The client's name.
        app: The app folder, relative to this file.
        data: The client's own table, relative to this file. None: its share of the experiment's task.
        server_key: The public key of the only server whose requests are answered.
        algorithms: Digests of the experiments that may run here.
        membership: The number of the list of clients that the owner has accepted. It only grows.
        secure_sum: Whether updates leave only inside a secure sum.
        trust_server_with_updates: Whether the server may see updates that no noise protects from it.
        graphs: Whether large secure sums on a graph are allowed, which don't withstand a server that lies.
        own_code: Whether Python files of the app folder may run here.
        parts: The experiment's own mechanisms, trainers, samplers and the like that may run here, each with its price.
        minimum_cohort: The fewest clients in a sum.
        ledgers: Folder of the ledgers, relative to this file. Deployments on the same data must name the same folder.
        period: How long a ledger counts before a new one begins.
        seeds: Whether noise from a seed is allowed, which protects nobody.
        data_ranges: Whether ranges that were taken from data are allowed.
        budgets: The most that may be learned about one unit in a period, over all runs that `ledgers` counts.
        members: All clients with the keys they sign with. `discreet deploy accept` writes them: a server that could
            choose them could play all other clients.
        version: The form of this file. A policy of an older version of Discreet names none, and is of the first.
    """

    client: str
    app: str
    data: str | None = None
    server_key: Hex256
    algorithms: tuple[Hex256, ...]
    membership: Count = FIRST_MEMBERSHIP
    secure_sum: Flag = True
    trust_server_with_updates: Flag = False
    graphs: Flag = False
    own_code: Flag = False
    parts: tuple[AcceptedPart, ...] = ()
    minimum_cohort: Count = 3
    ledgers: str = "."
    period: Period = "year"
    seeds: Flag = False
    data_ranges: Flag = False
    budgets: tuple[Budget, ...]
    members: dict[ClientName, Hex256] | None = None
    version: Count = FIRST

    def __post_init__(self) -> None:
        if not self.budgets:
            raise InvalidInput("budgets must not be empty: without a budget nothing can be counted.")

    def allow_algorithm(self, digest: str) -> None:
        """Refuse an experiment whose digest is not in `algorithms`."""
        if digest not in self.algorithms:
            raise PolicyRefusal(
                f"The policy does not allow the algorithm {digest[:12]}….",
                fix="Its owner may add it to `algorithms` in policy.toml, after reading resolved.toml.",
            )

    def allow_membership(self, number: int) -> None:
        """Refuse another list of clients than the one that the owner has accepted last."""
        if number > self.membership:
            raise PolicyRefusal(
                f"The app folder has membership {number}, and policy.toml accepts membership {self.membership}.",
                fix="See who joins and who leaves, and accept it: discreet deploy accept DIR",
            )
        if number < self.membership:
            raise PolicyRefusal(
                f"The app folder has membership {number}, and policy.toml has accepted membership {self.membership}, "
                "which replaced it.",
                fix="Get the newest app folder from the server's operator.",
            )

    def allow_seed(self, seed: int | None) -> None:
        """Refuse a seed unless `seeds` allows it."""
        if seed is not None and not self.seeds:
            raise PolicyRefusal(
                "The experiment has a seed, so anyone who knows it can remove the noise, and the policy allows none.",
                fix="Leave the seed out of the experiment; `seeds = true` is for data that need no protection.",
            )

    def allow_data_ranges(self, from_data: bool) -> None:
        """Refuse ranges that were taken from data, maybe from this client's, unless `data_ranges` allows them."""
        if from_data and not self.data_ranges:
            raise PolicyRefusal(
                "The experiment's ranges were taken from data (taken_from_data = true), so no guarantee covers what "
                "they reveal, and the policy allows none.",
                fix="Agree on publicly known ranges; or, if these may be used, its owner sets data_ranges = true in "
                "policy.toml.",
            )

    def allow_own_code(self, files: Sequence[str]) -> None:
        """Refuse the app folder's own files unless `own_code` allows them. Check it before any of them is loaded."""
        if files and not self.own_code:
            raise PolicyRefusal(
                f"The experiment brings files of its own that would run on this machine, {', '.join(files)}, and the "
                "policy allows none.",
                fix="Read them in the app folder; if they may run here, its owner sets own_code = true in policy.toml.",
            )

    def allow_parts(self, algorithm: "Algorithm") -> None:
        """Refuse the experiment's own parts unless `parts` lists their files. Check it before any of them is loaded."""
        for own in client_parts(algorithm):
            if own.sha256 not in {accepted.sha256 for accepted in self.parts}:
                raise PolicyRefusal(
                    f"The experiment brings a {own.contract.name} of its own, {own.title}, whose noise nothing but "
                    "itself vouches for, and the policy doesn't list it.",
                    fix="Read its file; if it may run here, its owner adds to policy.toml: parts = [{ sha256 = "
                    f'"{own.sha256}", price = {{ kind = "gaussian", noise_multiplier = … }} }}], the price of a round.',
                )

    def allow_clear_update(self, algorithm: "Algorithm") -> None:
        """Refuse an update in clear that the policy forbids, or whose noise is enough only for a sum."""
        if algorithm.aggregation.is_secure:
            raise PolicyRefusal(
                "The server asks for an update in clear, and the algorithm's noise is enough only for sums."
            )
        if self.secure_sum:
            raise PolicyRefusal(
                "The policy asks for a secure sum, and the server for an update in clear.",
                fix="Use an algorithm with a secure sum; or its owner sets secure_sum = false in policy.toml.",
            )
        if not self.trust_server_with_updates and all(budget.view != "server" for budget in self.budgets):
            raise PolicyRefusal(
                "The server would see this client's own update, and the budgets promise nothing against the server.",
                fix="Use an algorithm whose noise the clients add; or, if the server may see what the updates tell of "
                "the data, its owner sets trust_server_with_updates = true in policy.toml.",
            )

    def allow_cohort(self, clients: int) -> None:
        """Refuse a sum of fewer than `minimum_cohort` clients. In clear the number is the server's word."""
        if clients < self.minimum_cohort:
            raise PolicyRefusal(
                f"The policy asks for sums of at least {self.minimum_cohort} clients, and the server would make one "
                f"of {clients}."
            )

    def allow_terms(self, terms: Terms, identities: Sequence[bytes], plan: "SessionPlan") -> None:
        """Refuse the terms of a secure session whose keys, minimum or number of colluding clients are not as needed."""
        self.allow_cohort(terms.minimum)
        self.allow_secure_sums()
        if tuple(terms.identities) != tuple(identities):
            raise PolicyRefusal("The server names other clients' keys than those on the cards that this node holds.")
        if not {identity.hex() for identity in terms.identities} <= set((self.members or {}).values()):
            raise PolicyRefusal("The server names clients' keys that policy.toml does not have among its members.")
        if terms.minimum < plan.needed:
            raise PolicyRefusal(
                f"The server would open a sum of {terms.minimum} clients, and the noise needs {plan.needed}."
            )
        sided = terms.tolerated_colluders
        if sided is None:
            self._allow_graph(terms, plan)
        elif sided < plan.colluding:
            raise PolicyRefusal(
                f"The secure sum withstands {sided} colluding clients, and the noise was computed for {plan.colluding}."
            )

    def allow_secure_sums(self) -> None:
        """Refuse secure sums until `members` names the other clients: a server could play them all."""
        if self.members is None:
            raise PolicyRefusal(
                "policy.toml does not say who the other clients are, so a secure sum would protect nobody.",
                fix="When all cards are in the app folder, compare and pin them: discreet deploy accept DIR",
            )

    def allow_cards(self, cards: Sequence[Card]) -> None:
        """Refuse cards that differ from `members`, if there are members."""
        if self.members is None:
            return
        identities = {card.name: card.identity for card in cards}
        other = sorted({name for name, _ in identities.items() ^ self.members.items()})
        if other:
            raise PolicyRefusal(
                f"The cards in the app folder are not those that policy.toml pins as members: {shorten_names(other)}.",
                fix="Ask their owners, not the server. If the cards are right, remove `members` from policy.toml, and "
                "run: discreet deploy accept DIR",
            )

    def _allow_graph(self, terms: Terms, plan: "SessionPlan") -> None:
        """Refuse a graph unless `graphs` allows it and it was made for enough colluding and leaving clients."""
        if not self.graphs:
            raise PolicyRefusal(
                "The server would make the secure sum on a graph, which promises nothing against a server that lies.",
                fix="Let fewer clients join each round; or its owner sets graphs = true in policy.toml.",
            )
        assumed = terms.assumptions
        for name, needed in (("colluding", plan.colluding), ("leaving", plan.leaving)):
            share = 0.0 if assumed is None else getattr(assumed, name)
            if share < needed / terms.clients:
                raise PolicyRefusal(
                    f"The secure sum's graph is made for {share:.3g} of {terms.clients} clients {name}, and the noise "
                    f"was computed for {needed}."
                )


def period_name(period: Period, day: date) -> str:
    """Return the name of the period that includes a day; empty if the period never ends."""
    match period:
        case "ever":
            return ""
        case "year":
            return f"{day.year}"
        case "quarter":
            return f"{day.year}-Q{(day.month + 2) // 3}"
        case "month":
            return f"{day.year}-{day.month:02}"


@dataclass(frozen=True)
class ClientFolder:
    """A client's folder and the policy in it."""

    folder: Path
    policy: Policy

    @classmethod
    def open(cls, folder: Path) -> "ClientFolder":
        """Read the policy, and check the app folder's membership and its cards against it."""
        owned = cls.read(folder)
        deployment = Deployment.open(owned.app)
        owned.policy.allow_membership(deployment.membership)
        if owned.policy.members is not None:
            cards = deployment.read_cards(owned.app)
            owned.policy.allow_cards(cards)
            owned.check_own_card(cards)
        return owned

    @classmethod
    def read(cls, folder: Path) -> "ClientFolder":
        """Read the policy alone."""
        finish_switch(folder, folder)  # of a renewal of keys that was interrupted
        path = folder / POLICY_FILE
        if not path.exists():
            raise InvalidInput(f"There is no file {path}.", fix="Create it with: discreet deploy enroll")
        text = toml_document.read_toml_text(path)
        try:
            content = toml_document.parse_toml(text, "this")
        except InvalidInput as error:
            raise cls._format_error(path, error) from None
        check_file_version(content, path)  # before its keys, of which a newer version may have others
        try:
            return cls(folder, toml_document.build_record(Policy, content))
        except InvalidInput as error:
            raise cls._format_error(path, error) from None

    @staticmethod
    def _format_error(path: Path, error: InvalidInput) -> InvalidInput:
        fix = "Correct the file: texts need quotes; numbers, true and false need none."
        return InvalidInput(f"{path}: {error.problem}", fix=fix)

    def check_own_card(self, cards: Sequence[Card]) -> None:
        """Refuse cards among which this client's own has another key than the client signs with."""
        client, identity = self.policy.client, identity_key(read_key(self.folder / "identity.key")).hex()
        if [card.identity for card in cards if card.name == client] != [identity]:
            raise PolicyRefusal(
                f"The app folder contains a card of {client!r} that is not this client's own.",
                fix=f"Hand {self.folder / f'{client}.toml'} to the server's operator, by a way that you trust.",
            )

    @property
    def app(self) -> Path:
        return self.folder / self.policy.app

    @property
    def data(self) -> Path | None:
        return None if self.policy.data is None else self.folder / self.policy.data

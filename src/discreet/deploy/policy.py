"""What the owner of the data allows: a file on the client's own disk, which no server can change."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from discreet.deploy.deployment import Card, ClientName, Deployment, Hex256
from discreet.errors import InvalidInput, UnsoundCombination
from discreet.experiment.configuration import toml_document
from discreet.part import Count, Flag, part
from discreet.privacy.ledger import Budget
from discreet.secure_sums.secagg.session_terms import Terms

if TYPE_CHECKING:  # heavy, and named only: an owner who looks at a policy need not wait for it
    from discreet.algorithms.algorithm import Algorithm
    from discreet.engines.secure_terms import SessionPlan

POLICY_FILE = "policy.toml"
Period: TypeAlias = Literal["ever", "year", "quarter", "month"]
PERIODS: tuple[Period, ...] = get_args(Period)


class PolicyRefusal(UnsoundCombination):
    """The owner of the data does not allow this."""


@part
class Policy:
    """`budgets` are the most that may be learned of one unit in a `period`, over all runs counted in `ledgers`.

    That is a folder; if every deployment on the same data names the same one, it is over all runs of all servers.
    `algorithms` are the digests of what may run here, `server_key` the one key whose requests are heard. `members` are
    all clients by the key that each signs with: a server that could choose them would be all the others itself.
    """

    client: str
    app: str  # the agreed folder, as seen from this file
    data: str | None = None  # the client's own table; without it, its share of the experiment's task
    server_key: Hex256
    algorithms: tuple[Hex256, ...]
    secure_sum: Flag = True
    trust_server_with_updates: Flag = False
    graphs: Flag = False
    own_code: Flag = False
    minimum_cohort: Count = 3
    ledgers: str = "."  # where they lie, as seen from this file
    period: Period = "year"
    seeds: Flag = False
    data_ranges: Flag = False
    budgets: tuple[Budget, ...]
    members: dict[ClientName, Hex256] | None = None  # written by `discreet deploy accept`, once all cards are there

    def __post_init__(self) -> None:
        if not self.budgets:
            raise InvalidInput("budgets is empty, and what no budget allows can't be counted.")

    def allow_algorithm(self, digest: str) -> None:
        if digest not in self.algorithms:
            raise PolicyRefusal(
                f"The policy does not allow the algorithm {digest[:12]}….",
                fix="Its owner may add it to `algorithms` in policy.toml, after reading resolved.toml.",
            )

    def allow_seed(self, seed: int | None) -> None:
        if seed is not None and not self.seeds:
            raise PolicyRefusal(
                "The experiment has a seed, so whoever knows it can take the noise off, and the policy allows none.",
                fix="Leave the seed out of the experiment; `seeds = true` is for data that need no protection.",
            )

    def allow_data_ranges(self, from_data: bool) -> None:
        """Whether columns may be scaled by ranges that were taken from data, maybe from this client's."""
        if from_data and not self.data_ranges:
            raise PolicyRefusal(
                "The experiment's ranges were taken from data (taken_from_data = true), so no guarantee covers what "
                "they reveal, and the policy allows none.",
                fix="Agree on publicly known ranges; or, if these may be used, its owner sets data_ranges = true in "
                "policy.toml.",
            )

    def allow_own_code(self, files: Sequence[str]) -> None:
        """Before any of it is loaded: Python that the app folder brings does here whatever it likes."""
        if files and not self.own_code:
            raise PolicyRefusal(
                f"The experiment brings files of its own that would run on this machine, {', '.join(files)}, and the "
                "policy allows none.",
                fix="Read them in the app folder; if they may run here, its owner sets own_code = true in policy.toml.",
            )

    def allow_sum(self, algorithm: "Algorithm", *, secure: bool) -> None:
        """Whether an update may leave in this way: what was priced as a sum must be one."""
        if secure:
            return
        if algorithm.aggregation.is_secure:
            raise PolicyRefusal(
                "The server asks for an update in clear, and the algorithm's noise is enough only for sums."
            )
        if self.secure_sum:
            raise PolicyRefusal(
                "The policy asks for a secure sum, and the server for an update in clear.",
                fix="Use an algorithm with a secure sum; or its owner sets secure_sum = false in policy.toml.",
            )
        if not self.trust_server_with_updates and all(each.view != "server" for each in self.budgets):
            raise PolicyRefusal(
                "The server would see this client's own update, and the budgets promise nothing against the server.",
                fix="Use an algorithm whose noise the clients add; or, if the server may see what the updates tell of "
                "the data, its owner sets trust_server_with_updates = true in policy.toml.",
            )

    def allow_cohort(self, clients: int) -> None:
        """Whether so few may be summed: in clear this is the server's word, and a secure sum keeps to it."""
        if clients < self.minimum_cohort:
            raise PolicyRefusal(
                f"The policy asks for sums of at least {self.minimum_cohort} clients, and the server would make one "
                f"of {clients}."
            )

    def allow_terms(self, terms: Terms, identities: Sequence[bytes], asked: "SessionPlan") -> None:
        """A secure sum is as good as its terms: whose keys, and how few may be left for it to be opened."""
        self.allow_cohort(terms.minimum)
        self.allow_secure_sums()
        if tuple(terms.identities) != tuple(identities):
            raise PolicyRefusal("The server names other clients' keys than those on the cards that this node holds.")
        if not {each.hex() for each in terms.identities} <= set((self.members or {}).values()):
            raise PolicyRefusal("The server names clients' keys that policy.toml does not have among its members.")
        if terms.minimum < asked.needed:
            raise PolicyRefusal(
                f"The server would open a sum of {terms.minimum} clients, and the noise takes {asked.needed}."
            )
        sided = terms.tolerated_colluders
        if sided is None:
            self._allow_graph(terms, asked)
        elif sided < asked.colluding:
            raise PolicyRefusal(
                f"The secure sum withstands {sided} clients who side with the server, and the noise was "
                f"sized for {asked.colluding}."
            )

    def allow_secure_sums(self) -> None:
        """Whether the owner has said who the others are. Without that a server could put itself in their places."""
        if self.members is None:
            raise PolicyRefusal(
                "policy.toml does not say who the other clients are, so a secure sum would protect nobody.",
                fix="When all cards are in the app folder, compare and pin them: discreet deploy accept NODE",
            )

    def allow_cards(self, cards: Sequence[Card]) -> None:
        """Whether these are the clients that the owner accepted; where none were accepted yet, there is no telling."""
        if self.members is None:
            return
        found = {card.name: card.identity for card in cards}
        other = sorted({name for name, _ in found.items() ^ self.members.items()})
        if other:
            raise PolicyRefusal(
                f"The cards in the app folder are not those that policy.toml pins as members: {', '.join(other)}.",
                fix="Ask their owners by another way than the server. If it is right, take `members` out of "
                "policy.toml, and then: discreet deploy accept NODE",
            )

    def _allow_graph(self, terms: Terms, asked: "SessionPlan") -> None:
        """Few neighbours protect by chance, and from a server that keeps the rules."""
        if not self.graphs:
            raise PolicyRefusal(
                "The server would make the secure sum on a graph, where nothing is promised against one that lies.",
                fix="Let fewer clients join each round; or its owner sets graphs = true in policy.toml.",
            )
        assumed = terms.assumptions
        for name, needed in (("colluding", asked.colluding), ("leaving", asked.leaving)):
            share = 0.0 if assumed is None else getattr(assumed, name)
            if share < needed / terms.clients:
                raise PolicyRefusal(
                    f"The secure sum's graph is made for {share:.3g} of {terms.clients} clients {name}, and the noise "
                    f"was sized for {needed}."
                )


def period_name(period: Period, day: date) -> str:
    """The name of the period that a day is in; empty where there is only one."""
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
    """A policy and the folder it lies in."""

    folder: Path
    policy: Policy

    @classmethod
    def open(cls, folder: Path) -> "ClientFolder":
        """Read, with the cards in the agreed folder held against those that it pins."""
        owned = cls.read(folder)
        if owned.policy.members is not None:
            owned.policy.allow_cards(owned.cards())
        return owned

    @classmethod
    def read(cls, folder: Path) -> "ClientFolder":
        path = folder / POLICY_FILE
        if not path.exists():
            raise InvalidInput(f"There is no file {path}.", fix="Make one with: discreet deploy enroll")
        text = toml_document.read_toml_text(path)
        try:
            return cls(folder, toml_document.build_record(Policy, toml_document.parse_toml(text, "this")))
        except InvalidInput as error:
            raise InvalidInput(
                f"{path}: {error.problem}",
                fix="Correct it there: text stands in quotes, and numbers, true and false stand without.",
            ) from None

    def cards(self) -> list[Card]:
        return Deployment.open(self.app).read_cards(self.app)

    @property
    def app(self) -> Path:
        return self.folder / self.policy.app

    @property
    def data(self) -> Path | None:
        return None if self.policy.data is None else self.folder / self.policy.data

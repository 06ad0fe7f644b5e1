"""The client's own ledger: what was learned from its data in a period, whoever asked; and what a run would take."""

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.deploy.certificates import read_key
from discreet.deploy.journal import write_durably
from discreet.deploy.policy import PERIODS, Period, Policy, PolicyRefusal, period_name
from discreet.errors import BudgetRefused, InvalidInput, Unsupported
from discreet.privacy.events import Composed, Event
from discreet.privacy.ledger import Budget, Ledger
from discreet.privacy.ledger.charges import charges
from discreet.privacy.ledger.entries import Mode
from discreet.privacy.ledger.meters import Filter, PriceList, best_order
from discreet.privacy.release import Relation, Release
from discreet.privacy.wording import round_up

SPARE_ROUNDS = 1.1  # of a run's rounds: one that comes to nothing after an update was sent counts as well

TOLERANCE = 1e-3
MAX_ITERATIONS = 50


def round_releases(algorithm: Algorithm, population: Population, client: int, round: int) -> tuple[Release, ...]:
    """What a round reveals of this client's data. All in this ledger is about one client, so none is named."""
    found = algorithm.releases(population, round, (client,))
    return tuple(replace(each, clients=None) for each in found)


def find_ledgers(folder: Path, day: date) -> dict[Period, Path]:
    """The ledgers in a folder that this day belongs to; more than one only where somebody put them there."""
    paths = {period: _ledger_path(folder, period, day) for period in PERIODS}
    return {period: path for period, path in paths.items() if path.exists()}


def _ledger_path(folder: Path, period: Period, day: date) -> Path:
    name = period_name(period, day)
    return folder / (f"ledger-{name}.jsonl" if name else "ledger.jsonl")


class ClientLedger:
    """A ledger file for each period, by a filter: runs are chosen after seeing earlier ones.

    It lies where the policy says, and other nodes' processes may count in it at the same time.
    """

    def __init__(self, folder: Path, policy: Policy, tuned_to: Event | None) -> None:
        self._folder, self._policy, self._tuned_to = folder / policy.ledgers, policy, tuned_to
        self._note_path = folder / "counting.json"
        self._open_ledgers: dict[Path, Ledger] = {}  # a ledger's chain is read once, and from there on its end
        self._modes: dict[Path, Mode] = {}
        self._last_ledger: Ledger | None = None  # the one that counted last
        # One question to two nodes of one client is two releases: each draws its noise by its own key.
        secret = read_key(folder / "noise.key")
        self._node_id = hashlib.blake2b(secret, digest_size=8, person=b"discreet ledger").hexdigest()

    def reserve(self, key: str, asked: Sequence[Release], day: date) -> Callable[[], None]:
        """Count these releases before data is touched; refused, with the reason, where the budget does not allow it.

        What is given back notes that they were made. Until then they count all the same.
        """
        if not asked:
            raise PolicyRefusal("The algorithm adds no noise, so it protects nobody, and no budget can count it.")
        try:
            ledger = self.open_ledger(day)
            self._write_note(day)
            ticket = ledger.reserve(f"node {self._node_id} {key}", asked)
            self._last_ledger = ledger
            return lambda: ledger.commit(ticket, asked)
        except BudgetRefused as refusal:
            raise BudgetRefused(f"This node's own ledger refuses: {refusal.problem}", fix=refusal.fix) from None
        except Unsupported as unread:
            raise _unprotected_error(unread) from None

    def check(self, day: date, asked: Sequence[Release]) -> None:
        """What would be refused on this day whenever this is asked for; nothing is begun."""
        if not self._folder.is_dir():
            raise PolicyRefusal(
                f'policy.toml has ledgers = "{self._policy.ledgers}", and there is no such folder.',
                fix="Name the folder where it is counted what was learned of this data, as seen from policy.toml.",
            )
        if self._checked_path(day).exists():
            self.open_ledger(day)
        try:
            for budget in self._policy.budgets:
                charges(budget, asked)
        except Unsupported as unread:
            raise _unprotected_error(unread) from None

    def describe_spending(self) -> str:
        """What the ledger that counted last has spent of each budget, in words."""
        if self._last_ledger is None:
            return "nothing is counted yet"
        path = self._last_ledger.path
        if path not in self._modes:
            self._modes[path] = self._last_ledger.summary()["mode"]
        if self._modes[path] != "filter":  # the price of a plan is an accountant's to say, who takes a while
            return f"{path.name} has counted it"
        budgets = self._last_ledger.summary()["budgets"]
        spent = [f"ε {round_up(each['spent'])} of {each['epsilon']:g}" for each in budgets]
        return f"{path.name} has spent {', '.join(spent)}"

    def open_ledger(self, day: date) -> Ledger:
        path = self._checked_path(day)
        if not path.exists():
            self._create(path)
            self._check_period(day)  # another process may have begun one meanwhile
        if path not in self._open_ledgers:
            self._open_ledgers[path] = Ledger.open(path)
        ledger = self._open_ledgers[path]
        if set(ledger.budgets) != set(self._policy.budgets):
            raise PolicyRefusal(
                f"policy.toml has other budgets than {path.name} was opened with, and a ledger keeps its own.",
                fix="Set them to the ledger's, which `discreet ledger show` shows; new ones begin with a new period.",
            )
        return ledger

    def _checked_path(self, day: date) -> Path:
        """Where this day is counted, or will be; refused where another ledger has begun, or this one is away."""
        path = _ledger_path(self._folder, self._policy.period, day)
        self._check_period(day)
        self._check_note(path, day)
        return path

    def _check_period(self, day: date) -> None:
        """A ledger that began counts until its period ends: else a change of `period` would begin an empty one."""
        for period, path in find_ledgers(self._folder, day).items():
            if period != self._policy.period:
                raise PolicyRefusal(
                    f'policy.toml has period = "{self._policy.period}", and {path.name}, which counts today, was begun '
                    f'with "{period}".',
                    fix="Set it back. " + ("" if period == "ever" else f"Another one may begin after this {period}."),
                )

    def _write_note(self, day: date) -> None:
        """In the node's own folder: the ledger that counts, and the day, before anything is counted in it."""
        noted = {"ledger": _ledger_path(self._folder, self._policy.period, day).name, "day": day.isoformat()}
        content = json.dumps(noted).encode()
        if not self._note_path.exists() or self._note_path.read_bytes() != content:
            write_durably(self._note_path, content)

    def _check_note(self, path: Path, day: date) -> None:
        """A ledger that is away, or a clock that was set back, would begin an empty one."""
        if not self._note_path.exists():
            return
        noted = json.loads(self._note_path.read_bytes())
        if noted["ledger"] == path.name and not path.exists():
            raise PolicyRefusal(
                f"{path.name} is gone, in which this node has counted.",
                fix="Put it back, or correct `ledgers` in policy.toml; without it nobody knows what was spent.",
            )
        if day < date.fromisoformat(noted["day"]) - timedelta(days=1):
            raise PolicyRefusal(
                f"This machine's clock says {day}, and this node has counted on {noted['day']}.", fix="Set the clock."
            )

    def _create(self, path: Path) -> None:
        tuned = {} if self._tuned_to is None else {"tuned_to": self._tuned_to}
        try:
            Ledger.create(path, self._policy.budgets, "filter", **tuned)
        except InvalidInput:
            if not path.exists():  # else another process was faster
                raise


def _unprotected_error(unread: Unsupported) -> PolicyRefusal:
    return PolicyRefusal(
        f"The algorithm does not protect what the policy asks for: {unread.problem}",
        fix=f"Correct `budgets` in policy.toml, and in the ledger if one has begun. {unread.fix}",
    )


def expected_event(budget: Budget, algorithm: Algorithm, population: Population, rounds: int) -> Event | None:
    """What an experiment would release: a ledger's filter is tightest for it, and sound for all."""
    try:
        return compose_charges(budget, algorithm.planned_releases(rounds, population))[0]
    except Unsupported:
        return None


def compose_charges(budget: Budget, asked: Sequence[Release]) -> tuple[Event, Relation]:
    """What a list of releases is to this budget."""
    counted = charges(budget, asked)
    event = counted[0].event if len(counted) == 1 else Composed(events=tuple(each.event for each in counted))
    return event, "replace" if any(each.relation == "replace" for each in counted) else budget.relation


def budget_for_run(budget: Budget, algorithm: Algorithm, population: Population, rounds: int) -> Budget:
    """The same budget with as much ε as a run of so many rounds takes from a filter, and a little to spare.

    The filter's order is chosen by the ε that it is given, so it is looked for where both agree.
    """
    event, relation = compose_charges(budget, algorithm.planned_releases(math.ceil(rounds * SPARE_ROUNDS), population))

    def cost(epsilon: float) -> float:
        prices, given = PriceList(), replace(budget, epsilon=epsilon)
        return Filter(given, prices, best_order(given, event)).epsilon(prices.bill(event, relation))

    epsilon = budget.epsilon
    for _ in range(MAX_ITERATIONS):
        epsilon, before = cost(epsilon), epsilon
        if abs(epsilon - before) <= TOLERANCE * epsilon:
            break
    while not (cost(epsilon) <= epsilon):
        epsilon *= 1 + TOLERANCE
    return replace(budget, epsilon=math.ceil(epsilon * 1000) / 1000)

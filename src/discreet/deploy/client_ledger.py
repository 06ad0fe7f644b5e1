"""The client's own ledger: what all servers learned from its data in a period, and the budget that a run needs."""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.algorithms.standardisation import PREPARATION
from discreet.deploy.certificates import read_key
from discreet.deploy.counting_note import CountingNote
from discreet.deploy.ledger_counter import LedgerCounter
from discreet.deploy.owner_price import price_releases
from discreet.deploy.policy import PERIODS, Period, Policy, PolicyRefusal, period_name
from discreet.errors import BudgetRefused, InvalidInput, Unsupported
from discreet.privacy.events import Event
from discreet.privacy.ledger import Budget, Ledger
from discreet.privacy.ledger.charges import charges, compose_charges
from discreet.privacy.ledger.entries import Mode
from discreet.privacy.ledger.meters import ANY_GAUSSIAN, Filter, PriceList, best_order
from discreet.privacy.release import Release
from discreet.privacy.wording import round_up

SPARE_ROUNDS = 1.1  # times the rounds of a run: a round that fails after an update was sent counts too

TOLERANCE = 1e-3
MAX_ITERATIONS = 50


def round_releases(algorithm: Algorithm, population: Population, client: int, round: int) -> tuple[Release, ...]:
    """Return what a round reveals about this client's data. The ledger is about one client, so releases name none.

    The sum of moments before the first round is a round of its own here, since the server asks for it separately.
    """
    if round == PREPARATION:
        moments = algorithm.for_moments(population)
        assert moments is not None  # a node that agreed to no moments refuses the request
        releases = moments.releases(population, 0, (client,))
    else:
        releases = replace(algorithm, standardisation=None).releases(population, round, (client,))
    return tuple(replace(release, clients=None) for release in releases)


def find_ledgers(folder: Path, day: date) -> dict[Period, Path]:
    """Return the ledgers in a folder whose period includes this day; more than one only if a person put them there."""
    paths = {period: _ledger_path(folder, period, day) for period in PERIODS}
    return {period: path for period, path in paths.items() if path.exists()}


def _ledger_path(folder: Path, period: Period, day: date) -> Path:
    name = period_name(period, day)
    return folder / (f"ledger-{name}.jsonl" if name else "ledger.jsonl")


class ClientLedger:
    """The ledger of a client's data: one file for each period, in the folder that the policy names.

    It counts by a privacy filter, since runs are chosen after seeing the results of earlier ones. Nodes of several
    deployments may count in the same files at the same time.
    """

    def __init__(self, folder: Path, policy: Policy, tuned_to: Event | None) -> None:
        self._folder, self._policy, self._tuned_to = folder / policy.ledgers, policy, tuned_to
        self._counter = LedgerCounter(folder / "counter.json")
        self._note = CountingNote(folder / "counting.json", self._counter)
        self._open_ledgers: dict[Path, Ledger] = {}  # each chain is read once in full, then only its end
        self._modes: dict[Path, Mode] = {}
        self._last_ledger: Ledger | None = None  # the ledger that counted last
        # Two nodes of one client draw noise from different keys, so the same request to both is two releases.
        secret = read_key(folder / "noise.key")
        self._node_id = hashlib.blake2b(secret, digest_size=8, person=b"discreet ledger").hexdigest()

    def reserve(self, key: str, releases: Sequence[Release], day: date) -> Callable[[], None]:
        """Reserve these releases before data is touched.

        Returns:
            A function that commits them. They count from the reservation on, committed or not.

        Raises:
            BudgetRefused: They would exceed a budget.
            PolicyRefusal: There are none, or the budgets can't count them, or the ledger is not the one of this day.
            LedgerDamaged: The ledger is older than this node's counter of it, or was changed.
        """
        if not releases:
            raise PolicyRefusal("The algorithm adds no noise, so it protects nobody, and no budget can count it.")
        try:
            ledger = self.open_ledger(day)
            self._counter.prepare()
            self._note.write(ledger.path, day)
            ticket = ledger.reserve(f"node {self._node_id} {key}", releases)
            self._counter.advance(ledger)
            self._last_ledger = ledger
        except BudgetRefused as refusal:
            raise BudgetRefused(f"This node's own ledger refuses: {refusal.problem}", fix=refusal.fix) from None
        except Unsupported as unread:
            raise _unprotected_error(unread) from None

        def commit() -> None:
            ledger.commit(ticket, releases)
            self._counter.advance(ledger)

        return commit

    def check(self, day: date, releases: Sequence[Release]) -> None:
        """Refuse what `reserve` would refuse on this day whatever was spent, without creating a ledger."""
        if not self._folder.is_dir():
            raise PolicyRefusal(
                f'policy.toml has ledgers = "{self._policy.ledgers}", and there is no such folder.',
                fix="Name the folder with this data's ledgers, relative to policy.toml.",
            )
        if self._checked_path(day).exists():
            self.open_ledger(day)
        try:
            for budget in self._policy.budgets:
                charges(budget, releases)
        except Unsupported as unread:
            raise _unprotected_error(unread) from None

    def describe_spending(self) -> str:
        """Describe what the ledger that counted last has spent of each budget."""
        if self._last_ledger is None:
            return "nothing is counted yet"
        path = self._last_ledger.path
        if path not in self._modes:
            self._modes[path] = self._last_ledger.summary()["mode"]
        if self._modes[path] != "filter":  # an accountant would have to compute a plan's price, which takes a while
            return f"{path.name} has counted it"
        budgets = self._last_ledger.summary()["budgets"]
        spent = [f"ε {round_up(budget['spent'])} of {budget['epsilon']:g}" for budget in budgets]
        return f"{path.name} has spent {', '.join(spent)}"

    def open_ledger(self, day: date) -> Ledger:
        """Open the ledger of this day, creating it if its period has none. Its budgets must be the policy's."""
        path = self._checked_path(day)
        if not path.exists():
            self._create(path)
            self._check_period(day)  # another process may have begun one meanwhile
        if path not in self._open_ledgers:
            self._open_ledgers[path] = Ledger.open(path)
        ledger = self._open_ledgers[path]
        self._counter.check(ledger)
        if set(ledger.budgets) != set(self._policy.budgets):
            raise PolicyRefusal(
                f"The budgets in policy.toml must be those that {path.name} was created with, and they differ.",
                fix="Set them to the ledger's, which `discreet ledger show` prints; new ones begin with a new period.",
            )
        return ledger

    def _checked_path(self, day: date) -> Path:
        """Return the path of this day's ledger, after checking that no other one counts and that it is not gone."""
        path = _ledger_path(self._folder, self._policy.period, day)
        self._check_period(day)
        self._note.check(path, day)
        return path

    def _check_period(self, day: date) -> None:
        """Refuse a changed `period` while a ledger counts: it would begin an empty ledger."""
        for period, path in find_ledgers(self._folder, day).items():
            if period != self._policy.period:
                raise PolicyRefusal(
                    f'policy.toml has period = "{self._policy.period}", and {path.name}, which counts today, was begun '
                    f'with "{period}".',
                    fix="Set it back. "
                    + ("" if period == "ever" else f"Another period may begin after this {period}."),
                )

    def _create(self, path: Path) -> None:
        try:
            Ledger.create(path, self._policy.budgets, "filter", tuned_to=self._tuned_to or ANY_GAUSSIAN)
        except InvalidInput:
            if not path.exists():  # else another process created it first
                raise


def _unprotected_error(unread: Unsupported) -> PolicyRefusal:
    return PolicyRefusal(
        f"The algorithm does not protect what the policy asks for: {unread.problem}",
        fix=f"Correct `budgets` in policy.toml, and in the ledger if one has begun. {unread.fix}",
    )


def expected_event(policy: Policy, algorithm: Algorithm, population: Population, rounds: int) -> Event | None:
    """Return the event of a whole run, to which a ledger's filter is tuned; None if the first budget can't count it.

    The filter is tightest for this event and sound for every other.
    """
    planned = algorithm.planned_releases(rounds, population)
    try:
        return compose_charges(policy.budgets[0], price_releases(policy, algorithm, population, planned, rounds))[0]
    except Unsupported:
        return None


def budget_for_run(budget: Budget, algorithm: Algorithm, population: Population, rounds: int) -> Budget:
    """Return a copy of the budget with the ε that a run of `rounds` rounds takes from a filter, and a tenth to spare.

    The filter chooses its order by the budget's ε, so the search iterates until cost and budget agree.
    """
    event, relation = compose_charges(budget, algorithm.planned_releases(math.ceil(rounds * SPARE_ROUNDS), population))

    def cost(epsilon: float) -> float:
        prices, candidate = PriceList(), replace(budget, epsilon=epsilon)
        return Filter(candidate, prices, best_order(candidate, event)).epsilon(prices.bill(event, relation))

    epsilon = budget.epsilon
    for _ in range(MAX_ITERATIONS):
        epsilon, before = cost(epsilon), epsilon
        if abs(epsilon - before) <= TOLERANCE * epsilon:
            break
    while not (cost(epsilon) <= epsilon):
        epsilon *= 1 + TOLERANCE
    return replace(budget, epsilon=math.ceil(epsilon * 1000) / 1000)

"""The health of a client's node, from its policy and from the events that it logs."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from discreet.code_version import read_code_version
from discreet.deploy.client_ledger import find_ledgers
from discreet.deploy.health_server import Health, Metric
from discreet.deploy.policy import Policy
from discreet.deploy.server_health import certificate_metric, common_metrics
from discreet.log_output import watch_events
from discreet.privacy.ledger import Budget, Ledger

CONNECTED, AWAY = ("node connected", "server is back"), "server is away"  # events of engines/flower/supernode.py
COUNTED = {  # events of deploy/client_node.py
    "round answered": Metric("discreet_rounds_answered_total", "Rounds that were answered.", 0),
    "request refused": Metric("discreet_requests_refused_total", "Requests that policy or ledger refused.", 0),
    "request failed": Metric("discreet_requests_failed_total", "Requests that failed by a fault of this node.", 0),
}


@dataclass
class NodeHealth:
    """Listens to the events of this process, and reads the state of the node from them.

    Guarantee: unless every budget is against the server, nothing that is shown depends on whether this client was
    drawn in a round. A promise against other clients or the public may rest on the secrecy of that draw.
    """

    folder: Path
    policy: Policy
    certificate: Path
    day: Callable[[], date]
    started: float = field(default_factory=time.time)
    is_connected: bool = False
    _events: Counter[str] = field(default_factory=Counter)
    _spending: list[Metric] = field(default_factory=list)
    _spending_key: tuple[int, date] | None = None  # when it was read: reading locks the ledger, so nobody may force it

    @contextmanager
    def listen(self) -> Iterator["NodeHealth"]:
        """Listen to events while the block lasts."""
        with watch_events(self._hear):
            yield self

    def _hear(self, event: str) -> None:
        if event in CONNECTED:
            self.is_connected = True
        elif event == AWAY:
            self.is_connected = False
        elif event in COUNTED:
            self._events[event] += 1

    @property
    def shows_participation(self) -> bool:
        """Whether it does not matter who knows in which rounds this client took part."""
        return all(budget.view == "server" for budget in self.policy.budgets)

    def read(self) -> Health:
        """Return the state. A server that is away is no fault of the node, which waits for it."""
        facts: dict[str, str | bool] = {
            "role": "node",
            "version": read_code_version().version,
            "connected": self.is_connected,
        }
        return Health(None, facts, [*common_metrics("node", self.started), *self._metrics()])

    def _metrics(self) -> Iterator[Metric]:
        yield Metric("discreet_server_connected", "Whether the server answers this node.", int(self.is_connected))
        yield certificate_metric(self.certificate)
        for budget in self.policy.budgets:
            yield _budget_metric("discreet_budget_epsilon", "The owner's budget for a period.", budget, budget.epsilon)
        if self.shows_participation:
            yield from self._spent_metrics()
            for event, metric in COUNTED.items():
                yield Metric(metric.name, metric.help, self._events[event])

    def _spent_metrics(self) -> list[Metric]:
        """Return what today's ledger has spent. It is read again only after a round was answered, and on a new day."""
        key = self._events["round answered"], self.day()
        if key != self._spending_key:
            self._spending, self._spending_key = self._read_spending(), key
        return self._spending

    def _read_spending(self) -> list[Metric]:
        path = find_ledgers(self.folder / self.policy.ledgers, self.day()).get(self.policy.period)
        spent = dict.fromkeys(self.policy.budgets, 0.0)
        if path is not None:
            ledger = Ledger.open(path)
            spent = dict(zip(ledger.budgets, (each["spent"] for each in ledger.summary()["budgets"]), strict=True))
        help_text = "What was spent of it, or reserved."
        return [_budget_metric("discreet_budget_spent_epsilon", help_text, *pair) for pair in spent.items()]


def _budget_metric(name: str, help_text: str, budget: Budget, value: float) -> Metric:
    unit = budget.unit if isinstance(budget.unit, str) else "person"
    return Metric(name, help_text, value, {"unit": unit, "relation": budget.relation, "view": budget.view})

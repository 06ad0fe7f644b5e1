"""For any operations in any order, a ledger's total is that of a small model that keeps everything in memory."""

import math
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidInput
from discreet.privacy.ledger import Ledger, Ticket
from discreet.privacy.release import Release

from .helpers import budget, filter_epsilon, lines, release, spent_epsilon

WHAT = st.sampled_from(["reserve", "commit", "void"])
RELEASES = st.lists(
    st.builds(
        lambda z, clients: release(z, clients=clients),
        st.sampled_from([10.0, 20.0, 40.0]),
        st.sampled_from([None, (0,), (1, 2)]),
    ),
    min_size=1,
    max_size=3,
)


@dataclass
class Model:
    """What must count by the rules: reserved and committed releases, each once."""

    reserved: dict[Ticket, list[Release]] = field(default_factory=dict)
    committed: dict[Ticket, list[Release]] = field(default_factory=dict)

    def divergence(self) -> float:
        """Return the divergence at order 1 of the client that pays most: Σ 1/(2z²)."""
        made = [each for releases in (self.reserved | self.committed).values() for each in releases]
        costs = [
            math.fsum(
                1 / (2 * each.event.noise_multiplier**2)
                for each in made
                for who in (each.clients or (client,))
                if who == client
            )
            for client in range(3)
        ]
        return max(costs)


@settings(max_examples=100)
@given(steps=st.lists(st.tuples(WHAT, st.integers(0, 3), RELEASES), max_size=20))
def test_the_total_is_what_is_committed_and_what_is_outstanding(
    steps: list[tuple[str, int, list[Release]]], tmp_path_factory: pytest.TempPathFactory
):
    path = tmp_path_factory.mktemp("model") / "ledger"
    ledger, model = Ledger.create(path, [budget(100.0)], "filter"), Model()
    tickets: dict[int, Ticket] = {}
    for what, key, releases in steps:
        with suppress(InvalidInput):  # a used key, a second commit or a void after a commit: nothing changes
            if what == "reserve":
                tickets[key] = ledger.reserve(str(key), releases)
                if tickets[key] not in model.committed:
                    model.reserved[tickets[key]] = releases
            elif key in tickets and what == "commit":
                ledger.commit(tickets[key], releases)
                model.reserved.pop(tickets[key], None)
                model.committed[tickets[key]] = releases
            elif key in tickets:
                ledger.void(tickets[key])
                model.reserved.pop(tickets[key], None)
    order = lines(path)[0]["orders"][0]
    divergence = model.divergence()
    assert spent_epsilon(ledger.summary()) == pytest.approx(
        filter_epsilon(order, order * divergence) if divergence else 0.0
    )
    assert Ledger.open(path).summary() == ledger.summary()

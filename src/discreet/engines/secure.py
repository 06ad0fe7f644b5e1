"""The embedded engine with its sums made by real secure aggregation: every key, mask and share, in one process."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

import torch

from discreet.algorithms.algorithm import Sent
from discreet.broadcast import Broadcast
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import FEWEST, CohortSum
from discreet.errors import InvalidInput
from discreet.mechanisms import IntegerNoise
from discreet.params import flat, restored
from discreet.population import Population
from discreet.secagg.rehearsal import Leaves, Rehearsal
from discreet.secagg.terms import Terms

STAGES: tuple[Leaves, ...] = ("keys", "shares", "masked", "revealed")  # before which a client may drop out


@dataclass(frozen=True)
class SecureEngine:
    """Clients are played as in `embedded`; what leaves each of them goes through the protocol, a session a round.

    Each drops out of a round with probability `drop_out`, before one of its messages. Who leaves before the masked
    update is sent is not in the sum; who leaves later is, and the others make up for what it didn't reveal.
    """

    embedded: EmbeddedEngine
    drop_out: float = 0.0

    @property
    def population(self) -> Population:
        return self.embedded.population

    def gather(self, broadcast: Broadcast, cohort: list[int]) -> CohortSum:
        if len(cohort) < FEWEST:
            raise InvalidInput(
                f"A secure sum needs at least {FEWEST} clients, and {len(cohort)} are in this round.",
                fix='Let more clients join, or use engine = { kind = "embedded" }.',
            )
        encoding = broadcast.encoding
        assert encoding is not None  # an algorithm without a lattice is refused when the job is made
        blocks = list(self.embedded.steps(broadcast, cohort))
        order = [client for block, _ in blocks for client in block]
        vectors = dict(enumerate(row for _, sent in blocks for row in flat(sent.rows, leading=1).cpu().numpy()))
        gone = self.leaving(broadcast.round, cohort)
        leaving = {at: gone[client] for at, client in enumerate(order) if client in gone}
        terms = Terms.chosen(clients=len(order), length=len(vectors[0]), bits=encoding.bits)
        terms = replace(terms, minimum=max(terms.minimum, self._needed))
        found = Rehearsal(terms, leaving=leaving).sum(0, vectors, leaving=leaving)
        survivors = {order[at] for at in found.survivors}
        seen = CohortSum.of(_only(blocks, survivors), broadcast, self.embedded.simulation.algorithm.mechanism)
        like = encoding.zero(broadcast.params)
        total = torch.from_numpy(terms.ring.signed(found.vector)).to(next(iter(like.values())).device)
        return replace(seen, total=restored(total, like))

    @property
    def _needed(self) -> int:
        """As many as it takes for the noise that is accounted: with fewer, no sum is made."""
        mechanism = self.embedded.simulation.algorithm.mechanism
        assert isinstance(mechanism, IntegerNoise)
        return (mechanism.shares or 0) + mechanism.colluding

    def leaving(self, round: int, cohort: list[int]) -> dict[int, Leaves]:
        """Who drops out of this round, and before which message: the run's key decides."""
        if not self.drop_out:
            return {}
        coins = torch.rand(2, len(cohort), generator=self.embedded.simulation.key.generator("drop out", round))
        stages = (coins[1] * len(STAGES)).long().tolist()
        return {each: STAGES[stages[at]] for at, each in enumerate(cohort) if coins[0, at] < self.drop_out}


def _only(blocks: Iterable[tuple[list[int], Sent]], survivors: Collection[int]) -> Iterator[tuple[list[int], Sent]]:
    """What the survivors sent: the others' updates are in no sum, and in no diagnostics."""
    for block, sent in blocks:
        kept = [at for at, client in enumerate(block) if client in survivors]
        if kept:
            yield [block[at] for at in kept], sent.of(kept)

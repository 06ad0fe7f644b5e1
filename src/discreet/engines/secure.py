"""The embedded engine with sums by real secure aggregation: every key, mask and share, in one process."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.uploads import Uploads
from discreet.engines.embedded import EmbeddedVariant
from discreet.engines.engine import CohortSum
from discreet.engines.secure_terms import check_cohort_size, plan_session
from discreet.lazy_torch import torch
from discreet.params import flatten, unflatten
from discreet.randomness.purposes import Purpose
from discreet.round_phases import Phase
from discreet.secure_sums.secagg.local_session import LocalSession
from discreet.secure_sums.secagg.session_errors import TooFewClients
from discreet.secure_sums.secagg.session_messages import SETUP, StageName, round_stages
from discreet.secure_sums.secagg.session_terms import Terms

STAGES = tuple(stage.name for stage in (*SETUP, *round_stages(signed=False)))  # in which a client may drop out


@dataclass(frozen=True, eq=False)
class SecureEngine(EmbeddedVariant):
    """Trains clients as `embedded` does, and sums what they send by the protocol, with one session for each round.

    Each client drops out of a round with probability `drop_out`, before one of its messages. A client that leaves
    before it sends its masked update is not in the sum. If it leaves later it is in the sum, and the others make up for
    what it did not reveal. As many clients may collude, and as many may leave, as the noise was sized for.
    """

    drop_out: float = 0.0

    def gather(self, broadcast: Broadcast, cohort: list[int]) -> CohortSum:
        check_cohort_size(len(cohort), 'Let more clients join, or use engine = { kind = "embedded" }.')
        encoding = broadcast.encoding
        assert encoding is not None  # an algorithm without a lattice is refused when the job is made
        blocks = list(self.embedded.client_steps(broadcast, cohort))
        order = [client for block, _ in blocks for client in block]
        with self.simulation.clock.phase(Phase.SECURE_SUM):
            vectors = dict(enumerate(row for _, sent in blocks for row in flatten(sent.rows, leading=1).cpu().numpy()))
            gone = self.draw_dropouts(broadcast.round, cohort)
            leaving = {at: gone[client] for at, client in enumerate(order) if client in gone}
            terms = self.session_terms(len(order), len(vectors[0]), encoding.bits)
            result = LocalSession(terms, leaving=leaving).sum(0, vectors, leaving=leaving)
        survivors = {order[at] for at in result.survivors}
        seen = CohortSum.from_blocks(_keep_survivors(blocks, survivors), broadcast, self.simulation.algorithm.mechanism)
        like = encoding.zero(broadcast.params)
        total = torch.from_numpy(terms.ring.to_signed(result.vector)).to(next(iter(like.values())).device)
        return replace(seen, total=unflatten(total, like))

    def session_terms(self, clients: int, length: int, bits: int) -> Terms:
        """Return the terms of a session that withstands as many colluding and leaving clients as were planned for."""
        asked = plan_session(self.simulation.algorithm, clients)
        if clients < asked.needed:
            raise TooFewClients(f"{clients} clients are in this round, and {asked.needed} are needed.")
        return Terms.choose(clients=clients, length=length, bits=bits, **asked._asdict())

    def draw_dropouts(self, round: int, cohort: list[int]) -> dict[int, StageName]:
        """Draw by the run's key which clients drop out of this round, and before which message."""
        if not self.drop_out:
            return {}
        coins = torch.rand(2, len(cohort), generator=self.simulation.key.generator(Purpose.DROP_OUT, round))
        stages = (coins[1] * len(STAGES)).long().tolist()
        return {client: STAGES[stages[at]] for at, client in enumerate(cohort) if coins[0, at] < self.drop_out}


def _keep_survivors(
    blocks: Iterable[tuple[list[int], Uploads]], survivors: Collection[int]
) -> Iterator[tuple[list[int], Uploads]]:
    """Yield what the survivors sent. The updates of the others are in no sum and in no diagnostics."""
    for block, sent in blocks:
        kept = [at for at, client in enumerate(block) if client in survivors]
        if kept:
            yield [block[at] for at in kept], sent.select(kept)

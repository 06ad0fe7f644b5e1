"""The engine of real clients: it sums updates that they send in clear, or runs a secure sum."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.standardisation import PREPARATION
from discreet.algorithms.upload_limits import OversizedUpload, take_upload
from discreet.engines.engine import MIN_SECURE_CLIENTS, CohortSum, Simulation
from discreet.engines.flower import signed_messages
from discreet.engines.flower.client_calls import ClientCalls
from discreet.engines.flower.network_session import NetworkSession
from discreet.engines.flower.reply_order import in_order
from discreet.engines.running_sum import RunningSum
from discreet.engines.secure_terms import SessionPlan, check_cohort_size, plan_session
from discreet.params import Params, count_values, stack_rows, unflatten, zeros_like
from discreet.secure_sums.secagg.session_errors import BadMessage, RoundOver, TooFewClients


@dataclass
class FlowerEngine:
    """Sums the updates of real clients. Server and clients have the same algorithm: every request names its digest.

    Attributes:
        calls: The run's calls to its clients.
        rounds: Rounds of the experiment.
        session_rounds: Most rounds of one secure session. Keys are exchanged once for all rounds of a session.
        spill_folder: Folder whose disk holds updates in clear that come before their turn.
    """

    is_remote = True
    block_size = 1
    calls: ClientCalls
    simulation: Simulation
    rounds: int
    session_rounds: int = 10
    spill_folder: Path | None = None
    _session: NetworkSession | None = field(default=None, repr=False)

    @property
    def algorithm(self) -> Algorithm:
        return self.simulation.algorithm

    def for_moments(self, simulation: Simulation) -> "FlowerEngine":
        """Return an engine that asks the same clients for the sum of moments before the first round."""
        real = replace(simulation, real=self.simulation.real)
        return FlowerEngine(self.calls, real, PREPARATION + 1, spill_folder=self.spill_folder)

    def gather(self, broadcast: Broadcast, cohort: list[int]) -> CohortSum:
        if self.algorithm.aggregation.is_secure:
            return self._gather_secure(broadcast, cohort)
        return self._gather_clear(broadcast, cohort)

    def await_clients(self, cohort: Sequence[int], round: int) -> list[int]:
        if not cohort:
            return []
        if not self.algorithm.aggregation.is_secure:
            return self.calls.await_clients(cohort, 1, round)
        check_cohort_size(len(cohort), "Let more clients join.")
        plan = plan_session(self.algorithm, len(cohort))
        return self.calls.await_clients(cohort, max(plan.needed, MIN_SECURE_CLIENTS - 1), round)

    def _gather_clear(self, broadcast: Broadcast, cohort: Sequence[int]) -> CohortSum:
        """Sum updates in the cohort's order, whichever came first, so that the same replies give the same bits.

        Each is added when its turn has come, and then forgotten. All are kept only if the aggregation needs each.
        """
        if not cohort:
            return _cohort_sum(zeros_like(broadcast.params, torch.float64), ())
        here = self.await_clients(cohort, broadcast.round)
        body = signed_messages.encode_broadcast(broadcast.params, broadcast.announcement)
        asked = dict.fromkeys(here, b"")
        answers = self.calls.ask("train", broadcast.round, cohort, asked, 1, shared=body, opens=True)
        del body  # it is as large as the model
        aggregation = self.algorithm.aggregation
        running = RunningSum()
        each: list[Params] = []
        contributors = []
        for client, answer in in_order(answers, here, self.spill_folder):
            row = self._read_update(client, answer, broadcast)
            del answer  # it is as large as the model
            if row is None:
                continue
            contributors.append(client)
            if aggregation.needs_each_upload:
                each.append(row)
            else:
                running.add({name: value[None] for name, value in row.items()})
        summed = aggregation.combine(stack_rows(each)) if each else running.total()
        if summed is None:
            raise TooFewClients("No client answered in this round.", revealed=True)  # an update may be late
        return _cohort_sum({name: summed[name].to(_device(broadcast)) for name in summed}, tuple(contributors))

    def _read_update(self, client: int, answer: bytes, broadcast: Broadcast) -> Params | None:
        """Decode a client's update. Ignore or clip one that no honest client sends, so that none can spoil a round."""
        try:
            update = signed_messages.decode_update(
                answer,
                broadcast.params,
                self.algorithm.mechanism.extra_values,
                doubles=self.algorithm.may_send_doubles,
            )
            taken = take_upload(self.algorithm, broadcast, client, update, self.simulation.population)
        except (BadMessage, OversizedUpload) as error:
            self.calls.log_problem(client, broadcast.round, type(error).__name__)
            self.calls.say(f"Ignored what {self.calls.members[client].name} sent: {error}")
            return None
        if taken.problem is not None:
            self.calls.say(f"Clipped what {self.calls.members[client].name} sent: {taken.problem}")
        return taken.row

    def _gather_secure(self, broadcast: Broadcast, cohort: Sequence[int]) -> CohortSum:
        here = self.await_clients(cohort, broadcast.round)
        encoding = broadcast.encoding
        assert encoding is not None  # secure sums need a lattice
        like = encoding.zero(broadcast.params)
        plan = plan_session(self.algorithm, len(cohort))
        session = self._session_for(broadcast.round, cohort, count_values(like), encoding.bits, plan)
        body = signed_messages.encode_broadcast(broadcast.params, broadcast.announcement)
        try:
            total, survivors = session.sum(broadcast.round, body, here)
        except RoundOver:
            self._session = None
            raise
        return _cohort_sum(unflatten(torch.from_numpy(total).to(_device(broadcast)), like), survivors)

    def _session_for(
        self, round: int, cohort: Sequence[int], length: int, bits: int, plan: SessionPlan
    ) -> NetworkSession:
        """Return the open session if it can serve this cohort, else begin a new one."""
        if self._session is None or not self._session.can_serve(cohort):
            rounds = max(1, min(self.session_rounds, self.rounds - round))
            self._session = NetworkSession.begin(self.calls, round, tuple(cohort), length, bits, rounds, plan)
        return self._session


def _cohort_sum(total: Params, contributors: tuple[int, ...]) -> CohortSum:
    """Build the cohort's sum without the diagnostics of a simulation, which real clients don't send."""
    unseen = torch.zeros(0)
    return CohortSum(total, contributors, norms=unseen, kept=unseen, signal=torch.tensor(float("nan")))


def _device(broadcast: Broadcast) -> torch.device:
    return next(iter(broadcast.params.values())).device

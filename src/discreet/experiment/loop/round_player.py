"""Play the rounds of a run: reserve in the ledger, gather the cohort's sum, step, and record what happened."""

import math
import time
from contextlib import AbstractContextManager, suppress
from typing import cast

from discreet.algorithms.algorithm import ServerState
from discreet.algorithms.declarations import trusted_parts
from discreet.code_version import read_code_version
from discreet.engines.engine import CohortSum, RemoteEngine, RoundRefused
from discreet.engines.sum_check import ImplausibleSum, check_sum
from discreet.experiment.job import Job
from discreet.experiment.loop import diagnostics
from discreet.experiment.loop.diagnostics import json_number, json_numbers
from discreet.experiment.loop.example_clipping import clipped_example_share
from discreet.experiment.loop.round_releases import draw_cohort, planned_releases, releases_of_round
from discreet.experiment.promise import released_rounds
from discreet.experiment.run_directory.checkpoint import Checkpoint
from discreet.experiment.run_directory.run_files import RoundRecord
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.logs import bind_fields, get_log
from discreet.privacy.ledger import Ticket
from discreet.randomness.purposes import Purpose
from discreet.round_clock import NO_CLOCK, Clock
from discreet.round_phases import Phase
from discreet.secure_sums.secagg.session_errors import RoundOver

log = get_log(__name__)

DIED = "The server stopped in this round, and may have seen its sum: it counts, and is not repeated."

DIED_IN_MOMENTS = "The server stopped in it, and may have seen it, so it is not repeated."

LOST_IN_A_ROW = 2  # after so many lost rounds with real clients a run stops: they pay for lost rounds too
LOST_SHARE = 0.1  # of its rounds may be lost in all: as many as clients' budgets have to spare


class RoundPlayer:
    """The engine and the ledger of one run, the rounds released so far, and the steps of a round that use them."""

    def __init__(self, job: Job, record: RunRecord, block_size: int | None, done: int, clock: Clock = NO_CLOCK) -> None:
        self.job, self.record, self.clock = job, record, clock
        self.released = released_rounds.parse_rounds(record.read_rounds(), done)
        self.engine = job.build_engine(block_size, clock)
        self.ledger = record.open_ledger()
        self.experiment = record.experiment_digest()
        self.refusal: RoundRefused | None = None  # why the run ends after a round that still counts
        self.lost_in_a_row = 0  # rounds that this process lost since its last sum, but for those whose cause is mended
        self.lost = 0  # the same of all its rounds
        self.has_sum = False  # whether the current round's sum is known, so that the round counts whatever fails next
        self.in_flight = False  # whether a process that died had begun the next round with real clients
        self.knows_scale = False  # whether the state that the run goes on with has the learned scale of its inputs

    def await_clients(self, round: int) -> None:
        """Wait for real clients before anything is reserved, so that a run that is stopped while it waits lost nothing.

        Raises:
            RoundRefused: Too few clients came.
        """
        if not self.engine.is_remote or self.in_flight:  # a round that may have been seen is settled first
            return
        with suppress(RoundOver), self._bind_round(round):  # the round itself will say so, and is recorded
            cast("RemoteEngine", self.engine).await_clients(draw_cohort(self.job, round), round)

    def reserve(self, round: int) -> Ticket | None:
        if self.ledger is None:
            return None
        with self.clock.phase(Phase.LEDGER), self._bind_round(round):
            releases = planned_releases(self.job, round, shared=self.record.shares_ledger)
            return self.ledger.reserve(self.record.identity.round_key(round), releases) if releases else None

    def _bind_round(self, round: int) -> AbstractContextManager[None]:
        """Name run and round in all events of the block."""
        return bind_fields(run=self.record.identity.id, round=round + 1)

    def is_open(self, round: int) -> bool:
        """Whether the round was begun with real clients, and its end was never recorded."""
        if self.ledger is None or not self.engine.is_remote:
            return False
        return self.ledger.is_open(self.record.identity.round_key(round))

    def round(self, round: int, state: ServerState) -> tuple[ServerState, RoundRecord]:
        """Play one round. Return the new state and the round's record; a lost round leaves the state as it was.

        What a process had seen when it died counts. A secure sum is not repeated: it would come with fresh noise, for
        which nothing was planned. In clear, clients send the same bytes again.
        """
        with self._bind_round(round):
            state, line = self._play(round, state)
            if "lost" not in line and not log.is_silent:
                self._log_round(line)
            return state, line

    def _play(self, round: int, state: ServerState) -> tuple[ServerState, RoundRecord]:
        job, began = self.job, time.perf_counter()
        seen, self.in_flight, self.has_sum = self.in_flight, False, False
        needs_scale = round == 0 and job.algorithm.standardisation is not None and not self.knows_scale
        if seen and job.algorithm.aggregation.is_secure and needs_scale:
            self.has_sum = True  # the moments may have been seen
            raise _lost_moments(DIED_IN_MOMENTS, revealed=True)
        if seen and job.algorithm.aggregation.is_secure:
            log.warning("round lost", error="ProcessDied")
            return state, self._complete_record(_lost_round(round, DIED, revealed=True), state, None, began)
        if round == 0 and job.algorithm.standardisation is not None:
            state = self._learn_input_scale(state) if needs_scale else state
            self.has_sum = seen = True  # whatever follows, the moments count
        with self.clock.phase(Phase.BROADCAST):
            broadcast = job.algorithm.broadcast(state, round, self.engine.simulation.public_update)
        try:
            with self.clock.phase(Phase.COHORT):
                cohort = draw_cohort(job, round)
            with self.clock.phase(Phase.WAITING if job.settings.engine.waits_for_others else Phase.SUM):
                gathered = self.engine.gather(broadcast, cohort)
            check_sum(job.algorithm, broadcast, gathered, job.population)
        except (RoundOver, RoundRefused) as lost:
            revealed = lost.revealed or seen
            log.warning("round lost", error=type(lost).__name__)
            if isinstance(lost, RoundRefused):  # which ends the run too
                if not revealed:
                    raise
                self.refusal = lost
            else:
                self._count_lost(lost)
            return state, self._complete_record(_lost_round(round, lost.problem, revealed=revealed), state, None, began)
        self.has_sum, self.lost_in_a_row = True, 0
        noise = self.engine.simulation.rows(broadcast, [-1]).for_purpose(Purpose.SERVER)
        left = job.spent_clients(round)
        joined = len(gathered.contributors)
        with self.clock.phase(Phase.SERVER_STEP):
            state = job.algorithm.server_step(
                state, broadcast, gathered.total, joined, job.population, noise, left, self.clock
            )
        return state, self._complete_record({"round": round + 1, "clients": joined}, state, gathered, began)

    def _count_lost(self, lost: RoundOver) -> None:
        """End the run if too many rounds were lost with real clients, since what they pay buys nothing.

        A round whose losers are left out of the later ones is not counted: each of them loses one round at most.
        """
        if not self.engine.is_remote or lost.is_mended:
            return
        self.lost_in_a_row += 1
        self.lost += 1
        allowed = max(LOST_IN_A_ROW, math.ceil(LOST_SHARE * self.job.rounds))
        fix = "Find out why, then submit the run again: it continues after its last round."
        if isinstance(lost, ImplausibleSum):  # whoever sent it would lose every round, and can't be named
            self.refusal = RoundRefused(
                f"A round was lost by a hostile or broken client. {lost.problem}",
                fix="Leave clients out by turns until it stops, and submit the run again: it continues after its last "
                "round.",
            )
        elif self.lost_in_a_row >= LOST_IN_A_ROW:
            self.refusal = RoundRefused(
                f"{self.lost_in_a_row} rounds in a row were lost, the last one because: {lost.problem}", fix=fix
            )
        elif self.lost > allowed:
            self.refusal = RoundRefused(
                f"{self.lost} rounds were lost, and a run of {self.job.rounds} rounds may lose {allowed}; the last one "
                f"because: {lost.problem}",
                fix=fix,
            )

    def _learn_input_scale(self, state: ServerState) -> ServerState:
        """Learn the scale before the first round, and save it: a repeated round must begin with the very same numbers.

        A run whose moments are lost ends, since its card would say what is not so.
        """
        try:
            state = self.job.learn_input_scale(state)
        except (RoundOver, RoundRefused) as lost:
            self.has_sum = lost.revealed  # then it stays reserved
            if isinstance(lost, RoundRefused) and not lost.revealed:
                raise
            raise _lost_moments(lost.problem, revealed=lost.revealed) from None
        self.save(0, state, {})
        return state

    def _complete_record(
        self, line: RoundRecord, state: ServerState, gathered: CohortSum | None, began: float
    ) -> RoundRecord:
        """Complete the record of a round for rounds.jsonl. A guarantee covers only its `epsilon`."""
        job, done = self.job, line["round"]
        if (happened := released_rounds.parse_round(line)) is not None:
            self.released.append(happened)
        if job.settings.is_evaluated(done):  # ε too: it is only computed when it is shown
            with self.clock.phase(Phase.EPSILON):
                line["epsilon"] = json_number(job.spent_epsilon(done, self.released))
            with self.clock.phase(Phase.EVALUATION):
                line |= self._evaluate(state)
                if gathered is not None and (share := clipped_example_share(job, state)) is not None:
                    line["clipped_examples"] = share
        if gathered is not None:
            with self.clock.phase(Phase.DIAGNOSTICS):
                line |= diagnostics.round_diagnostics(job, gathered)
        line |= {"seconds": round(time.perf_counter() - began, 6), "code": read_code_version().stamp}
        return line if job.deployment is None else line | {"client_code": list(job.deployment.client_code())}

    def _evaluate(self, state: ServerState) -> RoundRecord:
        job, found = self.job, {"evaluation": json_numbers(self.job.evaluate(state))}
        if job.validation_data is not None:
            found["validation"] = json_numbers(job.evaluate_validation(state))
        if job.settings.evaluate_training:
            found["training"] = json_numbers(job.evaluate_training(state))
        return found

    def _log_round(self, line: RoundRecord) -> None:
        """Log the end of a round. How many clients joined is written only where the cohort is public."""
        job, round = self.job, line["round"] - 1
        cohort = job.algorithm.sampling.public_cohort(job.population, round)
        asked = None if cohort is None else len(set(cohort) - job.spent_clients(round))
        log.info(
            "round finished",
            rounds=job.rounds,
            epsilon=line.get("epsilon"),
            declared=bool(trusted_parts(job.algorithm)) or None,
            clients=asked,
            dropouts=None if asked is None else asked - line["clients"] or None,
        )

    def save(self, done: int, state: ServerState, line: RoundRecord) -> None:
        run = self.record.identity.id
        with self.clock.phase(Phase.WRITING):
            self.record.save_checkpoint(Checkpoint(done, run, self.engine.block_size, self.experiment, line, state))

    def settle(self, ticket: Ticket | None, line: RoundRecord) -> None:
        """Commit what really happened: the drawn clients pay, with the noise of those who contributed.

        If a round was lost after shares were revealed, its contributors are unknown, and it costs what was reserved.
        """
        happened = released_rounds.parse_round(line)
        if self.ledger is None or ticket is None or happened is None:
            return
        round, noise_shares = happened
        with self.clock.phase(Phase.LEDGER), self._bind_round(round):
            cohort, shared = draw_cohort(self.job, round), self.record.shares_ledger
            releases = releases_of_round(self.job, round, cohort, noise_shares=noise_shares, shared=shared)
            self.ledger.commit(ticket, releases)

    def void(self, ticket: Ticket | None) -> None:
        """Give back what was reserved for a round that released nothing; it stays reserved if the sum is known."""
        if self.ledger is not None and ticket is not None and not self.has_sum:
            with self.clock.phase(Phase.LEDGER), bind_fields(run=self.record.identity.id):
                self.ledger.void(ticket)


def _lost_moments(why: str, *, revealed: bool) -> RoundRefused:
    return RoundRefused(
        f"The sum by which numbers are standardised is lost: {why}",
        fix="Start a new run, or set standardise = false in its task.",
        revealed=revealed,
    )


def _lost_round(round: int, why: str, *, revealed: bool) -> RoundRecord:
    return {"round": round + 1, "clients": 0, "lost": why, "revealed": revealed}

"""The rounds of one run, played one at a time: reserve, play, checkpoint, commit, record; and at last the outcome."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import NamedTuple, Self

from discreet.algorithms.algorithm import ServerState
from discreet.code_version import read_code_version
from discreet.engines.engine import RoundRefused
from discreet.errors import BudgetRefused, InvalidInput
from discreet.experiment.job import Job
from discreet.experiment.loop import run_guarantees
from discreet.experiment.loop.callbacks import Callbacks
from discreet.experiment.loop.diagnostics import json_numbers
from discreet.experiment.loop.interrupt import StopRequest, catch_interrupts
from discreet.experiment.loop.outcome import Outcome
from discreet.experiment.loop.round_player import RoundPlayer
from discreet.experiment.loop.tracker import Tracker
from discreet.experiment.metrics import model_warning
from discreet.experiment.promise import released_rounds
from discreet.experiment.run_directory import run_keys, run_profile
from discreet.experiment.run_directory.fingerprint import training_code_digest
from discreet.experiment.run_directory.resume_check import check_unchanged
from discreet.experiment.run_directory.run_files import RoundRecord
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.logs import bind_fields, get_log
from discreet.round_clock import NO_CLOCK, Clock
from discreet.round_phases import Phase

log = get_log(__name__)


class Position(NamedTuple):
    """Where a run is: the number of completed rounds, the server's state, and the record of the last round."""

    done: int
    state: ServerState
    line: RoundRecord


class RunLoop:
    """A run that is going on. It holds the lock of the run directory until it is finished or left.

    A round that raises an error can't be repeated here: the run is then left without an outcome, and is resumed from
    its last checkpoint. Threads take turns.

    Attributes:
        position: Where the run is.
        is_ready: Whether a round can be played or the run be finished. False within a round and after its error.
    """

    def __init__(
        self,
        job: Job,
        record: RunRecord,
        key_dir: Path | None,
        callbacks: Callbacks,
        *,
        resumed: bool,
        clock: Clock = NO_CLOCK,
    ) -> None:
        """Take up a run that was just created, or resume it after its last checkpoint.

        Args:
            job: What to train.
            record: The run directory.
            key_dir: The folder of the run's key.
            callbacks: What to call at each round. An error of theirs comes between two rounds: the run can be finished.
            resumed: Whether to resume the run.
            clock: Measures where the time of each round goes, for profile.json.

        Raises:
            InvalidInput: Data, code or experiment differ from those the run was started with; nothing was written.
        """
        self.job, self.record, self.is_ready, self._clock = job, record, True, clock
        self._key_dir, self._callbacks = key_dir, callbacks
        self._trackers = Callbacks(Tracker(tracker, is_new=not resumed) for tracker in job.settings.track)
        self._interrupt = StopRequest()
        self._stopped_by: str | None = None
        self._refusal: BudgetRefused | RoundRefused | None = None
        self._turn = threading.RLock()
        self._code = training_code_digest(job)
        with ExitStack() as held:
            held.enter_context(record.lock())
            held.enter_context(self._trackers)
            checkpoint = None
            if resumed:
                check_unchanged(job, record)
                checkpoint = record.load_checkpoint(job.algorithm.init(job.params))
                record.rewind(checkpoint)
                done = checkpoint.completed if checkpoint else 0
                log.info("run resumed", run=record.identity.id, path=record.path, round=done, rounds=job.rounds)
            if checkpoint is None:
                self.position = Position(0, job.algorithm.init(job.params), {})
            else:
                self.position = Position(checkpoint.completed, checkpoint.state, checkpoint.line)
            done, _, line = self.position
            self._saved = done
            block_size = checkpoint.block_size if checkpoint else None
            self._player = player = RoundPlayer(job, record, block_size, done, clock)
            player.in_flight = resumed and player.is_open(done)
            player.knows_scale = checkpoint is not None
            if done:  # the last process may have died before its commit
                player.settle(player.reserve(done - 1) if released_rounds.parse_round(line) else None, line)
            if resumed:
                record.remove_outcome()
            self._held = held.pop_all()

    @property
    def _is_stop_chosen(self) -> bool:
        return self._stopped_by is not None

    @property
    def has_next_round(self) -> bool:
        """Whether a round follows, unless the ledger or the clients refuse it."""
        is_over = self._refusal is not None or self._is_stop_chosen or self._interrupt.is_requested
        return not is_over and self.position.done < self.job.rounds

    def catch_interrupts(self) -> AbstractContextManager[StopRequest]:
        """Take Ctrl-C and SIGTERM as requests to stop after the round. With real clients SIGTERM ends the process."""
        return catch_interrupts(self._interrupt, terminate=not self._player.engine.is_remote)

    def play_round(self) -> RoundRecord | None:
        """Play the next round and return its record. None if no round follows: then the run is to be finished."""
        with self._turn:
            self._require_ready()
            self._clock.begin_round()
            if not self.has_next_round or self._ask_before_round():
                return None
            self._check_code()
            self.is_ready = False
            line = self._play_round()
            self.is_ready = True
            if line is not None:
                with self._clock.phase(Phase.CALLBACKS):
                    self._trackers.end_round(line)
                    self._ask_callbacks(lambda: self._callbacks.end_round(line))
                self._clock.end_round()
            return line

    def _ask_before_round(self) -> bool:
        """Announce the next round to the callbacks, and return whether one of them stopped the run before it."""
        planned = {"round": self.position.done + 1, "rounds": self.job.rounds, "directory": str(self.record.path)}
        with self._clock.phase(Phase.CALLBACKS):
            if self._ask_callbacks(lambda: self._callbacks.begin_round(planned)):
                return True
            self._trackers.begin_round(planned)
            return False

    def _ask_callbacks(self, ask: Callable[[], bool]) -> bool:
        """Call the callbacks, and return whether one of them stopped the run.

        An interrupt that comes while they are called may be their doing, so it counts as such a stop.
        """
        was_interrupted = self._interrupt.is_requested
        if ask() or self._interrupt.is_requested > was_interrupted:
            self.stop(f"the callback {self._callbacks.stopped_by}" if self._callbacks.stopped_by else "a callback")
            return True
        return False

    def _check_code(self) -> None:
        """Refuse to go on with a loss, a part or a network that the caller, a callback or its own calls have changed.

        A round that is played again after a crash draws the same noise. Added to another sum, it would cancel in their
        difference. A resumed run begins with the code as it was at the start, whatever it had become since.
        """
        if training_code_digest(self.job) != self._code:
            raise InvalidInput(
                "The loss, a part of your own or the network's code was changed between two rounds, and a run can't go "
                "on with another one.",
                fix="Leave them as they were, and let them count nothing; what should change by round belongs into a "
                "schedule.",
            )

    def checkpoint(self) -> None:
        """Save the state after the last completed round, unless it is saved already."""
        with self._turn:
            if self._saved < self.position.done:
                self._require_ready()
                self._save()

    def stop(self, who: str = "its caller") -> None:
        """End the run before its next round. The reason may be what the rounds showed, so the plan is certified."""
        self._stopped_by = who

    def finish(self) -> Outcome:
        """Write the outcome of a finished or stopped run, and leave it. A finished run no longer needs its key."""
        with self._turn:
            self.checkpoint()
            self._require_ready()
            with self:
                return self._write_outcome()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the run and free its lock. Without an outcome, it is resumed from its last checkpoint."""
        self.is_ready = False
        self._held.close()

    def _require_ready(self) -> None:
        if not self.is_ready:
            raise InvalidInput(
                "The run is in the middle of a round, has ended, or was left by an error.",
                fix="Call this between two rounds, or resume the run.",
            )

    def _play_round(self) -> RoundRecord | None:
        player, (done, state, _) = self._player, self.position
        try:
            player.await_clients(done)
            ticket = player.reserve(done)
        except (BudgetRefused, RoundRefused) as refused:
            if isinstance(refused, RoundRefused) and not done:  # no model exists yet
                raise
            self._refusal = refused
            return None
        try:
            state, line = player.round(done, state)
        except RoundRefused as refused:
            player.void(ticket)  # an open ticket means that the round may have been seen
            if not done:  # no model exists yet
                raise
            self._refusal = refused
            return None
        except InvalidInput:
            if not player.engine.is_remote:
                player.void(ticket)
            raise
        if released_rounds.parse_round(line) is None:
            player.void(ticket)
        done += 1
        self.position = Position(done, state, line)
        if done == self.job.rounds or done % self.job.settings.checkpoint_every == 0:
            self._save()
        player.settle(ticket, line)
        with self._clock.phase(Phase.WRITING):
            self.record.append_round(line)
        self._refusal = player.refusal
        return line

    def _save(self) -> None:
        self._player.save(*self.position)
        self._saved = self.position.done

    def _write_outcome(self) -> Outcome:
        job, record, (done, state, _) = self.job, self.record, self.position
        stopped = self._describe_stop(done) if done < job.rounds else None
        ledger = record.open_ledger()
        metrics, validation = json_numbers(job.evaluate(state)), json_numbers(job.evaluate_validation(state))
        code_stamps = list(dict.fromkeys([*record.code_stamps(), read_code_version().stamp]))
        cards = run_guarantees.certify_run(
            job.terms,
            done,
            ledger,
            shared=record.shares_ledger,
            released=self._player.released,
            metrics=metrics,
            code_stamps=code_stamps,
            is_stop_chosen=self._is_stop_chosen and stopped is not None,
        )
        guarantee = run_guarantees.guarantee_data(job, done, stopped, cards, ledger, code_stamps) | {"metrics": metrics}
        warning = model_warning(metrics, job.constant_accuracy)
        if validation:
            guarantee |= {"validation": validation}
        if warning is not None:
            guarantee |= {"warning": warning}
        if job.deployment is not None:
            guarantee |= {"client_code": record.client_code_stamps()}
        if job.task.person is not None and job.holds_data:
            guarantee |= {"rows_left_out": job.task.rows_left_out}
        if rounds := self._clock.read():
            record.write_profile(run_profile.profile_data(rounds, self._profile_facts()))
        record.write_outcome(
            job.model.module_with_params(state.params).state_dict() | state.input_scale,
            guarantee,
            run_guarantees.card_text(cards),
        )
        if stopped is None:
            run_keys.delete_key(record.identity.id, self._key_dir)
        is_refused = stopped is not None and getattr(self._refusal, "exit_code", None) == BudgetRefused.exit_code
        outcome = Outcome(record, done, state, stopped, is_refused, tuple(cards), metrics, warning, validation)
        self._trackers.finish(outcome)
        self._log_end(outcome)
        return outcome

    def _profile_facts(self) -> run_profile.Facts:
        job, settings = self.job, self.job.settings
        return {
            "engine": settings.engine.kind,
            "device": job.device.type,
            "block_size": self._player.engine.block_size,
            "expected_cohort": job.algorithm.sampling.expected_cohort(job.population),
            "evaluate_every": settings.rounds_between_evaluations,
            "checkpoint_every": settings.checkpoint_every,
        }

    def _describe_stop(self, done: int) -> str:
        rounds = f"after {done} of {self.job.rounds} rounds"
        if self._refusal is not None:
            return f"Stopped {rounds}. {self._refusal}"
        how = "Interrupted" if self._stopped_by is None else f"Stopped by {self._stopped_by}"
        return f"{how} {rounds}; to resume: {self.record.resume_command}"

    def _log_end(self, outcome: Outcome) -> None:
        promised = outcome.guarantees[0] if outcome.guarantees else None
        with bind_fields(
            run=self.record.identity.id,
            round=outcome.completed,
            rounds=self.job.rounds,
            epsilon=promised.epsilon if promised else None,
            declared=bool(promised and promised.on_word_of) or None,
        ):
            if outcome.stopped is None:
                log.info("run finished", path=self.record.path)
                return
            ended_by = "Stopped" if self._is_stop_chosen else "Interrupted"
            error = ended_by if self._refusal is None else type(self._refusal).__name__
            log.warning("run stopped", error=error, path=self.record.path)

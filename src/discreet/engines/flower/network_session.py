"""A secure session over a network: it feeds the clients' answers to the server's state machine, stage by stage."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from discreet.engines.flower import signed_messages
from discreet.engines.flower.client_calls import ClientCalls
from discreet.engines.flower.flower_errors import ClientsNeeded
from discreet.engines.secure_terms import SessionPlan
from discreet.errors import shorten_names
from discreet.logs import get_log
from discreet.secure_sums.secagg.ring_vectors import Vector
from discreet.secure_sums.secagg.session_errors import RoundOver, SecaggError
from discreet.secure_sums.secagg.session_messages import ROUND, SETUP, Stage, round_stages
from discreet.secure_sums.secagg.session_server import Server
from discreet.secure_sums.secagg.session_terms import Terms

log = get_log(__name__)


@dataclass
class NetworkSession:
    """A secure session with real clients. A client that misses a stage misses the round, not the session.

    A client's place in the session is its position in the cohort.
    """

    calls: ClientCalls
    cohort: tuple[int, ...]
    server: Server
    # The last messages of the set-up, sent with the first mask request.
    _setup_messages: dict[int, bytes] = field(repr=False)
    _next: int = 0
    _answered: frozenset[int] = frozenset()  # the places whose answers counted in the last stage

    @classmethod
    def begin(
        cls,
        calls: ClientCalls,
        round: int,
        cohort: tuple[int, ...],
        length: int,
        bits: int,
        rounds: int,
        plan: SessionPlan,
    ) -> "NetworkSession":
        """Begin a session: exchange keys among the clients that are online.

        Args:
            calls: The run's calls to its clients, whose cards give the identities.
            round: The round in which the session begins.
            cohort: The clients.
            length: Numbers in the vector that is summed.
            bits: Bits of each number.
            rounds: Rounds for which keys are exchanged.
            plan: The clients that the algorithm's noise needs, and those that may collude or leave.
        """
        identities = tuple(calls.members[client].identity for client in cohort)
        terms = Terms.choose(
            clients=len(cohort),
            length=length,
            bits=bits,
            rounds=rounds,
            identities=identities,
            purpose=signed_messages.session_purpose(calls.experiment, calls.run),
            **plan._asdict(),
        )
        session = cls(calls, cohort, Server(terms), {})
        session._exchange(SETUP, round, dict.fromkeys(range(len(cohort)), terms.to_bytes()))
        session._setup_messages = session.server.close_stage()
        return session

    def can_serve(self, cohort: Sequence[int]) -> bool:
        """Whether the session can serve a round of this cohort: it has a round left, and every online client."""
        return self.cohort == tuple(cohort) and self._next < self.server.terms.rounds and self._has_all_members()

    def sum(self, round: int, broadcast: bytes, here: Sequence[int]) -> tuple[Vector, tuple[int, ...]]:
        """Run one secure sum. Returns the sum as signed integers, and the clients whose updates are in it."""
        server, number = self.server, self._next
        self._next += 1
        server.open_round(number, signed_messages.round_subject(round, broadcast))
        places = [place for place, client in enumerate(self.cohort) if client in here and place in server.members]
        asked = {
            place: signed_messages.encode_mask_request(number, self._setup_messages.get(place, b"")) for place in places
        }
        try:
            self._exchange(round_stages(signed=server.terms.has_signatures), round, asked, broadcast)
            total = server.unmask()
        except RoundOver as lost:
            self._explain_loss(lost, round)
            raise
        for dealer, holders in total.complaints.items():
            self.calls.say(f"The sum came without some shares of {self._describe_quarrel(dealer, holders)}.")
        return server.terms.ring.to_signed(total.vector), tuple(sorted(self.cohort[place] for place in total.survivors))

    def _explain_loss(self, lost: RoundOver, round: int) -> None:
        """Tell the operator who lost the round, and leave those who are to blame out of the later ones.

        Raises:
            ClientsNeeded: Too few clients would remain without them, so the next round would be lost too.
        """
        if not lost.blamed:
            silent = {
                place for place, client in enumerate(self.cohort) if client not in self.calls.left_out
            } - self._answered
            self.calls.say(f"The round is lost for want of {self._names(silent)}: {lost.problem}")
            return
        for place in lost.blamed:
            self.calls.log_problem(self.cohort[place], round, type(lost).__name__)
        quarrels = " and ".join(self._describe_quarrel(*each) for each in lost.blamed.items())
        self.calls.say(f"The round is lost because of {quarrels}: {lost}")
        remaining = set(self.cohort) - self.calls.left_out - {self.cohort[place] for place in lost.blamed}
        if len(remaining) < self.server.terms.minimum:
            raise ClientsNeeded(
                f"{lost.problem} The round is lost because of {quarrels}; {len(remaining)} clients remain without, "
                f"and {self.server.terms.minimum} are needed.",
                fix="Find out who lies, then submit the run again: it continues after its last round.",
                revealed=lost.revealed,
            ) from lost
        for place, holders in lost.blamed.items():
            self.calls.leave_out(self.cohort[place], round, self._leaving_reason(holders))
        lost.is_mended = True

    def _leaving_reason(self, holders: frozenset[int]) -> str:
        if not holders:
            return "it dealt shares by which its part of the sum can't be unmasked."
        return (
            f"it did not answer, and {self._names(holders)} can't use the shares that it dealt, by which its part "
            "would be unmasked."
        )

    def _describe_quarrel(self, dealer: int, holders: frozenset[int]) -> str:
        """Return a dealer's name and who complains about it. Only they have seen what it dealt to them."""
        said = f", which dealt shares that {self._names(holders)} can't use, or they lie" if holders else ""
        return f"{self._name(dealer)}{said}"

    def _names(self, places: Collection[int]) -> str:
        return shorten_names([self._name(place) for place in sorted(places)]) or "nobody"

    def _name(self, place: int) -> str:
        return self.calls.members[self.cohort[place]].name

    def _has_all_members(self) -> bool:
        """Whether every client that is online took part in the set-up. If not, a new session can include it."""
        return all(
            place in self.server.members or not self.calls.can_ask(client) for place, client in enumerate(self.cohort)
        )

    def _exchange(self, stages: Sequence[Stage], round: int, bodies: Mapping[int, bytes], shared: bytes = b"") -> None:
        """Run these stages up to the replies of the last one; `bodies` open the first stage, by place, and `shared`
        follows each of them.
        """
        self._collect(stages[0], round, bodies, shared)
        for stage in stages[1:]:
            self._collect(stage, round, self.server.close_stage())

    def _collect(self, stage: Stage, round: int, bodies: Mapping[int, bytes], shared: bytes = b"") -> None:
        """Ask the clients at these places and pass each reply to the server when it comes, so that it holds one at a
        time. Ignore replies that it refuses.

        A reply counts as that of the client at the node that was asked, whatever name it bears.
        """
        asked = {self.cohort[place]: body for place, body in bodies.items()}
        answered = 0
        kind, enough = _request_kind(stage), self.server.terms.minimum
        for client, answer in self.calls.ask(
            kind, round, self.cohort, asked, enough, shared=shared, opens=stage.reveals_shares
        ):
            answered += 1
            place = self.cohort.index(client)
            try:
                self.server.receive(answer, place)
                self._setup_messages.pop(place, None)
            except SecaggError as error:
                self.calls.log_problem(client, round, type(error).__name__)
                self.calls.say(f"Ignored what {self._name(place)} sent: {error}")
            del answer  # a masked vector is as large as the model, and is in the sum by now
        self._answered = self.server.responders
        if self.calls.has_public_cohort(round):
            silent = len(asked) - answered
            log.debug("stage completed", stage=stage.name, round=round + 1, clients=len(asked), dropouts=silent or None)


def _request_kind(stage: Stage) -> signed_messages.Kind:
    """Return the kind of request that opens a stage: terms open a session, a broadcast opens a round."""
    return "session" if stage is SETUP[0] else "mask" if stage is ROUND[0] else "relay"

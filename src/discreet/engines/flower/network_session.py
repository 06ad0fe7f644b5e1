"""A secure session over a network: the server's machine, fed with what clients answer, stage by stage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from discreet.engines.flower import signed_messages
from discreet.engines.flower.client_calls import Calls
from discreet.engines.secure_terms import SessionPlan
from discreet.secure_sums.secagg.ring_vectors import Vector
from discreet.secure_sums.secagg.session_errors import SecaggError
from discreet.secure_sums.secagg.session_server import Server
from discreet.secure_sums.secagg.session_terms import Terms


@dataclass
class Session:
    """Places in a session are numbered in the cohort's order. Who misses a stage misses the round, not the session."""

    calls: Calls
    cohort: tuple[int, ...]
    server: Server
    _welcome: dict[int, bytes] = field(repr=False)  # the end of the set-up, which goes out with the first mask
    _next: int = 0

    @classmethod
    def begin(
        cls, calls: Calls, round: int, cohort: tuple[int, ...], length: int, bits: int, rounds: int, asked: SessionPlan
    ) -> "Session":
        """Exchange keys among those who are there. Identities are those on the clients' cards."""
        identities = tuple(calls.members[client].identity for client in cohort)
        terms = Terms.chosen(
            clients=len(cohort),
            length=length,
            bits=bits,
            rounds=rounds,
            identities=identities,
            colluding=asked.colluding,
            leaving=asked.leaving,
            purpose=signed_messages.purpose(calls.experiment, calls.run),
        )
        terms = replace(terms, minimum=max(terms.minimum, asked.needed))
        session = cls(calls, cohort, Server(terms), {})
        session._take("session", round, dict.fromkeys(range(len(cohort)), terms.to_bytes()))
        session._take("relay", round, session.server.close())
        session._welcome = session.server.close()
        return session

    def serves(self, cohort: Sequence[int]) -> bool:
        """Whether the next round's cohort is this one, and a key is left for it; members who came late are let in."""
        return self.cohort == tuple(cohort) and self._next < self.server.terms.rounds and self._all_in()

    def sum(self, round: int, broadcast: bytes, here: Sequence[int]) -> tuple[Vector, tuple[int, ...]]:
        """The sum over those who stayed, as signed integers, and who they are."""
        server, number = self.server, self._next
        self._next += 1
        server.open(number)
        places = [place for place, client in enumerate(self.cohort) if client in here and place in server.members]
        asked = {place: signed_messages.mask(number, self._welcome.get(place, b""), broadcast) for place in places}
        for place in self._take("mask", round, asked):
            self._welcome.pop(place, None)
        self._take("relay", round, server.close())
        self._take("relay", round, server.close(), opens=True)
        total = server.unmask()
        return server.terms.ring.signed(total.vector), tuple(sorted(self.cohort[place] for place in total.survivors))

    def _all_in(self) -> bool:
        """A client that missed the set-up is no member; once it is there again, a new session lets it in."""
        return all(place in self.server.members or client not in self.calls.at for place, client in self._places())

    def _places(self) -> list[tuple[int, int]]:
        return list(enumerate(self.cohort))

    def _take(
        self, kind: signed_messages.Kind, round: int, bodies: Mapping[int, bytes], *, opens: bool = False
    ) -> list[int]:
        """Ask at these places and hand the server's machine what came; a bad answer is as none."""
        asked = {self.cohort[place]: body for place, body in bodies.items()}
        answers = self.calls.ask(kind, round, self.cohort, asked, self.server.terms.minimum, opens=opens)
        taken = []
        for client, answer in answers.items():
            try:
                taken.append(self.server.receive(answer))
            except SecaggError as error:
                self.calls.say(f"What {self.calls.members[client].name} sent was not taken: {error}")
        return taken

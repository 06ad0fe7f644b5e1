"""The server's calls to its clients: find each client's node, sign requests, and collect answers and refusals."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from discreet.algorithms.standardisation import PREPARATION
from discreet.code_version import CodeVersion, read_code_version
from discreet.engines.flower import signed_messages
from discreet.engines.flower.carrier import Carrier
from discreet.engines.flower.flower_errors import BudgetsSpent, ClientsAway, ClientsRefused
from discreet.engines.flower.hello_messages import NONCE_BYTES, Hello, describe_mismatch, encode_greeting, read_hello
from discreet.engines.flower.signed_messages import Kind, Refusal, RequestHeader
from discreet.errors import shorten_names
from discreet.logs import get_log
from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.session_errors import BadMessage
from discreet.secure_sums.secagg.wire import VERSION

log = get_log(__name__)

REST_ROUNDS = 5  # in which a node that is silent or refuses is not asked again; doubled each time
LOOK_SECONDS = 0.5  # between two checks for clients that are awaited
HELLO_SECONDS = 15.0  # in which a node must say who it is: it need not train for that, and other nodes wait
CROWD = 3  # nodes of which fewer than half answer in time: then the server is slow, and waits twice as long


@dataclass(frozen=True)
class Member:
    """A client's name and the public key that it signs with."""

    name: str
    identity: bytes


class Rest(NamedTuple):
    """How often a node did not say who it is, or refused to, and the round in which to ask it again."""

    times: int
    again: int


NO_REST = Rest(0, 0)


@dataclass
class ClientCalls:
    """One run's calls to its clients.

    Attributes:
        carrier: Carries the messages.
        members: The clients with their public keys, by number.
        run: The run's id for clients.
        experiment: Digest of the app folder.
        key: The server's signing key.
        say: Prints a line for the server's operator.
        timeout: Seconds to wait for clients that are not online.
        has_public_cohort: Whether the cohort of a round is public. Only then a log may say what its clients did.
        is_revoked: Whether a client's key was revoked since the run began.
        nodes_of_clients: The node of each client that has proven who it is.
        code_of_clients: The stamp of the code that each of them says it runs.
        left_out: Clients that lost a round for all, and are not asked again by this process.
    """

    carrier: Carrier
    members: Sequence[Member]
    run: str
    experiment: str
    key: bytes = field(repr=False)
    say: Callable[[str], None]
    timeout: float = 600.0
    has_public_cohort: Callable[[int], bool] = lambda _: False
    is_revoked: Callable[[int], bool] = lambda _: False
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    nodes_of_clients: dict[int, int] = field(default_factory=dict)
    code_of_clients: dict[int, str] = field(default_factory=dict)
    left_out: set[int] = field(default_factory=set)
    _strangers: dict[int, str] = field(default_factory=dict)  # nodes that did not prove to be a client, and why
    _abandoned: set[int] = field(default_factory=set)
    _online: set[int] = field(default_factory=set)
    _hello_seconds: float = HELLO_SECONDS
    _rests: dict[int, Rest] = field(default_factory=dict)  # of nodes that are online and have not said who they are

    def await_clients(self, cohort: Sequence[int], enough: int, round: int) -> list[int]:
        """Return the clients of the cohort that are online: all, or at least `enough` when the timeout is over.

        It does not wait for clients that were online before and left, nor a second time for one that never came, nor
        for those that are left out.

        Raises:
            ClientsAway: Fewer than `enough` clients are online after the timeout, or are not left out.
            ClientsRefused: So many clients refuse that `enough` can't come.
        """
        for client in cohort:
            if client not in self.left_out and self.is_revoked(client):
                self._leave_out(client, f"the rounds from {_round_name(round)} on", "its key was revoked.")
        cohort = self._remaining_clients(cohort, enough)
        until, is_announced = self.clock() + self.timeout, False
        while True:
            there = self._find_clients(round, awaited=is_announced)
            here = [client for client in cohort if client in there]
            missing = [
                client for client in cohort if client not in self.nodes_of_clients and client not in self._abandoned
            ]
            if len(here) >= enough and not missing:
                return here
            self._give_up_on_refusals(len(cohort), enough)
            if self.clock() >= until:
                break
            if not is_announced:
                self.say(
                    self._waiting_message([client for client in cohort if client not in there], len(cohort), enough)
                )
                is_announced = True
                if self.has_public_cohort(round):
                    log.info("waiting for clients", round=round + 1, clients=len(cohort) - len(here))
            self.pause(LOOK_SECONDS)
        self._abandoned.update(missing)
        if len(here) >= enough:
            return here
        raise ClientsAway(
            f"{len(here)} of {len(cohort)} clients are online after {self.timeout:g} seconds, and {enough} are needed.",
            fix="Start the other clients, and submit the run again: it continues after its last round.",
        )

    def ask(
        self,
        kind: Kind,
        round: int,
        cohort: Sequence[int],
        bodies: Mapping[int, bytes],
        enough: int,
        *,
        shared: bytes = b"",
        opens: bool = False,
    ) -> Iterator[tuple[int, bytes]]:
        """Ask clients, and yield each client and its answer as soon as the answer has arrived.

        Args:
            kind: The kind of request.
            round: The round.
            cohort: All clients of the round.
            bodies: The request's body for each client, or its beginning.
            shared: The rest of the body, for all clients.
            enough: The fewest answers with which the round can go on.
            opens: Whether an answer reveals an update or opens a sum, even if it comes too late.

        Raises:
            ClientsRefused: Clients refused, and fewer than `enough` answered. `BudgetsSpent` if a budget is spent.
                It is raised after the last answer.
        """
        asked = {self.nodes_of_clients[client]: client for client in bodies if self.can_ask(client)}
        requests = {
            node: self._request(kind, round, client, cohort, bodies[client], shared) for node, client in asked.items()
        }
        replies = self.carrier.exchange(requests, enough, shared=shared)
        sent = len(requests)
        del requests, shared  # they may be as large as the model, as an answer may: nothing here holds one for longer
        answered = 0
        refusals: dict[int, Refusal] = {}
        for node, reply in replies:
            answer = [signed_messages.read_reply(reply)]
            del reply
            if isinstance(answer[0], Refusal):
                refusals[asked[node]] = answer[0]
            else:
                answered += 1
                yield asked[node], cast("bytes", answer.pop())
        alike: dict[str, list[int]] = {}  # clients by the reason for which they refuse
        for client in sorted(refusals):
            alike.setdefault(refusals[client].why, []).append(client)
        if answered < enough and refusals:
            reasons = " ".join(f"{self._names(clients)}: {why}" for why, clients in alike.items())
            error = BudgetsSpent if any(refusal.spent for refusal in refusals.values()) else ClientsRefused
            raise error(
                f"{answered} of {len(bodies)} clients answered in {_round_name(round)}, and {enough} are needed. "
                f"Refused by {reasons}",
                revealed=opens and len(refusals) < sent,  # a client that did not answer may still do so
            )
        for client, refusal in refusals.items():
            self.log_problem(client, round, "BudgetRefused" if refusal.spent else "RequestRefused")
        for why, clients in alike.items():
            everybody = ", ".join(self.members[client].name for client in clients)  # shortened where it is printed
            self.say(f"{everybody} refused {_round_name(round)}: {why}")

    def can_ask(self, client: int) -> bool:
        """Whether the client has proven who it is, and is not left out."""
        return client in self.nodes_of_clients and client not in self.left_out

    def leave_out(self, client: int, round: int, why: str) -> None:
        """Treat a client as a drop-out in all rounds after this one, and tell the operator why."""
        self._leave_out(client, f"the rounds after {_round_name(round)}", why)

    def _leave_out(self, client: int, rounds: str, why: str) -> None:
        self.left_out.add(client)
        self.say(f"{self.members[client].name} is left out of {rounds}: {why}")

    def _remaining_clients(self, cohort: Sequence[int], enough: int) -> list[int]:
        remaining = [client for client in cohort if client not in self.left_out]
        if len(remaining) < min(enough, len(cohort)):
            raise ClientsAway(
                f"{len(remaining)} of {len(cohort)} clients are not left out, and {enough} are needed.",
                fix="Find out why the others were left out, and submit the run again: it then asks them again.",
            )
        return remaining

    def log_problem(self, client: int, round: int, error: str) -> None:
        """Log that nothing of a client can be used in a round; but not if a secret draw decides who is asked."""
        if self.has_public_cohort(round):
            log.warning("client left out", client=self.members[client].name, round=round + 1, error=error)

    def _give_up_on_refusals(self, clients: int, enough: int) -> None:
        """Raise `ClientsRefused` if so many nodes refuse that `enough` clients can't come."""
        refusing = {node: why for node, why in self._strangers.items() if node in self.carrier.nodes()}
        if clients - len(refusing) < enough:
            reasons = " ".join(dict.fromkeys(refusing.values()))
            raise ClientsRefused(f"{len(refusing)} of {clients} clients refuse to take part. {reasons}")

    def _find_clients(self, round: int, awaited: bool) -> set[int]:
        """Ask new nodes who they are, and return the clients that are online.

        A node that does not answer would delay every round. It is asked again if it left and came back or if clients
        are `awaited`, otherwise after ever more rounds. So is a node that refuses, whose owner may mend the cause; but
        while clients are awaited it would refuse twice a second.
        """
        nodes = self.carrier.nodes()
        self._rests = {node: rest for node, rest in self._rests.items() if node in nodes}
        self._strangers = {node: why for node, why in self._strangers.items() if node in nodes}
        resting = {node for node, rest in self._rests.items() if rest.again > round}
        met = {*self.nodes_of_clients.values(), *(resting & set(self._strangers) if awaited else resting)}
        unknown = [node for node in nodes if node not in met]
        if unknown:
            greeting = encode_greeting(key_agreement.random_bytes(NONCE_BYTES))
            request = self._request("hello", round, 0, (), greeting)
            new = sum(node not in self._rests for node in unknown)
            replies = dict(self.carrier.exchange(dict.fromkeys(unknown, request), new, self._hello_seconds))
            if len(unknown) >= CROWD and len(replies) < len(unknown) / 2:
                self._hello_seconds = min(2 * self._hello_seconds, self.timeout)
            for node, reply in replies.items():
                self._identify(node, reply, greeting)
            for node in set(unknown) - set(self.nodes_of_clients.values()):
                times = self._rests.get(node, NO_REST).times + (not awaited)
                self._rests[node] = Rest(times, round + REST_ROUNDS * 2**times)
        there = {client for client, node in self.nodes_of_clients.items() if node in nodes}
        for client in there - self._online:
            log.info("client online", client=self.members[client].name, node=self.nodes_of_clients[client])
        for client in self._online - there:
            log.warning("client offline", client=self.members[client].name, node=self.nodes_of_clients[client])
        self._online = there
        return there

    def _identify(self, node: int, reply: bytes, greeting: bytes) -> None:
        answer = signed_messages.read_reply(reply)
        if isinstance(answer, Refusal):
            line = f"A node refused to say who it is: {answer.why}"
            self._ignore_node(node, "RequestRefused", answer.why, line)
            return
        hello = self._read_hello(answer, greeting)
        if hello is None:
            line = "A node could not prove which client it is, and is ignored."
            self._ignore_node(node, "UnknownIdentity", "It could not prove which client it is.", line)
            return
        name = self.members[hello.client].name
        if mismatch := describe_mismatch(VERSION, hello.version):
            self._ignore_node(node, "VersionMismatch", f"{name}: {mismatch}", f"{name} can't take part. {mismatch}")
            return
        self._strangers.pop(node, None)
        self._rests.pop(node, None)
        self.nodes_of_clients[hello.client] = node
        self.code_of_clients[hello.client] = hello.stamp
        if hello.stamp != (own := read_code_version()).stamp:
            self.say(f"{name} runs {CodeVersion.from_stamp(hello.stamp)}; this server runs {own}.")

    def _ignore_node(self, node: int, error: str, why: str, line: str) -> None:
        """Note that a node is no client of this run, and tell the operator why, but not the same again."""
        log.warning("node refused", node=node, error=error)
        if self._strangers.get(node) != why:
            self.say(line)
        self._strangers[node] = why

    def _read_hello(self, answer: bytes, greeting: bytes) -> Hello | None:
        """Return what a node says of itself if it has proven to be a client, else None."""
        try:
            hello = read_hello(answer)
        except BadMessage:
            return None
        is_member = hello.client < len(self.members)
        if is_member and hello.is_proven(self.run, greeting, self.members[hello.client].identity):
            return hello
        return None

    def _request(
        self, kind: Kind, round: int, client: int, cohort: Sequence[int], body: bytes, shared: bytes = b""
    ) -> bytes:
        about = RequestHeader(
            kind=kind,
            run=self.run,
            experiment=self.experiment,
            round=round,
            client=client,
            cohort=tuple(cohort),
        )
        return signed_messages.sign_request(about, body, self.key, shared)

    def _waiting_message(self, away: Sequence[int], cohort: int, enough: int) -> str:
        return (
            f"Waiting for {self._names(away)}, for at most {self.timeout:g} seconds (engine.timeout in resolved.toml); "
            f"with {enough} of {cohort} the round then goes on without the others."
        )

    def _names(self, clients: Sequence[int]) -> str:
        return shorten_names([self.members[client].name for client in clients]) or "nobody"


def _round_name(round: int) -> str:
    return "the sum of moments" if round == PREPARATION else f"round {round + 1}"

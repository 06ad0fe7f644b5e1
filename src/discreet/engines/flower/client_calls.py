"""Whom the server can reach, and asking them: who is at which node is proven, requests are signed, refusals heard."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from discreet.engines.flower import signed_messages
from discreet.engines.flower.carrier import Carrier
from discreet.engines.flower.flower_errors import BudgetsSpent, ClientsAway, ClientsRefused
from discreet.engines.flower.signed_messages import Kind, Refusal, RequestHeader
from discreet.secure_sums.secagg import key_agreement

NONCE_BYTES = 32
REST_ROUNDS = 5  # rounds, and twice as many each time, in which a node that said nothing is not asked
LOOK_SECONDS = 0.5  # seconds between two looks for clients that are awaited
HELLO_SECONDS = (
    15.0  # seconds to say who one is in: nothing is trained for it, and nodes that came meanwhile are not yet seen
)


@dataclass(frozen=True)
class Member:
    """A client as the others know it: its name, and the public key that it signs with."""

    name: str
    identity: bytes


class Silence(NamedTuple):
    """How often a node said nothing, and the round to ask it again in."""

    times: int
    again: int


NO_SILENCE = Silence(0, 0)


@dataclass
class ClientCalls:
    """One run's line to its clients. `say` hears what a person who watches the server should know."""

    carrier: Carrier
    members: Sequence[Member]
    run: str
    experiment: str
    key: bytes = field(repr=False)
    say: Callable[[str], None]
    timeout: float = 600.0
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    nodes_of_clients: dict[int, int] = field(default_factory=dict)  # each client's node
    _strangers: dict[int, str] = field(default_factory=dict)  # nodes that are none of the clients, and why
    _abandoned: set[int] = field(default_factory=set)
    _silent: dict[int, "Silence"] = field(default_factory=dict)  # nodes that are there and have not said who they are

    def await_clients(self, cohort: Sequence[int], enough: int, round: int) -> list[int]:
        """Those of the cohort that are there: all of them, or `enough` once the others were waited for in vain.

        Clients that were there before and went are not waited for, nor twice for one that never came.
        """
        until, told = self.clock() + self.timeout, False
        while True:
            there = self._find_clients(round, awaited=told)
            here = [client for client in cohort if client in there]
            missing = [
                client for client in cohort if client not in self.nodes_of_clients and client not in self._abandoned
            ]
            if len(here) >= enough and not missing:
                return here
            self._give_up_on_refusals(len(cohort), enough)
            if self.clock() >= until:
                break
            if not told:
                self.say(
                    self._waiting_message([client for client in cohort if client not in there], len(cohort), enough)
                )
                told = True
            self.pause(LOOK_SECONDS)
        self._abandoned.update(missing)
        if len(here) >= enough:
            return here
        raise ClientsAway(
            f"Of {len(cohort)} clients {len(here)} are there after {self.timeout:g} seconds, and {enough} are needed.",
            fix="Start the others, and submit the run again: it goes on after its last round.",
        )

    def ask(
        self,
        kind: Kind,
        round: int,
        cohort: Sequence[int],
        bodies: Mapping[int, bytes],
        enough: int,
        *,
        opens: bool = False,
    ) -> dict[int, bytes]:
        """What each client answers. Those who don't are left out; too many refusals end the run, with the reasons.

        `opens` says whether an answer shows an update, or opens a sum of them, even one that comes too late.
        """
        requests = {
            self.nodes_of_clients[client]: self._request(kind, round, client, cohort, body)
            for client, body in bodies.items()
            if client in self.nodes_of_clients
        }
        replies = self.carrier.exchange(requests, enough)
        answers: dict[int, bytes] = {}
        refusals: dict[int, Refusal] = {}
        for client in bodies:
            if (reply := replies.get(self.nodes_of_clients.get(client, -1))) is None:
                continue
            answer = signed_messages.read_reply(reply)
            if isinstance(answer, Refusal):
                refusals[client] = answer
            else:
                answers[client] = answer
        alike: dict[str, list[int]] = {}  # clients who refuse for the same reason say so with one voice
        for client, refusal in refusals.items():
            alike.setdefault(refusal.why, []).append(client)
        if len(answers) < enough and refusals:
            reasons = " ".join(f"{self._names(clients)}: {why}" for why, clients in alike.items())
            error = BudgetsSpent if any(each.spent for each in refusals.values()) else ClientsRefused
            raise error(
                f"{len(answers)} of {len(bodies)} clients answered in round {round + 1}, and {enough} are needed. "
                f"Refused by {reasons}",
                revealed=opens and len(refusals) < len(requests),  # one that said nothing may be late
            )
        for why, clients in alike.items():
            self.say(f"{self._names(clients)} refused round {round + 1}: {why}")
        return answers

    def _give_up_on_refusals(self, clients: int, enough: int) -> None:
        """Where so many nodes refuse that enough can't come, waiting is in vain."""
        refusing = {node: why for node, why in self._strangers.items() if node in self.carrier.nodes()}
        if clients - len(refusing) < enough:
            reasons = " ".join(dict.fromkeys(refusing.values()))
            raise ClientsRefused(f"{len(refusing)} of {clients} clients refuse to take part. {reasons}")

    def _find_clients(self, round: int, awaited: bool) -> set[int]:
        """Ask nodes that are new who they are; a node that can't prove it is nobody.

        One that said nothing would hold up every round. It is asked again when it went and came or clients are
        `awaited`, and else in ever fewer rounds.
        """
        nodes = self.carrier.nodes()
        self._silent = {node: known for node, known in self._silent.items() if node in nodes}
        met = {*self.nodes_of_clients.values(), *self._strangers}
        resting = set() if awaited else {node for node, known in self._silent.items() if known.again > round}
        unknown = [node for node in nodes if node not in met | resting]
        if unknown:
            nonce = key_agreement.random_bytes(NONCE_BYTES)
            about = RequestHeader(
                kind="hello", run=self.run, experiment=self.experiment, round=round, client=0, cohort=()
            )
            asked = signed_messages.sign_request(about, nonce, self.key)
            new = sum(node not in self._silent for node in unknown)
            replies = self.carrier.exchange(dict.fromkeys(unknown, asked), new, HELLO_SECONDS)
            for node, reply in replies.items():
                self._identify(node, reply, nonce)
            for node in set(unknown) - set(replies):
                times = self._silent.get(node, NO_SILENCE).times + (not awaited)
                self._silent[node] = Silence(times, round + REST_ROUNDS * 2**times)
        return {client for client, node in self.nodes_of_clients.items() if node in nodes}

    def _identify(self, node: int, reply: bytes, nonce: bytes) -> None:
        answer = signed_messages.read_reply(reply)
        if isinstance(answer, Refusal):
            self._strangers[node] = answer.why
            self.say(f"A node refused to say who it is: {answer.why}")
            return
        client, signature = int.from_bytes(answer[:4], "little"), answer[4:]
        known = client < len(self.members)
        said = signed_messages.hello_statement(self.run, client, nonce)
        if not known or not key_agreement.is_signature_valid(self.members[client].identity, said, signature):
            self._strangers[node] = "It could not prove which client it is."
            self.say("A node could not prove which client it is, and is left out.")
            return
        self.nodes_of_clients[client] = node

    def _request(self, kind: Kind, round: int, client: int, cohort: Sequence[int], body: bytes) -> bytes:
        about = RequestHeader(
            kind=kind,
            run=self.run,
            experiment=self.experiment,
            round=round,
            client=client,
            cohort=tuple(cohort),
        )
        return signed_messages.sign_request(about, body, self.key)

    def _waiting_message(self, away: Sequence[int], cohort: int, enough: int) -> str:
        return (
            f"Waiting for {self._names(away)}, for at most {self.timeout:g} seconds (engine.timeout in resolved.toml); "
            f"with {enough} of {cohort} the round is then made without the others."
        )

    def _names(self, clients: Sequence[int]) -> str:
        return ", ".join(self.members[client].name for client in clients) or "nobody"

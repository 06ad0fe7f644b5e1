"""What a client does with a server's request: check it against the policy, count it, answer it, or say why not."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from discreet.deploy import spending
from discreet.deploy.app import App
from discreet.deploy.certificates import key_from
from discreet.deploy.journal import Entry, Journal
from discreet.deploy.learner import Learner
from discreet.deploy.policy import Owned, Refused
from discreet.deploy.spending import Spending
from discreet.engines.flower import messages
from discreet.engines.flower.errors import NotOurs
from discreet.engines.flower.messages import About
from discreet.engines.planned_sums import planned
from discreet.errors import DiscreetError, Unsupported
from discreet.params import flat
from discreet.privacy.events import Event
from discreet.secagg import keys
from discreet.secagg.client import Client
from discreet.secagg.errors import SecaggError, TooFewClients
from discreet.secagg.terms import Terms


def today() -> date:
    return datetime.now(UTC).date()


@dataclass(frozen=True)
class Node:
    """A client on its own machine. Nothing that a server sends is run; what it asks for is done by the code here.

    Guarantee: no update leaves that the policy does not allow or that the client's own ledger has not counted first;
    one question gets one answer, and no noise is drawn twice for two of them.
    """

    owned: Owned
    app: App
    learner: Learner
    journal: Journal
    spending: Spending
    identity: bytes
    say: Callable[[str], None]
    day: Callable[[], date] = today

    @classmethod
    def open(cls, folder: Path, say: Callable[[str], None], data_dir: Path | None = None) -> "Node":
        owned = Owned.open(folder)
        app = App.open(owned.app)
        owned.policy.allow_seed(app.experiment.seed)
        learner = Learner.of(app, owned, key_from(folder / "noise.key"), data_dir)
        books = Spending(folder, owned.policy, _planned(owned, app, learner))
        identity = key_from(folder / "identity.key")
        return cls(owned, app, learner, Journal(folder / "runs"), books, identity, say)

    def answer(self, request: bytes) -> bytes:
        """The reply. What is refused is said to the server, and here."""
        try:
            about, body = messages.parsed(request, bytes.fromhex(self.owned.policy.server_key))
            return messages.answered(self._answer(about, body))
        except (DiscreetError, json.JSONDecodeError) as refusal:
            self.say(f"Refused: {refusal}")
            return messages.refused(str(refusal))

    def _answer(self, about: About, body: bytes) -> bytes:
        self._agree(about)
        match about.kind:
            case "hello":
                said = messages.hello_statement(about.run, self.learner.client, body)
                return self.learner.client.to_bytes(4, "little") + keys.sign(self.identity, said)
            case "train":
                return self._train(about, body)
            case "session":
                return self._begin(about, body)
            case "mask":
                return self._mask(about, body)
            case "relay":
                return self._relay(about, body)

    def _agree(self, about: About) -> None:
        """What was agreed, and nothing else: this experiment, its rounds, this client."""
        if about.experiment != self.app.digest:
            raise NotOurs(
                f"The server asks for the experiment {about.experiment[:12]}…, and this node has agreed to "
                f"{self.app.digest[:12]}….",
                fix="Get the server's app folder, read what changed, and allow it in policy.toml.",
            )
        self.owned.policy.allow_algorithm(about.experiment)
        if about.kind != "hello" and about.client != self.learner.client:
            raise NotOurs(f"The request is for client {about.client}, and this is client {self.learner.client}.")
        if about.round >= self.app.experiment.rounds:
            raise NotOurs(
                f"The experiment has {self.app.experiment.rounds} rounds, and round {about.round + 1} is asked."
            )

    def _train(self, about: About, body: bytes) -> bytes:
        """An update in clear."""
        self.owned.policy.allow_sum(self.learner.algorithm, secure=False)
        self.owned.policy.allow_cohort(len(set(about.cohort)))
        broadcast = self.learner.heard(about.round, body)
        entry = self.journal.attempt(about.run, about.round, broadcast.digest.hex())
        stored = self.journal.reply(about.run, about.round, entry)
        if stored is not None:
            return stored
        made = self._count(about, entry)
        reply = messages.tensors(self.learner.update(about.run, broadcast, entry.attempt))
        self.journal.keep(about.run, about.round, entry, reply)
        made()
        return reply

    def _begin(self, about: About, body: bytes) -> bytes:
        """A new secure session, whose terms are the policy's to accept."""
        terms, algorithm = Terms.from_bytes(body), self.learner.algorithm
        if not algorithm.aggregation.secure or self.learner.client not in about.cohort:
            raise NotOurs("The server begins a secure sum that this client has no part in.")
        identities = [self.app.members[each].identity for each in about.cohort if each < len(self.app.members)]
        self.owned.policy.allow_terms(terms, identities, planned(algorithm, len(about.cohort)))
        client = Client(terms, about.cohort.index(self.learner.client), identity=self.identity)
        said = client.start()
        self.journal.keep_session(about.run, client.to_bytes())
        return said

    def _mask(self, about: About, body: bytes) -> bytes:
        """The update under its masks; the attempt is counted before the noise is drawn."""
        number, members, spread = messages.masked(body)
        client = self._session(about)
        if members:
            client.receive(members)
        broadcast = self.learner.heard(about.round, spread)
        if broadcast.encoding is None or client.terms.bits != broadcast.encoding.bits:
            raise NotOurs("The secure sum has other numbers than this algorithm.")
        entry = self.journal.attempt(about.run, about.round, broadcast.digest.hex(), _named(client, number))
        made = self._count(about, entry)
        update = self.learner.update(about.run, broadcast, entry.attempt)
        said = client.mask(number, flat(update).cpu().numpy())
        self.journal.keep_session(about.run, client.to_bytes())
        made()
        return said

    def _relay(self, about: About, body: bytes) -> bytes:
        client = self._session(about)
        try:
            said = client.receive(body)
        except SecaggError as error:
            self.journal.keep_session(about.run, client.to_bytes())  # an abort erases its secrets
            if isinstance(error, TooFewClients):
                raise
            raise Refused(f"The secure sum was left: {error.problem}", fix=error.fix) from None
        self.journal.keep_session(about.run, client.to_bytes())
        return said or b""

    def _session(self, about: About) -> Client:
        state = self.journal.session(about.run)
        if state is None:
            raise NotOurs("No secure sum was begun with this node, so there is nothing to go on with.")
        return Client.from_bytes(state, identity=self.identity)

    def _count(self, about: About, entry: Entry) -> Callable[[], None]:
        """In this client's own ledger, before its data is touched. A question that was counted costs nothing again.

        Where a secret draw decides who joins, its price holds only if every round is paid, whoever was drawn.
        """
        algorithm, population, client = self.learner.algorithm, self.learner.population, self.learner.client
        first = about.round
        if algorithm.sampling.known_cohort(population, about.round) is None:
            first = min(about.round, self.journal.counted(about.run))
        made = []
        for round in range(first, about.round + 1):
            attempt = entry.attempt if round == about.round else 0
            asked = spending.releases(algorithm, population, client, round)
            made.append(self.spending.reserve(f"run {about.run} round {round} attempt {attempt}", asked, self.day()))
        self.journal.count(about.run, max(self.journal.counted(about.run), about.round + 1))
        self.journal.begin(about.run, about.round, entry)

        def commit() -> None:
            for each in made:
                each()

        return commit


def _named(client: Client, number: int) -> str:
    return f"{client.terms.session.hex()} {number}"


def _planned(owned: Owned, app: App, learner: Learner) -> Event | None:
    """What the agreed experiment would release: a ledger's filter is tightest for it, and sound for all."""
    try:
        rounds = learner.algorithm.over(app.experiment.rounds, app.population)
        return spending.priced(owned.policy.budgets[0], rounds)[0]
    except Unsupported:
        return None

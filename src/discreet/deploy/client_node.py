"""What a client does with a server's request: check it against the policy, count it, answer it, or say why not."""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path

from discreet.deploy import client_ledger
from discreet.deploy.agreed_folder import App
from discreet.deploy.certificates import key_from
from discreet.deploy.client_faults import OwnFault, own_faults
from discreet.deploy.client_ledger import Spending
from discreet.deploy.journal import Entry, Held, Journal, Opened
from discreet.deploy.learner import Learner
from discreet.deploy.policy import Owned, Refused
from discreet.engines.flower import signed_messages
from discreet.engines.flower.flower_errors import NotOurs
from discreet.engines.flower.signed_messages import About, Refusal
from discreet.engines.secure_terms import plan_session
from discreet.errors import BudgetRefused, DiscreetError, InvalidInput, LedgerDamaged, LedgerUnavailable
from discreet.experiment.promise.budget_check import check_budgets
from discreet.params import flatten
from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.session_client import Client
from discreet.secure_sums.secagg.session_errors import SecaggError, TooFewClients
from discreet.secure_sums.secagg.session_terms import Terms

NAME_BYTES = 16  # of a secure session, as this client calls it


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
    held: Held
    day: Callable[[], date] = today
    told: Callable[[str], None] | None = None  # of each round that was answered

    @classmethod
    def open(cls, folder: Path, say: Callable[[str], None], data_dir: Path | None = None) -> "Node":
        owned = Owned.open(folder)
        app = App.open(owned.app)
        owned.policy.allow_algorithm(app.digest)  # before anything of the app is loaded: it may bring its own Python
        owned.policy.allow_seed(app.experiment.seed)
        owned.policy.allow_own_code(app.own_files)
        experiment = app.experiment
        check_budgets(owned.policy.budgets, experiment.privacy, experiment.algorithm, app.population, "policy.toml")
        if not os.access(folder, os.W_OK):
            raise InvalidInput(
                f"{folder} can't be written to, and a node writes there what it answers before it is sent.",
                fix=f"Start it as the user who enrolled {owned.policy.client}.",
            )
        held = Held(folder, f"{owned.policy.client} is already running: another process works on {folder}.")
        try:
            learner = Learner.of(app, owned, key_from(folder / "noise.key"), data_dir)
            budget, rounds = owned.policy.budgets[0], app.experiment.rounds
            tuned_to = client_ledger.expected(budget, learner.algorithm, app.population, rounds)
            books = Spending(folder, owned.policy, tuned_to)
            journal = Journal(folder / "runs" / app.digest)
            return cls(owned, app, learner, journal, books, key_from(folder / "identity.key"), say, held)
        except BaseException:
            held.close()
            raise

    def ready(self) -> None:
        """Whether it could answer a first round: else its owner hears so now, and not the server later."""
        if self.learner.algorithm.aggregation.is_secure:
            self.owned.policy.allow_secure_sums()
        first = client_ledger.releases(self.learner.algorithm, self.learner.population, self.learner.client, 0)
        self.spending.check(self.day(), first)

    def close(self) -> None:
        """Let another process work on the folder."""
        self.held.close()

    def answer(self, request: bytes) -> bytes:
        """The reply. What is refused is said to the server, and here."""
        try:
            about, body = signed_messages.parsed(request, bytes.fromhex(self.owned.policy.server_key))
            return signed_messages.answered(self._answer(about, body))
        except (OwnFault, LedgerDamaged, LedgerUnavailable) as fault:  # of the data, or of files of this machine
            return self._failed(fault)
        except DiscreetError as refusal:
            self.say(f"Refused: {refusal}")
            return signed_messages.refused(Refusal(str(refusal), spent=isinstance(refusal, BudgetRefused)))
        except Exception as fault:  # noqa: BLE001 - whatever a server sends, the node stays
            return self._failed(fault)

    def _failed(self, fault: Exception) -> bytes:
        """What the fault says may be about the data, so the server hears its kind alone."""
        fault = fault.fault if isinstance(fault, OwnFault) else fault
        kind = type(fault).__name__
        self.say(f"Refused, after a fault of this node's own ({kind}): {fault}")
        return signed_messages.refused(
            Refusal(f"The request could not be answered ({kind}); the node's owner sees why.")
        )

    def _answer(self, about: About, body: bytes) -> bytes:
        self._agree(about)
        match about.kind:
            case "hello":
                said = signed_messages.hello_statement(about.run, self.learner.client, body)
                return self.learner.client.to_bytes(4, "little") + key_agreement.sign(self.identity, said)
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
        if about.kind != "hello":
            self.learner.check_cohort(about.round, about.cohort)

    def _train(self, about: About, body: bytes) -> bytes:
        """An update in clear."""
        self.owned.policy.allow_sum(self.learner.algorithm, secure=False)
        self.owned.policy.allow_cohort(len(about.cohort))
        broadcast = self.learner.heard(about.round, body)
        entry = self.journal.attempt(about.run, about.round, broadcast.digest.hex())
        stored = self.journal.reply(about.run, about.round, entry)
        if stored is not None:
            return stored
        if self.journal.forgotten(about.run, about.round, entry):
            raise NotOurs(f"Round {about.round + 1} was answered long ago, and the answer is no longer kept.")
        made = self._count(about, entry)
        with own_faults():
            reply = signed_messages.tensors(self.learner.update(about.run, broadcast, entry))
        self.journal.keep(about.run, about.round, entry, reply)
        made()
        self._tell(about)
        return reply

    def _begin(self, about: About, body: bytes) -> bytes:
        """A new secure session, whose terms are the policy's to accept."""
        if not self.learner.algorithm.aggregation.is_secure:
            raise NotOurs("The server begins a secure sum, and this algorithm makes none.")
        terms, left = Terms.from_bytes(body), self.app.experiment.rounds - about.round
        self._allow(terms, about)
        if terms.rounds > left:
            raise NotOurs(f"The secure sum is for {terms.rounds} rounds, and the experiment has {left} left.")
        client = Client(terms, about.cohort.index(self.learner.client), identity=self.identity)
        said = client.start()
        name = key_agreement.fresh(NAME_BYTES).hex()
        self._keep(about, Opened(about.experiment, about.cohort, name, b""), client)
        return said

    def _allow(self, terms: Terms, about: About) -> None:
        """Terms for this experiment's numbers, this cohort's keys, and what the policy asks for today."""
        if (terms.length, terms.bits) != self.learner.lattice(about.round):
            raise NotOurs("The secure sum has other numbers than this algorithm.")
        if terms.purpose != signed_messages.purpose(about.experiment, about.run):
            raise NotOurs("The secure sum is for another experiment or another run.")
        identities = [self.app.members[each].identity for each in about.cohort]
        self.owned.policy.allow_terms(terms, identities, plan_session(self.learner.algorithm, len(about.cohort)))

    def _mask(self, about: About, body: bytes) -> bytes:
        """The update under its masks; the attempt is counted before the noise is drawn, and once it can be answered."""
        number, members, spread = signed_messages.masked(body)
        opened, client = self._session(about)
        said = client.masked(number)
        if members and said is None:
            self._hear(about, opened, client, members)
        broadcast = self.learner.heard(about.round, spread)
        entry = self.journal.attempt(about.run, about.round, broadcast.digest.hex(), f"{opened.name} {number}")
        if said is None:
            client.check_turn(number)
        elif not self.journal.begun(about.run, about.round, entry):
            raise NotOurs("This round of the secure sum was answered, and the question was another one.")
        made = self._count(about, entry)
        if said is not None:
            made()
            return said
        with own_faults():
            update = self.learner.update(about.run, broadcast, entry)
            said = client.mask(number, flatten(update).cpu().numpy())
        self._keep(about, opened, client)
        made()
        self._tell(about)
        return said

    def _relay(self, about: About, body: bytes) -> bytes:
        return self._hear(about, *self._session(about), body)

    def _hear(self, about: About, opened: Opened, client: Client, message: bytes) -> bytes:
        try:
            said = client.receive(message)
        except SecaggError as error:
            if isinstance(error, TooFewClients):
                raise
            raise Refused(f"The secure sum was left: {error.problem}", fix=error.fix) from None
        finally:
            self._keep(about, opened, client)  # an abort erases its secrets
        return said or b""

    def _session(self, about: About) -> tuple[Opened, Client]:
        """The session that was begun for this experiment and cohort; its terms must be allowed today as well."""
        opened = self.journal.session(about.run)
        if opened is None:
            raise NotOurs("No secure sum was begun with this node, so there is nothing to go on with.")
        if (opened.experiment, opened.cohort) != (about.experiment, about.cohort):
            raise NotOurs("The secure sum was begun for another experiment or another cohort.")
        client = Client.from_bytes(opened.state, identity=self.identity)
        self._allow(client.terms, about)
        return opened, client

    def _keep(self, about: About, opened: Opened, client: Client) -> None:
        self.journal.keep_session(about.run, replace(opened, state=client.to_bytes()))

    def _count(self, about: About, entry: Entry) -> Callable[[], None]:
        """In this client's own ledger, before its data is touched. A question that was counted costs nothing again.

        Where a secret draw decides who joins, its price holds only if every round is paid, whoever was drawn.
        """
        algorithm, population, client = self.learner.algorithm, self.learner.population, self.learner.client
        first = about.round
        if algorithm.sampling.public_cohort(population, about.round) is None:
            first = min(about.round, self.journal.counted(about.run))
        made = []
        for round in range(first, about.round + 1):
            key = f"experiment {about.experiment} run {about.run} round {round} of {self.learner.fingerprint} "
            key += entry.name if round == about.round else "not asked"
            asked = client_ledger.releases(algorithm, population, client, round)
            made.append(self.spending.reserve(key, asked, self.day()))
        self.journal.count(about.run, max(self.journal.counted(about.run), about.round + 1))
        self.journal.begin(about.run, about.round, entry)

        def commit() -> None:
            for each in made:
                each()

        return commit

    def _tell(self, about: About) -> None:
        """To the owner, what its own ledger says after a round that was answered for the first time."""
        if self.told is None:
            return
        with suppress(Exception, SystemExit):  # whatever befalls a terminal or a ledger now, the answer stands
            rounds, run = self.app.experiment.rounds, about.run
            self.told(f"Answered round {about.round + 1} of {rounds} of run {run:.8}…; {self.spending.standing()}.")

"""What a client does with a server's request: check it against the policy, count it, answer it, or say why not."""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path

from discreet.deploy import client_ledger
from discreet.deploy.app_folder import AppFolder
from discreet.deploy.certificates import read_key
from discreet.deploy.client_faults import ClientFault, wrap_client_faults
from discreet.deploy.client_ledger import ClientLedger
from discreet.deploy.journal import Entry, FolderLock, Journal, OpenSession
from discreet.deploy.learner import Learner
from discreet.deploy.policy import ClientFolder, PolicyRefusal
from discreet.engines.flower import signed_messages
from discreet.engines.flower.flower_errors import RequestRefused
from discreet.engines.flower.signed_messages import Refusal, RequestHeader
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
class ClientNode:
    """A client on its own machine. Nothing that a server sends is run; what it asks for is done by the code here.

    Guarantee: no update leaves that the policy does not allow or that the client's own ledger has not counted first;
    one question gets one answer, and no noise is drawn twice for two of them.
    """

    client_folder: ClientFolder
    app: AppFolder
    learner: Learner
    journal: Journal
    ledger: ClientLedger
    identity: bytes
    say: Callable[[str], None]
    held: FolderLock
    day: Callable[[], date] = today
    told: Callable[[str], None] | None = None  # of each round that was answered

    @classmethod
    def open(cls, folder: Path, say: Callable[[str], None], data_dir: Path | None = None) -> "ClientNode":
        owned = ClientFolder.open(folder)
        app = AppFolder.open(owned.app)
        owned.policy.allow_algorithm(app.digest)  # before anything of the app is loaded: it may bring its own Python
        owned.policy.allow_seed(app.experiment.seed)
        owned.policy.allow_own_code(app.user_files)
        experiment = app.experiment
        check_budgets(owned.policy.budgets, experiment.privacy, experiment.algorithm, app.population, "policy.toml")
        if not os.access(folder, os.W_OK):
            raise InvalidInput(
                f"{folder} can't be written to, and a node writes there what it answers before it is sent.",
                fix=f"Start it as the user who enrolled {owned.policy.client}.",
            )
        held = FolderLock(folder, f"{owned.policy.client} is already running: another process works on {folder}.")
        try:
            learner = Learner.of(app, owned, read_key(folder / "noise.key"), data_dir)
            budget, rounds = owned.policy.budgets[0], app.experiment.rounds
            tuned_to = client_ledger.expected_event(budget, learner.algorithm, app.population, rounds)
            books = ClientLedger(folder, owned.policy, tuned_to)
            journal = Journal(folder / "runs" / app.digest)
            return cls(owned, app, learner, journal, books, read_key(folder / "identity.key"), say, held)
        except BaseException:
            held.close()
            raise

    def ready(self) -> None:
        """Whether it could answer a first round: else its owner hears so now, and not the server later."""
        if self.learner.algorithm.aggregation.is_secure:
            self.client_folder.policy.allow_secure_sums()
        first = client_ledger.round_releases(self.learner.algorithm, self.learner.population, self.learner.client, 0)
        self.ledger.check(self.day(), first)

    def close(self) -> None:
        """Let another process work on the folder."""
        self.held.close()

    def answer(self, request: bytes) -> bytes:
        """The reply. What is refused is said to the server, and here."""
        try:
            about, body = signed_messages.read_request(request, bytes.fromhex(self.client_folder.policy.server_key))
            return signed_messages.encode_answer(self._answer(about, body))
        except (ClientFault, LedgerDamaged, LedgerUnavailable) as fault:  # of the data, or of files of this machine
            return self._fault_reply(fault)
        except DiscreetError as refusal:
            self.say(f"Refused: {refusal}")
            return signed_messages.encode_refusal(Refusal(str(refusal), spent=isinstance(refusal, BudgetRefused)))
        except Exception as fault:  # noqa: BLE001 - whatever a server sends, the node stays
            return self._fault_reply(fault)

    def _fault_reply(self, fault: Exception) -> bytes:
        """What the fault says may be about the data, so the server hears its kind alone."""
        fault = fault.fault if isinstance(fault, ClientFault) else fault
        kind = type(fault).__name__
        self.say(f"Refused, after a fault of this node's own ({kind}): {fault}")
        return signed_messages.encode_refusal(
            Refusal(f"The request could not be answered ({kind}); the node's owner sees why.")
        )

    def _answer(self, about: RequestHeader, body: bytes) -> bytes:
        self._check_agreed(about)
        match about.kind:
            case "hello":
                said = signed_messages.hello_statement(about.run, self.learner.client, body)
                return self.learner.client.to_bytes(4, "little") + key_agreement.sign(self.identity, said)
            case "train":
                return self._train(about, body)
            case "session":
                return self._begin_session(about, body)
            case "mask":
                return self._send_masked(about, body)
            case "relay":
                return self._relay(about, body)

    def _check_agreed(self, about: RequestHeader) -> None:
        """What was agreed, and nothing else: this experiment, its rounds, this client."""
        if about.experiment != self.app.digest:
            raise RequestRefused(
                f"The server asks for the experiment {about.experiment[:12]}…, and this node has agreed to "
                f"{self.app.digest[:12]}….",
                fix="Get the server's app folder, read what changed, and allow it in policy.toml.",
            )
        self.client_folder.policy.allow_algorithm(about.experiment)
        if about.kind != "hello" and about.client != self.learner.client:
            raise RequestRefused(f"The request is for client {about.client}, and this is client {self.learner.client}.")
        if about.round >= self.app.experiment.rounds:
            raise RequestRefused(
                f"The experiment has {self.app.experiment.rounds} rounds, and round {about.round + 1} is asked."
            )
        if about.kind != "hello":
            self.learner.check_cohort(about.round, about.cohort)

    def _train(self, about: RequestHeader, body: bytes) -> bytes:
        """An update in clear."""
        self.client_folder.policy.allow_sum(self.learner.algorithm, secure=False)
        self.client_folder.policy.allow_cohort(len(about.cohort))
        broadcast = self.learner.decode_broadcast(about.round, body)
        entry = self.journal.attempt(about.run, about.round, broadcast.digest.hex())
        stored = self.journal.reply(about.run, about.round, entry)
        if stored is not None:
            return stored
        if self.journal.is_forgotten(about.run, about.round, entry):
            raise RequestRefused(f"Round {about.round + 1} was answered long ago, and the answer is no longer kept.")
        made = self._reserve(about, entry)
        with wrap_client_faults():
            reply = signed_messages.encode_tensors(self.learner.update(about.run, broadcast, entry))
        self.journal.keep(about.run, about.round, entry, reply)
        made()
        self._report_answer(about)
        return reply

    def _begin_session(self, about: RequestHeader, body: bytes) -> bytes:
        """A new secure session, whose terms are the policy's to accept."""
        if not self.learner.algorithm.aggregation.is_secure:
            raise RequestRefused("The server begins a secure sum, and this algorithm makes none.")
        terms, left = Terms.from_bytes(body), self.app.experiment.rounds - about.round
        self._check_terms(terms, about)
        if terms.rounds > left:
            raise RequestRefused(f"The secure sum is for {terms.rounds} rounds, and the experiment has {left} left.")
        client = Client(terms, about.cohort.index(self.learner.client), identity=self.identity)
        said = client.start()
        name = key_agreement.random_bytes(NAME_BYTES).hex()
        self._store_session(about, OpenSession(about.experiment, about.cohort, name, b""), client)
        return said

    def _check_terms(self, terms: Terms, about: RequestHeader) -> None:
        """Terms for this experiment's numbers, this cohort's keys, and what the policy asks for today."""
        if (terms.length, terms.bits) != self.learner.lattice(about.round):
            raise RequestRefused("The secure sum has other numbers than this algorithm.")
        if terms.purpose != signed_messages.session_purpose(about.experiment, about.run):
            raise RequestRefused("The secure sum is for another experiment or another run.")
        identities = [self.app.members[each].identity for each in about.cohort]
        self.client_folder.policy.allow_terms(
            terms, identities, plan_session(self.learner.algorithm, len(about.cohort))
        )

    def _send_masked(self, about: RequestHeader, body: bytes) -> bytes:
        """The update under its masks; the attempt is counted before the noise is drawn, and once it can be answered."""
        number, members, spread = signed_messages.decode_mask_request(body)
        opened, client = self._load_session(about)
        said = client.masked_message(number)
        if members and said is None:
            self._receive(about, opened, client, members)
        broadcast = self.learner.decode_broadcast(about.round, spread)
        entry = self.journal.attempt(about.run, about.round, broadcast.digest.hex(), f"{opened.name} {number}")
        if said is None:
            client.check_turn(number)
        elif not self.journal.is_last_attempt(about.run, about.round, entry):
            raise RequestRefused("This round of the secure sum was answered, and the question was another one.")
        made = self._reserve(about, entry)
        if said is not None:
            made()
            return said
        with wrap_client_faults():
            update = self.learner.update(about.run, broadcast, entry)
            said = client.mask(number, flatten(update).cpu().numpy())
        self._store_session(about, opened, client)
        made()
        self._report_answer(about)
        return said

    def _relay(self, about: RequestHeader, body: bytes) -> bytes:
        return self._receive(about, *self._load_session(about), body)

    def _receive(self, about: RequestHeader, opened: OpenSession, client: Client, message: bytes) -> bytes:
        try:
            said = client.receive(message)
        except SecaggError as error:
            if isinstance(error, TooFewClients):
                raise
            raise PolicyRefusal(f"The secure sum was left: {error.problem}", fix=error.fix) from None
        finally:
            self._store_session(about, opened, client)  # an abort erases its secrets
        return said or b""

    def _load_session(self, about: RequestHeader) -> tuple[OpenSession, Client]:
        """The session that was begun for this experiment and cohort; its terms must be allowed today as well."""
        opened = self.journal.session(about.run)
        if opened is None:
            raise RequestRefused("No secure sum was begun with this node, so there is nothing to go on with.")
        if (opened.experiment, opened.cohort) != (about.experiment, about.cohort):
            raise RequestRefused("The secure sum was begun for another experiment or another cohort.")
        client = Client.from_bytes(opened.state, identity=self.identity)
        self._check_terms(client.terms, about)
        return opened, client

    def _store_session(self, about: RequestHeader, opened: OpenSession, client: Client) -> None:
        self.journal.store_session(about.run, replace(opened, state=client.to_bytes()))

    def _reserve(self, about: RequestHeader, entry: Entry) -> Callable[[], None]:
        """In this client's own ledger, before its data is touched. A question that was counted costs nothing again.

        Where a secret draw decides who joins, its price holds only if every round is paid, whoever was drawn.
        """
        algorithm, population, client = self.learner.algorithm, self.learner.population, self.learner.client
        first = about.round
        if algorithm.sampling.public_cohort(population, about.round) is None:
            first = min(about.round, self.journal.counted_rounds(about.run))
        made = []
        for round in range(first, about.round + 1):
            key = f"experiment {about.experiment} run {about.run} round {round} of {self.learner.fingerprint} "
            key += entry.name if round == about.round else "not asked"
            asked = client_ledger.round_releases(algorithm, population, client, round)
            made.append(self.ledger.reserve(key, asked, self.day()))
        self.journal.count(about.run, max(self.journal.counted_rounds(about.run), about.round + 1))
        self.journal.begin(about.run, about.round, entry)

        def commit() -> None:
            for each in made:
                each()

        return commit

    def _report_answer(self, about: RequestHeader) -> None:
        """To the owner, what its own ledger says after a round that was answered for the first time."""
        if self.told is None:
            return
        with suppress(Exception, SystemExit):  # whatever befalls a terminal or a ledger now, the answer stands
            rounds, run = self.app.experiment.rounds, about.run
            self.told(
                f"Answered round {about.round + 1} of {rounds} of run {run:.8}…; {self.ledger.describe_spending()}."
            )

"""A client's node: it checks each request against the policy, counts it in the ledger, and answers or refuses it."""

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path

from discreet.algorithms.standardisation import PREPARATION
from discreet.code_version import CodeVersion, read_code_version
from discreet.deploy import client_ledger
from discreet.deploy.app_folder import AppFolder
from discreet.deploy.certificates import read_key
from discreet.deploy.client_faults import ClientFault, wrap_client_faults
from discreet.deploy.client_ledger import ClientLedger
from discreet.deploy.journal import Entry, Journal, OpenSession
from discreet.deploy.learner import Learner
from discreet.deploy.membership import check_in_force
from discreet.deploy.owner_price import price_releases
from discreet.deploy.policy import ClientFolder, Policy, PolicyRefusal
from discreet.durable_files import ProcessLock
from discreet.engines.flower import hello_messages, signed_messages
from discreet.engines.flower.client_calls import Member
from discreet.engines.flower.flower_errors import RequestRefused
from discreet.engines.flower.signed_messages import Refusal, RequestHeader
from discreet.engines.secure_terms import plan_session
from discreet.errors import BudgetRefused, DiscreetError, InvalidInput, LedgerDamaged, LedgerUnavailable
from discreet.experiment.loop.job_builder import choose_device
from discreet.experiment.promise.budget_check import check_budgets
from discreet.logs import bind_fields, get_log
from discreet.params import flatten
from discreet.privacy.release import Release
from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.session_client import Client
from discreet.secure_sums.secagg.session_errors import SecaggError, TooFewClients
from discreet.secure_sums.secagg.session_terms import Terms
from discreet.secure_sums.secagg.wire import VERSION
from discreet.trust import Trust

log = get_log(__name__)

REQUEST_DIGITS = 16  # of the digest by which a log names a request
NAME_BYTES = 16  # length of the name that the client draws for a secure session


def lock_client_folder(owned: ClientFolder) -> ProcessLock:
    """Lock a client's folder, on which one process at a time may work.

    Raises:
        InvalidInput: Another process works on it.
    """

    def folder_busy(process: str) -> InvalidInput:
        return InvalidInput(
            f"{owned.policy.client} is already running: another process works on {owned.folder}.",
            fix=f"End the other process first ({process}): two of them would answer for one charge.",
        )

    return ProcessLock(owned.folder / "lock", folder_busy)


def today() -> date:
    """Return the current day in UTC."""
    return datetime.now(UTC).date()


@dataclass(frozen=True)
class ClientNode:
    """A client on its own machine. It runs its installed code, and nothing that a server sends.

    Guarantee: an update leaves only if the policy allows it and the client's own ledger has counted it before. The same
    request gets the same reply, and two different requests never share noise.

    Attributes:
        members: All clients with their signing keys, as they were when the node began: nobody if the policy pins none.
        say: Prints a line for the owner: refusals and faults.
        report_answer: Prints a line for each round that was answered; None prints none.
    """

    client_folder: ClientFolder
    app: AppFolder
    members: tuple[Member, ...]
    learner: Learner
    journal: Journal
    ledger: ClientLedger
    identity: bytes
    say: Callable[[str], None]
    lock: ProcessLock
    day: Callable[[], date] = today
    report_answer: Callable[[str], None] | None = None

    @classmethod
    def open(
        cls, folder: Path, say: Callable[[str], None], data_dir: Path | None = None, device: str = "cpu"
    ) -> "ClientNode":
        """Open the client in `folder`: read its policy, load its data, and lock the folder.

        Args:
            folder: The client's folder.
            say: Tells the owner what happens.
            data_dir: The folder of downloaded data sets.
            device: Where the client trains: cpu, cuda, or auto, which takes a GPU if there is one.

        Raises:
            PolicyRefusal: The policy does not allow the experiment in the app folder.
            InvalidInput: The folder is not writable, another process works on it, or the data is not as declared.
        """
        own_folder, place = ClientFolder.open(folder), choose_device(device)
        policy, app = own_folder.policy, AppFolder.open(own_folder.app)
        members = app.members if policy.members is not None else ()  # now, as cards may be removed or replaced later
        check_in_force(app)
        policy.allow_algorithm(app.digest)  # before anything of the app is loaded: it may contain Python
        policy.allow_seed(app.experiment.seed)
        policy.allow_own_code(app.user_files)
        policy.allow_parts(app.experiment.algorithm)
        trust = Trust.of_files(app.file_digests.values())  # what the policy has allowed, as it was read for that
        app = replace(app, experiment=app.load_user_parts(trust))
        experiment = app.experiment
        check_budgets(policy.budgets, experiment.privacy, experiment.algorithm, app.population, "policy.toml")
        if not os.access(folder, os.W_OK):
            raise InvalidInput(
                f"{folder} must be writable, since a node stores its replies there before it sends them, and is not.",
                fix=f"Start it as the user who enrolled {policy.client}.",
            )
        lock = lock_client_folder(own_folder)
        try:
            learner = Learner.load(app, own_folder, read_key(folder / "noise.key"), trust, data_dir, place)
            tuned_to = client_ledger.expected_event(policy, learner.algorithm, app.population, experiment.rounds)
            ledger = ClientLedger(folder, policy, tuned_to)
            journal = Journal(folder / "runs" / app.digest)
            identity = read_key(folder / "identity.key")
            return cls(own_folder, app, members, learner, journal, ledger, identity, say, lock)
        except BaseException:
            lock.close()
            raise

    @property
    def policy(self) -> Policy:
        """What the owner allows."""
        return self.client_folder.policy

    def check_ready(self) -> None:
        """Refuse what the first round would refuse, so that the owner learns it now and not the server later."""
        if self.learner.algorithm.aggregation.is_secure:
            self.policy.allow_secure_sums()
        first = 0 if self.learner.algorithm.standardisation is None else PREPARATION
        for round in range(first, 1):
            self.ledger.check(self.day(), self._round_releases(round))
        policy, folder = self.policy, self.client_folder.folder
        log.info("node ready", client=policy.client, experiment=self.app.digest, server=policy.server_key, path=folder)

    def close(self) -> None:
        """Unlock the folder for other processes."""
        self.lock.close()

    def answer(self, request: bytes) -> bytes:
        """Answer a server's request. Never raises: a refusal is sent to the server and printed for the owner."""
        with bind_fields(request=hashlib.sha256(request).hexdigest()[:REQUEST_DIGITS], client=self.policy.client):
            return self._answer_or_refuse(request)

    def _answer_or_refuse(self, request: bytes) -> bytes:
        try:
            about, body = signed_messages.read_request(request, bytes.fromhex(self.policy.server_key))
            with bind_fields(kind=about.kind, run=about.run, round=about.round + 1):
                log.debug("request received")
                answer = self._answer(about, body)
                log.debug("request answered")
            return signed_messages.encode_answer(answer)
        except (ClientFault, LedgerDamaged, LedgerUnavailable) as fault:  # its message may be about data or local files
            return self._fault_reply(fault)
        except DiscreetError as refusal:
            log.warning("request refused", error=type(refusal).__name__)
            self.say(f"Refused: {refusal}")
            return signed_messages.encode_refusal(Refusal(str(refusal), spent=isinstance(refusal, BudgetRefused)))
        except Exception as fault:  # noqa: BLE001 - whatever a server sends, the node stays
            return self._fault_reply(fault)

    def _fault_reply(self, fault: Exception) -> bytes:
        """Report a fault to the owner in full, and to the server only its kind, since its message may contain data."""
        fault = fault.fault if isinstance(fault, ClientFault) else fault
        kind = type(fault).__name__
        log.error("request failed", error=kind)
        self.say(f"Refused, after a fault of this node's own ({kind}): {fault}")
        return signed_messages.encode_refusal(
            Refusal(f"The request could not be answered ({kind}); the node's owner sees why.")
        )

    def _answer(self, about: RequestHeader, body: bytes) -> bytes:
        self._check_agreed(about)
        match about.kind:
            case "hello":
                return self._greet(about, body)
            case "train":
                return self._train(about, body)
            case "session":
                return self._begin_session(about, body)
            case "mask":
                return self._send_masked(about, body)
            case "relay":
                return self._receive(about, *self._load_session(about), body)

    def _greet(self, about: RequestHeader, body: bytes) -> bytes:
        """Say who this is and which code runs here. The owner learns of it if the server runs other code.

        Raises:
            RequestRefused: The server speaks another version of the protocol.
        """
        stamp, version = hello_messages.read_greeting(body)
        if mismatch := hello_messages.describe_mismatch(version, VERSION):
            raise RequestRefused(mismatch)
        if stamp != (own := read_code_version()).stamp:
            self.say(f"The server runs {CodeVersion.from_stamp(stamp)}; this node runs {own}.")
        return hello_messages.encode_hello(about.run, self.learner.client, body, self.identity)

    def _check_agreed(self, about: RequestHeader) -> None:
        """Refuse a request that is not about the agreed experiment, its rounds, a possible cohort and this client."""
        if about.experiment != self.app.digest:
            raise RequestRefused(
                f"The server asks for the experiment {about.experiment[:12]}…, and this node has agreed to "
                f"{self.app.digest[:12]}….",
                fix="Get the server's app folder, read what changed, and allow it in policy.toml.",
            )
        self.policy.allow_algorithm(about.experiment)
        if about.kind != "hello" and about.client != self.learner.client:
            raise RequestRefused(f"The request is for client {about.client}, and this is client {self.learner.client}.")
        if about.round >= self.app.experiment.rounds:
            raise RequestRefused(
                f"The experiment has {self.app.experiment.rounds} rounds, and the server asks for round "
                f"{about.round + 1}."
            )
        if about.kind != "hello":
            self._learner_for(about).check_cohort(about.round, about.cohort)

    def _learner_for(self, about: RequestHeader) -> Learner:
        """Return the learner of the round: before the first, that of the moments by which numbers are standardised."""
        return self.learner.for_moments() if about.round == PREPARATION else self.learner

    def _train(self, about: RequestHeader, body: bytes) -> bytes:
        """Answer with an update in clear. A stored reply is replayed."""
        learner = self._learner_for(about)
        self.policy.allow_clear_update(learner.algorithm)
        self.policy.allow_cohort(len(about.cohort))
        broadcast = learner.decode_broadcast(about.round, body)
        entry = self.journal.find_attempt(about.run, about.round, broadcast.digest.hex())
        stored = self.journal.stored_reply(about.run, about.round, entry)
        if stored is not None:
            log.info("reply replayed")
            return stored
        if self.journal.is_forgotten(about.run, about.round, entry):
            raise RequestRefused(f"Round {about.round + 1} was answered long ago, and the answer is no longer kept.")
        commit = self._reserve(about, entry)
        with wrap_client_faults():
            reply = signed_messages.encode_tensors(learner.update(about.run, broadcast, entry))
        self.journal.store_reply(about.run, about.round, entry, reply)
        commit()
        self._report_answer(about)
        return reply

    def _begin_session(self, about: RequestHeader, body: bytes) -> bytes:
        """Begin a secure session, if the policy accepts its terms."""
        if not self.learner.algorithm.aggregation.is_secure:
            raise RequestRefused("The server begins a secure sum, and this algorithm does not use secure sums.")
        terms = Terms.from_bytes(body)
        left = 1 if about.round == PREPARATION else self.app.experiment.rounds - about.round
        self._check_terms(terms, about)
        if terms.rounds > left:
            raise RequestRefused(f"The secure sum is for {terms.rounds} rounds, and the experiment has {left} left.")
        client = Client(terms, about.cohort.index(self.learner.client), identity=self.identity)
        reply = client.start()
        name = key_agreement.random_bytes(NAME_BYTES).hex()
        self._store_session(about, OpenSession(about.experiment, about.cohort, name, b""), client)
        return reply

    def _check_terms(self, terms: Terms, about: RequestHeader) -> None:
        """Refuse terms that don't fit the experiment, the run, the cohort's keys or the policy."""
        learner = self._learner_for(about)
        if (terms.length, terms.bits) != learner.lattice(about.round):
            raise RequestRefused("The secure sum has other numbers than this algorithm.")
        if terms.purpose != signed_messages.session_purpose(about.experiment, about.run):
            raise RequestRefused("The secure sum is for another experiment or another run.")
        self.policy.allow_secure_sums()
        identities = [self.members[client].identity for client in about.cohort]
        self.policy.allow_terms(terms, identities, plan_session(learner.algorithm, len(about.cohort)))

    def _send_masked(self, about: RequestHeader, body: bytes) -> bytes:
        """Answer with the masked update. The attempt is counted when it can be answered, before its noise is drawn."""
        number, members, spread = signed_messages.decode_mask_request(body)
        learner = self._learner_for(about)
        session, client = self._load_session(about)
        reply = client.masked_message(number)
        if members and reply is None and not client.is_set_up:  # they come again if the first vector was lost
            self._receive(about, session, client, members)
        broadcast = learner.decode_broadcast(about.round, spread)
        entry = self.journal.find_attempt(about.run, about.round, broadcast.digest.hex(), f"{session.name} {number}")
        if reply is None:
            client.check_turn(number)
        elif not self.journal.is_last_attempt(about.run, about.round, entry):
            raise RequestRefused("This round of the secure sum was already answered, for another broadcast.")
        commit = self._reserve(about, entry)
        if reply is not None:
            log.info("reply replayed")
            commit()
            return reply
        with wrap_client_faults():
            update = learner.update(about.run, broadcast, entry)
            subject = signed_messages.round_subject(about.round, spread)
            reply = client.mask(number, flatten(update).cpu().numpy(), subject)
        self._store_session(about, session, client)
        commit()
        self._report_answer(about)
        return reply

    def _receive(self, about: RequestHeader, session: OpenSession, client: Client, message: bytes) -> bytes:
        try:
            reply = client.receive(message)
        except SecaggError as error:
            if isinstance(error, TooFewClients):
                raise
            who = "" if error.client is None else f" (Client {error.client} is {self._peer_name(about, error.client)}.)"
            raise PolicyRefusal(f"This node has left the secure sum: {error.problem}{who}", fix=error.fix) from None
        finally:
            self._store_session(about, session, client)  # an abort erases the session's secrets
        for place, complaint in client.complaints.items():
            log.warning("shares not usable", error="BadShares")
            self.say(f"About {self._peer_name(about, place)}: {complaint}")
        return reply or b""

    def _peer_name(self, about: RequestHeader, place: int) -> str:
        """Return the name of the client at this place of a secure sum."""
        return self.members[about.cohort[place]].name

    def _load_session(self, about: RequestHeader) -> tuple[OpenSession, Client]:
        """Load the run's session, if it is for this experiment and cohort and the policy still allows its terms."""
        session = self.journal.load_session(about.run)
        if session is None:
            raise RequestRefused("No secure sum was begun with this node, so there is none to continue.")
        if (session.experiment, session.cohort) != (about.experiment, about.cohort):
            raise RequestRefused("The secure sum was begun for another experiment or another cohort.")
        client = Client.from_bytes(session.state, identity=self.identity)
        self._check_terms(client.terms, about)
        return session, client

    def _store_session(self, about: RequestHeader, session: OpenSession, client: Client) -> None:
        self.journal.store_session(about.run, replace(session, state=client.to_bytes()))

    def _reserve(self, about: RequestHeader, entry: Entry) -> Callable[[], None]:
        """Reserve the round in the client's own ledger, before its data is touched. Returns a function that commits it.

        A request that was counted before costs nothing again. If a secret draw decides who joins, its amplified price
        holds only if every round is paid, so the rounds before this one are reserved as well.
        """
        first = about.round
        if self._learner_for(about).algorithm.sampling.public_cohort(self.learner.population, about.round) is None:
            first = min(about.round, self.journal.counted_rounds(about.run))
        commits = []
        for round in range(first, about.round + 1):
            key = f"experiment {about.experiment} run {about.run} round {round} of {self.learner.fingerprint} "
            key += entry.name if round == about.round else "not asked"
            commits.append(self.ledger.reserve(key, self._round_releases(round), self.day()))
        self.journal.store_counted_rounds(about.run, max(self.journal.counted_rounds(about.run), about.round + 1))
        self.journal.begin_attempt(about.run, about.round, entry)

        def commit() -> None:
            for commit_one in commits:
                commit_one()

        return commit

    def _round_releases(self, round: int) -> tuple[Release, ...]:
        """Return what a round costs: at least the owner's prices if the experiment brings parts of its own."""
        algorithm, population = self.learner.algorithm, self.learner.population
        declared = client_ledger.round_releases(algorithm, population, self.learner.client, round)
        return price_releases(self.policy, algorithm, population, declared)

    def _report_answer(self, about: RequestHeader) -> None:
        """Tell the owner what the ledger has spent, after a round was answered for the first time."""
        log.info("round answered")
        if self.report_answer is None:
            return
        with suppress(Exception, SystemExit):  # an error of the terminal or the ledger must not undo the answer
            rounds, run = self.app.experiment.rounds, about.run
            what = "the sum of moments" if about.round == PREPARATION else f"round {about.round + 1} of {rounds}"
            self.report_answer(f"Answered {what} of run {run:.8}…; {self.ledger.describe_spending()}.")

"""Everything that this package parses: for each kind of file or message, the function that reads its bytes."""

import hashlib
import json
import re
from collections.abc import Callable
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import torch

import discreet
from discreet.algorithms.algorithm import ServerState
from discreet.data.datasets import file_formats
from discreet.data.tables.ranges import load_ranges
from discreet.deploy.counting_note import CountingNote
from discreet.deploy.deployment import Card, Deployment, read_record
from discreet.deploy.journal import Journal
from discreet.deploy.ledger_counter import LedgerCounter
from discreet.deploy.online_clients import read_names
from discreet.deploy.policy import Policy
from discreet.deploy.run_refusals import read_refusals
from discreet.engines.flower import hello_messages, signed_messages
from discreet.experiment.configuration import experiment_file
from discreet.experiment.run_directory.checkpoint import Checkpoint
from discreet.experiment.run_directory.run_files import RunFiles
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.part import from_plain
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger import Ledger
from discreet.secure_sums.secagg import key_agreement, message_codec
from discreet.secure_sums.secagg.client_state import ClientState
from discreet.secure_sums.secagg.server_state import Cohort
from discreet.secure_sums.secagg.session_terms import Terms
from discreet.trust import Trust
from discreet.verify import card_reader, ledger_check
from tests.fuzz.corpus_files import CORPUS
from tests.secure_sums.secagg.cohorts import repeated_secrets, terms

RUN, DIGEST = "a" * 16, "0" * 64
MODEL = {"0.weight": torch.zeros(2, 3), "0.bias": torch.zeros(2)}
KEY = bytes(range(32))
RANGES: dict[str, Any] = {"age": {"min": 0, "max": 100}, "back": {"values": ["no", "yes"]}}
Parser = Callable[[bytes, Path], object]  # gets the bytes and an empty folder


@cache
def session_terms() -> Terms:
    """The terms of the session whose messages are read."""
    with repeated_secrets():
        return terms(5, rounds=3)


def server_state() -> ServerState:
    """The state like which a checkpoint must be."""
    return ServerState(*(dict(MODEL) for _ in ServerState._fields))


def in_file(name: str, read: Callable[[Path], object]) -> Parser:
    """Return the parser of a file, which has this name in its folder."""

    def parse(content: bytes, folder: Path) -> object:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return read(path)

    return parse


def read_request(content: bytes, folder: Path) -> object:
    """Read a request that its server has signed: only then is what it says looked at."""
    body_at = 8 + int.from_bytes(content[:8], "little")
    shared_at = body_at + 8 + int.from_bytes(content[body_at : body_at + 8], "little")
    digest = hashlib.sha256(content[shared_at:]).digest()
    signature = key_agreement.sign(KEY, signed_messages.REQUEST_PURPOSE + content[:shared_at] + digest)
    return signed_messages.read_request(signature + content, key_agreement.identity_key(KEY))


def read_card(path: Path) -> object:
    """Read a card as `discreet.load` does."""
    return [from_plain(Guarantee, card) for card in RunRecord.open(path.parent).read_outcome()["guarantees"]]


def read_outcome(content: bytes, folder: Path) -> object:
    identity = {"version": 1, "id": RUN, "folder": None, "ledger": None, "seeded": False, "private": True}
    (folder / "run.json").write_text(json.dumps(identity))
    return in_file("guarantee.json", read_card)(content, folder)


def read_journal(path: Path) -> object:
    journal = Journal(path.parent.parent)
    return journal.find_attempt(path.parent.name, 0, ""), journal.counted_rounds(path.parent.name)


def read_session(path: Path) -> object:
    return Journal(path.parent.parent).load_session(path.parent.name)


def read_chained_lines(path: Path) -> object:
    """Read lines of a ledger whose hashes were made to fit, as somebody can who forges one; also as `verify` does."""
    path.write_bytes(chain_lines(path.read_bytes()))
    (card,) = card_reader.read_cards(next((CORPUS / "card").glob("valid-*")))
    ledger_check.check_ledger(card, path, RUN)
    return Ledger(path).verify()


def chain_lines(content: bytes) -> bytes:
    """Return the lines, each with the hash of the one before and its own."""
    before, chained = "0" * 64, []
    for line in content.removesuffix(b"\n").split(b"\n"):
        payload = re.sub(
            rb'"prev":"[0-9a-f]*"', f'"prev":"{before}"'.encode(), re.sub(rb',"hash":"[0-9a-f]*"', b"", line)
        )
        before = hashlib.sha256(payload).hexdigest()
        chained.append(payload[:-1] + f',"hash":"{before}"}}'.encode())
    return b"\n".join(chained) + b"\n"


def read_note(path: Path) -> object:
    counter = LedgerCounter(path.parent / "counter.json")
    counter.prepare()
    return CountingNote(path, counter).check(path, date(2026, 1, 1))


def read_identity(path: Path) -> object:
    record = RunRecord.open(path.parent)
    return record.ledger_path, record.identity.fingerprint and record.identity.round_key(0)


PARSERS: dict[str, Parser] = {
    "experiment": in_file(
        "experiment.toml", lambda path: experiment_file.load_experiment(path, (), None, Trust.no_code())
    ),
    "policy": in_file("policy.toml", lambda path: read_record(Policy, path)),
    "deployment": in_file("deployment.toml", lambda path: read_record(Deployment, path)),
    "client_card": in_file("client.toml", lambda path: read_record(Card, path)),
    "ranges": in_file("ranges.toml", load_ranges),
    "table": in_file(
        "visits.csv", lambda path: discreet.clients_from_csv(path, client="clinic", label="back", ranges=RANGES)
    ),
    "card": in_file("card.json", card_reader.read_cards),
    "outcome": read_outcome,
    "ledger": in_file("ledger.jsonl", lambda path: Ledger(path).verify()),
    "ledger_lines": in_file("ledger.jsonl", read_chained_lines),
    "identity": in_file("run.json", read_identity),
    "rounds": in_file("rounds.jsonl", lambda path: RunFiles(path.parent).rounds),
    "checkpoint": in_file("checkpoint.safetensors", lambda path: Checkpoint.read(path, server_state(), RUN, DIGEST)),
    "counter": in_file("counter.json", lambda path: LedgerCounter(path).knows(path)),
    "note": in_file("note.json", read_note),
    "journal": in_file(f"{'b' * 32}/round-0.json", read_journal),
    "session": in_file(f"{'b' * 32}/session", read_session),
    "refusals": in_file("refusals.jsonl", read_refusals),
    "names": in_file("names.json", read_names),
    "secagg": lambda content, folder: message_codec.parse(content, session_terms()),
    "client_state": lambda content, folder: ClientState.from_bytes(content),
    "server_state": lambda content, folder: Cohort.from_bytes(content),
    "request": read_request,
    "reply": lambda content, folder: signed_messages.read_reply(content),
    "greeting": lambda content, folder: hello_messages.read_greeting(content),
    "hello": lambda content, folder: hello_messages.read_hello(content),
    "broadcast": lambda content, folder: signed_messages.decode_broadcast(content, MODEL),
    "update": lambda content, folder: signed_messages.decode_update(content, MODEL, beside=1),
    "mask_request": lambda content, folder: signed_messages.decode_mask_request(content),
    "idx": lambda content, folder: file_formats.read_idx(content, "images"),
    "npz": lambda content, folder: file_formats.read_npz(content, "images", "train_images", "train_labels"),
}

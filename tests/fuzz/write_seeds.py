"""Write the seeds of the corpus: a valid file or message of every kind. Needed when a form changes.

`python -m tests.fuzz.write_seeds` in the root of the repository.
"""

import json
import os
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import torch

from discreet.algorithms.algorithm import ServerState
from discreet.deploy.journal import Entry, Journal, OpenSession
from discreet.engines.flower import hello_messages, signed_messages
from discreet.engines.flower.signed_messages import RequestHeader
from discreet.experiment.run_directory.checkpoint import Checkpoint
from discreet.secure_sums.secagg.message_codec import encode
from discreet.secure_sums.secagg.wire import Writer
from tests.bad_inputs.stage import Stage
from tests.fuzz.corpus_files import CORPUS
from tests.fuzz.parsers import DIGEST, KEY, MODEL, RUN, server_state, session_terms
from tests.secure_sums.secagg.cohorts import rehearsal, vectors

COPIED = {  # files of the stage
    "experiment": ("small.toml", "tabled.toml", "tuned.toml"),
    "policy": ("sites/client-0/policy.toml",),
    "deployment": ("sites/site/app/deployment.toml",),
    "client_card": ("sites/client-0/client-0.toml",),
    "table": ("visits.csv",),
    "card": ("card.json",),
    "outcome": ("run/guarantee.json",),
    "ledger": ("ledger.jsonl", "run/ledger.jsonl"),
    "ledger_lines": ("run/ledger.jsonl",),
    "identity": ("run/run.json",),
    "rounds": ("run/rounds.jsonl",),
}


def saved_states() -> tuple[bytes, bytes]:
    """Return the saved states of a session's server and of its first client."""
    agreed = session_terms()
    session = rehearsal(agreed)
    session.server.open_round(0)
    session.server.receive(session.clients[0].mask(0, vectors(agreed)[0]), 0)
    return session.server.to_bytes(), session.clients[0].to_bytes()


def idx() -> bytes:
    """Return an IDX file with two images."""
    return bytes([0, 0, 8, 3]) + b"".join(size.to_bytes(4, "big") for size in (2, 3, 3)) + bytes(18)


def npz(folder: Path) -> bytes:
    """Return an NPZ file with two arrays."""
    np.savez(folder / "seed.npz", train_images=np.zeros((2, 2, 2, 1), "u1"), train_labels=np.zeros(2, "u1"))
    return (folder / "seed.npz").read_bytes()


def journal(folder: Path) -> dict[str, bytes]:
    """Return the files of a journal."""
    run, entry = "b" * 32, Entry(1, DIGEST, "session")
    kept = Journal(folder / "journal")
    kept.begin_attempt(run, 0, entry)
    kept.store_session(run, OpenSession(DIGEST, (0, 1, 2), "name", b"state"))
    where = folder / "journal" / run
    (first,) = where.glob("round-*.json")
    return {"journal": first.read_bytes(), "session": (where / "session").read_bytes()}


def seeds(folder: Path) -> dict[str, Any]:
    """Return the seeds that are made here."""
    server, client = saved_states()
    agreed = session_terms()
    head = {"kind": "train", "run": "a" * 32, "experiment": DIGEST, "round": 0, "client": 0, "cohort": [0, 1]}
    greeting = hello_messages.encode_greeting(bytes(32))
    state = Checkpoint(1, RUN, 3, DIGEST, {"round": 1, "clients": 3}, server_state())
    values = {**MODEL, "norm": torch.tensor(0.5)}
    assert ServerState._fields
    assert RequestHeader(**head)  # type: ignore[arg-type]
    return {
        **journal(folder),
        "ranges": b'[columns]\nage = { min = 0, max = 100 }\nback = { values = ["no", "yes"] }\n',
        "checkpoint": state.to_bytes(),
        "counter": json.dumps({"ledger-2026.jsonl": [3, DIGEST]}).encode(),
        "note": json.dumps({"ledger": "note.json", "day": "2026-01-01", "counter": "counter.json"}).encode(),
        "refusals": json.dumps({"time": "2026-01-01T00:00:00Z", "client": "a", "why": "No."}).encode() + b"\n",
        "names": json.dumps({"client-0": "123", "client-1": "456"}).encode(),
        "client_state": client,
        "server_state": server,
        "request": Writer().blob(json.dumps(head).encode()).blob(b"body").to_bytes() + b"shared",
        "reply": signed_messages.encode_answer(b"body"),
        "greeting": greeting,
        "hello": hello_messages.encode_hello("a" * 32, 0, greeting, KEY),
        "broadcast": signed_messages.encode_broadcast(MODEL, {"scale": torch.tensor(1.0)}),
        "update": signed_messages.encode_tensors(values),
        "mask_request": signed_messages.encode_mask_request(0, b"members") + b"broadcast",
        "idx": idx(),
        "npz": npz(folder),
        "secagg": [encode(message, agreed) for message in _examples()],
    }


def _examples() -> list[Any]:
    from hypothesis import HealthCheck, find, settings
    from hypothesis import strategies as st

    from tests.secure_sums.secagg.test_messages import MESSAGES

    quiet = settings(max_examples=50, database=None, suppress_health_check=list(HealthCheck))
    return [find(st.one_of(each), lambda message: True, settings=quiet) for each in MESSAGES.values()]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "here").mkdir()
        os.environ["XDG_STATE_HOME"] = str(folder / "here" / "state")
        with chdir(folder / "here"):
            stage = Stage.build(folder)
        found: dict[str, Any] = {
            parser: [(stage.here / each).read_bytes() for each in files] for parser, files in COPIED.items()
        }
        for parser, contents in {**found, **seeds(folder)}.items():
            where = CORPUS / parser
            where.mkdir(parents=True, exist_ok=True)
            for number, content in enumerate(contents if isinstance(contents, list) else [contents]):
                (where / f"valid-{number}").write_bytes(content)


if __name__ == "__main__":
    main()

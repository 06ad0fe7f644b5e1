"""Shared by the tests of secure aggregation: cohorts, repeatable secrets, and a cheap key agreement."""

import hashlib
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar, get_args
from unittest.mock import patch

import numpy as np
from scipy import stats

from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.derivations import NO_SUBJECT, RoundBinding, keys_statement
from discreet.secure_sums.secagg.local_session import LocalSession
from discreet.secure_sums.secagg.message_codec import encode, parse
from discreet.secure_sums.secagg.message_signatures import SignedMessage, sign_message
from discreet.secure_sums.secagg.ring_vectors import Vector
from discreet.secure_sums.secagg.server_state import Cohort
from discreet.secure_sums.secagg.session_messages import ClientMessage, Message, StageName
from discreet.secure_sums.secagg.session_terms import Terms
from discreet.secure_sums.secagg.unmasking import Total

M = TypeVar("M", bound=Message)
FALSE_ALARM = 1e-6  # of each chi-square test; all run on fixed secrets
STAGES: tuple[StageName, ...] = ("keys", "shares", "masked", "agreed", "revealed")


def identity_keys(clients: int) -> list[bytes]:
    return [hashlib.sha256(f"identity {client}".encode()).digest() for client in range(clients)]


def terms(clients: int = 4, *, signed: bool = True, neighbours: int | None = None, **others: int) -> Terms:
    """Return the terms of a small session; with `neighbours`, on a graph too small to protect (otherwise refused)."""
    given: dict[str, Any] = {"length": 5, "bits": 20, "rounds": 2, **others}
    identities = tuple(key_agreement.identity_key(each) for each in identity_keys(clients)) if signed else ()
    if neighbours is None:
        return Terms.choose(clients=clients, identities=identities, **given)
    threshold = given.pop("threshold", neighbours // 2 + 1)
    with patch.object(Terms, "_check_graph", lambda agreed: None):
        return Terms(
            session=bytes(range(16)),
            clients=clients,
            neighbours=neighbours,
            threshold=threshold,
            minimum=max(clients // 2 + 1, threshold),
            identities=identities,
            **given,
        )


def rehearsal(agreed: Terms, leaving: Mapping[int, StageName] | None = None) -> LocalSession:
    return LocalSession(
        agreed, identities=identity_keys(agreed.clients) if agreed.has_signatures else (), leaving=leaving
    )


def vectors(agreed: Terms, seed: int = 0) -> dict[int, Vector]:
    rng = np.random.default_rng(seed)
    half = 2 ** (agreed.bits - 1)
    return {client: rng.integers(-half, half, agreed.length, dtype=np.int64) for client in range(agreed.clients)}


def is_exact(total: Total, agreed: Terms, given: Mapping[int, Vector]) -> bool:
    """Whether this is the sum of the survivors' vectors, computed with Python's integers."""
    expected = [sum(int(given[each][place]) for each in total.survivors) for place in range(agreed.length)]
    return [int(each) for each in total.vector] == [each % 2**agreed.bits for each in expected]


def is_uniform(vector: Vector, bits: int) -> bool:
    """Whether the highest and the lowest eight bits of the numbers are evenly distributed over their 256 values."""
    limit = stats.chi2.isf(FALSE_ALARM, 255)
    for shift in (0, bits - 8):
        digits = (vector >> vector.dtype.type(shift)) & vector.dtype.type(255)
        counts = np.bincount(digits.astype(np.int64), minlength=256)
        if stats.chisquare(counts).statistic > limit:
            return False
    return True


@contextmanager
def repeated_secrets(seed: int = 0) -> Iterator[None]:
    """Draw every secret from a seed, so that a statistical test uses the same numbers each time."""
    with patch.object(key_agreement, "random_bytes", random.Random(seed).randbytes):
        yield


@contextmanager
def cheap_agreement() -> Iterator[None]:
    """Replace X25519 by an agreement that hides nothing, for tests about drop-outs."""

    def agree(private: bytes, publics: Mapping[int, bytes]) -> dict[int, bytes]:
        pairs = {client: sorted((private, public)) for client, public in publics.items()}
        return {client: hashlib.sha256(b"".join(pair)).digest() for client, pair in pairs.items()}

    with (
        patch.object(key_agreement, "public_key", lambda private: private),
        patch.object(key_agreement, "agree", agree),
    ):
        yield


def read(data: bytes | None, kind: type[M], agreed: Terms) -> M:
    assert data is not None
    is_from_client = issubclass(kind, get_args(ClientMessage))
    message = parse(SignedMessage.read(data, agreed).content if is_from_client else data, agreed)
    assert isinstance(message, kind)
    return message


def sign(message: ClientMessage, agreed: Terms, signer: int | None = None) -> bytes:
    """Return the message as its client would send it, or signed by another client with its own key."""
    identity = identity_keys(agreed.clients)[message.client if signer is None else signer]
    return sign_message(encode(message, agreed), agreed, identity if agreed.has_signatures else None)


def with_weak_key(keys: bytes, place: int) -> bytes:
    """Return public keys of which one is a point of small order: the agreed secret would be the same with anyone."""
    return keys[: 32 * place] + bytes(32) + keys[32 * (place + 1) :]


def sign_keys(agreed: Terms, client: int, keys: bytes) -> bytes:
    """Return public keys as a client publishes them."""
    if not agreed.has_signatures:
        return keys
    return keys + key_agreement.sign(identity_keys(agreed.clients)[client], keys_statement(agreed, client, keys))


def binding_of(cohort: Cohort, number: int = 0, subject: bytes = NO_SUBJECT) -> RoundBinding:
    """Return what the masks of a round are bound to."""
    return RoundBinding(cohort.roster, number, subject)


def after_masking(
    agreed: Terms, number: int = 0, session: LocalSession | None = None
) -> tuple[LocalSession, dict[int, bytes]]:
    """Return a session in which all have masked, and the survivor list for each."""
    session = session or rehearsal(agreed)
    session.server.open_round(number)
    for client, vector in vectors(agreed, seed=number).items():
        session.server.receive(session.clients[client].mask(number, vector), client)
    return session, session.server.close_stage()

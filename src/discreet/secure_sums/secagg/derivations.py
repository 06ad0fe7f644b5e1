"""The keys of masks and seals, and the bytes that are signed, derived in the same way by client and server."""

from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple, TypeAlias

from discreet.errors import InvalidInput
from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.session_terms import Terms
from discreet.secure_sums.secagg.wire import Writer

SecretKind: TypeAlias = Literal["mask key", "self-mask"]
SUBJECT_BYTES = 32
NO_SUBJECT = bytes(SUBJECT_BYTES)  # of a sum whose vectors answer nothing


class RoundBinding(NamedTuple):
    """What the pair masks and the agreement of a round are bound to.

    The masks of two clients for which any of it differs do not cancel, so their sum is noise; and neither accepts the
    other's signature.

    Attributes:
        roster: The digest of everybody's keys.
        number: The round of the session.
        subject: A digest of what the vectors answer, such as a broadcast and its round.
    """

    roster: bytes
    number: int
    subject: bytes


def check_subject(subject: bytes) -> None:
    """Refuse a subject that is not a digest."""
    if len(subject) != SUBJECT_BYTES:
        raise InvalidInput(f"The subject of a round must be a digest of {SUBJECT_BYTES} bytes, and got {len(subject)}.")


def roster_digest(digests: Mapping[int, bytes]) -> bytes:
    """Return one digest of everybody's keys. It places the clients on the circle, and every seal depends on it."""
    return key_agreement.digest(Writer().table(digests).to_bytes())


def pair_masks(
    terms: Terms, binding: RoundBinding, client: int, private: bytes, publics: Mapping[int, bytes]
) -> dict[int, bytes]:
    """Return the keys of the masks that a client shares with each peer, equal on both sides if their bindings are."""
    return {
        peer: key_agreement.derive(agreed, terms.context, "pair mask", *binding, min(client, peer), max(client, peer))
        for peer, agreed in key_agreement.agree(private, publics).items()
    }


def self_mask(terms: Terms, number: int, client: int, seed: bytes) -> tuple[bytes, bytes]:
    """Return the key of a client's self-mask, and the commitment by which the server checks the recovered seed."""
    key = key_agreement.derive(seed, terms.context, "self mask", number, client)
    return key, key_agreement.derive(seed, terms.context, "commitment", number, client)


def seal_key(
    terms: Terms, roster: bytes, channel: bytes, kind: SecretKind, number: int, sender: int, receiver: int
) -> bytes:
    return key_agreement.derive(channel, terms.context, "seal", kind, number, sender, receiver, roster)


def share_commitment(terms: Terms, kind: SecretKind, number: int, dealer: int, holder: int, share: bytes) -> bytes:
    """Return the commitment to one share. A share is uniform over 2^256 values, so its digest does not give it away."""
    return key_agreement.digest(key_agreement.statement(terms.context, "share", kind, number, dealer, holder), share)


def keys_statement(terms: Terms, client: int, public: bytes) -> bytes:
    return key_agreement.statement(terms.context, "keys", client, public)


def has_weak_key(terms: Terms, published: bytes) -> bool:
    """Return whether one of a client's public keys has small order."""
    ends = range(key_agreement.KEY_BYTES, key_agreement.KEY_BYTES * (1 + terms.rounds) + 1, key_agreement.KEY_BYTES)
    return any(key_agreement.is_small_order(published[end - key_agreement.KEY_BYTES : end]) for end in ends)


def are_keys_signed(terms: Terms, client: int, published: bytes) -> bool:
    """Return whether published keys end with their client's signature; true in a session without signatures."""
    if not terms.has_signatures:
        return True
    public, signature = published[: -key_agreement.SIGNATURE_BYTES], published[-key_agreement.SIGNATURE_BYTES :]
    return key_agreement.is_signature_valid(terms.identities[client], keys_statement(terms, client, public), signature)


def survivors_statement(
    terms: Terms, binding: RoundBinding, members: Collection[int], survivors: Collection[int]
) -> bytes:
    """Return what all clients must agree on before a share is revealed: keys, round, subject, members and survivors."""
    lists = [Writer().clients(listed, terms.clients).to_bytes() for listed in (members, survivors)]
    return key_agreement.statement(terms.context, "survivors", *binding, *lists)

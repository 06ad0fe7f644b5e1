"""Key agreement, key derivation, sealed shares and signatures, all built on the `cryptography` package.

Every derived key names its purpose, round and clients, over a context that is the digest of the whole session's terms.
So no key serves two purposes, and two sessions share none.
"""

import hashlib
import secrets
from collections.abc import Mapping

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from discreet.secure_sums.secagg.session_errors import WrongKeys

KEY_BYTES = 32
SIGNATURE_BYTES = 64
NONCE_BYTES = 12
SEAL_BYTES = NONCE_BYTES + 16  # what a seal adds: its nonce and its tag
FIELD = 2**255 - 19
SMALL_ORDER_POINTS = frozenset(  # on Curve25519 or its twist, with each way to write them below 2^255
    {
        *(0, 1, FIELD - 1, FIELD, FIELD + 1),
        325606250916557431795983626356110631294008115727848805560023387167927233504,
        39382357235489614581723060781553021112529911719440698176882885853963445705823,
    }
)


def random_bytes(count: int) -> bytes:
    """Return `count` bytes from the operating system's generator, the only source of secrets here."""
    return secrets.token_bytes(count)


def digest(*parts: bytes) -> bytes:
    """Return SHA-256 over the parts, each preceded by its length, so that different lists never collide."""
    state = hashlib.sha256()
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.digest()


def public_key(private: bytes) -> bytes:
    """Return the public key of an X25519 private key."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def is_small_order(public: bytes) -> bool:
    """Return whether an X25519 public key has small order: anyone knows the secret that it agrees on with any key."""
    return int.from_bytes(public, "little") % 2**255 in SMALL_ORDER_POINTS


def agree(private: bytes, publics: Mapping[int, bytes]) -> dict[int, bytes]:
    """Return the X25519 secret that this private key shares with each of these clients' public keys."""
    own, agreed = X25519PrivateKey.from_private_bytes(private), {}  # to load it costs as much as to agree
    for client, public in publics.items():
        try:
            agreed[client] = own.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError:  # a point of small order, whose agreed secret everybody knows
            raise WrongKeys(f"The public key of client {client} agrees on the same secret with everybody.") from None
    return agreed


def derive(secret: bytes, context: bytes, *purpose: str | int | bytes) -> bytes:
    """Derive a key for this purpose alone, by HKDF-SHA256.

    `ascii` writes strings, integers and bytes so that Python reads the same values back: no two purposes collide.
    """
    info = ascii(("discreet secagg", *purpose)).encode()
    return HKDF(SHA256(), KEY_BYTES, salt=context, info=info).derive(secret)


def seal(key: bytes, plain: bytes, label: bytes) -> bytes:
    """Encrypt by ChaCha20-Poly1305. The nonce is random, so even a client restored from an old state repeats none."""
    nonce = random_bytes(NONCE_BYTES)
    return nonce + ChaCha20Poly1305(key).encrypt(nonce, plain, label)


def unseal(key: bytes, sealed: bytes, label: bytes) -> bytes | None:
    """Decrypt what `seal` encrypted; None if key or label are others, or a byte was changed."""
    try:
        return ChaCha20Poly1305(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], label)
    except InvalidTag:
        return None


def identity_key(private: bytes) -> bytes:
    """Return the public key of an Ed25519 identity."""
    return Ed25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def sign(identity: bytes, statement: bytes) -> bytes:
    """Sign a statement with an Ed25519 private key."""
    return Ed25519PrivateKey.from_private_bytes(identity).sign(statement)


def is_signature_valid(public: bytes, statement: bytes, signature: bytes) -> bool:
    """Return whether the signature of the statement is valid under this public key."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, statement)
    except (InvalidSignature, ValueError):
        return False
    return True


def statement(context: bytes, what: str, *about: str | int | bytes) -> bytes:
    """Return the bytes to sign: the kind of statement and its whole content, under the session's context."""
    return ascii(("discreet secagg", what, context, *about)).encode()

"""The signature that a client puts under each of its messages, in a session whose terms name the identities."""

from typing import NamedTuple

from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.session_terms import Terms


class SignedMessage(NamedTuple):
    """A client's message as it arrived: its content, and the signature; empty in a session without signatures."""

    content: bytes
    digest: bytes
    signature: bytes

    @classmethod
    def read(cls, data: bytes, terms: Terms) -> "SignedMessage":
        """Split a message into content and signature. Nothing is checked yet."""
        size = key_agreement.SIGNATURE_BYTES if terms.has_signatures else 0
        content, signature = data[: len(data) - size], data[len(data) - size :]
        return cls(content, key_agreement.digest(content), signature)

    def is_signed_by(self, client: int, terms: Terms) -> bool:
        """Whether the client signed the content; true in a session without signatures."""
        if not terms.has_signatures:
            return True
        statement = _message_statement(terms, self.digest)
        return key_agreement.is_signature_valid(terms.identities[client], statement, self.signature)


def sign_message(content: bytes, terms: Terms, identity: bytes | None) -> bytes:
    """Append the client's signature to a message; return it unchanged in a session without signatures."""
    if identity is None:
        return content
    return content + key_agreement.sign(identity, _message_statement(terms, key_agreement.digest(content)))


def _message_statement(terms: Terms, digest: bytes) -> bytes:
    """Return the bytes to sign. The content names its kind, its client and its round, so it serves for no other."""
    return key_agreement.statement(terms.context, "message", digest)

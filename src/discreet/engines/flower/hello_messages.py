"""How server and node greet each other: who is there, which code runs, and which version of the protocol each speaks.

The version is that of all messages between server and nodes and inside a secure session (`wire.VERSION`). Both sides of
a greeting can be read by version 1, so that two versions which can't work together can still say so.
"""

from typing import NamedTuple

from discreet.code_version import CodeVersion, read_code_version
from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.wire import VERSION, Reader, Writer

NONCE_BYTES = 32
FIRST_VERSION = 1  # did not say its version


class ServerHello(NamedTuple):
    """What a server says when it greets a node: the stamp of its code, and its version of the protocol."""

    stamp: str
    version: int


def encode_greeting(nonce: bytes) -> bytes:
    """Return the body of a hello: the nonce, the version of the protocol, and the stamp of the server's code.

    The version is at the end of the nonce, where a node of version 1 accepts it.
    """
    return Writer().blob(nonce + bytes([VERSION])).blob(read_code_version().stamp.encode()).to_bytes()


def read_greeting(body: bytes) -> ServerHello:
    """Read the body of a hello.

    Raises:
        BadMessage: It is not one.
    """
    reader = Reader(body)
    nonce, stamp = reader.blob(), _read_stamp(reader)
    reader.check_end()
    version = nonce[NONCE_BYTES] if len(nonce) > NONCE_BYTES else FIRST_VERSION
    return ServerHello(stamp, version)


class Hello(NamedTuple):
    """Who a node says it is: the client's number, the stamp of its code, its signature of the greeting, its version."""

    client: int
    stamp: str
    signature: bytes
    version: int = VERSION

    def is_proven(self, run: str, body: bytes, identity: bytes) -> bool:
        """Whether the owner of this public key has signed the answer to this greeting."""
        statement = _hello_statement(run, self.client, body, self.stamp)
        return key_agreement.is_signature_valid(identity, statement, self.signature)


def encode_hello(run: str, client: int, body: bytes, identity: bytes) -> bytes:
    """Answer a hello: the client's number and the stamp of its code, signed together with the greeting."""
    stamp = read_code_version().stamp
    signature = key_agreement.sign(identity, _hello_statement(run, client, body, stamp))
    return Writer().number(client, 4).raw(signature).blob(stamp.encode()).number(VERSION, 1).to_bytes()


def read_hello(answer: bytes) -> Hello:
    """Decode the answer to a hello.

    Raises:
        BadMessage: It is not one.
    """
    reader = Reader(answer)
    client, signature, stamp = reader.number(4), reader.raw(key_agreement.SIGNATURE_BYTES), _read_stamp(reader)
    version = FIRST_VERSION if reader.is_at_end else reader.number(1)
    reader.check_end()
    return Hello(client, stamp, signature, version)


def describe_mismatch(server: int, node: int) -> str:
    """Return what to do about a server and a node that speak different versions; empty if they don't."""
    if server == node:
        return ""
    older = "the server" if server < node else "the node's machine"
    return (
        f"The server speaks version {server} of the protocol, and the node version {node}: update discreet on {older}."
    )


def _read_stamp(reader: Reader) -> str:
    """Read the stamp of the other side's code, which is printed and comes to be on cards: one word, no free text."""
    stamp = reader.blob().decode(errors="replace")
    if not CodeVersion.is_stamp(stamp):
        reader.refuse("does not say which code runs there")
    return stamp


def _hello_statement(run: str, client: int, body: bytes, stamp: str) -> bytes:
    """Return the bytes that a client signs to prove that its card is in the server's app folder."""
    return ascii(("discreet hello", run, client, body, stamp)).encode()

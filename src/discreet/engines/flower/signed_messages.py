"""The messages between server and client as bytes: a signed request, and a reply that answers or refuses."""

import hashlib
import json
from typing import Annotated, Literal, NamedTuple, TypeAlias

import safetensors
import safetensors.torch
import torch
from pydantic import Field
from torch import Tensor

from discreet.engines.flower.flower_errors import RequestRefused
from discreet.params import Params
from discreet.part import Index, Round, from_plain, part, to_plain
from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.session_errors import BadMessage
from discreet.secure_sums.secagg.wire import Reader, Writer

ANSWERED, REFUSED, SPENT = 0, 1, 2  # the first byte of a reply
PARAMS, ANNOUNCED = "params/", "announced/"
REQUEST_PURPOSE = b"discreet request"
LENGTH_BYTES = 8  # of a blob
MAX_REFUSAL_CHARACTERS = 600  # of a refusal that is printed
FLAG_TYPES = (torch.float32, torch.float64)  # of a number beside an update; torch can't clip some others
MAX_HEADER_BYTES = 2**20  # a cohort of 10^5 clients fits

Kind: TypeAlias = Literal["hello", "train", "session", "relay", "mask"]
"""hello: who is there? train: send an update in clear. session: begin a secure sum; mask: send an update through it;
relay: the next message of its protocol."""


RunId: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]  # becomes the name of a folder on a client's disk
Digest: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


@part
class RequestHeader:
    """The header of a request.

    Attributes:
        kind: What the server asks for.
        run: The run's id for clients.
        experiment: Digest of the app folder.
        round: The round, starting at 0; −1 for the sum of moments before the first.
        client: Number of the client that is asked.
        cohort: Numbers of all clients of the round.
    """

    kind: Kind
    run: RunId
    experiment: Digest
    round: Round
    client: Index
    cohort: tuple[Index, ...]


def sign_request(about: RequestHeader, body: bytes, key: bytes, shared: bytes = b"") -> bytes:
    """Encode a request, signed by the server so that the network can't change it.

    Args:
        about: The header.
        body: The beginning of the body, for this client alone.
        key: The server's signing key.
        shared: The rest of the body, which all clients get. It is not in the result, which it follows on the way, but
            its digest is signed: a model is stored once for all clients.
    """
    own = Writer().blob(json.dumps(to_plain(about)).encode()).blob(body).to_bytes()
    return key_agreement.sign(key, _signed_content(own, shared)) + own


def _signed_content(own: bytes, shared: bytes | memoryview) -> bytes:
    return REQUEST_PURPOSE + own + hashlib.sha256(shared).digest()


def read_request(data: bytes, allowed: bytes) -> tuple[RequestHeader, bytes]:
    """Check a request's signature by the public key `allowed`, and return its header and whole body.

    Raises:
        RequestRefused: The signature is not by this key.
        BadMessage: The header can't be read.
    """
    signature, content = data[: key_agreement.SIGNATURE_BYTES], memoryview(data)[key_agreement.SIGNATURE_BYTES :]
    body_at = LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES], "little")
    shared_at = body_at + LENGTH_BYTES + int.from_bytes(content[body_at : body_at + LENGTH_BYTES], "little")
    signed = _signed_content(bytes(content[:shared_at]), content[shared_at:])
    if not key_agreement.is_signature_valid(allowed, signed, signature):
        raise RequestRefused(
            "The request is not signed by the server key that this node's policy allows.",
            fix="Find out who sent it. If the server has a new key, this node's owner must enter it in policy.toml.",
        )
    reader = Reader(bytes(content[:shared_at]))
    length = reader.number(LENGTH_BYTES)
    if length > MAX_HEADER_BYTES:
        reader.refuse(f"says in {length} bytes what it is about, and {MAX_HEADER_BYTES} are allowed")
    try:
        head = json.loads(reader.raw(length))
    except (ValueError, RecursionError):  # not UTF-8, not JSON, numbers too long, or lists nested too deep
        reader.refuse("does not say what it is about")
    return from_plain(RequestHeader, head), b"".join([reader.blob(), content[shared_at:]])


def encode_answer(body: bytes) -> bytes:
    """Encode a reply that answers."""
    return bytes([ANSWERED]) + body


class Refusal(NamedTuple):
    """Why a client does not answer. `spent` says that its budget is spent."""

    why: str
    spent: bool = False


def encode_refusal(refusal: Refusal) -> bytes:
    """Encode a reply that refuses."""
    return bytes([SPENT if refusal.spent else REFUSED]) + refusal.why.encode(errors="backslashreplace")


def read_reply(reply: bytes) -> bytes | Refusal:
    """Decode a reply: the answer's body, or the refusal."""
    if reply[:1] == bytes([ANSWERED]):
        return reply[1:]
    why = printable_line(reply[1 : 1 + 4 * MAX_REFUSAL_CHARACTERS].decode(errors="replace"))
    return Refusal(why or "It sent an empty reply.", reply[:1] == bytes([SPENT]))


def printable_line(text: str) -> str:
    """Make a text from the network safe for a terminal: one line of printable characters of limited length."""
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return line if len(line) <= MAX_REFUSAL_CHARACTERS else f"{line[:MAX_REFUSAL_CHARACTERS]}…"


def session_purpose(experiment: str, run: str) -> bytes:
    """Return the purpose of a secure session, which its keys depend on: no sum mixes two experiments or runs."""
    return hashlib.sha256(f"discreet sum {experiment} {run}".encode()).digest()


def round_subject(round: int, broadcast: bytes) -> bytes:
    """Return the digest of what a masked update answers: the round and the encoded broadcast.

    All clients of a secure sum sign it before they unmask, so that a server can't sum answers to different models.
    """
    return hashlib.sha256(f"discreet round {round} ".encode() + broadcast).digest()


def encode_broadcast(params: Params, announced: Params) -> bytes:
    """Encode a broadcast. Its lattice follows from the algorithm and is not sent."""
    named = {f"{PARAMS}{name}": value for name, value in params.items()}
    named |= {f"{ANNOUNCED}{name}": value for name, value in announced.items()}
    return encode_tensors(named)


def decode_broadcast(data: bytes, like: Params) -> tuple[Params, Params]:
    """Decode the model and the announced values.

    Raises:
        BadMessage: The model's tensors are not like those of `like`.
    """
    tensors = decode_tensors(data)
    whole: Params = {}
    for name in like:
        value = tensors.get(f"{PARAMS}{name}")
        if value is None or not is_like(value, like[name]):
            raise BadMessage(f"The model that was sent is not the one of this experiment: {name!r} differs.")
        whole[name] = value.to(like[name].device)
    device = next(iter(like.values())).device
    announced = {
        name.removeprefix(ANNOUNCED): value.to(device) for name, value in tensors.items() if name.startswith(ANNOUNCED)
    }
    return whole, announced


def is_like(value: Tensor, other: Tensor) -> bool:
    """Whether both tensors have the same shape and type of numbers."""
    return value.shape == other.shape and value.dtype == other.dtype


def _is_update_of(value: Tensor, other: Tensor, *, doubles: bool) -> bool:
    return is_like(value, other) or (doubles and value.shape == other.shape and value.dtype == torch.float64)


def encode_tensors(values: Params) -> bytes:
    """Encode tensors in the safetensors format."""
    copies = {name: value.detach().cpu().clone().contiguous() for name, value in values.items()}
    return safetensors.torch.save(copies)


def decode_tensors(data: bytes) -> Params:
    """Decode tensors in the safetensors format. Refuse bytes that are not."""
    try:
        tensors: Params = safetensors.torch.load(data)
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, RuntimeError):  # the last two are torch's
        raise BadMessage("The message holds no tensors that can be read.", fix="Send it again.") from None
    return tensors


def decode_update(data: bytes, like: Params, beside: int, *, doubles: bool = False) -> Params:
    """Decode a client's update: tensors like the model's, in its order, and `beside` further single numbers.

    With `doubles` they may be doubles where the model isn't: shares of noise are added in double precision.

    Raises:
        BadMessage: The update does not fit the model, or is not finite.
    """
    tensors = decode_tensors(data)
    row = {name: tensors[name] for name in like if name in tensors}
    more = {name: value for name, value in sorted(tensors.items()) if name not in like}
    fitting = len(more) == beside and all(value.shape == () and value.dtype in FLAG_TYPES for value in more.values())
    if not fitting or not all(name in row and _is_update_of(row[name], like[name], doubles=doubles) for name in like):
        raise BadMessage("It is no update of this experiment's model.")
    if not all(bool(value.isfinite().all()) for value in tensors.values()):
        raise BadMessage("The update is not finite.")
    return row | more


def encode_mask_request(number: int, members: bytes) -> bytes:
    """Encode the beginning of a mask request, which the encoded broadcast follows.

    Args:
        number: The round of the session.
        members: The last message of the set-up if this is the session's first round, else empty.
    """
    return Writer().number(number, 4).blob(members).to_bytes()


def decode_mask_request(body: bytes) -> tuple[int, bytes, bytes]:
    """Decode a mask request into the two arguments of `encode_mask_request`, and the broadcast."""
    reader = Reader(body)
    return reader.number(4), reader.blob(), reader.rest()

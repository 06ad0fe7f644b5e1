"""What server and client say to each other: a signed request, and a reply that answers or refuses, in bytes."""

import hashlib
import json
from typing import Annotated, Literal, NamedTuple, TypeAlias

import safetensors
import safetensors.torch
from pydantic import Field

from discreet.engines.flower.flower_errors import RequestRefused
from discreet.params import Params
from discreet.part import Index, from_plain, part, to_plain
from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.session_errors import BadMessage
from discreet.secure_sums.secagg.wire import Reader, Writer

ANSWERED, REFUSED, SPENT = 0, 1, 2  # the first byte of a reply
PARAMS, ANNOUNCED = "params/", "announced/"
REQUEST_PURPOSE = b"discreet request"
LENGTH_BYTES = 8  # of a blob
MAX_REFUSAL_CHARACTERS = 600  # letters of a refusal
MAX_HEADER_BYTES = 2**20  # bytes; a cohort of 10^5 clients fits

Kind: TypeAlias = Literal["hello", "train", "session", "relay", "mask"]
"""hello: who is there? train: send an update in clear. session: begin a secure sum; mask: send an update through it;
relay: the next message of its protocol."""


RunId: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]  # it names a folder on a client's disk
Digest: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


@part
class RequestHeader:
    """What a request is about: the server's run, the digest of the experiment, and which client's turn it is.

    `cohort` are the clients of this round, by number.
    """

    kind: Kind
    run: RunId
    experiment: Digest
    round: Index
    client: Index
    cohort: tuple[Index, ...]


def sign_request(about: RequestHeader, body: bytes, key: bytes) -> bytes:
    """The request as it is sent, signed by the server: a network that carries it can't change it."""
    said = Writer().blob(json.dumps(to_plain(about)).encode()).raw(body).done()
    return key_agreement.sign(key, REQUEST_PURPOSE + said) + said


def read_request(data: bytes, allowed: bytes) -> tuple[RequestHeader, bytes]:
    """What a request says, if the holder of the `allowed` public key said it."""
    signature, said = data[: key_agreement.SIGNATURE_BYTES], data[key_agreement.SIGNATURE_BYTES :]
    if not key_agreement.is_signature_valid(allowed, REQUEST_PURPOSE + said, signature):
        raise RequestRefused(
            "The request is not signed by the server key that this node's policy allows.",
            fix="Find out who sent it; if the server has a new key, its owner must enter it in policy.toml.",
        )
    reader = Reader(said)
    length = reader.number(LENGTH_BYTES)
    if length > MAX_HEADER_BYTES:
        reader.refuse(f"says in {length} bytes what it is about, and {MAX_HEADER_BYTES} are allowed")
    try:
        head = json.loads(reader.raw(length))
    except (ValueError, RecursionError):  # no text, no JSON, numbers too long to be any, or lists in lists without end
        reader.refuse("does not say what it is about")
    return from_plain(RequestHeader, head), said[LENGTH_BYTES + length :]


def encode_answer(body: bytes) -> bytes:
    return bytes([ANSWERED]) + body


class Refusal(NamedTuple):
    """Why a client does not answer; `spent`: its budget does not allow it."""

    why: str
    spent: bool = False


def encode_refusal(refusal: Refusal) -> bytes:
    return bytes([SPENT if refusal.spent else REFUSED]) + refusal.why.encode(errors="backslashreplace")


def read_reply(reply: bytes) -> bytes | Refusal:
    """The answer, or why there is none."""
    if reply[:1] == bytes([ANSWERED]):
        return reply[1:]
    why = _printable_line(reply[1 : 1 + 4 * MAX_REFUSAL_CHARACTERS].decode(errors="replace"))
    return Refusal(why or "It sent an empty reply.", reply[:1] == bytes([SPENT]))


def _printable_line(text: str) -> str:
    """What somebody else wrote, for a terminal: one line, of letters that can be printed, and not too long."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= MAX_REFUSAL_CHARACTERS else f"{line[:MAX_REFUSAL_CHARACTERS]}…"


def session_purpose(experiment: str, run: str) -> bytes:
    """What a secure sum is for: under its keys, so that no sum is made of updates to two questions."""
    return hashlib.sha256(f"discreet sum {experiment} {run}".encode()).digest()


def hello_statement(run: str, client: int, nonce: bytes) -> bytes:
    """What a client signs to show that it is the one whose card the server holds."""
    return ascii(("discreet hello", run, client, nonce)).encode()


def encode_broadcast(params: Params, announced: Params) -> bytes:
    """A broadcast in bytes; the way onto a lattice follows from the algorithm, and is not sent."""
    named = {f"{PARAMS}{name}": value for name, value in params.items()}
    named |= {f"{ANNOUNCED}{name}": value for name, value in announced.items()}
    return encode_tensors(named)


def decode_broadcast(data: bytes, like: Params) -> tuple[Params, Params]:
    """The model and what was announced beside it; a model of other tensors than `like` is refused."""
    found = decode_tensors(data)
    whole: Params = {}
    for name in like:
        value = found.get(f"{PARAMS}{name}")
        if value is None or value.shape != like[name].shape or value.dtype != like[name].dtype:
            raise BadMessage(f"The model that was sent is not the one of this experiment: {name!r} differs.")
        whole[name] = value.to(like[name].device)
    device = next(iter(like.values())).device
    announced = {
        name.removeprefix(ANNOUNCED): value.to(device) for name, value in found.items() if name.startswith(ANNOUNCED)
    }
    return whole, announced


def encode_tensors(values: Params) -> bytes:
    apart = {name: value.detach().cpu().clone().contiguous() for name, value in values.items()}
    return safetensors.torch.save(apart)


def decode_tensors(data: bytes) -> Params:
    try:
        found: Params = safetensors.torch.load(data)
    except (safetensors.SafetensorError, ValueError, KeyError):
        raise BadMessage("The message holds no tensors that can be read.", fix="Send it again.") from None
    return found


def decode_update(data: bytes, like: Params, beside: int) -> Params:
    """A client's row, if it can be added up: numbers like the model's, in its order, and single ones `beside` them."""
    found = decode_tensors(data)
    row = {name: found[name] for name in like if name in found}
    more = {name: value for name, value in sorted(found.items()) if name not in like}
    fitting = len(more) == beside and all(value.shape == () for value in more.values())
    if not fitting or not all(
        name in row and row[name].shape == like[name].shape and row[name].dtype == like[name].dtype for name in like
    ):
        raise BadMessage("It is no update of this experiment's model.")
    if not all(bool(value.isfinite().all()) for value in found.values()):
        raise BadMessage("The update is not finite.")
    return row | more


def encode_mask_request(number: int, members: bytes, broadcast: bytes) -> bytes:
    """The session's round, the end of its set-up where this is its first, and the round's broadcast."""
    return Writer().number(number, 4).blob(members).blob(broadcast).done()


def decode_mask_request(body: bytes) -> tuple[int, bytes, bytes]:
    reader = Reader(body)
    found = reader.number(4), reader.blob(), reader.blob()
    reader.done()
    return found

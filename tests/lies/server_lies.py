"""The lies of a server that has its own signing key: what it sends a node in the place of an honest request."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import torch

from discreet.code_version import read_code_version
from discreet.deploy.deployment import CARDS_FOLDER
from discreet.engines.flower import signed_messages
from discreet.params import Params
from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.session_terms import SESSION_BYTES, Terms
from discreet.secure_sums.secagg.wire import Writer
from tests.deploy.node_requests import sign_header
from tests.lies.moment import ServerLie, ServerTurn

VICTIM = 0
HEAD = '{{"kind": "{0.kind}", "run": {1}, "experiment": "{0.experiment}", "round": 0, "client": 0, "cohort": [{2}]}}'
Told: TypeAlias = Mapping[str, ServerLie]


@dataclass(frozen=True)
class ServerLieCase:
    """A lie in the table.

    Attributes:
        stage: The stage by which the page groups it.
        text: What the server does, after "a server".
        lies: By the client that is lied to: what is sent instead of each kind of request.
        plan: The experiment that is run, a key of `play.PLANS`.
        folder: What is changed in the app folder before client 0's node starts; None if the server lies in a run.
    """

    stage: str
    text: str
    lies: Mapping[int, Told]
    plan: str = "secure"
    folder: Callable[[Path], None] | None = None


def victims(lies: Told, *clients: int) -> dict[int, Told]:
    return dict.fromkeys(clients or (VICTIM,), lies)


# The app folder.


def edit(file: str, old: str, new: str) -> Callable[[Path], None]:
    """Replace what matches a pattern in a file of the app folder."""

    def change(app: Path) -> None:
        text, count = re.subn(old, new, (app / file).read_text(), count=1)
        assert count == 1
        (app / file).write_text(text)

    return change


def swap_cards(app: Path) -> None:
    one, two = (app / CARDS_FOLDER / f"client-{client}.toml" for client in (1, 2))
    first, second = (re.findall(r'identity = "(\w+)"', path.read_text())[0] for path in (one, two))
    one.write_text(one.read_text().replace(first, second))
    two.write_text(two.read_text().replace(second, first))


# Requests.


def ask(**about: Any) -> ServerLie:
    return lambda asked: [asked.request(**about)]


def sign_with_another_key(asked: ServerTurn) -> list[bytes]:
    return [asked._replace(key=key_agreement.random_bytes(32)).request()]


def flip_a_bit(asked: ServerTurn) -> list[bytes]:
    return [asked.honest[:-1] + bytes([asked.honest[-1] ^ 1])]


def head(content: bytes) -> ServerLie:
    return lambda asked: [sign_header(content, asked.key)]


def name_run(run: str, number: str = "0, 1, 2, 3, 4") -> ServerLie:
    return lambda asked: [sign_header(HEAD.format(asked.about, run, number).encode(), asked.key)]


def speak_older_version(asked: ServerTurn) -> list[bytes]:
    content = Writer().blob(bytes(32)).blob(read_code_version().stamp.encode()).to_bytes()
    return [asked.request(content)]


def in_clear(asked: ServerTurn) -> list[bytes]:
    """Ask for the update itself, and then as agreed."""
    return [asked.request(broadcast_of(asked), kind="train"), asked.honest]


def broadcast_of(asked: ServerTurn) -> bytes:
    return signed_messages.decode_mask_request(asked.body)[2]


def mask_before_keys(asked: ServerTurn) -> list[bytes]:
    return [asked.request(signed_messages.encode_mask_request(0, b""), kind="mask"), asked.honest]


def twice(asked: ServerTurn) -> list[bytes]:
    """Send the same request again, and go on with the second reply."""
    return [asked.honest, asked.honest]


def first_again(asked: ServerTurn) -> list[bytes]:
    """Send the first request of this kind again before the honest one."""
    return [*asked.earlier[:1], asked.honest]


def under_another_name(asked: ServerTurn) -> list[bytes]:
    """Ask as agreed, and once more in another run's name."""
    return [asked.request(run="b" * 32), asked.honest]


# Terms.


def terms(**fields: object) -> ServerLie:
    return lambda asked: [asked.request(replace(_terms(asked), **fields).to_bytes())]  # type: ignore[arg-type]


def terms_bytes(place: int, value: int) -> ServerLie:
    """Change a number of the terms in their bytes, whose records could not be built."""
    start = 1 + SESSION_BYTES + 32 + 8 * place

    def lie(asked: ServerTurn) -> list[bytes]:
        return [asked.request(asked.body[:start] + value.to_bytes(8, "little") + asked.body[start + 8 :])]

    return lie


def invent_client(asked: ServerTurn) -> list[bytes]:
    known = _terms(asked)
    invented = key_agreement.identity_key(key_agreement.random_bytes(32))
    return [asked.request(replace(known, identities=(*known.identities[:4], invented)).to_bytes())]


def without_identities(asked: ServerTurn) -> list[bytes]:
    return [asked.request(replace(_terms(asked), identities=()).to_bytes())]


def another_session(asked: ServerTurn) -> list[bytes]:
    """Begin a second session under another name, and go on with the first."""
    return [asked.honest, asked.request(replace(_terms(asked), session=bytes(16)).to_bytes())]


def _terms(asked: ServerTurn) -> Terms:
    assert asked.terms is not None
    return asked.terms


# Broadcasts.


def broadcast(new: Callable[[Params], Params], more: Params | None = None) -> ServerLie:
    """Send another broadcast in a request for a vector or an update."""

    def lie(asked: ServerTurn) -> list[bytes]:
        spread = broadcast_of(asked) if asked.about.kind == "mask" else asked.body
        like = asked.node.learner.params
        params, announced = signed_messages.decode_broadcast(spread, like)
        other = signed_messages.encode_broadcast(new(params), {**announced, **(more or {})})
        if asked.about.kind != "mask":
            return [asked.request(other)]
        number, members, _ = signed_messages.decode_mask_request(asked.body)
        return [asked.request(signed_messages.encode_mask_request(number, members) + other)]

    return lie


def change_tensors(new: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Params], Params]:
    return lambda params: {name: new(value) for name, value in params.items()}


def add_after(lie: ServerLie) -> ServerLie:
    """Tell the lie after the honest request, and go on with the reply to the lie."""
    return lambda asked: [asked.honest, *lie(asked)]


def first_time(lie: ServerLie) -> ServerLie:
    """Tell the lie only when this is asked for the first time."""
    return lambda asked: [asked.honest] if asked.earlier else lie(asked)


def add_before(lie: ServerLie) -> ServerLie:
    """Tell the lie before the honest request."""
    return lambda asked: [*lie(asked), asked.honest]


def number(new: Callable[[int], int]) -> ServerLie:
    """Ask for a vector of another round of the session."""

    def lie(asked: ServerTurn) -> list[bytes]:
        now, members, spread = signed_messages.decode_mask_request(asked.body)
        return [asked.request(signed_messages.encode_mask_request(new(now), members) + spread)]

    return lie

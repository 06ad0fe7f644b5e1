"""The lies of clients: what each liar sends in the place of an honest answer."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import torch

from discreet.engines.flower import signed_messages
from discreet.params import Params
from discreet.secure_sums.secagg import key_agreement, shamir
from discreet.secure_sums.secagg.derivations import SecretKind, keys_statement
from discreet.secure_sums.secagg.message_codec import encode
from discreet.secure_sums.secagg.message_signatures import sign_message
from discreet.secure_sums.secagg.session_messages import ClientMessage, Keys, Masked, Revealed, Shares
from discreet.secure_sums.secagg.share_dealing import deal_shares
from tests.lies.moment import ClientTurn, Lie

LIAR, OTHER = 0, 1
Lies: TypeAlias = Mapping[str, Lie]


@dataclass(frozen=True)
class ClientLie:
    """A lie in the table.

    Attributes:
        stage: The stage by which the page groups it.
        text: What the liars do, after "a client".
        lies: By client: its lie to each kind of request, or in the place of each message of a session.
        plan: The experiment that is run, a key of `play.PLANS`.
        honest: Those in `lies` that are honest, and silent by accident.
        limit: "silence" if liars only say nothing, and are more than the plan allows for; "beyond" if more clients are
            at fault than the session withstands.
    """

    stage: str
    text: str
    lies: Mapping[int, Lies]
    plan: str = "secure"
    honest: frozenset[int] = frozenset()
    limit: Literal["", "silence", "beyond"] = ""


def change(**fields: Callable[[Any], Any]) -> Lie:
    """Change fields of a message, and sign it with the liar's own key."""

    def lie(answered: ClientTurn) -> bytes:
        message = answered.message
        assert message is not None
        return answered.reply(replace(message, **{name: new(getattr(message, name)) for name, new in fields.items()}))

    return lie


def silent(answered: ClientTurn) -> None:
    """Send nothing."""


def send(reply: bytes) -> Lie:
    return lambda answered: reply


def leave_unsigned(answered: ClientTurn) -> bytes:
    return answered.honest[:-64] + bytes(64)


def garbage(answered: ClientTurn) -> bytes:
    return signed_messages.encode_answer(b"garbage")


def repeat_first(answered: ClientTurn) -> bytes:
    """Send the first answer of this kind again, whatever was asked."""
    return answered.earlier[0] if answered.earlier else answered.honest


def name_another(answered: ClientTurn) -> bytes:
    message = answered.message
    assert message is not None
    tables = ("sealed", "self_masks", "mask_keys")
    rows = {
        name: {LIAR if peer == OTHER else peer: row for peer, row in getattr(message, name).items()}
        for name in tables
        if hasattr(message, name)
    }
    return answered.reply(replace(message, client=OTHER, **rows))  # type: ignore[arg-type]


def refuse(why: str, *, spent: bool = False) -> Lie:
    return send(signed_messages.encode_refusal(signed_messages.Refusal(why, spent)))


# Greetings.


def claim_another(answered: ClientTurn) -> bytes:
    return answered.honest[:1] + OTHER.to_bytes(4, "little") + answered.honest[5:]


def sign_greeting_with_another_key(answered: ClientTurn) -> bytes:
    return answered.honest[:5] + key_agreement.random_bytes(64) + answered.honest[69:]


def say_older_version(answered: ClientTurn) -> bytes:
    return answered.honest[:-1]


# Keys.


def publish(new: Callable[[bytes, int], bytes]) -> Lie:
    """Change the public keys, and sign them as a client does."""

    def lie(answered: ClientTurn) -> bytes:
        client, message = answered.client, answered.message
        assert client is not None
        assert isinstance(message, Keys)
        keys = new(message.published[:-64], client.terms.rounds)
        statement = keys_statement(client.terms, message.client, keys)
        return answered.reply(replace(message, published=keys + key_agreement.sign(answered.node.identity, statement)))

    return lie


def weaken(place: int) -> Lie:
    return publish(lambda keys, rounds: keys[: 32 * place] + bytes(32) + keys[32 * (place + 1) :])


one_key = publish(lambda keys, rounds: keys[:32] * (1 + rounds))
keys_not_signed = change(published=lambda keys: keys[:-64] + bytes(64))

# Dealing shares.


def nonsense_for(*holders: int) -> Lie:
    """Deal what these holders can't open; all, if none is named."""

    def deal(rows: Mapping[int, bytes]) -> dict[int, bytes]:
        return {peer: bytes(len(row)) if not holders or peer in holders else row for peer, row in rows.items()}

    return change(sealed=deal)


def deal_of_another_secret(answered: ClientTurn) -> bytes:
    """Deal client 1 shares that are sealed and committed to as they should, and are of another secret."""
    message, client = answered.message, answered.client
    assert client is not None
    assert isinstance(message, Shares | Masked)
    kind: SecretKind = "mask key" if answered.what == "Shares" else "self-mask"
    first, count = (0, client.terms.rounds) if kind == "mask key" else (client._state.round, 1)
    row = deal_shares(client._state, OTHER, [bytes(shamir.SHARE_BYTES)] * count, kind, first)
    return answered.reply(replace(message, sealed={**message.sealed, OTHER: row}))


deal_to_fewer = change(sealed=lambda rows: {peer: row for peer, row in rows.items() if peer != OTHER})
swap_rows = change(sealed=lambda rows: {**rows, 1: rows[2], 2: rows[1]})

# Vectors.

any_numbers = change(vector=lambda vector: key_agreement.random_bytes(len(vector) - 8) + bytes(8))
another_commitment = change(commitment=lambda commitment: bytes(32))
next_round = change(round=lambda number: number + 1)


# Agreement and unmasking.

sign_another_list = change(signature=lambda signature: bytes(64))
zeros = change(self_masks=lambda shares: dict.fromkeys(shares, bytes(33)))
zero_for_one = change(self_masks=lambda shares: {**shares, OTHER: bytes(33)})
another_seed = change(seed=lambda seed: bytes(32))
no_share_of_one = change(self_masks=lambda shares: {peer: row for peer, row in shares.items() if peer != OTHER})
no_share_of_4 = change(
    self_masks=lambda shares: {peer: row for peer, row in shares.items() if peer != 4},
    mask_keys=lambda shares: {peer: row for peer, row in shares.items() if peer != 4},
)
no_shares = change(self_masks=lambda shares: {}, mask_keys=lambda shares: {})
zeros_of_keys = change(mask_keys=lambda shares: dict.fromkeys(shares, bytes(33)))


def reveal_other_kind(answered: ClientTurn) -> bytes:
    message = answered.message
    assert isinstance(message, Revealed)
    return answered.reply(replace(message, self_masks={}, mask_keys=dict(message.self_masks)))


# Updates in clear.


def alter(new: Callable[[Params], Params]) -> Lie:
    def lie(answered: ClientTurn) -> bytes:
        update = signed_messages.decode_tensors(answered.honest[1:])
        return signed_messages.encode_answer(signed_messages.encode_tensors(new(update)))

    return lie


def change_tensors(new: Callable[[torch.Tensor], torch.Tensor]) -> Lie:
    return alter(lambda row: {name: new(value) for name, value in row.items()})


def impossible_shape(answered: ClientTurn) -> bytes:
    """Name a tensor without bytes whose second axis is longer than any memory."""
    header = json.dumps({"weight": {"dtype": "F32", "shape": [0, 2**62], "data_offsets": [0, 0]}}).encode()
    return signed_messages.encode_answer(len(header).to_bytes(8, "little") + header)


def from_second_time(lie: Lie) -> Lie:
    """Tell the lie only when this was asked before: in the second round, or the second session."""
    return lambda answered: lie(answered) if answered.earlier else answered.honest


def liars(lies: Lies, *clients: int) -> dict[int, Lies]:
    return dict.fromkeys(clients or (LIAR,), lies)


def resign(answered: ClientTurn, message: ClientMessage, identity: bytes) -> bytes:
    assert answered.client is not None
    terms = answered.client.terms
    return signed_messages.encode_answer(sign_message(encode(message, terms), terms, identity))


def signed_by_nobody(answered: ClientTurn) -> bytes:
    """Sign with a key that nobody knows."""
    assert answered.message is not None
    return resign(answered, answered.message, key_agreement.random_bytes(32))

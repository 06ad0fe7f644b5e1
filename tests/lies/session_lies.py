"""The lies of a server inside a secure session: what it shows a client in the place of an honest message."""

from collections.abc import Callable
from dataclasses import replace

from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.session_messages import Agreement, Members, Roster, ServerMessage, Survivors
from tests.lies.moment import ServerLie, ServerTurn


def change(new: Callable[[ServerMessage], ServerMessage]) -> ServerLie:
    def lie(asked: ServerTurn) -> list[bytes]:
        assert asked.message is not None
        return [asked.relay(new(asked.message))]

    return lie


def forge_keys(asked: ServerTurn) -> list[bytes]:
    """Show the server's own keys as client 1's, in the list of digests too."""
    roster = asked.message
    assert isinstance(roster, Roster)
    keys = roster.published[1]
    own = key_agreement.public_key(key_agreement.random_bytes(32)) * (len(keys[:-64]) // 32) + keys[-64:]
    return [
        asked.relay(
            Roster({**roster.digests, 1: key_agreement.digest(own)}, {**roster.published, 1: own}),
        )
    ]


def swap_keys(message: ServerMessage) -> ServerMessage:
    assert isinstance(message, Roster)
    return replace(message, published={**message.published, 1: message.published[2], 2: message.published[1]})


def same_keys_twice(message: ServerMessage) -> ServerMessage:
    assert isinstance(message, Roster)
    return Roster({**message.digests, 2: message.digests[1]}, {**message.published, 2: message.published[1]})


def roster_without(client: int) -> Callable[[ServerMessage], ServerMessage]:
    def new(message: ServerMessage) -> ServerMessage:
        assert isinstance(message, Roster)
        digests = {each: digest for each, digest in message.digests.items() if each != client}
        return Roster(digests, {each: keys for each, keys in message.published.items() if each != client})

    return new


def roster_of_two(message: ServerMessage) -> ServerMessage:
    assert isinstance(message, Roster)
    return Roster({each: message.digests[each] for each in (0, 1)}, {1: message.published[1]})


def with_list(listed: Callable[[frozenset[int]], frozenset[int]]) -> ServerLie:
    """Show another list of clients, with the rows that belong to it."""

    def new(message: ServerMessage) -> ServerMessage:
        assert isinstance(message, Members | Survivors)
        shown = listed(message.members if isinstance(message, Members) else message.survivors)
        sealed = {peer: row for peer, row in message.sealed.items() if peer in shown}
        if isinstance(message, Members):
            return Members(shown, sealed)
        return Survivors(message.round, shown, sealed)

    return change(new)


def swap_rows(message: ServerMessage) -> ServerMessage:
    assert isinstance(message, Members | Survivors)
    return replace(message, sealed={**message.sealed, 1: message.sealed[2], 2: message.sealed[1]})


def spoil_rows(*dealers: int) -> Callable[[ServerMessage], ServerMessage]:
    def new(message: ServerMessage) -> ServerMessage:
        assert isinstance(message, Members | Survivors)
        return replace(
            message,
            sealed={peer: bytes(len(row)) if peer in dealers else row for peer, row in message.sealed.items()},
        )

    return new


def second_list(asked: ServerTurn) -> list[bytes]:
    """Send a second list, without client 4, after the first was signed."""
    shown = asked.message
    assert isinstance(shown, Survivors)
    less = Survivors(shown.round, shown.survivors - {4}, {peer: row for peer, row in shown.sealed.items() if peer != 4})
    return [asked.honest, asked.relay(less)]


def other_round(message: ServerMessage) -> ServerMessage:
    assert isinstance(message, Survivors | Agreement)
    return replace(message, round=message.round + 1)


def skip_agreement(asked: ServerTurn) -> list[bytes]:
    shown = asked.message
    assert isinstance(shown, Survivors)
    return [asked.relay(Agreement(shown.round, {})), asked.honest]


def no_signatures(message: ServerMessage) -> ServerMessage:
    assert isinstance(message, Agreement)
    return replace(message, signatures={})


def one_signature(message: ServerMessage) -> ServerMessage:
    assert isinstance(message, Agreement)
    first = min(message.signatures)
    return replace(message, signatures={first: message.signatures[first]})


def forge_signature(message: ServerMessage) -> ServerMessage:
    assert isinstance(message, Agreement)
    return replace(message, signatures={**message.signatures, 1: bytes(64)})


def swap_signatures(message: ServerMessage) -> ServerMessage:
    assert isinstance(message, Agreement)
    return replace(message, signatures={**message.signatures, 1: message.signatures[2]})


def reveal_again(asked: ServerTurn) -> list[bytes]:
    """Ask for shares a second time, with fewer signatures."""
    agreement = asked.message
    assert isinstance(agreement, Agreement)
    fewer = {1: agreement.signatures[1], 2: agreement.signatures[2]}
    return [asked.honest, asked.relay(replace(agreement, signatures=fewer))]

"""A client that lies in a session: what each lie achieves, and who is named for it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from discreet.secure_sums.secagg import client_round, client_setup, share_dealing
from discreet.secure_sums.secagg.client_state import ClientState
from discreet.secure_sums.secagg.local_session import Dropouts
from discreet.secure_sums.secagg.session_errors import BadMessage, SecaggError, TooFewClients, WrongSender, WrongShare
from discreet.secure_sums.secagg.session_messages import (
    Agreed,
    ClientMessage,
    Keys,
    Masked,
    Revealed,
    Shares,
    StageName,
)
from discreet.secure_sums.secagg.session_server import Server
from discreet.secure_sums.secagg.session_terms import Terms
from discreet.secure_sums.secagg.unmasking import Total
from tests.secure_sums.secagg.cohorts import is_exact, read, rehearsal, sign, sign_keys, terms, vectors, with_weak_key

LIAR, VICTIM = 0, 1
KINDS: tuple[type[ClientMessage], ...] = (Keys, Shares, Masked, Agreed, Revealed)
Lie = Callable[[bytes, Terms], bytes]


class LyingClient:
    """Changes what client 0 sends in a session, and keeps what the server says to it."""

    def __init__(self, kind: type[ClientMessage], lie: Lie) -> None:
        self.kind, self.lie, self.refusals = kind, lie, list[SecaggError]()

    def sum(self, agreed: Terms, monkeypatch: pytest.MonkeyPatch, leaving: Dropouts | None = None) -> Total:
        """Run one sum in which every message of the liar of this kind is replaced."""
        receive = Server.receive

        def receive_lie(server: Server, message: bytes, sender: int) -> None:
            is_lie = sender == LIAR and type(parse_any(message, agreed)) is self.kind
            try:
                receive(server, self.lie(message, agreed) if is_lie else message, sender)
            except SecaggError as refusal:
                if not is_lie:
                    raise
                self.refusals.append(refusal)

        monkeypatch.setattr(Server, "receive", receive_lie)
        return rehearsal(agreed).sum(0, vectors(agreed), leaving=leaving)


def parse_any(message: bytes, agreed: Terms) -> ClientMessage:
    for kind in KINDS:
        try:
            return read(message, kind, agreed)
        except AssertionError:
            continue
    raise AssertionError(message)


def name_another(message: bytes, agreed: Terms) -> bytes:
    """Write the victim's number into the message, and sign it with the liar's own key."""
    honest = replace(parse_any(message, agreed), client=VICTIM)
    if isinstance(honest, Shares | Masked):
        honest = replace(honest, sealed={LIAR if peer == VICTIM else peer: row for peer, row in honest.sealed.items()})
    return sign(honest, agreed, signer=LIAR)


def leave_unsigned(message: bytes, agreed: Terms) -> bytes:
    return message[:-64] + bytes(64)


@pytest.mark.parametrize(
    ("kind", "signed"),
    [(kind, signed) for signed in (True, False) for kind in KINDS if signed or kind is not Agreed],
)
def test_a_client_that_answers_in_anothers_name_is_named_and_the_other_is_heard(
    kind: type[ClientMessage], signed: bool, monkeypatch: pytest.MonkeyPatch
):
    """Its message comes before the victim's own. The liar is as one that dropped out, and the sum is exact."""
    agreed = terms(5, signed=signed)
    lying = LyingClient(kind, name_another)
    total = lying.sum(agreed, monkeypatch)
    assert [type(each) for each in lying.refusals] == [WrongSender]
    assert lying.refusals[0].problem == "Client 0 sent a message in the name of client 1."
    assert VICTIM in total.survivors
    assert is_exact(total, agreed, vectors(agreed))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_message_that_its_client_did_not_sign_is_not_taken(
    kind: type[ClientMessage], monkeypatch: pytest.MonkeyPatch
):
    agreed = terms(5)
    lying = LyingClient(kind, leave_unsigned)
    assert is_exact(lying.sum(agreed, monkeypatch), agreed, vectors(agreed))
    assert [type(each) for each in lying.refusals] == [WrongSender]
    assert lying.refusals[0].problem == "Client 0 sent a message that it did not sign."


def test_a_message_that_was_signed_for_another_stage_round_or_session_is_not_taken():
    """The signature covers kind, client, round and terms: it can't be moved under another content."""
    agreed = terms(4, rounds=2)
    session, given = rehearsal(agreed), vectors(agreed)
    session.server.open_round(0)
    first = session.clients[0].mask(0, given[0])
    moved = replace(read(first, Masked, agreed), round=1)
    session.server.open_round(1)
    with pytest.raises(WrongSender, match="did not sign"):
        session.server.receive(sign(moved, agreed)[:-64] + first[-64:], 0)


# Keys.


def publish_weak_key(place: int) -> Lie:
    """Replace one of the liar's public keys by the point of order 1, and sign them all."""

    def lie(message: bytes, agreed: Terms) -> bytes:
        keys = read(message, Keys, agreed).published[: 32 * (1 + agreed.rounds)]
        return sign(Keys(LIAR, sign_keys(agreed, LIAR, with_weak_key(keys, place))), agreed)

    return lie


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("place", [0, 1, 2], ids=["to seal shares", "of the first round", "of the second round"])
def test_a_client_with_a_key_of_small_order_is_named_and_the_others_go_on(
    place: int, signed: bool, monkeypatch: pytest.MonkeyPatch
):
    """Everybody would leave the session for it, some after they had paid for the round."""
    agreed = terms(5, signed=signed)
    lying = LyingClient(Keys, publish_weak_key(place))
    total = lying.sum(agreed, monkeypatch)
    assert [type(each) for each in lying.refusals] == [BadMessage]
    assert lying.refusals[0].problem == (
        "Client 0 sent a public key of small order, with which it would agree on the same secret with everybody."
    )
    assert total.survivors == {1, 2, 3, 4}
    assert is_exact(total, agreed, vectors(agreed))


# Shares.


def reveal_zeros(table: str, owners: set[int] | None = None) -> Lie:
    """Replace the shares of one table that the liar reveals: all, or those of these owners."""

    def lie(message: bytes, agreed: Terms) -> bytes:
        honest = read(message, Revealed, agreed)
        shares = {each: bytes(33) for each in getattr(honest, table) if owners is None or each in owners}
        return sign(replace(honest, **{table: {**getattr(honest, table), **shares}}), agreed)  # type: ignore[arg-type]

    return lie


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize(
    ("table", "owners", "named"),
    [("self_masks", None, 1), ("self_masks", {2}, 2), ("mask_keys", None, 4)],
    ids=["every self-mask", "one self-mask", "a lost client's mask key"],
)
def test_a_wrong_share_names_its_revealer_and_the_sum_comes_from_the_right_ones(
    table: str, owners: set[int] | None, named: int, signed: bool, monkeypatch: pytest.MonkeyPatch
):
    """The liar's shares would be the first ones taken. Client 4 is lost; of the four others, three are right."""
    agreed = terms(5, signed=signed, threshold=3)
    lying = LyingClient(Revealed, reveal_zeros(table, owners))
    total = lying.sum(agreed, monkeypatch, leaving={4: "masked"})
    assert [type(each) for each in lying.refusals] == [BadMessage]
    assert (
        lying.refusals[0].problem
        == f"Client 0 revealed a share of client {named}'s secret that is not the one it was dealt."
    )
    assert total.survivors == {0, 1, 2, 3}
    assert is_exact(total, agreed, vectors(agreed))


@pytest.mark.parametrize("signed", [True, False])
def test_another_seed_than_was_committed_to_is_refused_and_the_right_one_comes_from_shares(
    signed: bool, monkeypatch: pytest.MonkeyPatch
):
    def reveal_another(message: bytes, agreed: Terms) -> bytes:
        return sign(replace(read(message, Revealed, agreed), seed=bytes(32)), agreed)

    agreed = terms(5, signed=signed, threshold=3)
    lying = LyingClient(Revealed, reveal_another)
    total = lying.sum(agreed, monkeypatch)
    assert [type(each) for each in lying.refusals] == [BadMessage]
    assert lying.refusals[0].problem == (
        "Client 0 revealed another seed of its self-mask than the one that it committed to."
    )
    assert is_exact(total, agreed, vectors(agreed))


def seal_nonsense(holders: set[int]) -> Lie:
    """Replace what the liar deals to these holders by zeros, which no key opens."""

    def lie(message: bytes, agreed: Terms) -> bytes:
        honest = parse_any(message, agreed)
        assert isinstance(honest, Shares | Masked)
        rows = {peer: bytes(len(row)) if peer in holders else row for peer, row in honest.sealed.items()}
        return sign(replace(honest, sealed=rows), agreed)

    return lie


def test_shares_that_one_holder_can_not_open_name_their_dealer_and_cost_nobody_the_round(
    monkeypatch: pytest.MonkeyPatch,
):
    agreed = terms(5, threshold=4)
    total = LyingClient(Masked, seal_nonsense({2})).sum(agreed, monkeypatch)
    assert total.complaints == {LIAR: {2}}
    assert is_exact(total, agreed, vectors(agreed))


def test_shares_of_a_mask_key_that_nobody_can_open_are_missed_only_if_their_dealer_is_lost(
    monkeypatch: pytest.MonkeyPatch,
):
    agreed = terms(5, threshold=4)
    total = LyingClient(Shares, seal_nonsense({1, 2, 3, 4})).sum(agreed, monkeypatch)
    assert total.complaints == {}
    assert is_exact(total, agreed, vectors(agreed))
    with pytest.raises(TooFewClients, match=r"0 shares of client 0's secret were revealed, and 4 are needed") as lost:
        LyingClient(Shares, seal_nonsense({1, 2, 3, 4})).sum(agreed, monkeypatch, leaving={LIAR: "masked"})
    assert (lost.value.blamed, lost.value.revealed) == ({LIAR: {1, 2, 3, 4}}, True)


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("holders", [{1}, {1, 2}, {1, 2, 3, 4}])
def test_shares_of_a_self_mask_that_nobody_can_open_lose_no_round_while_their_dealer_answers(
    holders: set[int], signed: bool, monkeypatch: pytest.MonkeyPatch
):
    """It reveals the seed itself, so a quarrel about the shares, whoever lies, has nothing to decide."""
    agreed = terms(5, signed=signed, threshold=4)
    total = LyingClient(Masked, seal_nonsense(holders)).sum(agreed, monkeypatch)
    assert total.complaints == {LIAR: holders}
    assert is_exact(total, agreed, vectors(agreed))


@pytest.mark.parametrize("holders", [{1}, {1, 2, 3, 4}])
@pytest.mark.parametrize("stage", ["agreed", "revealed"])
def test_a_dealer_of_nonsense_that_is_silent_when_its_self_mask_is_opened_is_blamed_with_who_complains(
    holders: set[int], stage: StageName, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(TooFewClients, match=r"shares of client 0's secret were revealed, and 4 are needed") as lost:
        LyingClient(Masked, seal_nonsense(holders)).sum(terms(5, threshold=4), monkeypatch, leaving={LIAR: stage})
    assert (lost.value.blamed, lost.value.revealed) == ({LIAR: holders}, True)


@pytest.mark.parametrize("complaining", [1, 2])
def test_a_silent_dealer_loses_no_round_by_false_complaints_unless_more_are_faulty_than_the_session_withstands(
    complaining: int, monkeypatch: pytest.MonkeyPatch
):
    """Five clients, a threshold of 3: two may be silent or lie. Client 4 is honest and silent."""
    agreed = terms(5, threshold=3)
    reveal = client_round._reveal

    def complain_falsely(state: ClientState) -> Revealed:
        revealed = reveal(state)
        kept = {dealer: share for dealer, share in revealed.self_masks.items() if dealer != 4}
        return replace(revealed, self_masks=kept) if state.client < complaining else revealed

    monkeypatch.setattr(client_round, "_reveal", complain_falsely)
    if complaining == 1:
        total = rehearsal(agreed).sum(0, vectors(agreed), leaving={4: "revealed"})
        assert total.complaints == {4: {0}}
        assert is_exact(total, agreed, vectors(agreed))
    else:
        with pytest.raises(TooFewClients) as lost:
            rehearsal(agreed).sum(0, vectors(agreed), leaving={4: "revealed"})
        assert lost.value.blamed == {4: {0, 1}}


def test_a_round_that_only_silence_loses_blames_nobody(monkeypatch: pytest.MonkeyPatch):
    silent: Dropouts = {2: "revealed", 3: "revealed", 4: "revealed"}
    with pytest.raises(TooFewClients) as lost:
        rehearsal(terms(5, threshold=3)).sum(0, vectors(terms(5)), leaving=silent)
    assert lost.value.blamed == {}


def test_all_dealers_of_nonsense_are_blamed_for_the_round_that_they_lose_together(monkeypatch: pytest.MonkeyPatch):
    """Otherwise each of them would cost a round of its own."""
    deal = share_dealing.deal_shares

    def deal_nonsense(state: ClientState, *about: Any) -> bytes:
        row = deal(state, *about)
        return bytes(len(row)) if state.client < 2 else row

    monkeypatch.setattr(client_round, "deal_shares", deal_nonsense)
    with pytest.raises(TooFewClients) as lost:
        rehearsal(terms(5, threshold=3)).sum(0, vectors(terms(5)), leaving={0: "revealed", 1: "revealed"})
    assert lost.value.blamed == {0: {2, 3, 4}, 1: {2, 3, 4}}


@pytest.mark.parametrize("module", [client_setup, client_round], ids=["mask keys", "self-masks"])
def test_a_dealer_of_shares_that_do_not_fit_together_is_named(module: object, monkeypatch: pytest.MonkeyPatch):
    """It commits to each share as it should, but client 1's is of another secret: only the sum shows it."""
    split = share_dealing.split_secret

    def split_two(state: ClientState, secret: bytes) -> dict[int, bytes]:
        shares = split(state, secret)
        return shares | {1: split(state, bytes(32))[1]} if state.client == LIAR else shares

    monkeypatch.setattr(module, "split_secret", split_two)
    agreed = terms(5, threshold=4)
    with pytest.raises(WrongShare, match="Client 0 dealt shares that do not give the secret it committed to") as lost:
        rehearsal(agreed).sum(0, vectors(agreed), leaving={LIAR: "masked" if module is client_setup else "revealed"})
    assert (lost.value.blamed, lost.value.revealed) == ({LIAR: set()}, True)


def test_a_share_that_is_not_the_one_its_dealer_committed_to_is_not_used_and_not_revealed(
    monkeypatch: pytest.MonkeyPatch,
):
    """Otherwise its holder would be taken for the liar when it reveals the share."""
    commit = share_dealing._commitments

    def commit_to_another(state: ClientState, kind, first: int, dealer: int, holder: int, shares) -> bytes:
        is_lie = state.client == dealer == LIAR and holder == 2 and kind == "self-mask"
        return bytes(32) if is_lie else commit(state, kind, first, dealer, holder, shares)

    monkeypatch.setattr(share_dealing, "_commitments", commit_to_another)
    agreed = terms(5, threshold=4)
    total = rehearsal(agreed).sum(0, vectors(agreed))
    assert total.complaints == {LIAR: {2}}
    assert is_exact(total, agreed, vectors(agreed))


def test_sealed_bytes_that_are_no_share_are_not_used(monkeypatch: pytest.MonkeyPatch):
    """A share is a number below Shamir's prime; bytes of ones are above it."""
    split = share_dealing.split_secret

    def split_ones(state: ClientState, secret: bytes) -> dict[int, bytes]:
        shares = split(state, secret)
        return shares | {2: b"\xff" * 33} if state.client == LIAR else shares

    monkeypatch.setattr(client_round, "split_secret", split_ones)
    agreed = terms(5, threshold=4)
    assert rehearsal(agreed).sum(0, vectors(agreed)).complaints == {LIAR: {2}}

"""A server that lies in a signed session: all pairs withstand it, and a graph does not."""

import contextlib
from collections.abc import Collection, Mapping

import pytest

from discreet.errors import InvalidInput
from discreet.secure_sums.secagg import graph, key_agreement, shamir
from discreet.secure_sums.secagg.derivations import pair_masks, self_mask, survivors_statement
from discreet.secure_sums.secagg.local_session import LocalSession
from discreet.secure_sums.secagg.masks import Masks
from discreet.secure_sums.secagg.message_codec import encode
from discreet.secure_sums.secagg.ring_vectors import Vector
from discreet.secure_sums.secagg.server_state import Cohort
from discreet.secure_sums.secagg.session_errors import BadMessage, ListsDiffer, TooFewClients
from discreet.secure_sums.secagg.session_messages import Agreed, Agreement, Masked, Revealed, Survivors
from discreet.secure_sums.secagg.session_terms import Terms
from tests.secure_sums.secagg.cohorts import (
    binding_of,
    cheap_agreement,
    identity_keys,
    is_uniform,
    read,
    rehearsal,
    repeated_secrets,
    terms,
    vectors,
)

COMMON, SPECIAL = b"c" * 32, b"s" * 32  # digests of two broadcasts


class LyingServer:
    """A server that may show each client a different survivor list, after all have masked their vectors.

    Clients that `side` with it reveal their keys of this round, and sign what it wants.
    """

    def __init__(
        self, agreed: Terms, session: LocalSession, given: Mapping[int, Vector], side: Collection[int]
    ) -> None:
        self.terms, self.session, self.side = agreed, session, side
        self.cohort: Cohort = session.server._cohort
        self.told = {each: session.clients[each]._state.mask_keys[0] for each in side}
        session.server.open_round(0)
        self.masked = {each: read(session.clients[each].mask(0, given[each]), Masked, agreed) for each in given}

    def collect_revealed(self, shown: Mapping[int, frozenset[int]]) -> dict[int, Revealed]:
        """Return what the clients reveal, each for the list that it is shown."""
        signatures = {each: {} for each in set(shown.values())}  # type: dict[frozenset[int], dict[int, bytes]]
        for client, survivors in shown.items():
            sealed = {each: self.masked[each].sealed[client] for each in self.cohort.partners(client) & survivors}
            said = self.session.clients[client].receive(encode(Survivors(0, survivors, sealed), self.terms))
            signatures[survivors][client] = read(said, Agreed, self.terms).signature
        for survivors, signed in signatures.items():
            statement = survivors_statement(self.terms, binding_of(self.cohort), self.cohort.members, survivors)
            signed |= {
                each: key_agreement.sign(identity_keys(self.terms.clients)[each], statement) for each in self.side
            }
        found = {}
        for client, survivors in shown.items():
            signed = signatures[survivors]
            known = {each: signed[each] for each in self.cohort.partners(client) & survivors & signed.keys()}
            try:
                said = self.session.clients[client].receive(encode(Agreement(0, known), self.terms))
            except TooFewClients:
                continue
            found[client] = read(said, Revealed, self.terms)
        return found

    def sum_of(self, part: Collection[int], revealed: Mapping[int, Revealed]) -> Vector:
        """Return the sum over these clients alone, after removing every mask that the server can open."""
        masks, total = Masks(self.terms.ring), self.terms.ring.zeros()
        for client in part:
            total += self.terms.ring.unpack(self.masked[client].vector)
            seed = revealed[client].seed if client in revealed else self._open_secret(client, revealed, "self_masks")
            masks.subtract(total, self_mask(self.terms, 0, client, seed)[0])
        around = set().union(*(self.cohort.partners(each) for each in part)) - set(part)
        for other in around:
            private = self.told.get(other) or self._open_secret(other, revealed, "mask_keys")
            peers = {each: self.cohort.mask_public(each, 0) for each in self.cohort.partners(other) & set(part)}
            for peer, pair in pair_masks(self.terms, binding_of(self.cohort), other, private, peers).items():
                (masks.subtract if peer < other else masks.add)(total, pair)
        return self.terms.ring.reduce(total)

    def _open_secret(self, owner: int, revealed: Mapping[int, Revealed], what: str) -> bytes:
        tables = {each: getattr(revealed[each], what) for each in self.cohort.partners(owner) & revealed.keys()}
        shares = {self.cohort.positions[owner][each]: table[owner] for each, table in tables.items() if owner in table}
        assert len(shares) >= self.terms.threshold
        found = shamir.combine({place: shares[place] for place in sorted(shares)[: self.terms.threshold]})
        assert found is not None
        return found


def test_on_a_graph_a_server_that_names_the_leavers_cuts_the_circle_so_nothing_is_promised():
    """Two colluders of 40, one in each gap: the server says that the three honest clients next to each have left.

    Everybody sees the same list, with more than `minimum` on it and six of every nine who hold its shares. Still the
    masks of the five clients between the gaps cancel among themselves, and their sum is exposed.
    """
    agreed = terms(40, neighbours=8, threshold=6, rounds=1)
    assert agreed.has_signatures
    assert agreed.tolerated_colluders is None
    given = vectors(agreed)
    with cheap_agreement():
        session = rehearsal(agreed)
        cohort = session.server._cohort
        around = graph.place_on_circle(cohort.published, cohort.roster)
        gaps, part = around[:4] + around[9:13], around[4:9]
        side = {around[0], around[9]}
        lying = LyingServer(agreed, session, given, side)
        left = frozenset(range(40)) - (set(gaps) - side)
        assert len(left) == 34 >= agreed.minimum == 21
        revealed = lying.collect_revealed(dict.fromkeys(left, left))
        found = lying.sum_of(part, revealed)
    assert [int(each) for each in found] == [sum(int(given[one][at]) for one in part) % 2**20 for at in range(5)]


@pytest.mark.parametrize("more", [0, 1])
def test_with_all_pairs_two_lists_are_never_both_answered_by_the_honest_unless_too_many_lie(more: int):
    """Seven clients, a threshold of five: 2·5 > 7 + 2, so two may lie. Three and either half of the rest are five."""
    agreed = terms(7, rounds=1)
    assert (agreed.threshold, agreed.tolerated_colluders) == (5, 2)
    side = set(range(2 + more))
    honest = [each for each in range(7) if each not in side]
    lying = LyingServer(agreed, rehearsal(agreed), vectors(agreed), side)
    everyone = frozenset(range(7))
    lists = {each: everyone - {honest[-1]} if at < 2 else everyone for at, each in enumerate(honest)}
    found = lying.collect_revealed(lists)
    answered = {lists[each] for each in found}
    assert len(answered) == 1 + more


def test_a_signature_under_another_list_ends_the_session():
    agreed = terms(7, rounds=1)
    lying = LyingServer(agreed, rehearsal(agreed), vectors(agreed), ())
    everyone = frozenset(range(7))
    session, signed = lying.session, {}
    for client in range(7):
        shown = everyone if client < 4 else everyone - {0}
        sealed = {each: lying.masked[each].sealed[client] for each in lying.cohort.partners(client) & shown}
        said = session.clients[client].receive(encode(Survivors(0, shown, sealed), agreed))
        signed[client] = read(said, Agreed, agreed).signature
    with pytest.raises(ListsDiffer):
        session.clients[0].receive(encode(Agreement(0, {each: signed[each] for each in range(1, 7)}), agreed))
    assert session.clients[0].is_over


def test_without_identities_nothing_is_promised_against_a_server_that_lies():
    assert terms(10, signed=False).tolerated_colluders is None


# Different models for different clients (Pasquini et al., 2022).


def send_different_models(agreed: Terms, other: frozenset[int]) -> tuple[LocalSession, dict[int, bytes]]:
    """Let these clients answer another broadcast than the rest, in one round, and return the survivor lists."""
    session, given = rehearsal(agreed), vectors(agreed)
    session.server.open_round(0, COMMON)
    for client, vector in given.items():
        subject = SPECIAL if client in other else COMMON
        session.server.receive(session.clients[client].mask(0, vector, subject), client)
    return session, session.server.close_stage()


@pytest.mark.parametrize("victim", [0, 3])
def test_nobody_unmasks_if_the_server_sent_one_client_another_model(victim: int):
    """The others' model gives updates of zero, so the sum would be the victim's update. All signatures are shown."""
    agreed = terms(5, rounds=1)
    session, lists = send_different_models(agreed, frozenset({victim}))
    signed = {each: read(session.clients[each].receive(lists[each]), Agreed, agreed).signature for each in range(5)}
    for client in range(5):
        shown = {each: signed[each] for each in range(5) if each != client}
        with pytest.raises(ListsDiffer, match="or received another broadcast"):
            session.clients[client].receive(encode(Agreement(0, shown), agreed))
        assert session.clients[client].is_over


@pytest.mark.parametrize("signed", [True, False])
def test_a_server_that_hides_who_got_another_model_unmasks_noise(signed: bool):
    """It passes on the signatures of those who agree. Their masks with the victim don't cancel, so it learns nothing.

    Without signatures there is nothing to hide, and the masks alone protect.
    """
    with repeated_secrets():
        agreed = terms(5, signed=signed, rounds=1, bits=16, length=50_000)
        session, replies = send_different_models(agreed, frozenset({4}))
        if signed:
            for client in range(5):
                reply = session.clients[client].receive(replies[client]) or b""
                with contextlib.suppress(BadMessage):  # the victim's own, which an honest server does not pass on
                    session.server.receive(reply, client)
            replies = session.server.close_stage()
            assert sorted(replies) == [0, 1, 2, 3]
        for client, message in replies.items():
            session.server.receive(session.clients[client].receive(message) or b"", client)
        total = session.server.unmask()
    assert total.survivors == {0, 1, 2, 3, 4}
    assert is_uniform(total.vector, 16)
    expected = sum(vectors(agreed).values()) % 2**16
    assert is_uniform(agreed.ring.reduce(total.vector - expected.astype(total.vector.dtype)), 16)


def test_a_victim_that_is_reported_as_gone_is_not_unmasked_either():
    """The server tells the others that the victim left, and gets their sum; the victim's vector keeps its self-mask."""
    agreed = terms(5, rounds=1)
    session, lists = send_different_models(agreed, frozenset({4}))
    rest = frozenset({0, 1, 2, 3})
    for client in rest:
        shown = read(lists[client], Survivors, agreed)
        less = Survivors(0, rest, {peer: row for peer, row in shown.sealed.items() if peer != 4})
        session.clients[client].receive(encode(less, agreed))
    reply = session.clients[4].receive(lists[4])  # it is shown the whole list, and signs it with its own subject
    with pytest.raises(TooFewClients, match="1 clients of this neighbourhood signed the survivor list"):
        session.clients[4].receive(encode(Agreement(0, {}), agreed))
    assert reply is not None


def test_a_subject_is_a_digest():
    session = rehearsal(terms(4))
    with pytest.raises(InvalidInput, match="must be a digest of 32 bytes, and got 4"):
        session.clients[0].mask(0, vectors(terms(4))[0], b"text")
    with pytest.raises(InvalidInput, match="must be a digest of 32 bytes, and got 4"):
        session.server.open_round(0, b"text")

"""Sums are exact for any drop-outs up to the threshold; below it there is a named error and no sum."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidInput, UnsoundCombination
from discreet.secure_sums.secagg.session_errors import TooFewClients
from discreet.secure_sums.secagg.session_messages import StageName
from discreet.secure_sums.secagg.session_terms import Terms
from tests.secure_sums.secagg.cohorts import STAGES, cheap_agreement, is_exact, rehearsal, terms, vectors

SET_UP: tuple[StageName, ...] = ("keys", "shares")


@st.composite
def plans(draw: st.DrawFn, least: int = 3, most: int = 50) -> tuple[int, dict[int, StageName]]:
    """Return a cohort, and which clients leave before which message."""
    clients = draw(st.integers(least, most))
    leaving = draw(st.integers(0, clients // 2 + 1))
    who = draw(st.permutations(range(clients)))[:leaving]
    return clients, {client: draw(st.sampled_from(STAGES)) for client in who}


def remaining_clients(clients: int, leaving: Mapping[int, StageName]) -> dict[str, set[int]]:
    """Return the clients that still send each message."""
    return {
        stage: {each for each in range(clients) if leaving.get(each) not in STAGES[: place + 1]}
        for place, stage in enumerate(STAGES)
    }


def split_leavers(leaving: Mapping[int, StageName]) -> tuple[dict[int, StageName], dict[int, StageName]]:
    """Split the clients that leave into those of the set-up and those of the round."""
    before = {each: stage for each, stage in leaving.items() if stage in SET_UP}
    return before, {each: stage for each, stage in leaving.items() if stage not in SET_UP}


@settings(max_examples=60)
@given(plans(), st.booleans(), st.integers(8, 64))
@example((3, {0: "revealed"}), True, 8)
@example((3, {0: "keys"}), False, 64)
@example((50, {each: STAGES[each % 5] for each in range(16)}), True, 32)
def test_a_sum_is_exact_down_to_the_threshold_and_refused_below(
    plan: tuple[int, dict[int, StageName]], signed: bool, bits: int
):
    clients, leaving = plan
    agreed = terms(clients, signed=signed, bits=bits, rounds=1)
    given_, left = vectors(agreed), remaining_clients(clients, leaving)
    before, during = split_leavers(leaving)

    def total():
        return rehearsal(agreed, before).sum(0, given_, leaving=during)

    with cheap_agreement():
        if all(len(each) >= agreed.threshold for each in left.values()):
            made = total()
            assert made.survivors == left["masked"]
            assert is_exact(made, agreed, given_)
        else:
            with pytest.raises(TooFewClients, match="are needed"):
                total()


@settings(max_examples=60)
@given(plans(least=9), st.sampled_from([4, 6, 8]), st.booleans())
def test_on_a_graph_a_sum_is_exact_or_refused(plan: tuple[int, dict[int, StageName]], neighbours: int, signed: bool):
    """If few enough leave for every neighbourhood, there must be a sum; else a sum or an error, never a wrong sum."""
    clients, leaving = plan
    agreed = terms(clients, signed=signed, neighbours=min(neighbours, clients - 1), rounds=1)
    given_, (before, during) = vectors(agreed), split_leavers(leaving)
    with cheap_agreement():
        try:
            made = rehearsal(agreed, before).sum(0, given_, leaving=during)
        except TooFewClients:
            assert len(leaving) > agreed.neighbours - agreed.threshold
        else:
            assert made.survivors == remaining_clients(clients, leaving)["masked"]
            assert is_exact(made, agreed, given_)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("clients", [3, 10, 50])
def test_real_keys_sum_exactly_with_drop_outs_at_every_stage(clients: int, signed: bool):
    agreed = terms(clients, signed=signed, length=40, bits=32, rounds=2)
    spare = clients - agreed.threshold
    leaving: dict[int, StageName] = {each: STAGES[each % 5] for each in range(spare)}
    before, during = split_leavers(leaving)
    session = rehearsal(agreed, before)
    for number in range(2):
        given_ = vectors(agreed, seed=number)
        made = session.sum(number, given_, leaving=during)
        assert made.survivors == remaining_clients(clients, leaving)["masked"]
        assert is_exact(made, agreed, given_)


def test_real_keys_sum_exactly_on_a_graph():
    agreed = terms(20, neighbours=8, rounds=1)
    given_ = vectors(agreed)
    made = rehearsal(agreed, {3: "keys"}).sum(0, given_, leaving={7: "masked", 11: "revealed"})
    assert made.survivors == set(range(20)) - {3, 7}
    assert is_exact(made, agreed, given_)


def test_who_left_in_one_round_is_back_in_the_next_without_a_new_set_up():
    agreed = terms(5, rounds=3)
    session = rehearsal(agreed)
    leavers: list[dict[int, StageName]] = [{4: "masked"}, {4: "agreed"}, {0: "revealed"}]
    for number, leaving in enumerate(leavers):
        given_ = vectors(agreed, seed=number)
        assert is_exact(session.sum(number, given_, leaving=leaving), agreed, given_)


def test_a_round_that_failed_leaves_the_session_fit_for_the_next():
    agreed = terms(5, rounds=3)
    session, given_ = rehearsal(agreed), vectors(agreed)
    for number, stage in enumerate(("masked", "revealed")):
        with pytest.raises(TooFewClients, match=r"3 .* and 4 are needed"):
            session.sum(number, given_, leaving={0: stage, 1: stage})  # type: ignore[dict-item]
    made = session.sum(2, given_)
    assert made.survivors == set(range(5))
    assert is_exact(made, agreed, given_)


def test_the_default_for_a_large_cohort_is_a_graph():
    large, small = (Terms.choose(clients=clients, length=1) for clients in (1000, 100))
    assert (large.neighbours, large.threshold, large.minimum) == (132, 72, 800)
    assert (small.neighbours, small.threshold, small.minimum) == (99, 67, 67)


@pytest.mark.parametrize(("threshold", "clients"), [(5, 10), (2, 4), (1, 3)])
def test_a_threshold_of_half_or_less_is_refused(threshold: int, clients: int):
    with pytest.raises(UnsoundCombination, match=f"more than half of the {clients}.* and got {threshold}"):
        Terms.choose(clients=clients, length=1, threshold=threshold)
    assert Terms.choose(clients=clients, length=1, threshold=threshold + 1).threshold == threshold + 1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"clients": 2}, "clients must be between 3"),
        ({"bits": 7}, "bits must be between 8 and 64, and got 7"),
        ({"bits": 65}, "bits must be between 8 and 64, and got 65"),
        ({"length": 0}, "length: must be at least 1"),
        ({"identities": (bytes(32),) * 4}, "one Ed25519 public key of 32 bytes for each of 10 clients, and got 4"),
        ({"identities": (bytes(32),) * 10}, "identities must differ"),
    ],
)
def test_terms_that_can_not_be_are_refused(wrong: dict[str, object], said: str):
    with pytest.raises(InvalidInput, match=said):
        Terms.choose(**{"clients": 10, "length": 5, **wrong})  # type: ignore[arg-type]


def test_every_member_needs_a_vector():
    agreed = terms(4)
    with pytest.raises(InvalidInput, match=r"\[3\] have none"):
        rehearsal(agreed).sum(0, {each: np.zeros(5, int) for each in range(3)})


def test_a_masked_vector_of_a_million_numbers_takes_no_more_than_4_1_megabytes():
    agreed = terms(10, signed=False, length=1_000_000, bits=32, rounds=1)
    with cheap_agreement():
        sent = rehearsal(agreed).clients[0].mask(0, np.zeros(1_000_000, np.int64))
    assert 4_000_000 < len(sent) <= 4_001_000

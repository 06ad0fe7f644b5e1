"""The graph: regular, the same for every client, and with as many neighbours as the stated probabilities need."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import UnsoundCombination
from discreet.secure_sums.secagg.degree import (
    Assumptions,
    degree_for,
    failure_probability,
    insecurity_probability,
    plan_degree,
)
from discreet.secure_sums.secagg.graph import neighbourhoods, neighbours, place_on_circle


@given(
    st.sets(st.integers(0, 200), min_size=3, max_size=60), st.integers(1, 20).map(lambda half: 2 * half), st.binary()
)
def test_neighbours_are_mutual_and_everybody_has_as_many(present: set[int], degree: int, seed: bytes):
    found = neighbourhoods(place_on_circle(present, seed), degree)
    assert set(found) == present
    for client, around in found.items():
        assert len(set(around)) == len(around) == min(degree, len(present) - 1)
        assert client not in around
        assert all(client in found[each] for each in around)
        assert around == neighbours(client, place_on_circle(present, seed), degree)
        assert list(around) == sorted(around)


def test_the_graph_is_drawn_from_the_keys():
    assert place_on_circle(range(30), b"a") == place_on_circle(list(reversed(range(30))), b"a")
    assert place_on_circle(range(30), b"a") != place_on_circle(range(30), b"b")


def test_chances_are_those_of_drawing_neighbours_one_after_the_other():
    few = Assumptions(colluding=0.1, leaving=0.2)
    assert failure_probability(1000, 112, 58, few) == pytest.approx(
        1000 * by_hand(112 - 58 + 1, 999, 200, 112), rel=1e-9
    )
    opened = 1000 * by_hand(58, 799, 100, 112)  # clients may leave before the places are drawn, and colluders stay
    in_a_row = 1000 * math.prod((300 - place) / (1000 - place) for place in range(56))
    assert insecurity_probability(1000, 112, 58, few) == pytest.approx(opened + in_a_row, rel=1e-9)


def by_hand(wanted: int, others: int, marked: int, drawn: int) -> float:
    """Return the probabilities of each number of hits, drawing one after the other, in floating point."""
    chances = [1.0] + [0.0] * drawn
    for step in range(drawn):
        after = [0.0] * (drawn + 1)
        for hits, chance in enumerate(chances[: step + 1]):
            hit = max(marked - hits, 0) / (others - step)
            after[hits + 1] += chance * hit
            after[hits] += chance * (1 - hit)
        chances = after
    return sum(chances[wanted:])


@pytest.mark.parametrize("clients", [120, 300, 1000, 3000])
def test_the_chosen_degree_keeps_both_promises_and_one_step_less_does_not(clients: int):
    assumed = Assumptions()
    found = degree_for(clients, assumed)
    assert insecurity_probability(clients, found.neighbours, found.threshold, assumed) <= 2**-40
    assert failure_probability(clients, found.neighbours, found.threshold, assumed) <= 2**-30
    assert 2 * found.threshold > found.neighbours + 1
    fewer = found.neighbours - 2
    assert all(
        insecurity_probability(clients, fewer, threshold, assumed) > 2**-40
        or failure_probability(clients, fewer, threshold, assumed) > 2**-30
        for threshold in range((fewer + 1) // 2 + 1, fewer + 1)
    )


def test_neighbours_grow_with_the_logarithm_of_the_cohort():
    found = {clients: degree_for(clients, Assumptions()).neighbours for clients in (500, 1000, 2000, 4000)}
    assert found == {500: 108, 1000: 132, 2000: 148, 4000: 156}


@pytest.mark.parametrize("clients", [3, 10, 50, 100])
def test_a_small_cohort_has_all_pairs_and_two_thirds(clients: int):
    found = degree_for(clients, Assumptions())
    assert (found.neighbours, found.threshold) == (clients - 1, math.ceil(2 * clients / 3))
    assert found.minimum == found.threshold


def test_on_a_graph_no_more_may_leave_than_was_assumed():
    assert degree_for(1000, Assumptions()).minimum == 800
    assert degree_for(1000, Assumptions(colluding=0.1, leaving=0.1)).minimum == 900


def test_colluders_are_denser_among_those_who_stay():
    """A fifth of 200 collude and another fifth leave first: of the 159 others that a client then finds, 40 collude."""
    found, assumed = degree_for(200, Assumptions()), Assumptions()
    before = 200 * by_hand(found.threshold, 199, 40, found.neighbours)
    after = 200 * by_hand(found.threshold, 159, 40, found.neighbours)
    assert before < after <= insecurity_probability(200, found.neighbours, found.threshold, assumed) <= 2**-40


@given(st.integers(3, 60), st.integers(0, 30), st.integers(0, 30), st.booleans())
def test_the_threshold_of_a_plan_is_above_a_half_above_the_colluders_and_within_those_who_stay(
    clients: int, colluding: int, leaving: int, signed: bool
):
    try:
        found = plan_degree(clients, colluding=colluding, leaving=leaving, signed=signed)
    except UnsoundCombination:
        fits = [
            threshold
            for threshold in range(1, clients - leaving + 1)
            if 2 * threshold > clients + (colluding if signed else 0) and threshold > colluding
        ]
        assert not fits
    else:
        assert max(clients / 2, colluding) < found.threshold <= clients - leaving
        assert not signed or 2 * found.threshold - clients - 1 >= colluding
        assert (found.neighbours, found.assumptions) == (clients - 1, None)


def test_a_plan_widens_what_a_graph_withstands_and_never_narrows_it():
    assert plan_degree(1000) == plan_degree(1000, colluding=200, leaving=200) == degree_for(1000, Assumptions())
    wider = plan_degree(1000, colluding=300, leaving=250)
    assert wider.assumptions == Assumptions(colluding=0.3, leaving=0.25)
    assert wider.minimum == 750
    assert (
        insecurity_probability(1000, wider.neighbours, wider.threshold, Assumptions(colluding=0.3, leaving=0.25))
        <= 2**-40
    )
    with pytest.raises(UnsoundCombination, match="at least 501, above a half"):
        plan_degree(1000, leaving=500)


def test_the_honest_stay_connected_if_no_half_neighbourhood_is_missing_in_a_row():
    """The event that `insecurity` counts: if the rest is not connected, such a run of neighbours is missing."""
    draw, apart = random.Random(0), 0
    for _ in range(500):
        clients, half, seed = draw.randint(12, 40), draw.randint(1, 3), draw.randbytes(8)
        left = set(draw.sample(range(clients), draw.randint(clients // 2, clients)))
        if not is_connected(left, neighbourhoods(place_on_circle(range(clients), seed), 2 * half)):
            apart += 1
            assert longest_run([each not in left for each in place_on_circle(range(clients), seed)]) >= half
    assert apart > 50


def is_connected(left: set[int], found: dict[int, tuple[int, ...]]) -> bool:
    reached: set[int] = set()
    waiting = [min(left)]
    while waiting:
        one = waiting.pop()
        if one not in reached:
            reached.add(one)
            waiting += [each for each in found[one] if each in left]
    return reached == left


def longest_run(missing: list[bool]) -> int:
    best = run = 0
    for each in missing + missing:
        run = run + 1 if each else 0
        best = max(best, run)
    return best

"""Releases: larger units hold several smaller ones."""

import pytest

from discreet.errors import InvalidInput, Unsupported
from discreet.part import from_plain, to_plain
from discreet.privacy import pld
from discreet.privacy.events import (
    Composed,
    GaussianNoise,
    Repeated,
    SampledWithoutReplacement,
    SkellamNoise,
    scale_sensitivity,
)
from discreet.privacy.groups import group_event
from discreet.privacy.ledger import Budget
from discreet.privacy.release import Person, Release, Unit, describe_clients
from tests.privacy.recipes import gaussian

NOISE = GaussianNoise(noise_multiplier=6.0)


def test_a_release_comes_back_equal() -> None:
    release = Release(
        unit=Person(column="patient", at_most=3),
        relation="add_or_remove",
        view="client",
        event=Repeated(count=2, event=NOISE),
        clients=(0, 3),
        adaptive=True,
    )
    assert from_plain(Release, to_plain(release)) == release


def test_a_person_of_three_examples_sees_a_third_of_the_noise() -> None:
    assert group_event(NOISE, 3) == GaussianNoise(noise_multiplier=2.0)


def test_a_group_is_never_safer_than_its_members() -> None:
    single = gaussian(6.0, rate=0.1, times=20)
    assert (
        pld.epsilon(group_event(single, 3), 1e-5)
        > pld.epsilon(group_event(single, 2), 1e-5)
        > pld.epsilon(single, 1e-5)
    )


def test_a_group_of_one_is_its_member() -> None:
    fixed = SampledWithoutReplacement(cohort=5, population=50, event=NOISE)
    assert group_event(fixed, 1) == fixed
    with pytest.raises(Unsupported, match="Sample by Poisson"):
        group_event(fixed, 2)


def test_noise_on_the_lattice_scales_by_its_sensitivity() -> None:
    noise = SkellamNoise(variance=100.0, l2_sensitivity=5.0, dimension=9)
    assert scale_sensitivity(noise, 2.0) == SkellamNoise(variance=100.0, l2_sensitivity=10.0, dimension=9)


def test_a_group_pays_for_each_part_of_a_composition() -> None:
    parts = gaussian(2.0, rate=0.1, times=3), gaussian(5.0)
    whole = group_event(Composed(events=parts), 2)
    assert whole == Composed(events=tuple(group_event(part, 2) for part in parts))
    assert pld.epsilon(whole, 1e-5) > pld.epsilon(Composed(events=parts), 1e-5)


@pytest.mark.parametrize(
    ("clients", "text"),
    [
        ((3,), "client 3"),
        ((0, 1, 2, 3, 4), "clients 0 to 4"),
        ((0, 2), "clients 0, 2"),
        (tuple(range(0, 3000, 2)), "clients 0, 2, 4, 6, 8, 10 and 1,494 more"),
    ],
)
def test_clients_are_described_by_number(clients: tuple[int, ...], text: str) -> None:
    assert describe_clients(clients) == text


def test_clients_is_another_word_for_the_view_client() -> None:
    made = Budget(unit="example", relation="zero_out", view="clients", epsilon=1.0, delta=1e-5)  # type: ignore[arg-type]
    assert made.view == "client"
    assert Release(unit="client", relation="replace", view="clients", event=gaussian(1.0)).view == "client"  # type: ignore[arg-type]


def test_a_person_of_an_older_file_is_read() -> None:
    stored = {"kind": "person", "column": "patient", "max_examples": 3}
    assert from_plain(Unit, stored) == Person(column="patient", at_most=3)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ("patient", r'must be "example", "client" or a person, such as .*at_most = 20.*, and got .patient.'),
        ({"kind": "person", "column": "patient"}, "at_most: is missing"),
        ({"kind": "person", "column": "patient", "at_most": 0}, "at_most: must be at least 1"),
        ({"kind": "family", "column": "patient", "at_most": 2}, "kind: must be .person."),
    ],
)
def test_what_is_no_unit_is_refused_with_what_is(wrong: object, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        from_plain(Unit, wrong)

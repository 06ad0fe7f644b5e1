"""What a card says of every kind of event: its words, and what it assumes."""

import pytest

from discreet.privacy import second_engine
from discreet.privacy.card_lines import one_unit_line, release_assumptions
from discreet.privacy.events import (
    DiscreteGaussianNoise,
    DistributedDiscreteGaussianNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    PoissonSampled,
    RandomAllocation,
    RandomisedResponse,
    SkellamNoise,
    TruncatedPoissonSampled,
    ZeroConcentrated,
)
from discreet.privacy.release import Person, Release, Unit
from discreet.privacy.wording import describe_event, describe_unit
from discreet.words import fill

NOISE = GaussianNoise(noise_multiplier=2.0)
TRUNCATED = TruncatedPoissonSampled(sampling_rate=0.1, max_batch_size=20, population=100, event=NOISE)
ALLOCATED = RandomAllocation(bins=10, event=NOISE)
ANSWER = RandomisedResponse(categories=4, random_share=0.5)
STATED = ZeroConcentrated(rho=0.1)
SEVERAL = Person(column="patient", at_most=3, clients_at_most=2)


@pytest.mark.parametrize(
    ("event", "words", "assumed"),
    [
        (TRUNCATED, "20", "random_subset"),
        (ALLOCATED, "10", "random_sum"),
        (ANSWER, "4", "random_answers"),
        (STATED, "0.1", "stated_zcdp"),
    ],
)
def test_an_event_is_described_with_its_numbers_and_what_it_assumes(event: Event, words: str, assumed: str) -> None:
    assert words in describe_event(event)
    release = Release(unit="example", relation="replace", view="server", event=event)
    assert fill(f"assumes.{assumed}") in list(release_assumptions(release))


@pytest.mark.parametrize("event", [ANSWER, STATED])
def test_what_has_no_sensitivity_assumes_none(event: Event) -> None:
    release = Release(unit="example", relation="replace", view="server", event=event)
    assert fill("assumes.sensitivity.example") not in list(release_assumptions(release))


@pytest.mark.parametrize(
    ("unit", "most", "key"),
    [
        ("client", 1, "client"),
        ("example", 1, "example"),
        ("example", 3, "shared_example"),
        (Person(column="patient", at_most=3), 1, "person"),
        (SEVERAL, 1, "person_in_clients"),
    ],
)
def test_the_owner_checks_first_that_the_unit_is_the_right_one(unit: Unit, most: int, key: str) -> None:
    line = one_unit_line(unit, most)
    assert line == fill(f"assumes.one_unit.{key}", column="'patient'", clients=2, most=most)
    assert line.source == "owner"


def test_a_person_in_several_clients_is_described_with_both_numbers() -> None:
    words = describe_unit(SEVERAL, "server")
    assert "3" in words
    assert "2" in words
    release = Release(unit=SEVERAL, relation="zero_out", view="server", event=NOISE)
    assert fill("assumes.person_rows_in_clients", most=3, clients=2) in list(release_assumptions(release))


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (SkellamNoise(variance=9.0, l2_sensitivity=1.0, dimension=9), "skellam"),
        (DistributedDiscreteGaussianNoise(variance=9.0, shares=3, l2_sensitivity=1.0, dimension=9), "discrete_sums"),
        (
            PoissonSampled(sampling_rate=0.1, event=DiscreteGaussianNoise(variance=9.0, l2_sensitivity=1.0)),
            "sampled_discrete",
        ),
        (PoissonSampled(sampling_rate=0.1, event=STATED), "sampled_zcdp"),
        (
            TruncatedPoissonSampled(
                sampling_rate=0.1, max_batch_size=20, population=100, event=LaplaceNoise(noise_multiplier=2.0)
            ),
            "truncated_noise",
        ),
    ],
)
def test_what_the_other_engine_lacks_has_a_reason(event: Event, reason: str) -> None:
    assert second_engine.unsupported_reason(event) == fill(f"second.{reason}")

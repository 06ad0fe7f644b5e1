"""Which releases count for which budget: units, relations and views, and which conversions are not allowed."""

from typing import Any

import pytest

from discreet.errors import Unsupported
from discreet.privacy.events import Event, GaussianNoise, PoissonSampled, Repeated, SampledWithoutReplacement
from discreet.privacy.groups import group_event
from discreet.privacy.ledger.charges import Charge, charges
from discreet.privacy.release import Person, Release

from .helpers import budget, release

GAUSSIAN = GaussianNoise(noise_multiplier=2.0)
SAMPLED = PoissonSampled(sampling_rate=0.1, event=GAUSSIAN)
FIXED = SampledWithoutReplacement(cohort=10, population=100, event=GAUSSIAN)
PATIENT = Person(column="patient", at_most=3)


def charge(to: dict[str, Any], *releases: Release) -> list[tuple[Event, str]]:
    return [(event, relation) for _, event, relation in charges(budget(**to), releases)]


@pytest.mark.parametrize("unit", ["example", "client", PATIENT])
@pytest.mark.parametrize(
    ("of_release", "of_budget"),
    [("add_or_remove", "add_or_remove"), ("add_or_remove", "zero_out"), ("zero_out", "zero_out")],
)
def test_one_more_or_less_covers_one_of_zero(unit: Any, of_release: str, of_budget: str):
    made = release(SAMPLED, unit=unit, relation=of_release, view="public")
    assert charge({"unit": unit, "relation": of_budget, "view": "public"}, made) == [(SAMPLED, "add_or_remove")]


def test_what_hides_a_content_does_not_hide_who_took_part():
    with pytest.raises(Unsupported, match="whether it took part, which does not follow"):
        charge({"relation": "add_or_remove"}, release(GAUSSIAN, relation="zero_out"))
    with pytest.raises(Unsupported, match="whether it took part"):
        charge({"unit": PATIENT}, release(GAUSSIAN, relation="zero_out"))
    with pytest.raises(Unsupported, match="whether it took part") as of_a_client:
        charge({"unit": "client"}, release(GAUSSIAN, unit="client", relation="zero_out"))
    assert of_a_client.value.fix == 'Make the budget for relation "zero_out".'


@pytest.mark.parametrize("of_release", ["add_or_remove", "zero_out"])
def test_a_persons_examples_are_blanked_at_the_price_of_their_removal(of_release: str):
    made = release(SAMPLED, relation=of_release)
    assert charge({"unit": PATIENT, "relation": "zero_out"}, made) == [(group_event(SAMPLED, 3), "add_or_remove")]


@pytest.mark.parametrize("of_release", ["add_or_remove", "zero_out", "replace"])
def test_a_replacement_is_priced_as_one(of_release: str):
    assert charge({"relation": "replace"}, release(SAMPLED, relation=of_release)) == [(SAMPLED, "replace")]


@pytest.mark.parametrize("of_budget", ["add_or_remove", "zero_out"])
def test_safe_to_replace_is_not_safe_to_add(of_budget: str):
    with pytest.raises(Unsupported, match=r"holds for replacing one example, .* does not follow"):
        charge({"relation": of_budget}, release(GAUSSIAN, relation="replace"))


@pytest.mark.parametrize("of_release", ["add_or_remove", "zero_out"])
def test_a_fixed_size_can_not_be_one_more_or_less(of_release: str):
    with pytest.raises(Unsupported, match="Sampling without replacement keeps the number of units fixed"):
        charge({"relation": of_release}, release(FIXED, relation=of_release))
    assert charge({"relation": "replace"}, release(FIXED, relation="replace")) == [(FIXED, "replace")]


@pytest.mark.parametrize("unit", ["example", PATIENT])
@pytest.mark.parametrize("of_budget", ["add_or_remove", "zero_out", "replace"])
@pytest.mark.parametrize("event", [GAUSSIAN, SAMPLED, FIXED])
@pytest.mark.parametrize("of_release", ["add_or_remove", "zero_out", "replace"])
def test_a_clients_release_counts_for_what_a_client_holds_as_its_replacement(
    unit: Any, of_budget: str, event: Event, of_release: str
):
    made = release(event, unit="client", relation=of_release, view="public")
    assert charge({"unit": unit, "relation": of_budget, "view": "public"}, made) == [(event, "replace")]


@pytest.mark.parametrize("unit", ["example", PATIENT])
def test_an_examples_release_never_counts_for_a_client(unit: Any):
    with pytest.raises(Unsupported, match=r"unit client, .*; they are for unit"):
        charge({"unit": "client"}, release(GAUSSIAN, unit=unit))


def test_a_persons_release_never_counts_for_an_example_or_another_person():
    with pytest.raises(Unsupported):
        charge({}, release(GAUSSIAN, unit=PATIENT))
    with pytest.raises(Unsupported):
        charge({"unit": Person(column="visitor", at_most=3)}, release(GAUSSIAN, unit=PATIENT))


def test_an_examples_release_counts_for_a_person_as_a_group():
    (event, relation) = charge({"unit": PATIENT}, release(SAMPLED))[0]
    assert (event, relation) == (group_event(SAMPLED, 3), "add_or_remove")
    assert (event.sampling_rate, event.group_size) == (0.1, 3)


IN_TWO = Person(column="patient", at_most=3, clients_at_most=2)


def test_a_person_in_two_clients_is_one_group_in_a_sum_and_two_in_separate_uploads():
    assert charge({"unit": IN_TWO}, release(SAMPLED)) == [(group_event(SAMPLED, 6), "add_or_remove")]
    apart = [(Repeated(count=2, event=group_event(SAMPLED, 3)), "add_or_remove")]
    assert charge({"unit": IN_TWO}, release(SAMPLED, separate=True)) == apart


def test_a_change_of_two_clients_moves_their_sum_twice_as_far_and_two_uploads_once_each():
    half = GaussianNoise(noise_multiplier=1.0)
    assert charge({"unit": IN_TWO}, release(GAUSSIAN, unit="client")) == [(half, "replace")]
    apart = [(Repeated(count=2, event=GAUSSIAN), "replace")]
    assert charge({"unit": IN_TWO}, release(GAUSSIAN, unit="client", relation="replace", separate=True)) == apart
    sampled = charge({"unit": IN_TWO, "view": "public"}, release(SAMPLED, unit="client", view="public"))
    assert sampled[0][0].sampling_rate == pytest.approx(0.19)
    with pytest.raises(Unsupported, match="Groups under sampling without replacement"):
        charge({"unit": IN_TWO, "view": "public"}, release(FIXED, unit="client", relation="replace", view="public"))


def test_a_person_in_several_clients_is_charged_for_every_round_of_any_client():
    """Their clients may join different rounds, so the rounds of no single client would be enough."""
    named = release(SAMPLED, clients=(0, 4))
    assert [each.clients for each in charges(budget(unit=IN_TWO), [named])] == [None]
    assert [each.clients for each in charges(budget(unit=PATIENT), [named])] == [(0, 4)]


@pytest.mark.parametrize(("of_release", "of_budget"), [("replace", "add_or_remove"), ("add_or_remove", "replace")])
def test_a_group_is_only_added_or_removed(of_release: str, of_budget: str):
    with pytest.raises(Unsupported, match="only under add_or_remove or zero_out"):
        charge({"unit": PATIENT, "relation": of_budget}, release(SAMPLED, relation=of_release))


def test_where_one_reading_fails_another_that_holds_is_taken():
    both = release(SAMPLED), release(GAUSSIAN, unit="client")
    assert charge({"unit": PATIENT, "relation": "replace"}, *both) == [(GAUSSIAN, "replace")]


def test_a_budget_reads_the_releases_for_its_own_unit_and_view():
    told = [release(float(z), unit=unit, view=view) for z, (unit, view) in enumerate(
        [("example", "server"), ("example", "public"), ("client", "server"), ("client", "public")], start=1
    )]  # fmt: skip
    for z, made in enumerate(told, start=1):
        found = charge({"unit": made.unit, "view": made.view}, *told)
        assert found == [(GaussianNoise(noise_multiplier=z), "add_or_remove")]


def test_all_releases_for_a_budgets_unit_and_view_count():
    assert charge({}, release(1.0), release(2.0), release(1.0)) == [
        (GaussianNoise(noise_multiplier=z), "add_or_remove") for z in (1.0, 2.0, 1.0)
    ]


@pytest.mark.parametrize(
    ("told", "taken"),
    [(("public", "server", "client"), "public"), (("client", "server"), "server"), (("client",), "client")],
)
def test_what_protects_from_those_who_see_more_protects_from_the_public(told: tuple[Any, ...], taken: str):
    noise = {"public": 1.0, "server": 2.0, "client": 3.0}
    found = charge({"view": "public"}, *(release(noise[view], view=view) for view in told))
    assert found == [(GaussianNoise(noise_multiplier=noise[taken]), "add_or_remove")]


@pytest.mark.parametrize(("view", "told"), [("server", "public"), ("server", "client"), ("client", "server")])
def test_nothing_else_follows_from_a_view(view: str, told: Any):
    with pytest.raises(
        Unsupported, match=rf"say nothing about .*view {view}\); they are for unit example, view {told}"
    ):
        charge({"view": view}, release(GAUSSIAN, view=told))


def test_no_releases_say_nothing():
    with pytest.raises(Unsupported, match="they are for nothing"):
        charge({"view": "public"})


def test_the_clients_that_a_release_names_are_kept():
    assert charges(budget(), [release(2.0, clients=(4, 5))]) == [Charge((4, 5), GAUSSIAN, "add_or_remove")]

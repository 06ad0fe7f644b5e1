"""A card says what is certified, by whom, for whom and against whom; claims are listed separately."""

import dataclasses
import math
from typing import get_args

import pytest

from discreet.code_version import CodeVersion, read_code_version
from discreet.errors import InvalidInput, UnsoundCombination, Unsupported
from discreet.part import from_plain, to_plain
from discreet.privacy.events import GaussianNoise, PoissonSampled, Repeated, SampledWithoutReplacement, SkellamNoise
from discreet.privacy.guarantee import Attack, Claim, Guarantee, LedgerMark, SecondValue, split_by_largest_epsilon
from discreet.privacy.release import Person, Relation, Release, Unit, View
from discreet.privacy.wording import compact, describe_event, per_thousand, round_down, round_up

NOISE = GaussianNoise(noise_multiplier=1.5)
EVENT = Repeated(count=60, event=PoissonSampled(sampling_rate=0.25, event=NOISE))
PFL = Release(unit="example", relation="zero_out", view="server", event=EVENT)
CLAIM = Claim(epsilon=0.62, delta=1e-5, source="Theorem 4.6", reason="it counts a local state as aggregated")
PATIENT = Person(column="patient", at_most=5)


@pytest.fixture(scope="module")
def card() -> Guarantee:
    return Guarantee.certify(PFL, 1e-4, claims=[CLAIM], assumptions=["Clients are disjoint."], not_covered=["Logs."])


def test_a_card_names_everything_it_must(card: Guarantee):
    assert (card.unit, card.relation, card.view) == ("example", "zero_out", "server")
    assert 0 < card.epsilon < math.inf
    assert (card.delta, card.accountant, card.code) == (1e-4, "pld", read_code_version())
    assert card.second.epsilon == pytest.approx(card.epsilon, rel=1e-2)
    assert "Clients are disjoint." in card.assumptions
    assert "Logs." in card.not_covered
    assert [attack.false_positive_rate for attack in card.attacks] == [0.001, 0.01, 0.1]


def test_a_card_of_changed_code_says_so(card: Guarantee):
    commit = "c825f7794ca10c7fad0ae5faa0742a53d7d8250f"
    clean, dirty = (dataclasses.replace(card, version="0.3.0", commit=commit, dirty=dirty) for dirty in (False, True))
    assert "Made by         discreet 0.3.0, commit c825f7794\n" in clean.as_text()
    assert "with uncommitted changes: no commit holds the code" in " ".join(dirty.as_text().split())


def test_a_card_names_the_other_code_that_took_part_in_a_resumed_run():
    before = CodeVersion("0.3.0.dev2", "7" * 40, False)
    card = Guarantee.certify(PFL, 1e-4, code_stamps=[before.stamp, read_code_version().stamp])
    assert card.other_code == (before.stamp,)
    assert "Before it was resumed: discreet 0.3.0.dev2, commit 777777777" in " ".join(card.as_text().split())
    assert from_plain(Guarantee, to_plain(card)) == card


def test_a_card_of_an_earlier_version_can_be_read(card: Guarantee):
    plain = {name: value for name, value in to_plain(card).items() if name not in ("commit", "dirty")}
    assert from_plain(Guarantee, plain | {"version": "0.2.0"}).code == CodeVersion("0.2.0")


def test_it_survives_json_exactly(card: Guarantee):
    assert from_plain(Guarantee, to_plain(card)) == card


def test_its_text_shows_certified_beside_claimed(card: Guarantee):
    words = card.as_text()
    assert f"Certified       ε = {round_up(card.epsilon)} at δ = 0.0001" in words
    claimed = words.split("Claimed, not certified")[1]
    assert "ε = 0.62 at δ = 1e-5, Theorem 4.6" in claimed
    assert f"Certified is ε = {round_up(card.epsilon)}" in " ".join(claimed.split())
    assert "dp-accounting" in words


def test_without_claims_nothing_is_said_of_them(card: Guarantee):
    assert "Claimed" not in dataclasses.replace(card, claims=()).as_text()


@pytest.mark.parametrize("unit", ["example", "client", PATIENT])
@pytest.mark.parametrize("relation", get_args(Relation))
@pytest.mark.parametrize("view", get_args(View))
def test_every_card_fits_80_columns_and_speaks_of_its_unit(unit: Unit, relation: Relation, view: View, card: Guarantee):
    words = dataclasses.replace(card, unit=unit, relation=relation, view=view).as_text()
    assert max(map(len, words.splitlines())) <= 80
    assert f"any one {'person' if unit == PATIENT else unit}" in " ".join(words.split())


@pytest.mark.parametrize(
    ("unit", "relation", "view", "said"),
    [
        ("example", "add_or_remove", "server", "what the server sees can tell whether any one example was used"),
        ("client", "add_or_remove", "public", "only the released models can tell whether any one client took part"),
        ("client", "zero_out", "server", "can tell any one client's contribution from an empty one"),
        ("example", "zero_out", "server", "can tell whether any one example or a blank in its place was used"),
        (PATIENT, "zero_out", "server", "whether any one person's examples or blanks in their place were used"),
        (
            PATIENT,
            "replace",
            "client",
            "its own share of the noise can tell any one person from another in their place",
        ),
    ],
)
def test_the_plain_sentence_is_exact(unit: Unit, relation: Relation, view: View, said: str, card: Guarantee):
    assert said in dataclasses.replace(card, unit=unit, relation=relation, view=view).sentence()


def test_the_plain_sentence_tells_what_an_attack_achieves(card: Guarantee):
    attack = Attack(false_positive_rate=0.001, true_positive_rate=0.00512)
    assert dataclasses.replace(card, attacks=(attack,)).sentence() == (
        "Anyone who sees what the server sees can tell whether any one example or a blank in its place was used no "
        "better than this: allowed 1 false alarm in 1,000, the best possible attack recognises at most 5.2 in 1,000, "
        "where blind guessing recognises 1."
    )


def test_a_person_card_assumes_bounded_rows():
    card = Guarantee.certify(dataclasses.replace(PFL, unit=PATIENT), 1e-4)
    assert "No person has more than 5 rows, and none has rows in two clients." in card.assumptions
    assert "at most 5" in card.as_text()


@pytest.mark.parametrize("unit", ["example", PATIENT])
def test_a_card_for_blanks_says_that_sizes_are_public(unit: Unit):
    card = Guarantee.certify(dataclasses.replace(PFL, unit=unit), 1e-4)
    words = " ".join(card.as_text().split())
    assert "in its place; how many" in words if unit == "example" else "in their place; how many" in words
    assert "how many examples a client holds is public" in words
    assert "follow from how many examples each client holds, which is public" in words
    assert "Whether a client holds one example more or less." in card.not_covered
    assert not any("public constant" in each for each in card.assumptions)


def test_a_card_for_removals_assumes_a_divisor_that_no_removal_changes():
    card = Guarantee.certify(dataclasses.replace(PFL, relation="add_or_remove"), 1e-4)
    assert "Sums are divided by public constants, never by counts from the data." in card.assumptions
    assert "Whether a client holds one example more or less." not in card.not_covered


def test_a_blank_and_a_removal_have_the_same_price(card: Guarantee):
    removal = Guarantee.certify(dataclasses.replace(PFL, relation="add_or_remove"), 1e-4)
    assert (card.epsilon, card.mu, card.attacks) == (removal.epsilon, removal.mu, removal.attacks)


def test_a_large_but_finite_epsilon_is_not_said_to_let_anyone_tell_for_certain():
    weak = Release(unit="example", relation="replace", view="server", event=GaussianNoise(noise_multiplier=0.1))
    made = Guarantee.certify(weak, 1e-5)
    assert math.isfinite(made.epsilon)
    assert made.attacks[0].true_positive_rate == 1
    assert "for certain" not in made.sentence()
    assert made.sentence().endswith(
        "Allowed 1 false alarm in 1,000, no attack is excluded, not even one that recognises all."
    )


def test_an_infinite_epsilon_is_said_and_saved(card: Guarantee):
    certain = (Attack(false_positive_rate=0.001, true_positive_rate=1.0),)
    nothing = dataclasses.replace(card, epsilon=math.inf, mu=math.inf, attacks=certain)
    assert to_plain(nothing)["epsilon"] == "inf"
    assert from_plain(Guarantee, to_plain(nothing)) == nothing
    assert (
        nothing.as_text()
        .splitlines()[2]
        .startswith("Next to nothing is promised: anyone who sees what the server sees may be able")
    )
    assert "ε = inf" in nothing.as_text()


@pytest.mark.parametrize("wrong", [math.nan, -1.0, True, "2", -math.inf])
def test_an_epsilon_that_is_none_is_refused(wrong: object):
    with pytest.raises(InvalidInput):
        Claim(epsilon=wrong, delta=1e-5, source="x", reason="y")  # type: ignore[arg-type]


def test_where_only_one_engine_exists_the_card_says_so():
    event = SkellamNoise(variance=4.0, l2_sensitivity=10.0, dimension=100)  # too little for a dominating Gaussian
    card = Guarantee.certify(dataclasses.replace(PFL, event=event), 1e-5)
    assert card.accountant == "rdp"
    assert card.second.epsilon is None
    assert f"no second engine: {card.second.reason}" in " ".join(card.as_text().split())


def test_a_card_for_integer_noise_says_that_a_gaussian_was_counted():
    event = SkellamNoise(variance=1000.0, l2_sensitivity=10.0, dimension=100)
    card = Guarantee.certify(dataclasses.replace(PFL, event=event), 1e-5)
    assert "Gaussian noise that dominates this integer noise (pld)" in " ".join(card.as_text().split())
    assert card.second.epsilon == pytest.approx(card.epsilon, rel=1e-3)


def test_a_second_engine_that_is_looser_says_why():
    event = SampledWithoutReplacement(cohort=10, population=100, event=NOISE)
    card = Guarantee.certify(Release(unit="example", relation="replace", view="server", event=event), 1e-5)
    assert card.second.epsilon is not None
    assert card.second.epsilon > card.epsilon
    assert f"({card.second.reason})" in " ".join(card.as_text().split())


def test_sampling_clients_hides_nothing_from_the_server():
    with pytest.raises(UnsoundCombination, match="sees which clients take part"):
        Guarantee.certify(dataclasses.replace(PFL, unit="client"), 1e-5)


def test_a_price_chosen_after_looking_is_the_ledgers_to_count():
    with pytest.raises(Unsupported, match="ledger's total"):
        Guarantee.certify(dataclasses.replace(PFL, adaptive=True), 1e-5)


def test_the_ledgers_mark_is_printed(card: Guarantee):
    marked = dataclasses.replace(card, ledger=LedgerMark(head="ab12", length=1062))
    assert "Ledger          1,062 entries, head ab12" in marked.as_text()


def test_a_missing_second_value_needs_no_number(card: Guarantee):
    alone = dataclasses.replace(card, second=SecondValue(engine="none", epsilon=None, reason="nobody else has it"))
    assert "Confirmed by    no second engine: nobody else has it" in alone.as_text()


def test_an_event_is_described_by_its_distinct_steps():
    assert describe_event(EVENT) == "60 × Gaussian noise of multiplier 1.5, Poisson sampling at rate 0.25"
    assert describe_event(NOISE) == "Gaussian noise of multiplier 1.5"


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        (25.2046, "25.21", "25.2"),
        (2.0, "2", "2"),
        (0.1 + 0.2, "0.3", "0.3"),
        (2.0000001, "2.001", "2"),
        (1.2341e-7, "1.235e-7", "1.234e-7"),
        (0.0, "0", "0"),
        (math.inf, "inf", "inf"),
    ],
)
def test_a_printed_bound_is_never_better_than_the_bound(value: float, up: str, down: str):
    assert (round_up(value), round_down(value)) == (up, down)


def test_another_client_knows_its_own_data(card: Guarantee):
    assert "one example, of any other client" in dataclasses.replace(card, view="client").as_text()


def test_a_card_without_any_attack_rate_cannot_be_built(card: Guarantee):
    with pytest.raises(InvalidInput, match="attacks"):
        dataclasses.replace(card, attacks=())


def test_numbers_are_written_for_people():
    assert compact(1e-5) == "1e-5"
    assert (per_thousand(0.001), per_thousand(0.00512), per_thousand(0.5287)) == ("1", "5.2", "529")


def test_of_cards_that_differ_in_their_clients_the_largest_epsilon_is_printed():
    """More rounds spend more: of clients 0 to 2, who took part in 5, 20 and 10 rounds, the card of 20 is shown."""
    step = GaussianNoise(noise_multiplier=10.0)
    releases = [
        Release(unit="example", relation="add_or_remove", view="server", event=Repeated(count=count, event=step))
        for count in (5, 20, 10)
    ]
    cards = [
        dataclasses.replace(Guarantee.certify(made, 1e-5), clients=(number,)) for number, made in enumerate(releases)
    ]
    for_all = dataclasses.replace(cards[0], clients=None, view="public")
    printed, rest = split_by_largest_epsilon([*cards, for_all])
    assert printed == [cards[1], for_all]
    assert rest == [cards[0], cards[2]]

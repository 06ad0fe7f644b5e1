"""No number or sentence on a card, a brief or a verdict says more than the mathematics in docs/guarantees.md."""

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from scipy.special import ndtr, ndtri

from discreet.privacy.events import GaussianNoise, PoissonSampled, Repeated
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.release import Person, Relation, Release, Unit, View
from discreet.report.attack_picture import attack_pictures
from discreet.report.brief import write_brief
from discreet.report.verdict import judge, standing_guarantee
from tests.report.test_brief import card, with_cards

NOISES = (0.3, 0.7, 1.0, 2.5, 10.0)
DELTA = 1e-5


def gaussian_card(noise: float, relation: Relation, count: int = 1) -> Guarantee:
    event = Repeated(count=count, event=GaussianNoise(noise_multiplier=noise))
    return Guarantee.certify(Release(unit="client", relation=relation, view="server", event=event), DELTA)


def separation(noise: float, relation: Relation, count: int = 1) -> float:
    """Return μ: a replaced unit moves the sum twice as far as one that is removed or blanked."""
    return (2 if relation == "replace" else 1) * math.sqrt(count) / noise


def printed_number(text: str, pattern: str) -> float:
    (found,) = re.findall(pattern, text)
    return float(found)


def count_squares(field: str, name: str) -> int:
    return sum(path.count("M") for path in re.findall(f'class="{name}" d="([^"]*)"', field))


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("relation", get_args(Relation))
@pytest.mark.parametrize("count", [1, 7])
def test_at_the_printed_epsilon_the_gaussian_has_at_most_delta(noise: float, relation: Relation, count: int):
    """Balle & Wang 2018, Theorem 8: δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)."""
    mu = separation(noise, relation, count)
    epsilon = printed_number(gaussian_card(noise, relation, count).as_text(), r"Certified +ε = ([\d.e]+) at")
    delta = ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
    assert delta <= DELTA


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("relation", get_args(Relation))
def test_no_attack_on_gaussian_noise_beats_the_sentence_or_the_picture(noise: float, relation: Relation):
    """The best test of N(μ, 1) against N(0, 1) recognises Φ(Φ⁻¹(α) + μ) at α false alarms (Neyman & Pearson)."""
    made = gaussian_card(noise, relation)
    best = 1000 * ndtr(ndtri(0.001) + separation(noise, relation))
    if "no attack is excluded" not in made.sentence():
        assert printed_number(made.sentence(), r"recognises at most ([\d.]+) in") >= best
    fields = str(attack_pictures(made.attacks)).split("<figure>")[1:]
    assert len(fields) == 3
    for attack, field in zip(made.attacks, fields, strict=True):
        best = 1000 * ndtr(ndtri(attack.false_positive_rate) + separation(noise, relation))
        squares = {name: count_squares(field, name) for name in ("guessed", "attacked", "rest")}
        assert sum(squares.values()) == 1000
        assert squares["guessed"] + squares["attacked"] >= min(best, 1000)


@pytest.mark.parametrize("rate", [0.05, 0.25, 1.0])
def test_no_threshold_on_a_sampled_sum_beats_the_sentence(rate: float):
    """The unit is in the sum with probability q, so a threshold recognises (1−q)·α + q·Φ(Φ⁻¹(α) + μ)."""
    sampled = PoissonSampled(sampling_rate=rate, event=GaussianNoise(noise_multiplier=0.5))
    made = Guarantee.certify(Release(unit="example", relation="zero_out", view="server", event=sampled), DELTA)
    found = 1000 * ((1 - rate) * 0.001 + rate * ndtr(ndtri(0.001) + 2.0))
    assert printed_number(made.sentence(), r"recognises at most ([\d.]+) in") >= found


WHO_IS_LEFT_OUT = {  # what protects against one view protects against no other that sees more
    "server": "Observers inside a client",
    "client": "Clients that pool what they know; the server.",
    "public": "The server, which sees more",
}


@pytest.mark.parametrize("unit", ["example", "client", Person(column="patient", at_most=3)])
@pytest.mark.parametrize("view", get_args(View))
def test_brief_and_verdict_name_no_unit_and_no_onlooker_but_those_of_the_card(run: Path, unit: Unit, view: View):
    made = with_cards(run, card(unit, view))
    brief, verdict = write_brief(made), judge(made)
    others = {"server": "against the server", "client": "against another client", "public": "against the public"}
    own = others.pop(view)
    said = " ".join([verdict.sentence, *verdict.more])
    assert own in said
    assert not any(other in said for other in others.values())
    assert brief.not_covered[0].startswith(WHO_IS_LEFT_OUT[view])
    name = "person" if isinstance(unit, Person) else unit
    assert f"Any one {name} is protected" in said
    if name != "person":
        assert "person is protected" not in said.replace("who is behind more is protected less", "")


def test_a_guarantee_for_examples_hides_content_and_not_presence(run: Path):
    """Sizes are public, so only zero-out or replace can be promised for an example."""
    release = Release(unit="example", relation="zero_out", view="server", event=GaussianNoise(noise_multiplier=4.0))
    made = Guarantee.certify(release, 1e-4, in_run=True)
    brief = write_brief(with_cards(run, made))
    assert "how many examples a client holds is public" in " ".join(brief.protected)
    assert "Whether a client holds one example more or less." in brief.not_covered
    assert "blank" in made.sentence()


def test_nothing_stands_if_a_seed_a_round_or_an_infinite_epsilon_voids_it(run: Path):
    made = card()
    assert standing_guarantee(with_cards(run, made)) is made
    assert standing_guarantee(with_cards(run, replace(made, epsilon=math.inf))) is None
    assert standing_guarantee(with_cards(run, made, identity={"seeded": True})) is None
    assert standing_guarantee(with_cards(run, made, outcome={"rounds": 1})) is None
    for void in ({"identity": {"seeded": True}}, {"outcome": {"rounds": 1}}):
        brief = write_brief(with_cards(run, made, **void))
        assert brief.verdict.mood == "bad"
        said = " ".join([*brief.strength, *brief.protected, *brief.others])
        assert not re.search(r"at most [\d.]+ in 1,000|ε\W+=", said)

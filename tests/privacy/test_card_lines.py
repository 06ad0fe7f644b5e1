"""The lines of a card: who vouches for each, and in which groups they are printed."""

import pickle
from typing import get_args

import pytest

from discreet.errors import InvalidInput
from discreet.part import from_plain, to_plain
from discreet.privacy.card_lines import Group, Line, Source, as_line, distinct_lines, group_lines, release_assumptions
from discreet.privacy.events import GaussianNoise, PoissonSampled
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.release import Person, Release

STEP = PoissonSampled(sampling_rate=0.25, event=GaussianNoise(noise_multiplier=4.0))
ROW = Release(unit="example", relation="zero_out", view="server", event=STEP)


def test_a_line_is_a_sentence_that_keeps_its_source():
    line = Line("The ranges are public.", "owner")
    assert (line, line.source, line.group) == ("The ranges are public.", "owner", "declared")
    copied = pickle.loads(pickle.dumps(line))
    assert (copied, copied.source) == (line, "owner")
    assert as_line(line, "program").source == "owner"
    assert as_line("Plain.", "program").source == "program"


def test_every_source_has_words_and_one_of_three_groups():
    assert {Line("It is so.", source).group for source in get_args(Source)} == set(get_args(Group))
    for source in get_args(Source):
        line = Line("It is so.", source)
        assert (line.describe() == "It is so.") == (line.group != "declared")


def test_a_sentence_is_kept_once_with_its_first_source():
    (line,) = distinct_lines([Line("It is so.", "owner"), Line("It is so.", "program")])
    assert line.source == "owner"


def test_what_somebody_must_check_comes_first_and_names_them():
    sentences, sources = ["a", "b", "c"], ["method", "program", "server"]
    titles = [(title, lines) for title, lines in group_lines("assumes", sentences, sources)]  # type: ignore[arg-type]
    assert [lines for _, lines in titles] == [["Who runs the server: c"], ["b"], ["a"]]


def test_a_card_of_an_earlier_version_has_one_group():
    plain = to_plain(Guarantee.certify(ROW, 1e-5))
    old = from_plain(Guarantee, {name: value for name, value in plain.items() if not name.endswith("_sources")})
    assert group_lines("assumes", old.assumptions, old.assumption_sources) == [("Assumes", list(old.assumptions))]
    assert "\nAssumes\n" in old.as_text()
    assert "\nNot covered\n" in old.as_text()


def test_a_card_with_too_few_sources_is_refused():
    plain = to_plain(Guarantee.certify(ROW, 1e-5))
    with pytest.raises(InvalidInput, match="must name a source for each exclusion"):
        from_plain(Guarantee, plain | {"exclusion_sources": ["method"]})


@pytest.mark.parametrize("unit", ["example", "client", Person(column="patient", at_most=3)])
def test_who_only_states_a_release_vouches_for_all_but_what_the_method_needs(unit: object):
    release = Release(unit=unit, relation="zero_out", view="public", event=STEP)  # type: ignore[arg-type]
    assert {line.source for line in release_assumptions(release)} <= {"project", "owner", "method"}
    assert {line.source for line in release_assumptions(release, "program")} <= {
        "program",
        "server",
        "clients",
        "method",
    }


def test_the_text_has_every_line_in_its_group():
    text = Guarantee.certify(ROW, 1e-5).as_text()
    declared, method = text.index("Assumes, and somebody must check"), text.index("Assumes, inherent in")
    assert declared < text.index("Leader of the project: One example moves each sum") < method
    assert method < text.index("Sums and noise are computed in floating point")

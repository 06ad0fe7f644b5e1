"""The poster's three graphs: the numbers of its formulas, and the page that shows them."""

from pathlib import Path

import pytest

from discreet.planning.theory import kim_exact_noise
from experiments.kim import page
from experiments.kim.curves import CURVES, EXAMPLES, MINIBATCH, POSTER, PROPOSED, bits
from tests.experiments.drawings import assert_same_drawing


def test_the_bounds_have_their_known_values_at_an_epsilon_of_1():
    """By hand from the formulas, with 4q²T/(1−q) = 0.28028 and ln(1/δ) = 9.21034."""
    found = [curve.noise(1.0) for curve in CURVES if not curve.exact]
    assert found == pytest.approx([3.2495, 5.4432, 20.652, 254.18], rel=1e-4)


def test_the_exact_curves_are_those_of_the_accountant():
    assert EXAMPLES.noise(1.0) == pytest.approx(kim_exact_noise.required_variance("per_example", POSTER))
    assert MINIBATCH.noise(1.0) == pytest.approx(kim_exact_noise.required_variance("minibatch", POSTER))


def test_noise_below_1_is_not_handed_out():
    assert PROPOSED.noise(3.0) < 1 == PROPOSED.applied_variance(3.0)


def test_the_printed_rate_is_below_that_of_the_noise_alone():
    found = bits(1.0)
    assert found.printed == pytest.approx(-16_996, abs=1)
    assert found.printed < found.noise_alone < found.corrected


def test_the_page_is_what_the_curves_say(tmp_path: Path):
    page.write(tmp_path)
    assert (tmp_path / "kim.md").read_bytes() == (page.DOCS / "kim.md").read_bytes()
    assert_same_drawing(tmp_path / "kim.svg", page.DOCS / "kim.svg")

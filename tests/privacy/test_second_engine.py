import subprocess
import sys
import time

import pytest

from discreet.errors import Unsupported
from discreet.privacy import dp_accounting_events, gaussian, pld, second_engine
from discreet.privacy.events import (
    NOTHING,
    Composed,
    DiscreteGaussianNoise,
    DistributedDiscreteGaussianNoise,
    GaussianNoise,
    LaplaceNoise,
    PoissonSampled,
    Repeated,
    SampledWithoutReplacement,
    SkellamNoise,
)
from tests.privacy import recipes

MILLION = 10**6
DISCRETE = DiscreteGaussianNoise(variance=9.0, l2_sensitivity=1.0)


@pytest.mark.parametrize(("times", "epsilon"), [(1, 1.6845), (10, 2.8545), (50, 5.1483), (1000, 25.2046)])
def test_golden_values_of_the_sampled_gaussian(times, epsilon):
    found = second_engine.epsilon(recipes.gaussian(1.0, rate=0.1, times=times), 1e-5)
    assert found.epsilon == pytest.approx(epsilon, abs=1e-4)
    assert found.same_method
    assert found.engine.startswith("dp-accounting 0.6")
    assert found.engine.endswith("PLD")


def test_unsampled_gaussians_are_the_analytic_one():
    found = second_engine.epsilon(recipes.gaussian(2.0, times=9), 1e-6)
    assert found.epsilon == pytest.approx(gaussian.epsilon(1.5, 1e-6), abs=found.tolerance)


def test_replacing_doubles_the_sensitivity_where_nothing_is_sampled():
    for make in (recipes.gaussian, recipes.laplace):
        doubled = second_engine.epsilon(make(2.0, times=3), 1e-5)
        assert second_engine.epsilon(make(4.0, times=3), 1e-5, "replace").epsilon == pytest.approx(
            doubled.epsilon, rel=1e-6
        )


def test_replacing_under_sampling_is_not_doubling():
    event = recipes.gaussian(1.0, rate=0.1, times=10)
    assert second_engine.epsilon(event, 1e-5, "replace").epsilon == pytest.approx(3.43, abs=0.005)
    assert second_engine.epsilon(recipes.gaussian(0.5, rate=0.1, times=10), 1e-5).epsilon == pytest.approx(
        12.26, abs=0.005
    )


def test_sampled_and_unsampled_gaussians_together_under_replace():
    event = Composed(events=(recipes.gaussian(1.0, rate=0.1, times=100), recipes.gaussian(6.0, times=2)))
    found = second_engine.epsilon(event, 1e-5, "replace")
    assert found.epsilon == pytest.approx(pld.epsilon(event, 1e-5, "replace"), abs=found.tolerance + 2e-4)


@pytest.mark.parametrize("relation", ["add_or_remove", "replace"])
@pytest.mark.parametrize(
    "event",
    [
        recipes.laplace(10.0, times=100),
        recipes.gaussian(3.0, rate=0.02, times=500),
        recipes.gaussian(500.0, rate=0.01, times=MILLION),
        recipes.gaussian(1.0, rate=1e-6, times=MILLION),
        recipes.gaussian(0.05, rate=0.1),
    ],
)
def test_the_stated_tolerance_holds_against_our_pld(event, relation):
    found = second_engine.epsilon(event, 1e-5, relation)
    ours = pld.epsilon(event, 1e-5, relation)
    assert found.same_method
    assert found.epsilon is not None
    assert ours - 2e-4 <= found.epsilon <= ours + found.tolerance + 2e-4


def test_sampling_without_replacement_has_only_rdp_there_with_the_whole_move_as_sensitivity():
    found = second_engine.epsilon(recipes.fixed_size(0.95, cohort=50, population=500, times=200), 2e-3, "replace")
    assert found.epsilon == pytest.approx(202.16, abs=0.01)  # z = 0.475 in its convention
    assert found.engine.endswith("RDP")
    assert not found.same_method
    assert "looser" in found.reason


def test_the_discrete_gaussian_is_concentrated_dp_there():
    event = Repeated(count=10, event=DiscreteGaussianNoise(variance=100.0, l2_sensitivity=5.0))
    found = second_engine.epsilon(event, 1e-5)
    assert found.epsilon == pytest.approx(8.0794, abs=2e-3)
    assert not found.same_method


@pytest.mark.parametrize(
    ("event", "delta", "relation", "why"),
    [
        (SkellamNoise(variance=9.0, l2_sensitivity=1.0, dimension=3), 1e-5, "add_or_remove", "Skellam"),
        (recipes.fixed_size(1.0, cohort=5, population=50), 1e-5, "add_or_remove", "replace only"),
        (recipes.laplace(1.0, rate=0.1), 1e-5, "replace", "Gaussian noise only"),
        (
            DistributedDiscreteGaussianNoise(variance=4.0, shares=3, l2_sensitivity=1.0, dimension=2),
            1e-5,
            "add_or_remove",
            "sums of discrete Gaussians",
        ),
        (
            SampledWithoutReplacement(cohort=5, population=50, event=LaplaceNoise(noise_multiplier=1.0)),
            1e-5,
            "replace",
            "without replacement for Gaussian noise only",
        ),
        (
            Composed(events=(recipes.fixed_size(1.0, cohort=5, population=50), recipes.gaussian(1.0, rate=0.1))),
            1e-5,
            "replace",
            "can't mix Poisson sampling",
        ),
        (
            Composed(events=(DISCRETE, recipes.laplace(1.0, rate=0.1))),
            1e-5,
            "add_or_remove",
            "RDP has no sampled Laplace noise",
        ),
        (
            PoissonSampled(sampling_rate=0.1, event=DiscreteGaussianNoise(variance=9.0, l2_sensitivity=1.0)),
            1e-5,
            "add_or_remove",
            "discrete",
        ),
        (recipes.gaussian(0.2, times=MILLION), 1e-5, "add_or_remove", "grid"),
        (recipes.gaussian(500.0, rate=0.5, times=MILLION), 1e-12, "add_or_remove", "too coarse"),
        (recipes.gaussian(1.0), 1e-14, "add_or_remove", "too coarse"),
    ],
)
def test_what_it_cannot_answer_it_declines_in_words(event, delta, relation, why):
    found = second_engine.epsilon(event, delta, relation)
    assert found.epsilon is None
    assert why in found.reason


@pytest.mark.parametrize("z", [0.2, 500.0])
@pytest.mark.parametrize("rate", [1e-6, 0.1, 1.0])
def test_a_million_steps_are_answered_or_declined_within_seconds(z, rate):
    started = time.perf_counter()
    found = second_engine.epsilon(recipes.gaussian(z, rate=rate, times=MILLION), 1e-5)
    assert time.perf_counter() - started < 30  # a few seconds here; a busy machine may need more
    assert (found.epsilon is None) == bool(found.reason) or not found.same_method


@pytest.mark.parametrize("times", [10**7, 10**8, 10**12])
def test_more_repetitions_of_a_small_grid_than_it_answers_in_seconds_are_declined_in_words(times):
    """The noise that an ε takes grows as √times: a step's losses are ever smaller, and so is their grid."""
    found = second_engine.epsilon(recipes.gaussian(times**0.5, rate=0.5, times=times), 1e-4)
    assert (found.epsilon, found.reason) == (None, f"dp-accounting would take minutes for {times:,} repetitions")


def test_as_many_repetitions_of_a_large_grid_are_counted_all_the_same():
    found = second_engine.epsilon(recipes.gaussian(1.0, rate=1e-4, times=2 * 10**6), 1e-5)
    assert found.same_method
    unsampled = second_engine.epsilon(Repeated(count=10**8, event=GaussianNoise(noise_multiplier=1e4)), 1e-5)
    assert unsampled.epsilon == pytest.approx(gaussian.epsilon(1.0, 1e-5), abs=unsampled.tolerance)


def test_nothing_costs_nothing():
    assert second_engine.epsilon(NOTHING, 1e-5).epsilon == 0


def test_events_in_its_own_words():
    import dp_accounting

    event = Composed(events=(recipes.gaussian(1.0, rate=0.1, times=3), LaplaceNoise(noise_multiplier=2.0)))
    assert dp_accounting_events.to_dp_accounting(event) == dp_accounting.ComposedDpEvent(
        [
            dp_accounting.SelfComposedDpEvent(dp_accounting.LaplaceDpEvent(2.0), 1),
            dp_accounting.SelfComposedDpEvent(
                dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(1.0)), 3
            ),
        ]
    )
    with pytest.raises(Unsupported, match="Skellam"):
        dp_accounting_events.to_dp_accounting(SkellamNoise(variance=9.0, l2_sensitivity=1.0, dimension=3))


def test_importing_the_file_does_not_import_dp_accounting():
    code = "import sys, discreet.privacy.second_engine; sys.exit('dp_accounting' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_same_question_is_not_computed_twice():
    event = GaussianNoise(noise_multiplier=1.7)
    assert second_engine.epsilon(event, 1e-5) is second_engine.epsilon(event, 1e-5)


@pytest.mark.parametrize("relation", ["add_or_remove", "replace"])
def test_noise_too_small_for_its_doubles_is_declined(relation):
    noise = GaussianNoise(noise_multiplier=1e-6)
    opinion = second_engine.epsilon(PoissonSampled(sampling_rate=0.1, event=noise), 1e-5, relation)
    assert opinion.epsilon is None
    assert "nothing finite" in opinion.reason

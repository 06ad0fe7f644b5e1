"""The page shows what our accountants compute for the algorithm that the sliders describe."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from discreet.algorithms.noise_to_signal import noise_multiplier
from discreet.algorithms.population import Population
from discreet.errors import InvalidInput
from discreet.experiment.promise import calibrate, run_spending
from discreet.planning.planner.slider_question import LARGEST_DELTA, MECHANISMS, MOST, RANGES, Question, slider_stops
from discreet.planning.planner.slider_terms import open_terms
from discreet.privacy import accountant, calibration
from discreet.privacy.events import GaussianNoise, PoissonSampled, Repeated
from tests.planning.planner.conftest import QUESTION, answer, built_in_start

RECIPES = [name for name in MECHANISMS if name != "experiment"]


def build_question(mechanism: str, **numbers: object) -> Question:
    view = "public" if mechanism == "gaussian" else "server"
    return replace(QUESTION, mechanism=mechanism, **{"view": view, **numbers})  # type: ignore[arg-type]


@pytest.mark.parametrize("mechanism", RECIPES)
def test_the_noise_is_the_least_that_keeps_the_promise(mechanism: str):
    question = build_question(mechanism)
    found = answer(question)
    terms = open_terms(built_in_start(), question)
    kept = calibrate.calibrate_noise(question.recipe(), terms.privacy, 20, terms.population, 1000)
    assert found["reason"] == ""
    assert found["noise_multiplier"] == noise_multiplier(kept)
    assert 1.999 < found["epsilon"] <= 2
    assert found["epsilon"] == run_spending.spent_epsilon(kept, terms.privacy, 20, terms.population)


@pytest.mark.parametrize("mechanism", RECIPES)
def test_every_curve_goes_through_where_the_sliders_stand(mechanism: str):
    found = answer(build_question(mechanism))
    curves = found["curves"]
    noise, now = found["noise_multiplier"], {"noise": 20, "noise_to_signal": 50, "bytes": 20}
    at = {name: curves[name]["x"].index(x) for name, x in now.items()}
    near = {name: pytest.approx(value, rel=1e-4) for name, value in found.items() if isinstance(value, float)}
    assert curves["noise"]["y"][at["noise"]] == near["noise_multiplier"]
    assert curves["noise_to_signal"]["y"][at["noise_to_signal"]] == near["noise_to_signal"]
    assert curves["bytes"]["all_total"][at["bytes"]] == found["bytes"]["all_total"]
    middle = len(curves["epsilon"]["x"]) // 2
    assert curves["epsilon"]["x"][middle] == pytest.approx(noise)
    assert curves["epsilon"]["y"][middle] == near["epsilon"]


@pytest.mark.parametrize("mechanism", RECIPES)
def test_more_noise_means_less_epsilon_and_more_rounds_more_noise(mechanism: str):
    curves = answer(build_question(mechanism))["curves"]
    assert falls([each for each in curves["epsilon"]["y"] if each is not None])
    assert falls(curves["noise"]["y"][::-1])
    assert falls(curves["noise_to_signal"]["y"])
    assert falls(curves["bytes"]["client_expected"][::-1])


def falls(values: list[float]) -> bool:
    """Up to what calibration leaves open."""
    return all(later <= earlier * (1 + 1e-4) for earlier, later in pairwise(values)) and values[-1] < values[0]


def test_dp_sgd_by_hand():
    """Rounds × local steps sampled Gaussian steps, and nothing else."""
    question = build_question("dp_sgd")
    found = answer(question)
    step = PoissonSampled(sampling_rate=0.2, event=GaussianNoise(noise_multiplier=found["noise_multiplier"]))
    assert found["epsilon"] == accountant.epsilon(Repeated(count=60, event=step), 1e-5)
    assert answer(replace(question, view="public"))["noise_multiplier"] == found["noise_multiplier"]


def test_bytes_by_hand():
    sent = answer(build_question("gaussian"))["bytes"]
    assert (sent["down"], sent["up"]) == (4000, 4000)
    assert sent["client_total"] == 20 * 8000  # a client that is drawn every time
    assert sent["client_expected"] == 4 * 8000
    assert sent["all_total"] == 20 * 10 * 8000  # a fifth of fifty


def test_a_server_that_adds_the_noise_itself_is_not_protected_from():
    found = answer(build_question("gaussian", view="server"))
    assert "so it is trusted" in found["reason"]
    assert set(found["curves"]) == {"bytes"}


def test_a_secret_draw_is_worth_more_to_the_public_than_taking_turns():
    rare, often = (answer(build_question("gaussian", sampling_rate=rate), patience=0.0) for rate in (0.1, 1.0))
    assert rare["noise_multiplier"] < often["noise_multiplier"] / 3
    assert sum("nobody sees which clients join" in each for each in rare["warnings"]) == 1
    assert not any("nobody sees which clients join" in each for each in often["warnings"])


def test_clients_who_take_turns_pay_for_their_own_rounds():
    turns, always = (
        answer(build_question("local_laplace", sampling_rate=rate, rounds=rounds), patience=0.0)
        for rate, rounds in ((0.2, 20), (1.0, 4))
    )
    assert turns["noise_multiplier"] == always["noise_multiplier"]


def test_warnings_are_the_plans_own():
    said = answer(build_question("local_gaussian", epsilon=15.0, delta=0.02), patience=0.0)["warnings"]
    assert ["delta = 0.02" in said[0], "epsilon = 15" in said[1]] == [True, True]


@pytest.mark.parametrize("mechanism", RECIPES)
@pytest.mark.parametrize(
    "extreme",
    [
        {"epsilon": 1e-3, "delta": 1e-10},
        {"epsilon": 100.0},
        {"clients": 1, "sampling_rate": 1.0},
        {"rounds": 1, "local_steps": 1, "sampling_rate": 0.001},
        {"dimension": 1, "examples": 1},
    ],
    ids=str,
)
def test_the_ends_of_the_sliders_have_an_answer_that_json_can_hold(mechanism: str, extreme: dict[str, object]):
    found = json.loads(json.dumps(answer(build_question(mechanism, **extreme), patience=1.0), allow_nan=False))
    assert found["reason"] or found["noise_multiplier"] > 0


@pytest.mark.parametrize("mechanism", ["dp_sgd", "gaussian"])
@pytest.mark.parametrize(("delta", "rounds"), [(0.01, 5), (LARGEST_DELTA, 1)])
def test_where_next_to_no_noise_is_enough_it_is_not_looked_for_below_the_least(
    mechanism: str, delta: float, rounds: int
):
    """ε jumps there: a drawn example is visible, and few are drawn."""
    found = answer(build_question(mechanism, delta=delta, rounds=rounds, sampling_rate=0.001))
    assert found["epsilon"] <= 2
    assert found["noise_multiplier"] >= calibration.LEAST
    assert min(found["curves"]["epsilon"]["x"]) >= calibration.LEAST
    assert min(found["curves"]["noise"]["y"]) >= calibration.LEAST


def test_a_curve_that_takes_too_long_is_shorter_and_goes_through_today():
    question = build_question("dp_sgd")
    whole, short = answer(question), answer(question, patience=0.0)
    assert {name: len(curve["x"]) for name, curve in short["curves"].items()} == {
        "epsilon": 1,
        "noise": 1,
        "noise_to_signal": 1,
        "bytes": 7,
    }
    assert short["curves"]["noise"]["x"] == [20]
    assert short["curves"]["noise"]["y"] == [pytest.approx(whole["noise_multiplier"], rel=1e-4)]


def test_other_clients_have_sizes_in_the_proportions_of_the_experiments():
    start = built_in_start()
    uneven = replace(start, terms=replace(start.terms, population=Population(examples=(10, 20, 30, 400))))
    question = replace(QUESTION, mechanism="experiment", clients=8, examples=115)
    assert open_terms(uneven, question).population.examples == (10, 10, 20, 20, 30, 30, 400, 400)
    question = replace(question, clients=2, examples=230)
    assert open_terms(uneven, question).population.examples == (22, 438)  # 20 and 400, with a mean of 230
    assert open_terms(start, replace(QUESTION, clients=10, examples=144)).population == start.terms.population


def test_a_delta_that_says_nothing_is_refused():
    with pytest.raises(InvalidInput, match=r"delta must be at most 0\.1 here, and got 0\.999"):
        replace(QUESTION, delta=0.999)


@pytest.mark.parametrize("name", MOST)
def test_what_would_take_too_long_is_refused(name: str):
    with pytest.raises(InvalidInput, match=f"{name} must be at most"):
        replace(QUESTION, **{name: MOST[name] + 1})


@pytest.mark.parametrize("name", RANGES)
def test_a_slider_goes_from_end_to_end_and_moves_the_number_at_every_stop(name: str):
    found = slider_stops(name)
    assert (found[0], found[-1]) == RANGES[name]
    assert found == sorted(set(found))
    assert all(later / earlier <= 2 for earlier, later in pairwise(found))
    assert all(float(each).is_integer() for each in found) == (name in MOST)

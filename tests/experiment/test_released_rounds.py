"""What rounds really released: never less than happened, and equal to the plan if all went as planned."""

from dataclasses import replace
from pathlib import Path

import pytest

from discreet import api
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.algorithms.recipes.ddp_fedavg import ddp_fedavg
from discreet.algorithms.recipes.dp_fedavg import dp_fedavg
from discreet.algorithms.sampling import RoundRobin
from discreet.experiment.configuration import experiment_file
from discreet.experiment.loop.training_loop import start
from discreet.experiment.promise import calibrate, run_spending
from discreet.experiment.promise.promise import Privacy
from discreet.experiment.promise.released_rounds import ReleasedRound, compose_rounds, parse_rounds
from discreet.privacy.events import steps

TEN = Population(examples=(50,) * 10)
PROMISE = Privacy(unit="example", against="server", epsilon=2.0, delta=1e-5)


def plan_algorithm(dropouts: int = 3, local_steps: int = 1) -> Algorithm:
    shared = ddp_fedavg(learning_rate=0.5, clip_norm=1.0, sampling_rate=0.5, local_steps=local_steps, dropouts=dropouts)
    return calibrate.calibrate_noise(shared, PROMISE, 6, TEN, 100)


def shares(algorithm: Algorithm, made: list[ReleasedRound]) -> dict[float, int]:
    """Count, for the server's view, the ratios of the actual to the planned variance."""
    server, other = compose_rounds(algorithm, 6, TEN, made)
    assert (server.view, other.view) == ("server", "client")
    (least,) = (step.event.variance for step in steps(compose_rounds(algorithm, 6, TEN)[0].event))  # type: ignore[union-attr]
    return {
        round(step.event.variance / least * 7, 6): count  # type: ignore[union-attr]
        for step, count in steps(server.event).items()
    }


def test_rounds_count_with_the_shares_that_came():
    made = [ReleasedRound(0, 10), ReleasedRound(2, 8), ReleasedRound(3, 8), ReleasedRound(4, None)]
    assert shares(plan_algorithm(), made) == {10: 1, 8: 2, 7: 1}
    assert shares(plan_algorithm(local_steps=2), made) == {10: 2, 8: 4, 7: 2}


def test_what_went_as_planned_is_the_plan_itself():
    algorithm = plan_algorithm()
    for made in (
        None,
        [ReleasedRound(round, 7) for round in range(6)],
        [ReleasedRound(round, None) for round in range(6)],
    ):
        assert compose_rounds(algorithm, 6, TEN, made) == algorithm.planned_releases(6, TEN)
    whole = dp_fedavg(learning_rate=0.5, batch_size=32, clip_norm=1.0, noise_multiplier=1.0).for_population(TEN)
    assert compose_rounds(whole, 3, TEN, [ReleasedRound(round, 4) for round in range(3)]) == whole.planned_releases(
        3, TEN
    )  # the server's own noise


def test_less_is_spent_the_more_come_and_nothing_where_nothing_was_made():
    algorithm = plan_algorithm()
    spent = [
        run_spending.spent_epsilon(algorithm, PROMISE, 6, TEN, released=made)
        for made in (
            None,
            [ReleasedRound(each, 7) for each in range(6)],
            [ReleasedRound(each, 9) for each in range(6)],
            [ReleasedRound(0, 7)],
            [],
        )
    ]
    assert spent[0] == spent[1] == pytest.approx(2.0, rel=1e-3)
    assert spent[1] > spent[2] > spent[3] > spent[4] == 0  # type: ignore[operator]


def test_who_joins_some_rounds_is_counted_for_the_dearest_of_them():
    """Five of ten in each round: each joins three of six rounds, possibly the three with the fewest shares."""
    turns = replace(plan_algorithm(dropouts=0), sampling=RoundRobin(cohort=5), mechanism=plan_algorithm().mechanism)
    mechanism = replace(turns.mechanism, shares=2)  # type: ignore[call-arg]
    turns = replace(turns, mechanism=mechanism)
    made = [ReleasedRound(0, 5), ReleasedRound(1, 4), ReleasedRound(2, 5), ReleasedRound(4, 4), ReleasedRound(5, 2)]
    (server, _) = compose_rounds(turns, 6, TEN, made)
    found = sorted(round(step.event.variance) for step in steps(server.event))  # type: ignore[union-attr]
    assert sum(steps(server.event).values()) == 3
    assert found[1] == pytest.approx(2 * found[0], rel=1e-6)
    assert len(found) == 2


def test_a_line_that_is_missing_counts_as_it_was_planned():
    lines = [
        {"round": 1, "clients": 9},
        {"round": 2, "clients": 0, "lost": "", "revealed": False},
        {"round": 4, "clients": 0, "lost": "", "revealed": True},
        {"round": 5, "clients": 8},
    ]
    assert parse_rounds(lines, 4) == [ReleasedRound(0, 9), ReleasedRound(2, None), ReleasedRound(3, None)]


def test_the_cards_of_noise_in_shares_have_one_against_whoever_brings_a_share(small: Path, tmp_path: Path) -> None:
    text = small.read_text().partition("[privacy]")[0]
    promise = '[privacy]\nunit = "example"\nagainst = "public"\nepsilon = 4.0\ndelta = 1e-4\n'
    recipe = '[algorithm]\nrecipe = "ddp_fedavg"\nnoise = "gaussian"\nsampling_rate = 0.5\nclip_norm = 1.0\n'
    small.write_text(f"{text}{promise}{recipe}learning_rate = 0.5\n")
    job = api.prepare_job(experiment_file.load_experiment(small, ()))
    ended = start(job, tmp_path / "run", None, None, lambda line: None)
    found = {each.view: each.epsilon for each in ended.guarantees}
    assert found["public"] <= 4 < found["client"] < found["server"]  # all noise, all except one share, one share

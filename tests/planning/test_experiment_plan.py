"""What a plan shows in addition to the promise: costs, noise to signal, local work, and warnings."""

from pathlib import Path
from typing import Any

import pytest

from discreet import api
from discreet.errors import UnsoundCombination
from discreet.experiment.configuration import experiment_file
from discreet.planning.experiment_plan import plan_experiment
from discreet.planning.local_work import recommend_local_work
from tests.small_experiment import PrepareJob

BROADCAST = 'algorithm={recipe="ddp_fedavg", learning_rate=1.0, clip_norm=0.5, sampling_rate=0.3, local_steps=2}'
CENTRAL = 'algorithm={recipe="dp_fedavg", learning_rate=1.0, clip_norm=0.5, batch_size=16, sampling_rate=0.5}'
OF_CLIENTS = ("privacy.unit=client", "privacy.against=public")


def ldp_override(noise: str, cohort: int = 1) -> str:
    iterations = f'learning_rate=0.1, gradient_bound=1.0, local_iterations=3, cohort={cohort}, noise="{noise}"'
    return f'algorithm={{recipe="ldp_fedavg", {iterations}}}'


def plan(small: Path, *overrides: str) -> dict[str, Any]:
    source = experiment_file.load_experiment(small, overrides)
    return plan_experiment(source, api.prepare_job(source).terms)


def warnings_but_forecasts(small: Path, *overrides: str) -> list[str]:
    """Return the warnings of a plan, but not the one that so few whole clients will learn nothing."""
    forecast = "will probably be no better than always predicting the same label"
    found: list[str] = plan(small, *overrides)["warnings"]
    others = [warning for warning in found if forecast not in warning]
    assert len(others) == len(found) - 1
    return others


def test_bytes_are_counted_for_a_client_and_for_all_of_them(small: Path):
    found = plan(small, CENTRAL, *OF_CLIENTS, "privacy.epsilon=20", "task={kind='digits',clients=10}")
    assert found["bytes"] == {
        "down": 2600,
        "up": 2600,
        "client_total": 4 * 5200,  # a client that is drawn every time
        "client_expected": 2 * 5200,
        "all_down": 4 * 5 * 2600,  # half of ten are expected
        "all_up": 4 * 5 * 2600,
        "all_total": 4 * 5 * 5200,
    }


def test_clients_whose_budget_ends_send_no_more(small: Path):
    noise = "algorithm.noise_multiplier=[2.0,2.0,0.9]"
    found = plan(small, noise)
    (left,) = {each["rounds"] for each in found["by_client"] if each["rounds"] < 4}
    assert found["bytes"]["all_up"] == (4 + 4 + left) * 2600
    assert found["affordable_rounds"] is None  # each has its own


def test_rounds_that_the_noise_affords_are_within_the_promise(small: Path):
    assert plan(small)["affordable_rounds"] == 4  # noise that was computed for as many
    source = experiment_file.load_experiment(small, ("algorithm.noise_multiplier=3.0",))
    job = api.prepare_job(source)
    rounds = plan_experiment(source, job.terms)["affordable_rounds"]
    spent, more = job.spent_epsilon(rounds), job.spent_epsilon(rounds + 1)
    assert rounds > 4
    assert spent is not None
    assert more is not None
    assert spent <= 2.0 < more


def test_nothing_is_said_of_noise_where_there_is_none(small: Path):
    small.write_text(small.read_text().split("[privacy]")[0])
    found = plan(small, 'algorithm={recipe="fedavg", learning_rate=0.1, batch_size=8}')
    assert (found["noise_to_signal"], found["affordable_rounds"], found["warnings"]) == (None, None, [])


@pytest.mark.parametrize(
    ("overrides", "now", "best", "unit", "why"),
    [
        ((), 1, 10, "local steps", "One pass"),
        ((BROADCAST,), 2, 1, "local steps", "broadcast model"),
        ((BROADCAST.replace("local_steps", 'gradients="local", local_steps'),), 2, 4, "local steps", "One pass"),
        (
            (BROADCAST.replace("local_steps", 'gradients="local", as_published=true, local_steps'),),
            2,
            1,
            "local steps",
            "unsound",
        ),
        ((CENTRAL.replace("sampling_rate", "epochs=3, sampling_rate"), *OF_CLIENTS), 3, None, "epochs", "the clip"),
        (
            (
                'algorithm={recipe="convex_local", learning_rate=1.0, clip_norm=0.5, feature_bound=3.0, local_steps=7}',
                "privacy.against=public",
            ),
            7,
            None,
            "local steps",
            "Steps cost nothing",
        ),
        (
            (
                'algorithm={recipe="proximal_local", learning_rate=1.0, clip_norm=0.5, feature_bound=3.0, '
                "local_steps=7, passes=2, strength=0.01}",
                "privacy.against=public",
            ),
            14,  # in two passes
            None,
            "local steps",
            "Every pass moves the update further",
        ),
    ],
)
def test_local_work_is_recommended_where_something_singles_it_out(
    prepare: PrepareJob, overrides: tuple[str, ...], now: int, best: int | None, unit: str, why: str
):
    found = recommend_local_work(prepare(*overrides).terms)
    assert (found.now, found.recommended, found.unit) == (now, best, unit)
    assert why in found.why


def test_under_laplace_noise_of_their_own_iterations_follow_the_bound_of_fu(prepare: PrepareJob):
    """Of 60 iterations, 2 of 3 clients a round: E = 1, 2, 4, 5, 10 and 20 give all clients equally many turns."""
    found = recommend_local_work(
        prepare(ldp_override("laplace", cohort=2), "privacy.unit=client", "privacy.epsilon=60.0", "rounds=20").terms
    )
    assert (found.now, found.recommended) == (3, 5)  # near ³√(C_M·T²/2κ) = 6.4, with C_M = 8pb(2ζ)²/(N²ε²), κ = 9
    assert "the smallest to try" in found.why


def test_no_iterations_are_recommended_where_clients_would_not_have_as_many_turns(prepare: PrepareJob):
    found = recommend_local_work(
        prepare(
            ldp_override("laplace", cohort=2),
            "privacy.unit=client",
            "privacy.epsilon=60.0",
            "rounds=4",
            "algorithm.local_iterations=1",
        ).terms
    )
    assert found.recommended is None
    assert "multiple of 3, and got 4" in found.why


def test_federated_sgd_is_told_no_steps_that_it_can_not_take(prepare: PrepareJob):
    sgd = 'algorithm={recipe="fl_sgd_gaussian", learning_rate=1.0, sampling_rate=0.1, clip_norm=1.0}'
    found = recommend_local_work(prepare(sgd).terms)
    assert (found.now, found.recommended) == (1, None)
    assert "one noisy gradient per round" in found.why


@pytest.mark.parametrize(("epsilon", "rounds", "cohort"), [(4.0, 4, 1), (1.0, 1000, 3), (10.0, 500, 2)])
def test_under_gaussian_noise_of_their_own_more_iterations_are_of_no_use(
    prepare: PrepareJob, epsilon: float, rounds: int, cohort: int
):
    """With 650 parameters, and where the minimum of the bound comes only from its learning rate, which falls with E."""
    asked = ("privacy.unit=client", f"privacy.epsilon={epsilon}", f"rounds={rounds}")
    found = recommend_local_work(prepare(ldp_override("gaussian", cohort), *asked).terms)
    assert found.recommended == 1
    assert "nothing in the bound of Fu et al. 2021 falls with E" in found.why
    assert "E = 1 with Gaussian noise is as good as the best E" in found.why


def test_under_laplace_noise_no_more_iterations_are_recommended_than_the_bounds_rate_is_the_same_for(
    prepare: PrepareJob,
):
    """At ε = 1 and p = 650 noise outweighs all: the bound is least where a client uploads once, and E goes up to 8."""
    asked = ("privacy.unit=client", "privacy.epsilon=1.0", "rounds=1000")
    found = recommend_local_work(prepare(ldp_override("laplace", cohort=3), *asked).terms)
    assert found.recommended == 8
    assert "among E up to 8 at 3,000 iterations." in found.why
    assert "Γ and Y_0, which are the same for each of these E, to be 0" in found.why


def test_a_bound_that_never_falls_below_where_training_can_start_is_said_to_promise_nothing(prepare: PrepareJob):
    """Nobody starts further than G/μ = 1 off. E = 1, all join: (4/μ²)·t·ω_1/(T+7)², ω_1 = 8·650·3·4/(9ε²)·T²."""
    for epsilon, empty in ((1.0, True), (1e4, False)):
        noise = 4 * 300 * (8 * 650 * 3 * 4 / (9 * epsilon**2) * 300**2) / 307**2
        assert (noise > 1) is empty
        asked = ("privacy.unit=client", f"privacy.epsilon={epsilon}", "rounds=100")
        assert (
            "It promises nothing here"
            in recommend_local_work(prepare(ldp_override("laplace", cohort=3), *asked).terms).why
        ) is empty


def test_iterations_in_a_round_end_where_a_client_uploads_once(prepare: PrepareJob):
    found = recommend_local_work(
        prepare(ldp_override("laplace"), "privacy.unit=client", "privacy.epsilon=0.5", "rounds=8").terms
    )
    assert found.recommended == 8  # 24 iterations; each of three clients makes a third
    assert "uploads as rarely as possible" in found.why


def test_a_delta_of_one_in_as_many_as_there_are_is_warned_of(small: Path):
    (said,) = plan(small, "privacy.delta=1e-3")["warnings"]
    assert said.startswith("delta = 0.001 is no less than 1/1,438, and there are 1,438 examples:")
    assert not plan(small, "privacy.delta=6.9e-4")["warnings"]
    clients = plan(small, CENTRAL.replace("0.5}", "1.0}"), *OF_CLIENTS, "privacy.delta=0.34")["warnings"]
    assert "there are 3 clients" in clients[0]


def test_where_examples_overlap_there_are_at_least_so_many(small: Path):
    task = "task={kind='digits',clients=4,partition={kind='overlapping',fraction=0.5}}"
    counted = plan(small, task, "seed=0", "privacy.delta=0.1")
    assert f"there are {counted['distinct_examples']:,} examples" in counted["warnings"][0]


def test_a_large_epsilon_is_warned_of(small: Path):
    (said,) = plan(small, "privacy.epsilon=10.5")["warnings"]
    assert said.startswith("epsilon = 10.5 is above 10")
    assert said.endswith("Look at which attacks it still excludes, if any.")
    assert not plan(small, "privacy.epsilon=9.5")["warnings"]


def test_a_draw_that_the_server_sees_is_said_to_amplify_nothing(small: Path):
    (against_public,) = warnings_but_forecasts(small, CENTRAL, *OF_CLIENTS)
    assert "nobody sees which clients join" in against_public
    client = 'algorithm={recipe="ddp_fedavg_client", learning_rate=1.0, clip_norm=0.5, batch_size=16, sampling='
    drawn = client + '{kind="fixed_size", cohort=3}}'
    ten = "task={kind='digits',clients=10}"
    (said,) = warnings_but_forecasts(small, drawn, "privacy.unit=client", ten)
    assert "amplifies nothing against the server" in said
    assert not warnings_but_forecasts(small, drawn, "privacy.unit=client")  # three of three is not a draw


def test_a_cohort_too_small_for_a_secure_sum_is_warned_of(small: Path):
    client = 'algorithm={recipe="ddp_fedavg_client", learning_rate=1.0, clip_norm=0.5, batch_size=16, sampling='
    (said,) = warnings_but_forecasts(small, client + '{kind="round_robin", cohort=2}}', "privacy.unit=client")
    assert "As few as 2 clients may be in a round, and a secure sum needs 3" in said


def test_more_shards_than_examples_are_warned_of(small: Path):
    recipe = 'algorithm={recipe="shards", learning_rate=1.0, clip_norm=0.5, batch_size=4, epochs=1, shards='
    for shards, said in ((5, 0), (100_000, 1)):
        found = plan(small, f"{recipe}{shards}}}", "privacy.against=public")["warnings"]
        assert sum("empty shards send nothing" in each for each in found) == said


def test_shares_of_noise_are_refused_where_a_draw_may_be_empty(small: Path):
    client = 'algorithm={recipe="ddp_fedavg_client", learning_rate=1.0, clip_norm=0.5, batch_size=16, sampling='
    with pytest.raises(UnsoundCombination, match="a Poisson draw may be empty"):
        plan(small, client + '{kind="poisson", rate=0.5}}', "privacy.unit=client")


def test_ten_million_rounds_are_planned_and_say_that_no_second_engine_was_asked(small: Path):
    found = plan(small, "rounds=10000000", "algorithm.sampling_rate=0.5")
    assert found["epsilon"] == pytest.approx(2.0, rel=1e-3)
    second = found["guarantees"][0]["second"]
    assert second["epsilon"] is None
    assert second["reason"] == "dp-accounting would take minutes for 10,000,000 repetitions"

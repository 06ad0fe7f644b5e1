"""The sliders start at the numbers of the experiment."""

import pytest

from discreet.algorithms.noise_to_signal import noise_to_signal
from discreet.planning.planner.slider_answer import answer_question
from discreet.planning.planner.slider_start import start_position
from tests.small_experiment import PrepareJob, prepare, small, state

__all__ = ["prepare", "small", "state"]

OF_CLIENTS = ("privacy.unit=client", "privacy.delta=1e-3")
BROADCAST = 'algorithm={recipe="ddp_fedavg", learning_rate=1.0, clip_norm=0.5, sampling_rate=0.3, local_steps=2'
TEN = "task={kind='digits',clients=10}"


def test_a_file_of_dp_sgd_is_shown_with_its_own_noise(prepare: PrepareJob):
    job = prepare()
    question, note = start_position(job.terms)
    assert (question.mechanism, question.view, question.unit, note) == ("dp_sgd", "server", "example", "")
    assert (question.epsilon, question.delta, question.rounds, question.local_steps) == (2.0, 1e-4, 4, 1)
    assert (question.clients, question.sampling_rate, question.dimension, question.examples) == (3, 0.1, 650, 1438 / 3)
    assert answer_question(question)["noise_multiplier"] == job.algorithm.trainer.noise_multiplier  # type: ignore[union-attr]


def test_examples_that_do_not_go_round_evenly_change_no_number(prepare: PrepareJob):
    job = prepare(TEN)
    question, note = start_position(job.terms)
    assert (question.examples, note) == (143.8, "")
    assert answer_question(question)["noise_to_signal"] == noise_to_signal(job.algorithm, job.population, 650)


@pytest.mark.parametrize(
    ("recipe", "more", "mechanism", "rate", "steps"),
    [
        (
            'recipe="dp_fedavg", batch_size=8, steps=4, sampling_rate=0.5',
            ("privacy.against=public",),
            "gaussian",
            0.5,
            4,
        ),
        ('recipe="ddp_fedavg_client", batch_size=8, steps=3', (), "skellam_clients", 1.0, 3),
    ],
)
def test_files_for_whole_clients(
    prepare: PrepareJob, recipe: str, more: tuple[str, ...], mechanism: str, rate: float, steps: int
):
    job = prepare(f"algorithm={{{recipe}, learning_rate=0.1, clip_norm=0.5}}", *OF_CLIENTS, TEN, *more)
    question, note = start_position(job.terms)
    assert (question.mechanism, question.sampling_rate, question.local_steps, note) == (mechanism, rate, steps, "")
    assert answer_question(question)["noise_multiplier"] == pytest.approx(job.algorithm.mechanism.noise_multiplier)  # type: ignore[union-attr]


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_files_whose_clients_add_their_own_noise(prepare: PrepareJob, noise: str):
    recipe = (
        f'recipe="ldp_fedavg", learning_rate=0.1, gradient_bound=1.0, local_iterations=5, cohort=2, noise="{noise}"'
    )
    job = prepare(f"algorithm={{{recipe}}}", *OF_CLIENTS, TEN)
    question, note = start_position(job.terms)
    assert (question.mechanism, question.sampling_rate, question.local_steps) == (f"local_{noise}", 0.2, 5)
    assert note == ""
    assert answer_question(question)["noise_multiplier"] == job.algorithm.mechanism.noise_multiplier  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("overrides", "mechanism"),
    [
        (("algorithm.noise_multiplier=[3.0,4.0,5.0]",), "dp_sgd"),
        (
            (
                'algorithm={recipe="convex_local", learning_rate=1.0, clip_norm=0.5, feature_bound=3.0, batch_size=8}',
                "privacy.against=public",
            ),
            "skellam",
        ),
        (
            (
                'algorithm={recipe="fl_sgd_gaussian", learning_rate=1.0, sampling_rate=0.1, clip_norm=0.5,'
                'clipping="minibatch"}',
            ),
            "dp_sgd",
        ),
        (
            (
                'algorithm={recipe="ddp_fedavg_client", learning_rate=1.0, clip_norm=0.5, batch_size=8,'
                'sampling={kind="fixed_size", cohort=3}}',
                *OF_CLIENTS,
                TEN,
            ),
            "skellam_clients",
        ),
        (("algorithm.noise_multiplier=20.0",), "dp_sgd"),
        (("algorithm.momentum=0.9",), "dp_sgd"),
        (("algorithm.local_steps=[1,2]",), "dp_sgd"),
        (("privacy.delta=0.3",), "dp_sgd"),
        (("task={kind='digits',clients=3,partition={kind='dirichlet',alpha=1.0}}", "seed=0"), "dp_sgd"),
        ((f"{BROADCAST}, bits=20}}",), "skellam"),
        ((f"{BROADCAST}, rotated=true}}",), "skellam"),
        ((f"{BROADCAST}, dropouts=1}}",), "skellam"),
        (
            (
                'algorithm={recipe="fed_smp_rand", learning_rate=1.0, clip_norm=0.5, batch_size=8, sampling_rate=0.5,'
                "fraction=0.1}",
                *OF_CLIENTS,
                "privacy.against=public",
            ),
            "gaussian",
        ),
    ],
    ids=[
        "clients who differ",
        "convex_local",
        "minibatches",
        "a cohort of a fixed size",
        "noise that is given",
        "momentum",
        "rounds that differ",
        "a delta beyond the page's",
        "clients of other sizes",
        "fewer bits",
        "a rotation",
        "clients who drop out",
        "a sparsifier",
    ],
)
def test_what_sliders_cannot_say_is_shown_as_the_nearest_and_said(
    prepare: PrepareJob, overrides: tuple[str, ...], mechanism: str
):
    question, note = start_position(prepare(*overrides).terms)
    assert question.mechanism == mechanism
    assert "the nearest" in note


def test_a_file_of_skellam_shares_is_shown_with_its_own_numbers(prepare: PrepareJob):
    job = prepare(f"{BROADCAST}}}")
    question, note = start_position(job.terms)
    assert (question.mechanism, question.local_steps, note) == ("skellam", 2, "")
    assert answer_question(question)["noise_to_signal"] == pytest.approx(
        noise_to_signal(job.algorithm, job.population, 650), rel=1e-5
    )

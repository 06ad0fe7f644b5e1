"""The space of a search, and the table that describes it."""

import random

import pytest

from discreet.errors import InvalidInput
from discreet.experiment.configuration.tune_table import Choices, Interval, Tune
from discreet.experiment.tuning import search_space
from discreet.part import from_plain, to_plain
from tests.experiment.tuning.searches import make_builder, write_file

SPACE = {
    "algorithm.learning_rate": Interval(low=0.1, high=10.0, log=True),
    "rounds": Interval(low=2, high=5),
    "model.kind": Choices(choices=("linear", "mlp")),
}


def test_points_are_drawn_within_their_ends_and_whole_numbers_reach_both():
    source = random.Random(0)
    drawn = [search_space.draw_point(SPACE, source) for _ in range(300)]
    assert all(0.1 <= point["algorithm.learning_rate"] <= 10 for point in drawn)
    assert {point["rounds"] for point in drawn} == {2, 3, 4, 5}
    assert {point["model.kind"] for point in drawn} == {"linear", "mlp"}
    below = sum(point["algorithm.learning_rate"] < 1 for point in drawn)
    assert 100 < below < 200  # half of a logarithmic scale; off by 50 of 300 once in 1e8


def test_a_small_space_is_its_own_list_of_candidates():
    small = {name: SPACE[name] for name in ("rounds", "model.kind")}
    points = search_space.draw_candidates(small, 8, random.Random(0))
    assert len(points) == search_space.count_points(small) == 8
    assert len(search_space.draw_candidates(SPACE, 8, random.Random(0))) == 8
    assert search_space.count_points(SPACE) is None


def test_a_point_is_written_as_settings_that_a_file_takes(tmp_path):
    point = {"algorithm.learning_rate": 0.25, "rounds": 3, "model.kind": "linear", "evaluate_training": True}
    experiment = make_builder(write_file(tmp_path)).read(point).experiment
    assert experiment.rounds == 3
    assert experiment.algorithm.trainer.learning_rate == 0.25
    assert experiment.evaluate_training is True


def test_the_table_comes_back_equal():
    tune = Tune(space=SPACE, mode="random", epsilon=3.0)
    assert from_plain(Tune, to_plain(tune)) == tune
    assert type(to_plain(tune)["space"]["rounds"]["low"]) is int


@pytest.mark.parametrize(
    ("space", "words"),
    [
        ({"task.clients": {"choices": [1, 2]}}, "all trials share"),
        ({"privacy.epsilon": {"low": 1.0, "high": 2.0}}, "all trials share"),
        ({"seed": {"low": 1, "high": 2}}, "all trials share"),
        ({"rounds": {"low": 3, "high": 2}}, "low must be below high"),
        ({"rounds": {"low": 0, "high": 2, "log": True}}, "above 0 on a logarithmic scale"),
        ({"rounds": {"choices": []}}, "choices"),
        ({"rounds": {"choices": [[1]]}}, "text, a number, true or false"),
        ({}, "space"),
    ],
)
def test_a_space_that_cannot_be_searched_is_refused(space, words):
    with pytest.raises(InvalidInput, match=words):
        from_plain(Tune, {"space": space})


def test_a_field_that_the_file_has_not_is_refused_by_name(tmp_path):
    builder = make_builder(write_file(tmp_path))
    with pytest.raises(InvalidInput, match="learning_rat"):
        builder.build({"algorithm.learning_rat": 1.0})
    with pytest.raises(InvalidInput, match="roundz"):
        builder.build({"roundz": 1})


def test_other_commands_read_a_file_with_a_search_as_if_it_had_none(tmp_path):
    builder = make_builder(write_file(tmp_path))
    assert builder.read({}).experiment.tune is not None
    assert "tune" not in builder.build({}).resolved_text


def test_the_edges_of_a_space_hold_every_choice_and_both_ends_of_every_interval():
    edges = search_space.list_edges(SPACE)
    assert all(point.keys() == SPACE.keys() for point in edges)
    assert {point["algorithm.learning_rate"] for point in edges} == {0.1, 10.0}
    assert {point["rounds"] for point in edges} == {2, 5}
    assert {point["model.kind"] for point in edges} == {"linear", "mlp"}

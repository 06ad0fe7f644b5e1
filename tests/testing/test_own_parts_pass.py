"""Aggregations, server optimisers and schedules of this package keep their contracts."""

from typing import Any, get_args

import pytest

from discreet.algorithms.aggregation import AnyAggregation, Lattice, Plain
from discreet.algorithms.server_optimizers import AnyServer, ServerAdam, ServerSgd
from discreet.algorithms.training.schedules import AnySchedule, Constant, Exponential, Harmonic, Inverse
from discreet.testing import check_aggregation, check_schedule, check_server_optimizer

AGGREGATIONS = [Plain(), Lattice(), Lattice(bits=16), Lattice(rotated=True), Lattice(bits=16, rotated=True)]
SERVERS = [ServerSgd(), ServerSgd(momentum=0.9, learning_rate=0.3), ServerAdam()]
SCHEDULES = [Constant(), Exponential(decay=0.9), Inverse(decay=0.1), Harmonic(gamma=3.0)]


@pytest.mark.parametrize(
    ("union", "parts"), [(AnyAggregation, AGGREGATIONS), (AnyServer, SERVERS), (AnySchedule, SCHEDULES)]
)
def test_every_kind_is_here(union: Any, parts: list[Any]) -> None:
    assert {type(part) for part in parts} == set(get_args(get_args(union)[0]))


@pytest.mark.parametrize("aggregation", AGGREGATIONS, ids=str)
def test_an_aggregation_keeps_the_contract(aggregation: Any) -> None:
    assert check_aggregation(aggregation)


@pytest.mark.parametrize("server", SERVERS, ids=str)
def test_a_server_optimiser_keeps_the_contract(server: Any) -> None:
    assert check_server_optimizer(server)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_a_schedule_keeps_the_contract(schedule: Any) -> None:
    assert check_schedule(schedule)

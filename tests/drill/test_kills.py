"""The plan of kills: every process, every named point, and nothing twice after a restart."""

from tests.drill.kills import AT_RANDOM, Kill, kills_left, plan_kills, take_next
from tests.drill.named_points import CREATION, POINTS

PLAN = plan_kills(1, 100)


def test_the_run_process_is_killed_at_every_named_point_and_a_node_at_every_point_of_nodes() -> None:
    of_nodes = {name for name, point in POINTS.items() if point.role == "client"}
    for victim, points in {"run": {*POINTS, *CREATION}, "client": of_nodes, "superlink": set(POINTS)}.items():
        assert {kill.point for kill in PLAN if kill.victim == victim} >= {*points, AT_RANDOM}


def test_a_plan_has_as_many_kills_as_were_asked_for_and_is_the_same_for_the_same_seed() -> None:
    assert len(PLAN) == 100
    assert plan_kills(1, 100) == PLAN != plan_kills(2, 100)


def test_what_was_killed_already_is_not_killed_again() -> None:
    done = [{"victim": kill.victim, "point": kill.point} for kill in PLAN[:40]]
    left = kills_left(PLAN, done)
    assert sorted(map(str, left)) != sorted(map(str, PLAN))
    assert len(left) == 60
    assert kills_left(left, [{"victim": kill.victim, "point": kill.point} for kill in left]) == []


def test_points_of_creation_are_kept_for_new_runs() -> None:
    created, later = Kill("run", next(iter(CREATION))), Kill("run", AT_RANDOM)
    waiting = [later, created]
    assert take_next(waiting, new_run=True) == created
    assert take_next([created], new_run=False) is None
    assert take_next(waiting, new_run=True) == later
    assert waiting == []

"""A clock divides a round into phases without overlap, and asks for no moment before it has passed."""

import pytest
import torch

from discreet.round_clock import NO_CLOCK, Moments, PhaseClock
from discreet.round_phases import Phase


class ScriptedMoments(Moments):
    """Moments one second apart, of which those after `done` have not passed yet."""

    def __init__(self) -> None:
        self.now, self.done, self.asked = 0.0, float("inf"), 0
        self.is_recording = False

    def take(self):
        if self.is_recording:
            return None
        self.now += 1
        return self.now

    def has_passed(self, moment):
        return moment <= self.done

    def seconds(self, first, second):
        self.asked += 1
        return second - first


@pytest.fixture
def moments() -> ScriptedMoments:
    return ScriptedMoments()


def test_an_inner_phase_is_not_counted_in_the_outer_one(moments: ScriptedMoments):
    clock = PhaseClock(moments)
    clock.begin_round()  # 1
    with clock.phase(Phase.SUM):  # 2
        with clock.phase(Phase.TRAINING):  # 3
            pass  # 4
        with clock.phase(Phase.TRAINING), clock.phase(Phase.DATA):  # 5, 6
            pass  # 7, 8, and 9 at the end of the outer one

    clock.end_round()  # 10
    (found,) = clock.read()
    assert found == {Phase.OTHER: 2, Phase.SUM: 3, Phase.TRAINING: 3, Phase.DATA: 1}
    assert sum(found.values()) == 9  # nothing is lost and nothing is counted twice


def test_a_round_that_did_not_end_is_forgotten(moments: ScriptedMoments):
    clock = PhaseClock(moments)
    clock.begin_round()
    with pytest.raises(ValueError, match="lost"), clock.phase(Phase.TRAINING):
        raise ValueError("lost")
    clock.begin_round()
    clock.end_round()
    assert clock.read() == [{Phase.OTHER: 1}]


def test_a_phase_outside_a_round_is_not_measured(moments: ScriptedMoments):
    clock = PhaseClock(moments)
    with clock.phase(Phase.TRAINING):
        pass
    clock.end_round()
    assert (clock.read(), moments.now) == ([], 0)


def test_no_moment_is_asked_for_before_it_has_passed(moments: ScriptedMoments):
    clock = PhaseClock(moments)
    moments.done = 0.0
    for _ in range(3):
        clock.begin_round()
        clock.end_round()
    assert moments.asked == 0
    moments.done = 4.0  # two rounds have passed
    clock.begin_round()
    clock.end_round()
    assert moments.asked == 2
    assert len(clock.read()) == 4


def test_while_a_graph_is_recorded_a_phase_belongs_to_the_one_around_it(moments: ScriptedMoments):
    clock = PhaseClock(moments)
    clock.begin_round()  # 1
    with clock.phase(Phase.TRAINING):  # 2
        moments.is_recording = True
        with clock.phase(Phase.DATA):
            pass
        moments.is_recording = False
    clock.end_round()  # 4, after 3 at the end of the training
    assert clock.read() == [{Phase.OTHER: 2, Phase.TRAINING: 1}]


def test_the_clock_that_measures_nothing_returns_nothing():
    NO_CLOCK.begin_round()
    with NO_CLOCK.phase(Phase.TRAINING):
        pass
    NO_CLOCK.end_round()
    assert NO_CLOCK.read() == []


@pytest.mark.cuda
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_on_a_gpu_phases_are_measured_without_waiting_for_it():
    """torch raises an error where the host waits; the phases inside a recorded graph have no times of their own."""
    clock, values = PhaseClock.for_device("cuda"), torch.randn(2000, 2000, device="cuda")
    products = [values @ values for _ in range(2)]  # loads the kernels
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(3):
            clock.begin_round()
            with clock.phase(Phase.TRAINING):
                products = [values @ values for _ in range(20)]
            clock.end_round()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    rounds = clock.read()
    assert len(rounds) == 3
    assert all(Phase.TRAINING in found for found in rounds)
    graph = torch.cuda.CUDAGraph()
    clock.begin_round()
    with torch.cuda.graph(graph), clock.phase(Phase.DATA):
        products[0].add_(1.0)
    clock.end_round()
    assert Phase.DATA not in clock.read()[-1]

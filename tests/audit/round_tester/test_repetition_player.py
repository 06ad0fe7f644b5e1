"""Many repetitions as one block are what an engine would have computed one by one."""

from typing import Any

import pytest
import torch

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.mechanisms import AdaptiveGaussian, Gaussian
from discreet.algorithms.recipes.ddp_fedavg import ddp_fedavg_client
from discreet.algorithms.sampling import FixedSize, Poisson, RoundRobin
from discreet.algorithms.server_optimizers import ServerAdam
from discreet.algorithms.training import GradientDescent
from discreet.audit.round_tester.repetition_player import Data, RepetitionPlayer
from discreet.audit.round_tester.toy_task import switch_task
from discreet.data.federation import Federation
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import Simulation
from discreet.randomness.streams import RunKey
from tests.audit.round_tester.faulty_parts import Central, compose

KEY, TASK = RunKey.from_seed(7), switch_task()
TRAINER = GradientDescent(learning_rate=1.0, iterations=(2,))
ROWS = 4000


def clients() -> Federation:
    rows = [((1.0, 0.0), 0), ((0.0, 2.0), 0), ((0.5, 0.5), 1), ((-1.0, 3.0), 0), ((4.0, 0.0), 1)]
    inputs, targets = TASK.tensors(rows)
    return Federation(inputs, targets, (2, 1, 2))


def play(algorithm: Algorithm, sees: Any, repetitions: int = 5, absent: frozenset[int] = frozenset(), **more: Any):
    fitted = algorithm.for_population(clients().population, 2)
    return RepetitionPlayer(fitted, TASK.loss, TASK.params, sees, **more).play(
        Data(clients(), absent), repetitions, KEY
    )


def test_without_randomness_every_repetition_is_the_round_of_the_embedded_engine() -> None:
    algorithm = Algorithm(trainer=TRAINER, server=ServerAdam(learning_rate=0.1))
    simulation = Simulation(algorithm, clients(), TASK.loss, KEY)
    state = algorithm.init(TASK.params)
    broadcast = algorithm.broadcast(state, 0)
    total = EmbeddedEngine(simulation).gather(broadcast, [0, 1, 2]).total
    after = algorithm.server_step(state, broadcast, total, 3, clients().population, simulation.rows(broadcast, [-1]))
    assert torch.allclose(play(algorithm, "sum"), total["w"].expand(5, 2))
    assert torch.allclose(play(algorithm, "model"), after.params["w"].expand(5, 2))
    uploads = play(algorithm, "uploads").reshape(5, 3, 2)
    assert torch.allclose(uploads.sum(dim=1), total["w"].expand(5, 2))
    alone = EmbeddedEngine(simulation).gather(broadcast, [1]).total["w"]
    assert torch.allclose(uploads[:, 1], alone.expand(5, 2))


def test_absent_clients_and_those_that_drop_out_send_nothing_and_known_uploads_are_taken_off() -> None:
    algorithm = Algorithm(trainer=TRAINER)
    uploads = play(algorithm, "uploads").reshape(5, 3, 2)[0]
    assert torch.allclose(play(algorithm, "sum", absent=frozenset({0}))[0], uploads[1] + uploads[2])
    assert torch.allclose(play(algorithm, "sum", dropouts=(1,))[0], uploads[0] + uploads[2])
    assert torch.allclose(play(algorithm, "sum", known=(1, 2))[0], uploads[0])


def test_cohorts_are_drawn_anew_in_every_repetition() -> None:
    """Six standard errors of a rate: a false alarm in 1e-8."""
    joined = play(Algorithm(sampling=Poisson(rate=0.3), trainer=TRAINER), "uploads", ROWS).reshape(ROWS, 3, 2).any(2)
    assert joined.double().mean(dim=0).tolist() == pytest.approx([0.3] * 3, abs=6 * (0.21 / ROWS) ** 0.5)
    fixed = play(Algorithm(sampling=FixedSize(cohort=2), trainer=TRAINER), "uploads", 50).reshape(50, 3, 2).any(2)
    assert (fixed.sum(dim=1) == 2).all()
    turns = play(Algorithm(sampling=RoundRobin(cohort=2), trainer=TRAINER), "uploads", round=1).reshape(5, 3, 2).any(2)
    assert turns[0].tolist() == [True, False, True]


@pytest.mark.parametrize("rate", [0.2, 1.0])
def test_the_servers_noise_is_fresh_in_every_repetition_even_if_nobody_joined(rate: float) -> None:
    """Six standard errors of a variance: a false alarm in 1e-8."""
    algorithm = Algorithm(
        sampling=Poisson(rate=rate), trainer=TRAINER, mechanism=Gaussian(clip_norm=1e-6, noise_multiplier=1e6)
    )
    seen = play(algorithm, "model", ROWS) * 3 * rate
    assert seen.var(dim=0).tolist() == pytest.approx([1, 1], abs=6 * (2 / ROWS) ** 0.5)


def test_the_state_that_a_mechanism_announces_next_is_seen_too() -> None:
    algorithm = Algorithm(trainer=TRAINER, mechanism=AdaptiveGaussian(clip_norm=1.0, noise_multiplier=1.0))
    assert play(algorithm, "model").shape == (5, 3)


class HostSum(Central):
    """A mechanism that leaves torch, as a user's own may."""

    def draw(self, total: Any, noise: Any) -> Any:
        drawn = super().draw(total, noise)
        return {name: value + float(total[name].sum()) for name, value in drawn.items()}


def test_a_server_that_can_not_be_vectorised_is_played_one_by_one() -> None:
    seen = play(compose(trainer=TRAINER, mechanism=HostSum()), "model", 6)
    assert len(seen.unique(dim=0)) == 6


def test_a_sum_of_integers_is_seen_as_integers() -> None:
    algorithm = ddp_fedavg_client(learning_rate=1.0, batch_size=2, clip_norm=1.0, noise_multiplier=1.0)
    seen = play(algorithm, "sum", 20)
    assert torch.equal(seen, seen.round())
    assert len(seen.unique(dim=0)) > 1
    assert play(algorithm, "model", 20).shape == (20, 3)

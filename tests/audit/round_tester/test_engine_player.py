"""The round is attacked through real engines, with the streams of a run. The false-alarm rate of an attack is 1e-6."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.mechanisms import Gaussian
from discreet.algorithms.population import Population
from discreet.algorithms.recipes.ddp_fedavg import ddp_fedavg, ddp_fedavg_client
from discreet.algorithms.recipes.pfl import pfl
from discreet.algorithms.sampling import Poisson
from discreet.algorithms.training import GradientDescent
from discreet.algorithms.training.schedules import Exponential
from discreet.audit.round_tester import Effort, RoundTest, attack_round
from discreet.audit.round_tester.engine_player import EnginePlayer
from discreet.audit.round_tester.repetition_player import Data, RepetitionPlayer
from discreet.audit.round_tester.toy_task import switch_task
from discreet.data.federation import Federation
from discreet.deploy.journal import Entry
from discreet.deploy.learner import Learner
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import Engine, Simulation
from discreet.engines.ray.ray_engine import RayEngine
from discreet.engines.reference import ReferenceEngine
from discreet.engines.secure import SecureEngine
from discreet.errors import InvalidInput
from discreet.params import flatten
from discreet.randomness.streams import RunKey
from tests.engines.ray_cluster import LocalWorkers

CLIENTS = Population(examples=(2, 2, 2, 2))
TWO = Population(examples=(2, 2))
TRAINER = GradientDescent(learning_rate=1.0, iterations=(1,))
FEW = Effort(repetitions=800, candidates=6, quick_repetitions=600, generations=0, finalists=1)


@dataclass(frozen=True, eq=False)
class FixedDropouts(SecureEngine):
    """A secure sum from which the same clients drop out in every round, before they send their update."""

    leaving: tuple[int, ...] = ()

    def draw_dropouts(self, round: int, cohort: list[int]) -> Any:
        return dict.fromkeys(self.leaving, "masked")


ENGINES: dict[str, Callable[[Simulation], Engine]] = {
    "embedded": EmbeddedEngine,
    "reference": ReferenceEngine,
    "ray, in this process": lambda simulation: RayEngine(
        EmbeddedEngine(simulation), LocalWorkers(2, EmbeddedEngine(simulation))
    ),
}


def central(noise: float) -> Algorithm:
    return Algorithm(
        sampling=Poisson(rate=0.5), trainer=TRAINER, mechanism=Gaussian(clip_norm=1.0, noise_multiplier=noise)
    )


def local(noise: float) -> Algorithm:
    return pfl(learning_rate=1.0, clip_norm=1.0, sampling_rate=1.0, local_steps=1, noise_multiplier=noise)


def secure(noise: float, dropouts: int = 1) -> Algorithm:
    return ddp_fedavg_client(
        learning_rate=1.0, clip_norm=1.0, batch_size=2, noise_multiplier=noise, colluding=1, dropouts=dropouts
    )


def attack(algorithm: Algorithm, engine: Callable[[Simulation], Engine], **more: Any) -> list[RoundTest]:
    return attack_round(
        algorithm,
        population=TWO,
        effort=FEW,
        seed=5,
        play_with=lambda fast: EnginePlayer(fast, engine),
        **more,
    )


def certified_releases(algorithm: Algorithm, population: Population = CLIENTS) -> Any:
    return algorithm.for_population(population, 2).releases(population, 0)


@pytest.mark.parametrize("sees", ["uploads", "sum", "model"])
def test_a_block_of_copies_has_the_distribution_of_the_engine(sees: Any) -> None:
    """Means and variances agree within six standard errors: a false alarm in 1e-7."""
    task, rows = switch_task(), 200
    inputs, targets = task.tensors([((1.0, -0.5), 0)] * 8)
    data = Data(Federation(inputs, targets, CLIENTS.examples))
    fitted = local(1.0).for_population(CLIENTS, 2)
    fast = RepetitionPlayer(fitted, task.loss, task.params, sees, known=() if sees == "uploads" else (3,))
    slow = EnginePlayer(fast, EmbeddedEngine).play(data, rows, RunKey.from_seed(1))
    block = fast.play(data, 100 * rows, RunKey.from_seed(1))
    assert slow.shape[1] == block.shape[1]
    error = 6.1 / rows**0.5 * block.std(dim=0)
    assert bool(((slow.mean(dim=0) - block.mean(dim=0)).abs() < error).all())
    assert bool(((slow.var(dim=0) / block.var(dim=0) - 1).abs() < 6.1 * (2 / rows) ** 0.5).all())
    assert len(slow.unique(dim=0)) == rows


def test_rounds_that_differ_can_not_be_repeated_by_an_engine() -> None:
    """One example moves an update less in a later round, whose learning rate is smaller."""
    algorithm = ddp_fedavg(
        learning_rate=1.0, clip_norm=1.0, sampling_rate=1.0, noise="gaussian", schedule=Exponential(decay=0.5)
    )
    fitted, task = algorithm.with_noise(1.0).for_population(CLIENTS, 2), switch_task()
    with pytest.raises(InvalidInput, match="rounds differ"):
        EnginePlayer(RepetitionPlayer(fitted, task.loss, task.params, "sum"), EmbeddedEngine)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", [central, local])
def test_an_engine_holds_what_is_certified_and_a_smaller_claim_is_contradicted(
    engine: str, algorithm: Callable[[float], Algorithm]
) -> None:
    (result,) = attack(algorithm(0.3), ENGINES[engine])
    assert not result.violated, str(result)
    assert result.lower_bound > 0
    assert attack(algorithm(0.3), ENGINES[engine], claims=certified_releases(algorithm(1.2), TWO))[0].violated


@pytest.mark.slow
def test_a_secure_sum_with_a_drop_out_and_a_colluding_client_holds_what_is_certified() -> None:
    """All keys, masks and shares, as in a run; the client that drops out leaves before it sends its update."""

    def play_with(fast: RepetitionPlayer) -> EnginePlayer:
        leaving = fast.dropouts
        return EnginePlayer(
            replace(fast, dropouts=()), lambda simulation: FixedDropouts(EmbeddedEngine(simulation), leaving=leaving)
        )

    few = replace(FEW, repetitions=400)  # a session takes 30 ms
    settings: dict[str, Any] = {"population": CLIENTS, "effort": few, "seed": 5, "play_with": play_with}
    (result,) = attack_round(secure(0.3), view="server", **settings)
    assert not result.violated, str(result)
    assert result.lower_bound > 0
    (result,) = attack_round(secure(0.3), view="server", claims=certified_releases(secure(4.0)), **settings)
    assert result.violated, str(result)


@dataclass(frozen=True)
class LearnerPlayer:
    """Plays the code of deployed clients: the learner of each, with the secret streams of a real client."""

    fast: RepetitionPlayer

    def play(self, data: Data, repetitions: int, key: RunKey) -> torch.Tensor:
        algorithm, broadcast = (
            self.fast.algorithm,
            self.fast.algorithm.broadcast(self.fast.algorithm.init(self.fast.params), 0),
        )
        learners = [
            Learner(
                experiment="app",
                algorithm=algorithm,
                population=CLIENTS,
                model=None,  # type: ignore[arg-type]
                params=self.fast.params,
                loss=self.fast.loss,
                data=data.federation,
                client=client,
                place=client,
                seed=None,
                last_rounds={},
                fingerprint="",
                secret=key.secret,
            )
            for client in range(CLIENTS.clients)
        ]
        entry = Entry(0, broadcast.digest.hex())
        seen = []
        for repetition in range(repetitions):
            sent = [flatten(learner.update(f"run {repetition}", broadcast, entry)) for learner in learners]
            kept = [each for client, each in enumerate(sent) if client not in (*self.fast.known, *self.fast.dropouts)]
            seen.append(torch.cat(sent) if self.fast.sees == "uploads" else torch.stack(kept).sum(dim=0))
        return torch.stack(seen).double()


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", [local, secure])
def test_the_code_of_deployed_clients_holds_what_is_certified(algorithm: Callable[[float], Algorithm]) -> None:
    settings: dict[str, Any] = {"population": CLIENTS, "effort": FEW, "seed": 5, "play_with": LearnerPlayer}
    for result in attack_round(algorithm(0.5), **settings):
        assert not result.violated, str(result)
        assert result.lower_bound > 0
    loud = certified_releases(algorithm(2.0))
    assert all(result.violated for result in attack_round(algorithm(0.5), claims=loud, **settings))


@pytest.mark.cuda
@pytest.mark.parametrize("algorithm", [central, local, secure])
def test_a_gpu_holds_what_is_certified_in_100_000_repetitions(algorithm: Callable[[float], Algorithm]) -> None:
    task = switch_task().move_to(torch.device("cuda"))
    effort = Effort(repetitions=100_000, candidates=24)
    for result in attack_round(algorithm(1.0), population=CLIENTS, task=task, effort=effort, seed=5):
        assert not result.violated, str(result)
        assert result.lower_bound > 0
    loud = certified_releases(algorithm(4.0))
    for result in attack_round(algorithm(1.0), population=CLIENTS, task=task, claims=loud, effort=effort, seed=5):
        assert result.violated, str(result)

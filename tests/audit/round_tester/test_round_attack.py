"""One round of each kind is attacked: what is certified holds, and planted faults are found.

The false-alarm rate of an attack is 1e-6, and seeds are fixed.
"""

from dataclasses import replace
from typing import Any

import pytest

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.mechanisms import Gaussian
from discreet.algorithms.population import Population
from discreet.algorithms.recipes.ddp_fedavg import ddp_fedavg, ddp_fedavg_client
from discreet.algorithms.recipes.dp_fedavg import dp_fedavg
from discreet.algorithms.recipes.fedavg import fedavg
from discreet.algorithms.recipes.ldp_fedavg import ldp_fedavg
from discreet.algorithms.recipes.pfl import pfl
from discreet.algorithms.sampling import FixedSize, RoundRobin
from discreet.algorithms.training import GradientDescent
from discreet.audit.round_tester import Effort, RoundTest, attack_round
from discreet.audit.round_tester.neighbours import Neighbours
from discreet.audit.round_tester.toy_task import ToyTask, switch_task
from discreet.errors import InvalidInput
from discreet.privacy.release import Person
from tests.audit.round_tester import faulty_parts
from tests.audit.round_tester.faulty_parts import compose

FEW = Effort(repetitions=20_000, candidates=8, quick_repetitions=800, generations=0, finalists=1)
CLIENTS = Population(examples=(2, 2, 2, 2))
TRAINER = GradientDescent(learning_rate=1.0, iterations=(1,))


def attack(algorithm: Algorithm, **more: Any) -> list[RoundTest]:
    settings: dict[str, Any] = {"population": CLIENTS, "effort": FEW, "seed": 1}
    return attack_round(algorithm, **settings | more)


SOUND = {
    "own noise": pfl(learning_rate=1.0, clip_norm=1.0, batch_size=2, local_steps=2, noise_multiplier=2.0),
    "noise in shares": ddp_fedavg(
        learning_rate=1.0, clip_norm=1.0, sampling_rate=0.5, noise="gaussian", noise_multiplier=1.0
    ),
    "integer noise, a colluding client and a drop-out": ddp_fedavg_client(
        learning_rate=1.0, clip_norm=1.0, batch_size=2, noise_multiplier=2.0, colluding=1, dropouts=1
    ),
    "Laplace noise, in turns": ldp_fedavg(learning_rate=1.0, gradient_bound=1.0, cohort=2, noise_multiplier=2.0),
    "a trusted server, Poisson": dp_fedavg(
        learning_rate=1.0, clip_norm=1.0, batch_size=2, sampling_rate=0.5, noise_multiplier=1.0
    ),
    "a trusted server, cohorts of a fixed size": Algorithm(
        sampling=FixedSize(cohort=2), trainer=TRAINER, mechanism=Gaussian(clip_norm=1.0, noise_multiplier=2.0)
    ),
    "a trusted server, in turns": Algorithm(
        sampling=RoundRobin(cohort=2), trainer=TRAINER, mechanism=Gaussian(clip_norm=1.0, noise_multiplier=1.0)
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_what_is_certified_holds_and_something_is_measured(name: str) -> None:
    results = attack(SOUND[name])
    assert results
    for result in results:
        assert not result.violated, str(result)
        assert 0.1 * result.claimed_epsilon < result.lower_bound <= result.claimed_epsilon


def test_a_later_round_of_clients_in_turns_is_attacked_where_their_turn_is() -> None:
    (result,) = attack(SOUND["a trusted server, in turns"], round=1)
    assert result.lower_bound > 0.1 * result.claimed_epsilon


def test_all_rows_of_a_person_are_one_unit() -> None:
    """Two rows of a person: more than one row is certified for, and no more than the person is."""
    person = Person(column="who", at_most=2)
    (one,), (both,) = attack(SOUND["own noise"]), attack(SOUND["own noise"], unit=person)
    assert both.unit == person
    assert not both.violated
    assert both.claimed_epsilon > one.claimed_epsilon
    assert both.lower_bound > one.lower_bound


def test_a_sound_part_of_a_users_own_passes() -> None:
    (result,) = attack(compose(trainer=TRAINER, mechanism=faulty_parts.Central()))
    assert not result.violated
    assert result.lower_bound > 0


FAULTS = {
    "half of the noise": compose(trainer=TRAINER, mechanism=faulty_parts.HalfNoise()),
    "the same noise again": compose(trainer=TRAINER, mechanism=faulty_parts.SameNoise()),
    "a clip after the noise": compose(trainer=TRAINER, mechanism=faulty_parts.ClipAfterNoise()),
    "sampling more often than declared": compose(
        sampling=faulty_parts.OftenPoisson(),
        trainer=TRAINER,
        mechanism=Gaussian(clip_norm=faulty_parts.CLIP, noise_multiplier=0.7),
    ),
    "a mean over a private count": compose(trainer=faulty_parts.OwnCountDp()),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str) -> None:
    results = attack(FAULTS[fault])
    assert any(result.violated for result in results), [str(result) for result in results]


@pytest.mark.parametrize("assumed", [{"colluding": 3}, pytest.param({"dropouts": 3}, marks=pytest.mark.slow)])
def test_more_colluding_clients_or_drop_outs_than_the_noise_was_sized_for_are_found(assumed: dict[str, int]) -> None:
    algorithm = ddp_fedavg_client(learning_rate=1.0, clip_norm=1.0, batch_size=2, noise_multiplier=1.0)
    server = algorithm.for_population(CLIENTS, 2).releases(CLIENTS, 0)[:1]
    assert not attack(algorithm, claims=server)[0].violated
    assert attack(algorithm, claims=server, **assumed)[0].violated


def test_claims_about_another_algorithm_are_contradicted() -> None:
    quiet, loud = (
        pfl(learning_rate=1.0, clip_norm=1.0, batch_size=2, local_steps=1, noise_multiplier=noise) for noise in (1, 2)
    )
    (result,) = attack(quiet, claims=loud.for_population(CLIENTS).releases(CLIENTS, 0))
    assert result.violated
    assert "VIOLATED" in str(result)


def test_a_result_is_plain_data_and_a_sentence() -> None:
    (result,) = attack(SOUND["own noise"])
    written = result.as_json()
    assert written["repetitions"] == 20_000
    assert written["confidence"] == 1 - 1e-6
    assert written["neighbours"].startswith("unit x = (")
    assert "at δ = 1e-5 is not contradicted; measured at least" in str(result)
    assert "uploads" in str(result)


def test_neighbours_are_described_without_a_negative_zero() -> None:
    pair = Neighbours(((-0.0, -30.0), -0.0), ((0.0, 0.0), 0.0), ((1e-5, 0.0), 1.0), ((0.0, 0.0), 0.0))
    assert pair.describe() == (
        "unit x = (0, -30), y = 0 or blank; other rows of its client x = (1e-5, 0), y = 1; other clients blank"
    )


def test_repetitions_that_can_tell_nothing_apart_are_refused() -> None:
    with pytest.raises(InvalidInput, match="repetitions must be at least 100, and got 1"):
        Effort(repetitions=1)


def test_a_seed_repeats_an_attack_and_without_one_noise_is_fresh() -> None:
    """Of the seed 3, which finds something: two attacks that find nothing look alike."""
    (one,), (same,), (other,) = (
        attack(SOUND["own noise"], seed=seed, effort=replace(FEW, repetitions=2000, candidates=2))
        for seed in (3, 3, None)
    )
    assert one.lower_bound > 0
    assert one.lower_bound == same.lower_bound
    assert one.lower_bound != other.lower_bound


def test_an_algorithm_that_certifies_nothing_has_nothing_to_attack() -> None:
    with pytest.raises(InvalidInput, match="needs a claim to test"):
        attack(fedavg(learning_rate=1.0, batch_size=2, epochs=1))


def test_a_loss_without_a_blank_example_is_refused() -> None:
    params = switch_task().params
    task = ToyTask(params, lambda params, inputs, targets: (inputs + 1) @ params["w"], 2)
    with pytest.raises(InvalidInput, match="gradient must be zero, and it has 1"):
        attack(SOUND["own noise"], task=task)

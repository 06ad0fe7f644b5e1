"""All engines gather the same sum: the fast one is compared with the slow one, over a pairwise cover of all parts."""

import itertools
import pickle
import random
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.mechanisms import AdaptiveGaussian, DistributedGaussian, Gaussian, LocalNoise, NoPrivacy
from discreet.algorithms.recipes.dp_fedavg import dp_fedavg
from discreet.algorithms.recipes.fedavg import fedavg
from discreet.algorithms.recipes.pfl import pfl
from discreet.algorithms.recipes.registry import RECIPES
from discreet.algorithms.sampling import Everyone, FixedSize, Poisson, RoundRobin
from discreet.algorithms.server_optimizers import ServerAdam, ServerSgd
from discreet.algorithms.sparsifiers import AllCoordinates, PublicTopK, RandomK, ServerTopK, TopK
from discreet.algorithms.training import DpSgd, GradientDescent, LocalSgd, Loss, MinibatchDp
from discreet.algorithms.training.gradient_rules import Asam, Blur, L1Clip, L2Clip, Prox, Sam
from discreet.algorithms.training.schedules import Exponential, Harmonic
from discreet.data.federation import Federation
from discreet.engines.embedded import EmbeddedEngine, fitting_block_size
from discreet.engines.engine import Engine, OneThread, Simulation
from discreet.engines.engine_table import AnyEngine, EngineSetup
from discreet.engines.reference import ReferenceEngine
from discreet.errors import InvalidInput, UnsoundCombination
from discreet.models.user_module.supervised_module import SupervisedModule
from discreet.params import Params
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey
from tests.federations import CPU, convolution, cross_entropy, federation, images, linear

PARTS: dict[str, list[Any]] = {
    "sampling": [Everyone(), Poisson(rate=0.6), FixedSize(cohort=3), RoundRobin(cohort=2)],
    "trainer": [
        MinibatchDp(sampling_rate=0.5, clip_norm=0.5, noise_multiplier=1.0, learning_rate=0.5),
        LocalSgd(learning_rate=0.3, batch_size=4, epochs=2),
        LocalSgd(
            learning_rate=0.3, batch_size=3, steps=4, momentum=0.9, weight_decay=0.01, schedule=Exponential(decay=0.9)
        ),
        LocalSgd(learning_rate=0.3, batch_size=4, steps=3, perturbation=Sam(rho=0.2), gradient_clip=L2Clip(bound=0.5)),
        LocalSgd(
            learning_rate=0.3,
            batch_size=4,
            epochs=2,
            momentum=0.5,
            perturbation=Asam(rho=0.2),
            regulariser=Blur(radius=0.1, strength=0.5),
        ),
        GradientDescent(
            learning_rate=0.9, iterations=(3, 2), gradient_clip=L1Clip(bound=1.0), schedule=Harmonic(gamma=2.0)
        ),
        GradientDescent(learning_rate=0.3, iterations=(2,), perturbation=Sam(rho=0.2), regulariser=Prox(strength=0.3)),
        DpSgd(steps=(2,), sampling_rate=0.4, clip_norm=0.5, noise_multiplier=1.0, learning_rate=0.5),
        DpSgd(
            steps=(1,), sampling_rate=0.9, clip_norm=2.0, noise_multiplier=0.3, learning_rate=0.5, momentum=0.5, piece=3
        ),
    ],
    "sparsifier": [
        AllCoordinates(),
        RandomK(fraction=0.4, scaled=True),
        TopK(fraction=0.4),
        TopK(fraction=0.3, per_layer=False),
        PublicTopK(fraction=0.4),
        ServerTopK(fraction=0.5),
    ],
    "mechanism": [
        NoPrivacy(),
        Gaussian(clip_norm=0.2, noise_multiplier=0.7),
        AdaptiveGaussian(clip_norm=0.2, noise_multiplier=0.7),
        DistributedGaussian(clip_norm=0.2, noise_multiplier=0.7, shares=3),
        LocalNoise(kind="local_gaussian", clip_norm=0.2, noise_multiplier=0.7),
        LocalNoise(kind="local_laplace", clip_norm=0.2, noise_multiplier=0.7),
    ],
    "server": [ServerSgd(), ServerSgd(learning_rate=0.7, momentum=0.5), ServerAdam()],
    "weighting": ["uniform", "by_examples"],
}


def pairwise() -> list[Algorithm]:
    """Return a greedy cover: every two parts of different kinds that can be combined are in some algorithm."""
    choices = list(itertools.product(*(range(len(values)) for values in PARTS.values())))
    random.Random(0).shuffle(choices)
    number: defaultdict[object, int] = defaultdict(lambda: 1 << len(number))  # a bit for each pair
    allowed: dict[int, Algorithm] = {}  # by the pairs that meet in it
    for choice in choices:
        with suppress(UnsoundCombination):
            algorithm = Algorithm(**{kind: PARTS[kind][i] for kind, i in zip(PARTS, choice, strict=True)})
            allowed[sum(number[pair] for pair in itertools.combinations(enumerate(choice), 2))] = algorithm
    chosen: list[Any] = []
    seen = 0
    while True:
        best = max(allowed, key=lambda pairs: (pairs & ~seen).bit_count())
        if not best & ~seen:
            return chosen
        chosen.append(allowed[best])
        seen |= best


CATALOG = [
    fedavg(learning_rate=0.3, batch_size=4),
    pfl(learning_rate=0.5, clip_norm=0.5, sampling_rate=0.5, noise_multiplier=1.0),
    dp_fedavg(learning_rate=0.3, batch_size=4, clip_norm=0.5, sampling_rate=0.5, noise_multiplier=1.0),
]


EVERY = {
    name: recipe(**recipe.example).with_noise(1.0).for_population(federation(7, 1, 12, 4, 9).population, 18)
    for name, recipe in RECIPES.items()
}


def train(engine: Engine, algorithm: Algorithm, params: Params, rounds: int, key: RunKey) -> Params:
    state = algorithm.init(params)
    for round in range(rounds):
        cohort = algorithm.sampling.sample(engine.simulation.population, round, key.generator(Purpose.SAMPLING, round))
        broadcast = algorithm.broadcast(state, round, engine.simulation.public_update)
        gathered = engine.gather(broadcast, cohort)
        state = algorithm.server_step(
            state,
            broadcast,
            gathered.total,
            len(gathered.contributors),
            engine.simulation.population,
            key.rows(round, b"", [-1], CPU),
        )
    return state.params


RECORDS = {record.kind: record for record in get_args(get_args(AnyEngine)[0])}
COMPARED_ELSEWHERE = {  # these need integers, a cluster or nodes; every other engine is compared here
    "secure": "tests/algorithms/test_distributed.py::test_engines_agree_to_the_last_integer_and_a_file_holds_it",
    "ray": "tests/engines/test_ray_parts.py::test_workers_make_the_same_bits_as_embedded",
    "flower": "tests/deploy/test_training.py::test_real_clients_train_the_model_of_the_reference_engine_bit_for_bit",
}


def engines_differ(
    algorithm: Algorithm, data: Federation, loss: Loss, params: Params, rounds: int, block: int
) -> float:
    """Return the largest difference between a model of the reference engine and one of any other engine."""
    key = RunKey.from_seed(9)
    simulation = Simulation(algorithm, data, loss, key, public=replace(data, sizes=(sum(data.sizes),)))
    setup = EngineSetup(simulation, params, block_size=block)
    models = {
        kind: train(record().build(setup), algorithm, params, rounds, key)
        for kind, record in RECORDS.items()
        if kind not in COMPARED_ELSEWHERE
    }
    reference = models.pop("reference")
    return max(float((model[name] - reference[name]).abs().max()) for model in models.values() for name in reference)


@pytest.mark.parametrize("kind", COMPARED_ELSEWHERE)
def test_an_engine_that_is_not_compared_here_is_compared_elsewhere(kind: str) -> None:
    assert kind in RECORDS
    file, name = COMPARED_ELSEWHERE[kind].split("::")
    assert f"def {name}(" in (Path(__file__).parents[2] / file).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "algorithm",
    [*pairwise(), *CATALOG],
    ids=lambda a: f"{a.sampling.kind}-{a.trainer.kind}-{a.sparsifier.kind}-{a.mechanism.kind}-{a.server.kind}",
)
def test_three_rounds_in_double_precision_agree_to_ten_digits(algorithm: Algorithm) -> None:
    assert engines_differ(algorithm, federation(7, 1, 12, 4, 9), cross_entropy, linear(), rounds=3, block=3) < 1e-10


@pytest.mark.parametrize("name", EVERY)
def test_every_entry_of_the_catalog_agrees_too(name: str) -> None:
    assert engines_differ(EVERY[name], federation(7, 1, 12, 4, 9), cross_entropy, linear(), rounds=3, block=3) < 1e-10


@pytest.mark.parametrize("algorithm", CATALOG, ids=lambda a: a.trainer.kind + a.mechanism.kind)
@pytest.mark.parametrize("block", [1, 2, 5])
def test_a_convolutional_network_too_in_blocks_of_any_size(algorithm: Algorithm, block: int) -> None:
    params, loss = convolution()
    assert engines_differ(algorithm, images(6, 3, 9, 5), loss, params, rounds=2, block=block) < 1e-10


@pytest.mark.parametrize("algorithm", CATALOG, ids=lambda a: a.trainer.kind + a.mechanism.kind)
def test_one_gather_in_single_precision_agrees_to_four_digits(algorithm: Algorithm) -> None:
    params, loss = convolution(torch.float32)
    data = images(6, 3, 9, 5, dtype=torch.float32)
    assert engines_differ(algorithm, data, loss, params, rounds=1, block=4) < 1e-4


def test_the_cover_is_pairwise() -> None:
    cover = pairwise()
    assert 12 <= len(cover) <= 70
    for kind, values in PARTS.items():
        assert {str(getattr(algorithm, kind)) for algorithm in cover} == {str(value) for value in values}


def test_an_empty_cohort_sums_to_nothing() -> None:
    simulation = Simulation(CATALOG[2], federation(3, 4), cross_entropy, RunKey.from_seed(1))
    broadcast = CATALOG[2].broadcast(CATALOG[2].init(linear()), 0)
    for engine in (ReferenceEngine(simulation), EmbeddedEngine(simulation)):
        gathered = engine.gather(broadcast, [])
        assert gathered.contributors == ()
        assert all(float(value.abs().sum()) == 0 for value in gathered.total.values())


def test_memory_bounds_the_block() -> None:
    simulation = Simulation(CATALOG[0], federation(3, 4), cross_entropy, RunKey.from_seed(1))
    broadcast = CATALOG[0].broadcast(CATALOG[0].init(linear()), 0)
    numbers = 18 * 8 * CATALOG[0].trainer.model_copies(simulation.population)
    assert fitting_block_size(simulation, broadcast, memory=int(2.5 * numbers)) == 2
    assert fitting_block_size(simulation, broadcast, memory=1) == 1


def test_a_seed_repeats_a_run_with_dropout_bit_for_bit() -> None:
    torch.manual_seed(3)
    module = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 3)).double()
    model, data, key = SupervisedModule(module, "classification"), federation(7, 4, 9), RunKey.from_seed(2)
    for algorithm in CATALOG:
        engine = EmbeddedEngine(Simulation(algorithm, data, model.loss, key))
        before = torch.random.get_rng_state()
        first, again = (train(engine, algorithm, model.params, 2, key) for _ in range(2))
        assert all(torch.equal(first[name], again[name]) for name in first)
        assert torch.equal(torch.random.get_rng_state(), before)  # and nobody else's draws are touched


def test_a_second_thread_in_a_step_is_refused() -> None:
    simulation = Simulation(CATALOG[0], federation(3, 4), cross_entropy, RunKey.from_seed(1))
    broadcast = CATALOG[0].broadcast(CATALOG[0].init(linear()), 0)
    with simulation._turn.enter(), pytest.raises(InvalidInput, match="two threads called `step` at once"):
        simulation.step(broadcast, [0])
    assert simulation.step(broadcast, [0]).norms.shape == (1,)


def test_a_step_that_failed_leaves_room_for_the_next_and_a_copy_is_free() -> None:
    turn = OneThread()
    with pytest.raises(ZeroDivisionError), turn.enter():
        raise ZeroDivisionError
    with turn.enter(), pickle.loads(pickle.dumps(turn)).enter():
        pass

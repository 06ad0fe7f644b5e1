"""Every trainer with every mechanism it can be combined with: nothing that is sent moves more than its price covers."""

from dataclasses import replace
from typing import get_args

import pytest
import torch

from discreet.algorithms.aggregation import Lattice, Plain
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.mechanisms import (
    AdaptiveGaussian,
    AnyMechanism,
    DistributedGaussian,
    Gaussian,
    IntegerNoise,
    LocalNoise,
    NoPrivacy,
)
from discreet.algorithms.training import BroadcastGradients
from discreet.data.federation import Federation
from discreet.engines.engine import Simulation
from discreet.errors import DiscreetError, UnsoundCombination
from discreet.params import Params, flatten
from discreet.privacy import accountant
from discreet.randomness.streams import RunKey
from discreet.secure_sums.lattice.lattice_encoding import Encoding
from tests.algorithms.training.test_contract import HELD, PARAMS, TRAINERS, loss
from tests.federations import CPU

LOUD = {  # far beyond the clips of the mechanisms below
    name: replace(trainer, learning_rate=50.0) if name == "broadcast_gradients" else trainer
    for name, trainer in TRAINERS.items()
}
CLIP, NOISE = 0.01, 2.0
MECHANISMS = {
    "none": NoPrivacy(),
    "gaussian": Gaussian(clip_norm=CLIP, noise_multiplier=NOISE),
    "adaptive": AdaptiveGaussian(clip_norm=CLIP, noise_multiplier=NOISE),
    "shares": DistributedGaussian(clip_norm=CLIP, noise_multiplier=NOISE),
    "shares, examples": DistributedGaussian(noise_multiplier=NOISE),
    "local": LocalNoise(kind="local_gaussian", clip_norm=CLIP, noise_multiplier=NOISE),
    "local, laplace": LocalNoise(kind="local_laplace", clip_norm=CLIP, noise_multiplier=NOISE),
    "local, training's bound": LocalNoise(kind="local_gaussian", noise_multiplier=NOISE),
    "skellam": IntegerNoise(kind="skellam", clip_norm=CLIP, noise_multiplier=NOISE),
    "skellam, examples": IntegerNoise(kind="skellam", noise_multiplier=NOISE),
    "discrete gaussian": IntegerNoise(kind="discrete_gaussian", clip_norm=CLIP, noise_multiplier=NOISE),
    "discrete gaussian, examples": IntegerNoise(kind="discrete_gaussian", noise_multiplier=NOISE),
}
LATTICES = {"": Lattice(), ", coarse": Lattice(bits=16), ", rotated": Lattice(rotated=True)}


def algorithms() -> dict[str, Algorithm]:
    found = {}
    for training, trainer in LOUD.items():
        for noise, mechanism in MECHANISMS.items():
            ways = LATTICES if isinstance(mechanism, IntegerNoise) else {"": Plain()}
            for way, aggregation in ways.items():
                try:
                    algorithm = Algorithm(trainer=trainer, mechanism=mechanism, aggregation=aggregation)
                    found[f"{training}, {noise}{way}"] = algorithm.for_population(HELD.population, 18)
                    found[f"{training}, {noise}{way}"].planned_releases(1, HELD.population)
                except DiscreetError:  # refused, so nothing of it is ever sent
                    found.pop(f"{training}, {noise}{way}", None)
    return found


EVERY = algorithms()


def encode_uploads(algorithm: Algorithm, held: Federation) -> torch.Tensor:
    """Return a row for each client, before noise, including values that are sent in addition to the update."""
    simulation = Simulation(algorithm, held, loss(), RunKey.from_seed(5))
    broadcast = algorithm.broadcast(algorithm.init(PARAMS), 0)
    found = simulation.step(broadcast, [0, 1, 2])
    return flatten(found.rows if found.clean is None else found.clean, leading=1).double()


def sensitivity_bound(algorithm: Algorithm) -> float:
    """Return how far one unit may move the sum, in the units of what is sent: integers, or the clip norm."""
    noise = algorithm.mechanism.sum_noise(algorithm.grid(HELD.population))
    return float(getattr(noise, "l2_sensitivity", 1.0))


def test_every_kind_is_here():
    (union, *_) = get_args(AnyMechanism)
    assert {type(each) for each in MECHANISMS.values()} == set(get_args(union))
    assert len(EVERY) > 90
    for training in ("broadcast_gradients", "convex_local", "proximal_local", "shards", "local_sgd"):
        assert f"{training}, skellam" in EVERY


@pytest.mark.parametrize("name", [name for name, each in EVERY.items() if each.mechanism.unit == "client"])
def test_no_client_sends_more_than_is_priced(name: str):
    algorithm = EVERY[name]
    if algorithm.mechanism.is_private:
        order = algorithm.mechanism.norm_order
        assert float(encode_uploads(algorithm, HELD).norm(p=order, dim=1).max()) <= sensitivity_bound(algorithm) * (
            1 + 1e-12
        )


@pytest.mark.parametrize("name", [name for name, each in EVERY.items() if each.mechanism.unit == "example"])
def test_no_example_moves_what_its_client_sends_by_more_than_is_priced(name: str):
    """An example with NaN adds nothing, and every other example keeps its place and its coin."""
    algorithm = EVERY[name]
    times = algorithm.trainer.exposure(0).sums(0).times
    integers = isinstance(algorithm.mechanism, IntegerNoise)
    # each of the sums by its own sensitivity; real ones by 1/√times each
    most = times * sensitivity_bound(algorithm) if integers else times**0.5
    whole = encode_uploads(algorithm, HELD)
    for example in range(7):  # the first client's
        moved = (encode_uploads(algorithm, remove_example(example)) - whole).norm(dim=1)
        assert float(moved[0]) <= most * (1 + 1e-6)
        assert moved[1:].tolist() == [0, 0]


def remove_example(example: int) -> Federation:
    gone = replace(HELD, inputs=HELD.inputs.clone())
    gone.inputs[example] = torch.nan  # a federation is checked when it is built, and this one was valid then
    return gone


@pytest.mark.parametrize(
    ("name", "part", "field", "given"),
    [
        ("broadcast_gradients, skellam, examples", "trainer", "expected_batch", 1e-3),
        ("broadcast_gradients, skellam, examples", "trainer", "expected_batch", 1e6),
        ("proximal_local, skellam, examples", "trainer", "fewest_steps", 10**6),
        ("shards, skellam, examples", "mechanism", "shares", 1),
        ("shards, shares, examples", "mechanism", "shares", 1),
        ("shards, skellam, examples", "aggregation", "scale", 5.0),
    ],
)
def test_a_number_that_follows_from_the_clients_lowers_no_price_when_it_is_given(
    name: str, part: str, field: str, given: float
):
    """A given number is used both where noise is drawn and where it is priced, or it is computed again."""
    fitted = EVERY[name]
    changed = replace(fitted, **{part: replace(getattr(fitted, part), **{field: given})})  # type: ignore[arg-type]
    if part == "mechanism" and isinstance(changed.aggregation, Lattice):
        changed = replace(changed, aggregation=Lattice())  # larger shares can't be drawn on so fine a lattice
    changed = changed.for_population(HELD.population, 18)
    before, after = (
        {
            each.view: accountant.epsilon(each.event, 1e-5, each.relation)
            for each in algorithm.planned_releases(3, HELD.population)
        }
        for algorithm in (fitted, changed)
    )
    if field != "shares":  # fewer shares are larger: more noise than is accounted for
        assert all(after[view] >= before[view] * (1 - 1e-6) for view in before)
    times = changed.trainer.exposure(0).sums(0).times
    most = times * sensitivity_bound(changed) if isinstance(changed.mechanism, IntegerNoise) else times**0.5
    whole = encode_uploads(changed, HELD)
    for example in range(7):
        assert float((encode_uploads(changed, remove_example(example)) - whole).norm(dim=1)[0]) <= most * (1 + 1e-6)


def test_integers_that_training_made_are_never_taken_for_clipped_ones():
    """A mechanism with its own clip and a lattice check the norm of whatever a trainer returns."""
    mechanism = IntegerNoise(kind="skellam", clip_norm=CLIP, noise_multiplier=NOISE)
    rows: Params = {"w": torch.full((2, 3), 10**6)}
    announced = mechanism.announce(mechanism.init({"w": torch.zeros(3)}), None)
    with pytest.raises(UnsoundCombination, match="must be clipped before it is rounded"):
        mechanism.bound(rows, Broadcast(0, {"w": torch.zeros(3)}, announced, Encoding(100.0, 32)))
    streams = RunKey.from_seed(1).rows(0, b"", [0, 1], CPU)
    with pytest.raises(DiscreetError, match="Clip before scaling"):
        Lattice(scale=100.0, dimension=3).encode(rows, Encoding(100.0, 32), streams, bounded=True)


def test_gradients_at_the_broadcast_model_are_clipped_as_a_whole_for_whole_clients():
    """Earlier they were put onto the lattice sum by sum, unclipped: norms of 1e10 where 1e6 was priced."""
    trainer = BroadcastGradients(steps=4, sampling_rate=0.9, clip_norm=1.0, learning_rate=100.0)
    skellam = IntegerNoise(kind="skellam", clip_norm=CLIP, noise_multiplier=NOISE)
    algorithm = Algorithm(trainer=trainer, mechanism=skellam, aggregation=Lattice()).for_population(HELD.population, 18)
    assert float(encode_uploads(algorithm, HELD).norm(dim=1).max()) <= sensitivity_bound(algorithm)

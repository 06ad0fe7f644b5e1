"""Gradients at the broadcast model: one example reaches no further than is said, and shares of noise add up."""

import math

import pytest
import torch

from discreet.algorithms import Algorithm, ddp_fedavg
from discreet.algorithms.claims import stated
from discreet.batches import Batches
from discreet.broadcast import Broadcast
from discreet.engines.engine import Simulation
from discreet.engines.reference import ReferenceEngine
from discreet.errors import InvalidInput, UnsoundCombination
from discreet.federation import Federation
from discreet.mechanisms import DistributedGaussian
from discreet.population import Population
from discreet.privacy import accountant
from discreet.privacy.events import GaussianNoise, PoissonSampled, steps
from discreet.randomness import RunKey
from discreet.sparsifiers import RandomK, TopK
from discreet.training import BroadcastGradients, LocalSgd
from tests.federations import cross_entropy, federation, linear

TRAINER = BroadcastGradients(steps=3, sampling_rate=1.0, clip_norm=0.5, learning_rate=2.0)
NOISY = DistributedGaussian(noise_multiplier=4.0)


def update(trainer: BroadcastGradients, held: Federation, expected_batch: float) -> torch.Tensor:
    """The first client's, as one vector; with every example in every batch."""
    fixed = BroadcastGradients(
        steps=trainer.steps,
        sampling_rate=1.0,
        clip_norm=trainer.clip_norm,
        learning_rate=trainer.learning_rate,
        expected_batch=expected_batch,
    )
    batches = Batches(held.inputs, held.targets, (0,), (held.sizes[0],))
    rows = RunKey.seed(0).rows(0, b"", [0], torch.device("cpu"))
    delta = fixed.train(cross_entropy, Broadcast(0, linear(), {}), batches, rows)
    return torch.cat([value.flatten() for value in delta.values()])


def test_one_example_more_moves_the_update_by_at_most_its_reach():
    held = federation(6)
    fewer = Federation(held.inputs[:5], held.targets[:5], (5,))
    fitted = TRAINER.fitted(held.population)
    assert fitted.expected_batch == 6
    moved = (update(TRAINER, held, 6.0) - update(TRAINER, fewer, 6.0)).norm()
    per_step = 2.0 * 0.5 / 6  # η·C/B in each of 3 sums, all alike here
    assert moved == pytest.approx(3 * per_step, rel=1e-4)
    assert fitted.reach(0) == pytest.approx(math.sqrt(3) * per_step)  # noise of z·reach is z for each of the 3


def test_noise_of_all_shares_is_the_noise_that_is_accounted():
    """False alarms below 1e-6: the variance of 4,000 normals is within 5.5·√(2/4000) of its mean."""
    algorithm = Algorithm(trainer=TRAINER, mechanism=NOISY).fitted(Population(examples=(4, 9, 6)))
    wide = {"weight": torch.zeros(800, 5, dtype=torch.float64)}

    def flat(params: dict[str, torch.Tensor], inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return params["weight"].sum() * torch.zeros(len(inputs), dtype=torch.float64)

    sim = Simulation(algorithm, federation(4, 9, 6), flat, RunKey.seed(3))
    state = algorithm.init(wide)
    broadcast = algorithm.broadcast(state, 0)
    gathered = ReferenceEngine(sim).gather(broadcast, [0, 1, 2])
    after = algorithm.server_step(state, broadcast, gathered.total, 3, sim.population, sim.rows(broadcast, [-1]))
    reach = algorithm.trainer.reach(0)
    assert reach is not None
    expected = (4.0 * reach / 3) ** 2  # the mean of three clients: the sum over 3
    assert after.params["weight"].var() == pytest.approx(expected, rel=5.5 * math.sqrt(2 / 4000))


def test_sums_are_counted_at_the_whole_noise_and_uploads_at_one_share():
    population = Population(examples=(100,) * 16)
    algorithm = ddp_fedavg(
        learning_rate=1, clip_norm=1, sampling_rate=0.1, local_steps=5, noise="gaussian", noise_multiplier=4.0
    ).fitted(population)
    found = {each.view: each for each in algorithm.over(3, population)}
    assert set(found) == {"server", "public"}
    for view, noise in (("public", 4.0), ("server", 1.0)):
        step = PoissonSampled(sampling_rate=0.1, event=GaussianNoise(noise_multiplier=noise))
        assert steps(found[view].event) == {step: 15}  # type: ignore[index]
        assert (found[view].unit, found[view].relation) == ("example", "add_or_remove")  # type: ignore[index]


def test_at_the_local_state_only_the_share_is_certified_and_the_theorem_is_a_claim():
    """Table 1 of paper 002: 10 steps at rate 0.1 of noise 0.9020 are ε = 3.53, and 10 clients' noise 0.48 (exact)."""
    population = Population(examples=(100,) * 10)
    algorithm = ddp_fedavg(
        learning_rate=1,
        clip_norm=1,
        sampling_rate=0.1,
        local_steps=10,
        gradients="local",
        noise_multiplier=0.9020,
        as_published=True,
    )
    (release,) = algorithm.over(1, population)
    assert (release.unit, release.view) == ("example", "server")
    assert accountant.epsilon(release.event, 1e-5, "add_or_remove") == pytest.approx(3.53, abs=0.01)
    (claim,) = stated(algorithm, 1, population)
    assert claim.source == "by paper 002's Theorem 4.6"
    assert accountant.epsilon(claim.release.event, 1e-5, "add_or_remove") == pytest.approx(0.48, abs=0.01)


def test_bad_combinations_are_refused():
    with pytest.raises(InvalidInput, match=r"protects examples, and the training 'local_sgd' doesn't bound"):
        Algorithm(trainer=LocalSgd(learning_rate=1, batch_size=1, epochs=1), mechanism=NOISY)
    with pytest.raises(UnsoundCombination, match=r"'top_k' chooses by the update itself"):
        Algorithm(trainer=TRAINER, mechanism=NOISY, sparsifier=TopK(fraction=0.5))
    with pytest.raises(UnsoundCombination, match=r"'random_k' chooses|move the update by more"):
        Algorithm(trainer=TRAINER, mechanism=NOISY, sparsifier=RandomK(fraction=0.5, scaled=True))
    with pytest.raises(UnsoundCombination, match=r"may lie in 2 clients, each of which would move the sum"):
        Algorithm(trainer=TRAINER, mechanism=NOISY).fitted(Population(examples=(1, 1), max_multiplicity=2))
    with pytest.raises(InvalidInput, match=r"gradients must be"):
        ddp_fedavg(learning_rate=1, clip_norm=1, sampling_rate=0.1, gradients="global")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"as_published goes with"):
        ddp_fedavg(learning_rate=1, clip_norm=1, sampling_rate=0.1, as_published=True)

"""Gradients at the broadcast model: one example moves an update by at most its sensitivity; noise shares add up."""

import math
from statistics import NormalDist

import pytest
import torch

from discreet.algorithms import claims
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.claims import explain_local_state, paper_claims
from discreet.algorithms.mechanisms import DistributedGaussian
from discreet.algorithms.population import Population
from discreet.algorithms.recipes.ddp_fedavg import ddp_fedavg
from discreet.algorithms.sparsifiers import RandomK, TopK
from discreet.algorithms.training import BroadcastGradients, LocalSgd
from discreet.algorithms.training.batches import Batches
from discreet.data.federation import Federation
from discreet.engines.engine import Simulation
from discreet.engines.reference import ReferenceEngine
from discreet.errors import InvalidInput, UnsoundCombination
from discreet.params import flatten
from discreet.privacy import accountant
from discreet.privacy.events import GaussianNoise, PoissonSampled, steps
from discreet.randomness.streams import RunKey
from discreet.secure_sums.lattice.lattice_encoding import Encoding
from examples import counterexample
from tests.federations import cross_entropy, federation, linear

TRAINER = BroadcastGradients(steps=3, sampling_rate=1.0, clip_norm=0.5, learning_rate=2.0)
NOISY = DistributedGaussian(noise_multiplier=4.0)


def update(trainer: BroadcastGradients, held: Federation, expected_batch: float) -> torch.Tensor:
    """Return the first client's update as one vector, with every example in every batch."""
    fixed = BroadcastGradients(
        steps=trainer.steps,
        sampling_rate=1.0,
        clip_norm=trainer.clip_norm,
        learning_rate=trainer.learning_rate,
        expected_batch=expected_batch,
    )
    batches = Batches(held.inputs, held.targets, (0,), (held.sizes[0],))
    rows = RunKey.from_seed(0).rows(0, b"", [0], torch.device("cpu"))
    delta = fixed.train(cross_entropy, Broadcast(0, linear(), {}), batches, rows)
    return torch.cat([value.flatten() for value in delta.values()])


def test_one_example_more_moves_the_update_by_at_most_its_reach():
    held = federation(6)
    fewer = Federation(held.inputs[:5], held.targets[:5], (5,))
    fitted = TRAINER.for_population(held.population)
    assert fitted.expected_batch == 6
    moved = (update(TRAINER, held, 6.0) - update(TRAINER, fewer, 6.0)).norm()
    per_step = 2.0 * 0.5 / 6  # η·C/B in each of 3 sums, all equal here
    assert moved == pytest.approx(3 * per_step, rel=1e-4)
    assert fitted.exposure(0).example.sensitivity == pytest.approx(
        math.sqrt(3) * per_step
    )  # noise of z·sensitivity is z for each of the 3


def test_noise_of_all_shares_is_the_noise_that_is_accounted():
    """False alarms below 1e-6: the variance of 4,000 normals is within 5.5·√(2/4000) of its mean."""
    algorithm = Algorithm(trainer=TRAINER, mechanism=NOISY).for_population(Population(examples=(4, 9, 6)))
    wide = {"weight": torch.zeros(800, 5, dtype=torch.float64)}

    def flat(params: dict[str, torch.Tensor], inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return params["weight"].sum() * torch.zeros(len(inputs), dtype=torch.float64)

    sim = Simulation(algorithm, federation(4, 9, 6), flat, RunKey.from_seed(3))
    state = algorithm.init(wide)
    broadcast = algorithm.broadcast(state, 0)
    gathered = ReferenceEngine(sim).gather(broadcast, [0, 1, 2])
    after = algorithm.server_step(state, broadcast, gathered.total, 3, sim.population, sim.rows(broadcast, [-1]))
    reach = algorithm.sensitivity(0)
    assert reach is not None
    expected = (4.0 * reach / 3) ** 2  # the mean of three clients: the sum over 3
    assert after.params["weight"].var() == pytest.approx(expected, rel=5.5 * math.sqrt(2 / 4000))


def test_sums_are_counted_at_the_whole_noise_and_uploads_at_one_share():
    population = Population(examples=(100,) * 16)
    algorithm = ddp_fedavg(
        learning_rate=1, clip_norm=1, sampling_rate=0.1, local_steps=5, noise="gaussian", noise_multiplier=4.0
    ).for_population(population)
    found = {each.view: each for each in algorithm.planned_releases(3, population)}
    for view, noise in {"public": 4.0, "client": 15**0.5, "server": 1.0}.items():  # a client knows one of 16 shares
        step = PoissonSampled(sampling_rate=0.1, event=GaussianNoise(noise_multiplier=noise))
        assert steps(found[view].event) == pytest.approx({step: 15})  # type: ignore[index]
        assert (found[view].unit, found[view].relation) == ("example", "zero_out")  # type: ignore[index]


def test_at_the_local_state_only_the_share_is_certified_and_the_theorem_is_a_claim():
    """Heikkilä's Table 1: 10 steps at rate 0.1 of noise 0.9020 are ε = 3.53, and 10 clients' noise 0.48 (exact)."""
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
    (release,) = algorithm.planned_releases(1, population)
    assert (release.unit, release.view) == ("example", "server")
    assert accountant.epsilon(release.event, 1e-5, "zero_out") == pytest.approx(3.53, abs=0.01)
    (claim,) = paper_claims(algorithm, 1, population)
    assert claim.source == "by Theorem 4.6 of Heikkilä 2025"
    assert accountant.epsilon(claim.release.event, 1e-5, "zero_out") == pytest.approx(0.48, abs=0.01)


@pytest.mark.parametrize(("steps", "reason"), [(1, "sent in clear"), (2, "a client's later steps")])
def test_the_theorem_is_a_claim_for_the_reason_that_applies(steps: int, reason: str):
    """With one step in a round there are no later steps, but each update is still sent to the server separately."""
    algorithm = ddp_fedavg(
        learning_rate=1,
        clip_norm=1,
        sampling_rate=0.1,
        local_steps=steps,
        gradients="local",
        noise_multiplier=1.0,
        as_published=True,
    )
    (claim,) = paper_claims(algorithm, 3, Population(examples=(100,) * 10))
    assert reason in claim.reason
    assert ("later steps" in claim.reason) == (steps > 1)


def test_the_numbers_of_the_counterexample_follow_from_its_noise():
    """Φ̄(3.0902 − √2/4) = 3.1 in 1,000 is allowed, and Φ̄(3.0902 − √10/4) = 10.7 are recognised."""
    normal = NormalDist()
    allowed, recognised = (1000 * (1 - normal.cdf(normal.inv_cdf(0.999) - mu / 4)) for mu in (2**0.5, 10**0.5))
    assert (
        f"recognise {allowed:.1f} in 1,000 at 1 false alarm, and one recognises {recognised:.1f}"
        in explain_local_state()
    )
    assert (round(allowed, 1), round(recognised, 1)) == (3.1, 10.7)
    own = (counterexample.CLIENTS, counterexample.STEPS, counterexample.NOISE)
    assert own == (claims.CLIENTS, claims.STEPS, claims.NOISE)


def relative_move(examples: int, dtype: torch.dtype) -> float:
    """Return how far one of `examples` equal examples moves their rounded sum, divided by the clip norm."""
    found = []
    for held in (examples, examples - 1):
        inputs = torch.rand(1, 64, generator=torch.Generator().manual_seed(3)).expand(held, 64).contiguous()
        model = {"weight": torch.zeros(10, 64, dtype=dtype), "bias": torch.zeros(10, dtype=dtype)}
        batches = Batches(inputs.to(dtype), torch.zeros(held, dtype=torch.long), (0,), (held,))
        fixed = BroadcastGradients(steps=1, sampling_rate=1.0, clip_norm=1.0, learning_rate=1.0, expected_batch=1.0)
        announced = {"clip": torch.ones((), dtype=torch.float64)}
        told = Broadcast(0, model, announced, Encoding(2.0**30, 62))
        rows = RunKey.from_seed(0).rows(0, b"", [0], torch.device("cpu"))
        found.append(flatten(fixed.train(cross_entropy, told, batches, rows), leading=1))
    return float((found[0] - found[1]).double().norm()) / 2.0**30


@pytest.mark.parametrize("examples", [512, 5632, 40 * 500 + 1, 40 * 508 + 1])
def test_a_large_sum_in_single_precision_is_moved_by_no_more_than_the_clip(examples: int):
    """Pieces of at most 512 examples; one example more or less may change them all. Added in single precision,
    one of 20,321 examples moved the sum by 1.0025 clips."""
    assert relative_move(examples, torch.float32) <= 1
    assert relative_move(512, torch.float64) <= 1


def test_bad_combinations_are_refused():
    with pytest.raises(InvalidInput, match=r"protects examples, and the training 'local_sgd' doesn't bound"):
        Algorithm(trainer=LocalSgd(learning_rate=1, batch_size=1, epochs=1), mechanism=NOISY)
    with pytest.raises(UnsoundCombination, match=r"'top_k' chooses by the update itself"):
        Algorithm(trainer=TRAINER, mechanism=NOISY, sparsifier=TopK(fraction=0.5))
    with pytest.raises(UnsoundCombination, match=r"'random_k' chooses|move the update by more"):
        Algorithm(trainer=TRAINER, mechanism=NOISY, sparsifier=RandomK(fraction=0.5, scaled=True))
    with pytest.raises(UnsoundCombination, match=r"2 clients may hold the same example, and each would move the sum"):
        Algorithm(trainer=TRAINER, mechanism=NOISY).for_population(Population(examples=(1, 1), max_multiplicity=2))
    with pytest.raises(InvalidInput, match=r"gradients must be"):
        ddp_fedavg(learning_rate=1, clip_norm=1, sampling_rate=0.1, gradients="global")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"as_published goes with"):
        ddp_fedavg(learning_rate=1, clip_norm=1, sampling_rate=0.1, as_published=True)

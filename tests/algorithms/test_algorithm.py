"""Algorithms: what they reveal is derived from the parts that run."""

from typing import Any

import pytest
import torch

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.claims import paper_claims
from discreet.algorithms.mechanisms import DistributedGaussian, Gaussian, LocalNoise
from discreet.algorithms.population import Population
from discreet.algorithms.recipes.dp_fedavg import dp_fedavg
from discreet.algorithms.recipes.dp_fedsam import dp_fedsam_top
from discreet.algorithms.recipes.fedavg import fedavg
from discreet.algorithms.recipes.ldp_fedavg import ldp_fedavg
from discreet.algorithms.recipes.pfl import pfl
from discreet.algorithms.sampling import Everyone, FixedSize, Poisson, RoundRobin
from discreet.algorithms.sparsifiers import PublishedTopK
from discreet.algorithms.training import DpSgd, GradientDescent, LocalSgd
from discreet.algorithms.training.gradient_rules import L2Clip
from discreet.engines.engine import Simulation
from discreet.errors import InvalidInput, UnsoundCombination
from discreet.experiment.promise.calibrate import calibrate_noise
from discreet.experiment.promise.promise import Privacy
from discreet.params import norms, zeros_like
from discreet.part import from_plain, to_plain
from discreet.privacy.accountant import epsilon
from discreet.privacy.events import GaussianNoise, LaplaceNoise, PoissonSampled, SampledWithoutReplacement, steps
from discreet.randomness.streams import RunKey
from tests.federations import CPU, cross_entropy, federation, linear

TEN = Population(examples=(20,) * 10)
LOCAL: dict[str, Any] = {"learning_rate": 0.1, "batch_size": 5}


def test_pfl_protects_examples_from_the_server() -> None:
    algorithm = pfl(learning_rate=1, clip_norm=1, sampling_rate=0.25, local_steps=3, noise_multiplier=2.0)
    (release,) = algorithm.planned_releases(10, TEN)
    assert (release.unit, release.view, release.relation) == ("example", "server", "zero_out")
    sampled = PoissonSampled(sampling_rate=0.25, event=GaussianNoise(noise_multiplier=2.0))
    assert steps(release.event) == {sampled: 30}


def test_an_example_in_three_clients_pays_three_times() -> None:
    algorithm = pfl(learning_rate=1, clip_norm=1, sampling_rate=0.25, noise_multiplier=2.0)
    (release,) = algorithm.planned_releases(10, Population(examples=(20,) * 10, max_multiplicity=3))
    assert sum(steps(release.event).values()) == 30


def test_dp_fedavg_protects_clients_from_the_public_only() -> None:
    algorithm = dp_fedavg(**LOCAL, clip_norm=1, sampling_rate=0.2, noise_multiplier=2.0)
    (release,) = algorithm.planned_releases(10, TEN)
    assert (release.unit, release.view) == ("client", "public")
    assert steps(release.event) == {PoissonSampled(sampling_rate=0.2, event=GaussianNoise(noise_multiplier=2.0)): 10}


def test_where_the_draw_is_part_of_the_price_everyone_pays() -> None:
    secret = dp_fedavg(**LOCAL, clip_norm=1, sampling=Poisson(rate=0.2), noise_multiplier=2.0)
    known = dp_fedavg(**LOCAL, clip_norm=1, sampling=RoundRobin(cohort=2), noise_multiplier=2.0)
    assert secret.releases(TEN, 0, cohort=(1, 2))[0].clients is None
    assert known.releases(TEN, 0, cohort=(1, 2))[0].clients == (1, 2)


def test_a_fixed_cohort_is_priced_under_replacement() -> None:
    (release,) = dp_fedavg(**LOCAL, clip_norm=1, sampling=FixedSize(cohort=2), noise_multiplier=2.0).releases(TEN, 0)
    assert release.relation == "replace"
    assert isinstance(release.event, SampledWithoutReplacement)


def test_in_a_round_robin_a_client_pays_for_the_rounds_it_joins() -> None:
    algorithm = dp_fedavg(**LOCAL, clip_norm=1, sampling=RoundRobin(cohort=2), noise_multiplier=2.0)
    (release,) = algorithm.planned_releases(10, TEN)
    assert steps(release.event) == {GaussianNoise(noise_multiplier=2.0): 2}


def test_fedavg_promises_nothing() -> None:
    assert fedavg(**LOCAL).planned_releases(10, TEN) == []


def test_weights_by_examples_under_a_clip_are_refused_with_what_to_use() -> None:
    with pytest.raises(UnsoundCombination, match='weighting = "uniform"'):
        Algorithm(trainer=LocalSgd(**LOCAL, epochs=1), mechanism=Gaussian(clip_norm=1.0), weighting="by_examples")


def test_under_a_clip_a_client_with_many_examples_counts_no_more_than_one_with_few() -> None:
    """Weighting by counts after the clip would let the largest client move the sum by more than its price covers."""
    algorithm = dp_fedavg(learning_rate=100.0, batch_size=2, clip_norm=0.5, sampling_rate=0.5, noise_multiplier=1.0)
    data = federation(2, 40)
    simulation = Simulation(algorithm, data, cross_entropy, RunKey.from_seed(1))
    sent = simulation.step(algorithm.broadcast(algorithm.init(linear()), 0), [0, 1])
    assert norms(sent.rows).tolist() == pytest.approx([1, 1], rel=1e-4)  # both at the clip, which is the unit
    assert simulation.weights([0, 1]).tolist() == [1, 1]


def test_a_round_that_nobody_joined_moves_the_model_by_the_servers_noise() -> None:
    """Otherwise an unchanged model would reveal that nobody was drawn."""
    algorithm = dp_fedavg(**LOCAL, clip_norm=1, sampling_rate=0.2, noise_multiplier=2.0)
    state = algorithm.init(linear())
    broadcast, noise = algorithm.broadcast(state, 0), RunKey.from_seed(1).rows(0, b"", [-1], CPU)
    moved = algorithm.server_step(state, broadcast, zeros_like(linear()), 0, TEN, noise).params
    assert all(bool((moved[name] != value).all()) for name, value in state.params.items())


@pytest.mark.parametrize("rounds", [1, 7])
def test_every_round_that_a_client_joins_is_counted(rounds: int) -> None:
    for algorithm, each in (
        (pfl(learning_rate=1, clip_norm=1, sampling_rate=0.25, local_steps=3, noise_multiplier=2.0), 3),
        (dp_fedavg(**LOCAL, clip_norm=1, sampling_rate=0.2, noise_multiplier=2.0), 1),
    ):
        (release,) = algorithm.planned_releases(rounds, TEN)
        assert sum(steps(release.event).values()) == each * rounds
        assert sum(sum(steps(one.event).values()) for r in range(rounds) for one in algorithm.releases(TEN, r)) == (
            each * rounds
        )


@pytest.mark.parametrize(
    "algorithm",
    [
        fedavg(**LOCAL),
        pfl(learning_rate=1, clip_norm=1, sampling_rate=0.25),
        dp_fedavg(**LOCAL, clip_norm=1, sampling_rate=0.2, noise_multiplier=2.0),
    ],
    ids=lambda a: a.trainer.kind,
)
def test_an_algorithm_is_its_own_configuration(algorithm: Algorithm) -> None:
    assert from_plain(Algorithm, to_plain(algorithm)) == algorithm


def test_noise_that_is_open_is_filled_from_outside() -> None:
    assert pfl(learning_rate=1, clip_norm=1, sampling_rate=0.25).planned_releases(1, TEN) == []
    assert pfl(learning_rate=1, clip_norm=1, sampling_rate=0.25).with_noise(3.0).trainer.noise_multiplier == 3.0


@pytest.mark.parametrize(
    ("epsilon", "examples", "sigma"),
    [(2.93, 6000, 1.531), (1.2, 6000, 3.042), (2.7, 6000, 1.619), (7.53, 5000, 0.943), (3.0, 5000, 1.621)],
)
def test_pfls_noise_follows_from_all_its_epochs(epsilon: float, examples: int, sigma: float) -> None:
    """The paper's budgets with batches of 256 at delta 1e-5: PLD's noise, however the epochs are split into rounds."""
    population = Population(examples=(examples,) * 10)
    promised = Privacy(unit="example", against="server", epsilon=epsilon, delta=1e-5)
    for rounds, each in ((20, 1), (4, 5), (1, 20), (3, [10, 6, 4])):
        open_noise = pfl(learning_rate=0.3, clip_norm=1, batch_size=256, epochs=each)
        trainer = calibrate_noise(open_noise, promised, rounds, population).trainer
        assert trainer.noise_multiplier == pytest.approx(sigma, abs=2e-3)


def test_algorithm_1_of_pfl_reads_an_epoch_as_one_minibatch() -> None:
    population = Population(examples=(6000,) * 10)
    algorithm = pfl(learning_rate=1, clip_norm=1, batch_size=256, epochs=5, epoch="minibatch", noise_multiplier=1.0)
    (release,) = algorithm.planned_releases(4, population)
    sampled = PoissonSampled(sampling_rate=1 / 24, event=GaussianNoise(noise_multiplier=1.0))
    assert steps(release.event) == {sampled: 20}


def test_rounds_that_differ_are_refused_where_clients_take_turns() -> None:
    changing = DpSgd(steps=(3, 1), sampling_rate=0.5, clip_norm=1, learning_rate=1, noise_multiplier=1.0)
    for sampling in (RoundRobin(cohort=2), Shifts()):
        with pytest.raises(UnsoundCombination, match="take turns"):
            Algorithm(trainer=changing, sampling=sampling).planned_releases(10, TEN)  # type: ignore[arg-type]
    assert Algorithm(trainer=changing, sampling=RoundRobin(cohort=10)).planned_releases(10, TEN)


class Shifts:
    """A sampler of one's own, whose clients take turns too."""

    relation = "add_or_remove"

    def sample(self, population: Population, round: int, generator: torch.Generator) -> list[int]:
        return list(range(round % 2, population.clients, 2))

    def expected_cohort(self, population: Population) -> float:
        return population.clients / 2

    def rounds_joined(self, population: Population, rounds: int) -> int:
        return -(-rounds // 2)


def test_noise_of_ones_own_protects_a_clients_whole_data_from_the_server() -> None:
    """Fu et al.'s setting: exact composition over the rounds that a client joins; taking turns amplifies nothing."""
    algorithm = Algorithm(
        sampling=RoundRobin(cohort=2),
        trainer=LocalSgd(**LOCAL, epochs=1),
        mechanism=LocalNoise(kind="local_laplace", clip_norm=1.0, noise_multiplier=8.0),
    )
    (release,) = algorithm.planned_releases(10, TEN)
    assert (release.unit, release.view, release.relation) == ("client", "server", "replace")
    assert steps(release.event) == {LaplaceNoise(noise_multiplier=8.0): 2}
    assert epsilon(release.event, 1e-12, "replace") == pytest.approx(2 * 2 / 8, rel=1e-3)  # T_l·2ζ/b


def test_shared_noise_says_what_the_sum_hides_and_what_an_upload_alone_does() -> None:
    algorithm = Algorithm(
        trainer=LocalSgd(**LOCAL, epochs=1), mechanism=DistributedGaussian(clip_norm=1.0, noise_multiplier=2.0)
    ).for_population(TEN)
    upload, whole, less_one = algorithm.planned_releases(1, TEN)
    assert (upload.view, upload.relation) == ("server", "replace")
    assert upload.event == GaussianNoise(noise_multiplier=2.0 / 10**0.5)
    assert (whole.view, whole.relation, whole.event) == ("public", "add_or_remove", GaussianNoise(noise_multiplier=2.0))
    assert (less_one.view, less_one.relation) == ("client", "zero_out")  # a participant knows its own share
    assert less_one.event == GaussianNoise(noise_multiplier=2.0 * 0.9**0.5)


def test_a_client_alone_has_nobody_who_knows_a_share_and_central_noise_is_nobodys() -> None:
    alone = Population(examples=(100,))
    shared = DistributedGaussian(clip_norm=1.0, noise_multiplier=2.0)
    for mechanism in (shared, Gaussian(clip_norm=1.0, noise_multiplier=2.0)):
        algorithm = Algorithm(trainer=LocalSgd(**LOCAL, epochs=1), mechanism=mechanism).for_population(alone)
        assert "client" not in {each.view for each in algorithm.planned_releases(1, alone)}


def test_topped_up_to_a_constant_shared_noise_hides_who_was_drawn() -> None:
    """Ten shares for ten clients, of whom half are drawn: the server adds what is missing, so the sum has z = 2."""
    algorithm = Algorithm(
        sampling=Poisson(rate=0.5),
        trainer=LocalSgd(**LOCAL, epochs=1),
        mechanism=DistributedGaussian(clip_norm=1.0, noise_multiplier=2.0),
    ).for_population(TEN)
    upload, whole, less_one = algorithm.releases(TEN, 0, cohort=(1, 2))
    assert (upload.view, upload.relation, upload.clients) == ("server", "replace", (1, 2))
    assert upload.event == GaussianNoise(noise_multiplier=2.0 / 10**0.5)  # the server knows what it added itself
    assert (whole.view, whole.relation, whole.clients) == ("public", "add_or_remove", None)
    assert whole.event == PoissonSampled(sampling_rate=0.5, event=GaussianNoise(noise_multiplier=2.0))
    assert less_one.event == GaussianNoise(noise_multiplier=2.0 * 0.9**0.5)  # participants know it


@pytest.mark.parametrize("sampling", [Poisson(rate=0.5), Everyone(), RoundRobin(cohort=6)], ids=lambda s: s.kind)
def test_with_fewer_shares_than_may_join_the_noise_shows_how_many_did(sampling: Any) -> None:
    """Then the content of an update is hidden but not that the client joined, and a secret draw amplifies nothing."""
    algorithm = Algorithm(
        sampling=sampling,
        trainer=LocalSgd(**LOCAL, epochs=1),
        mechanism=DistributedGaussian(clip_norm=1.0, noise_multiplier=2.0, shares=5),
    ).for_population(TEN)
    _, whole, _ = algorithm.releases(TEN, 0)
    assert (whole.view, whole.relation, whole.event) == ("public", "zero_out", GaussianNoise(noise_multiplier=2.0))


def test_shared_noise_promises_nothing_before_its_shares_are_known() -> None:
    trainer, mechanism = LocalSgd(**LOCAL, epochs=1), DistributedGaussian(clip_norm=1.0, noise_multiplier=2.0)
    assert Algorithm(sampling=Poisson(rate=0.5), trainer=trainer, mechanism=mechanism).planned_releases(1, TEN) == []


def test_noise_without_a_clip_needs_training_that_bounds_its_updates() -> None:
    with pytest.raises(InvalidInput, match="no clip_norm"):
        Algorithm(trainer=LocalSgd(**LOCAL, epochs=1), mechanism=LocalNoise(kind="local_laplace"))


def test_the_last_of_fu_et_als_rounds_is_shorter() -> None:
    algorithm = ldp_fedavg(learning_rate=0.1, gradient_bound=2.0, local_iterations=4, total_iterations=10)
    assert algorithm.trainer.iterations == (4, 4, 2)
    assert [algorithm.sensitivity(round) for round in range(3)] == pytest.approx([0.8, 0.8, 0.4])  # ηEζ


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_as_published_fu_et_als_half_is_a_claim_beside_what_is_certified(noise: str) -> None:
    arguments: dict[str, Any] = {
        "learning_rate": 0.1,
        "gradient_bound": 1.0,
        "noise": noise,
        "cohort": 2,
        "noise_multiplier": 20.0,
    }
    assert paper_claims(ldp_fedavg(**arguments), 10, TEN) == []
    published = ldp_fedavg(**arguments, as_published=True)
    (claim,), (release,) = paper_claims(published, 10, TEN), published.planned_releases(10, TEN)
    claimed = epsilon(claim.release.event, 1e-5, claim.release.relation)
    certified = epsilon(release.event, 1e-5, release.relation)
    assert "twice as far apart" in claim.reason
    assert certified > 1.9 * claimed


def test_shi_et_als_own_order_is_refused_unless_it_is_run_as_published() -> None:
    """With its numbers: z = 0.95, 50 of 500 clients, 200 rounds. The claim is 7.30, as in its accountant's PLD."""
    common: dict[str, Any] = {"learning_rate": 0.1, "batch_size": 5, "clip_norm": 0.2, "noise_multiplier": 0.95}
    with pytest.raises(UnsoundCombination, match="as_published"):
        Algorithm(
            sampling=FixedSize(cohort=2),
            trainer=LocalSgd(**LOCAL, epochs=1),
            sparsifier=PublishedTopK(fraction=0.4),
            mechanism=DistributedGaussian(clip_norm=0.2),
        )
    many = Population(examples=(20,) * 500)
    published = dp_fedsam_top(**common, cohort=50, as_published=True).for_population(many)
    (release,) = published.planned_releases(200, many)  # a single upload, and not the sum
    assert (release.view, release.relation) == ("server", "replace")
    (claim,) = paper_claims(published, 200, many)
    assert epsilon(claim.release.event, 2e-3, claim.release.relation) == pytest.approx(7.301, abs=2e-3)


def test_an_epoch_is_a_pass_or_a_minibatch_and_nothing_else() -> None:
    for wrong in ({"epoch": "mini-batch", "epochs": 1}, {"epoch": "minibatch"}):
        with pytest.raises(InvalidInput, match='"pass" or "minibatch"'):
            pfl(learning_rate=1, clip_norm=1, batch_size=5, **wrong)


def test_laplace_noise_needs_gradients_that_are_bounded_in_its_own_norm() -> None:
    descent = GradientDescent(learning_rate=0.1, iterations=(1,), gradient_clip=L2Clip(bound=1.0))
    with pytest.raises(InvalidInput, match="measured in L1"):
        Algorithm(trainer=descent, mechanism=LocalNoise(kind="local_laplace"))

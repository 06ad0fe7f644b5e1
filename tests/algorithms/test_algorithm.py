"""Algorithms: what they reveal is derived from the parts that run."""

import pytest

from discreet.algorithms import Algorithm, dp_fedavg, fedavg, pfl
from discreet.errors import InvalidInput, UnsoundCombination
from discreet.experiment.promise import Privacy, kept
from discreet.mechanisms import DistributedGaussian, Gaussian, LocalLaplace
from discreet.part import plain, read
from discreet.population import Population
from discreet.privacy.accountant import epsilon
from discreet.privacy.events import GaussianNoise, LaplaceNoise, PoissonSampled, SampledWithoutReplacement, steps
from discreet.sampling import FixedSize, Poisson, RoundRobin
from discreet.training import DpSgd, LocalSgd

TEN = Population(examples=(20,) * 10)
LOCAL = {"learning_rate": 0.1, "batch_size": 5}


def test_pfl_protects_examples_from_the_server() -> None:
    algorithm = pfl(learning_rate=1, clip_norm=1, sampling_rate=0.25, local_steps=3, noise_multiplier=2.0)
    (release,) = algorithm.over(10, TEN)
    assert (release.unit, release.view, release.relation) == ("example", "server", "add_or_remove")
    sampled = PoissonSampled(sampling_rate=0.25, event=GaussianNoise(noise_multiplier=2.0))
    assert steps(release.event) == {sampled: 30}


def test_an_example_in_three_clients_pays_three_times() -> None:
    algorithm = pfl(learning_rate=1, clip_norm=1, sampling_rate=0.25, noise_multiplier=2.0)
    (release,) = algorithm.over(10, Population(examples=(20,) * 10, max_multiplicity=3))
    assert sum(steps(release.event).values()) == 30


def test_dp_fedavg_protects_clients_from_the_public_only() -> None:
    algorithm = dp_fedavg(**LOCAL, clip_norm=1, sampling_rate=0.2, noise_multiplier=2.0)
    (release,) = algorithm.over(10, TEN)
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
    (release,) = algorithm.over(10, TEN)
    assert steps(release.event) == {GaussianNoise(noise_multiplier=2.0): 2}


def test_fedavg_promises_nothing() -> None:
    assert fedavg(**LOCAL).over(10, TEN) == []


def test_weights_by_examples_under_a_clip_are_refused_with_what_to_use() -> None:
    with pytest.raises(UnsoundCombination, match='weighting = "uniform"'):
        Algorithm(trainer=LocalSgd(**LOCAL, epochs=1), mechanism=Gaussian(clip_norm=1.0), weighting="by_examples")


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
    assert read(Algorithm, plain(algorithm)) == algorithm


def test_noise_that_is_open_is_filled_from_outside() -> None:
    assert pfl(learning_rate=1, clip_norm=1, sampling_rate=0.25).over(1, TEN) == []
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
        trainer = kept(open_noise, promised, rounds, population).trainer
        assert trainer.noise_multiplier == pytest.approx(sigma, abs=2e-3)


def test_algorithm_1_of_paper_000_reads_an_epoch_as_one_minibatch() -> None:
    population = Population(examples=(6000,) * 10)
    algorithm = pfl(learning_rate=1, clip_norm=1, batch_size=256, epochs=5, epoch="minibatch", noise_multiplier=1.0)
    (release,) = algorithm.over(4, population)
    sampled = PoissonSampled(sampling_rate=1 / 24, event=GaussianNoise(noise_multiplier=1.0))
    assert steps(release.event) == {sampled: 20}


def test_rounds_that_differ_are_refused_where_clients_take_turns() -> None:
    changing = DpSgd(steps=(3, 1), sampling_rate=0.5, clip_norm=1, learning_rate=1)
    with pytest.raises(UnsoundCombination, match="take turns"):
        Algorithm(trainer=changing, sampling=RoundRobin(cohort=2))


def test_noise_of_ones_own_protects_a_clients_whole_data_from_the_server() -> None:
    """Paper 003's setting: exact composition over the rounds that a client joins; taking turns amplifies nothing."""
    algorithm = Algorithm(
        sampling=RoundRobin(cohort=2),
        trainer=LocalSgd(**LOCAL, epochs=1),
        mechanism=LocalLaplace(clip_norm=1.0, noise_multiplier=8.0),
    )
    (release,) = algorithm.over(10, TEN)
    assert (release.unit, release.view, release.relation) == ("client", "server", "replace")
    assert steps(release.event) == {LaplaceNoise(noise_multiplier=8.0): 2}
    assert epsilon(release.event, 1e-12, "replace") == pytest.approx(2 * 2 / 8, rel=1e-3)  # T_l·2ζ/b


def test_shared_noise_says_what_the_sum_hides_and_what_an_upload_alone_does() -> None:
    algorithm = Algorithm(
        trainer=LocalSgd(**LOCAL, epochs=1), mechanism=DistributedGaussian(clip_norm=1.0, noise_multiplier=2.0)
    ).fitted(TEN)
    upload, whole = algorithm.over(1, TEN)
    assert (upload.view, upload.relation) == ("server", "replace")
    assert upload.event == GaussianNoise(noise_multiplier=2.0 / 10**0.5)
    assert (whole.view, whole.relation, whole.event) == ("public", "zero_out", GaussianNoise(noise_multiplier=2.0))


def test_shared_noise_needs_a_cohort_of_a_known_size() -> None:
    with pytest.raises(UnsoundCombination, match="how many joined"):
        Algorithm(
            sampling=Poisson(rate=0.5),
            trainer=LocalSgd(**LOCAL, epochs=1),
            mechanism=DistributedGaussian(clip_norm=1.0),
        )


def test_noise_without_a_clip_needs_training_that_bounds_its_updates() -> None:
    with pytest.raises(InvalidInput, match="no clip_norm"):
        Algorithm(trainer=LocalSgd(**LOCAL, epochs=1), mechanism=LocalLaplace())

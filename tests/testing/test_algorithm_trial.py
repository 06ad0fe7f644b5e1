"""An algorithm with parts of a user's own is tried in whole rounds before it trains, on no client's data."""

import time
from dataclasses import replace
from typing import Any

import pytest
import torch

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.mechanisms import DistributedGaussian, Gaussian
from discreet.algorithms.population import Population
from discreet.algorithms.sampling import Poisson
from discreet.algorithms.training import LocalSgd
from discreet.params import Params, scale
from discreet.testing import PartFailed, try_algorithm
from tests.testing.test_mechanism_check import Central, HalfNoise, Shares
from tests.testing.test_sampler_check import Coins, OneCoinForAll
from tests.testing.test_server_optimizer_check import Factor, HiddenMomentum, SignStep
from tests.testing.test_sparsifier_check import FirstHalf, LargestAsIndependent, Real, ThinnedNoise
from tests.testing.test_trainer_check import ClippedSum, HalfDeclared, Noisy, ReadsOthers

POPULATION = Population(examples=(20, 9, 11, 30, 8, 15))
LOCAL = LocalSgd(learning_rate=0.1, batch_size=4, steps=2)
GAUSSIAN = Gaussian(clip_norm=0.3, noise_multiplier=1.5)


def model(features: int = 64, classes: int = 10) -> Params:
    return {"weight": torch.randn(classes, features) / 8, "bias": torch.zeros(classes)}


def loss(params: Params, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    logits = torch.nn.functional.linear(inputs, params["weight"], params["bias"])
    return torch.nn.functional.cross_entropy(logits, targets, reduction="none")


def attempt(algorithm: Any) -> list[str]:
    batch = torch.full((2, 64), torch.nan), torch.tensor([-7, 10**6])  # values that training would choke on
    params = model()
    fitted = algorithm.for_population(POPULATION, sum(value.numel() for value in params.values()))
    return try_algorithm(fitted, POPULATION, loss, params, *batch)


def compose(**parts: Any) -> Algorithm:
    return Algorithm(**({"trainer": LOCAL, "mechanism": GAUSSIAN} | parts))


def name_parts(value: Any) -> str:
    return ",".join(type(part).__name__ for part in value.values()) if isinstance(value, dict) else ""


def test_parts_of_ours_are_not_tried() -> None:
    assert attempt(compose()) == []


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"mechanism": Central()}, "Noise on the sum of"),
        ({"sampling": Coins()}, "No client joined more often than the declared rate of 0.3 allows"),
        ({"trainer": ClippedSum()}, "One example moved an update by at most"),
        (
            {"trainer": ClippedSum(), "mechanism": DistributedGaussian(noise_multiplier=2.0)},
            "that one example moved it by",
        ),
        ({"trainer": Noisy()}, "Noise in training was fresh"),
        ({"trainer": replace(LOCAL, schedule=Factor(lambda k: 0.9**k))}, "factors of the schedule twice"),
        ({"sparsifier": FirstHalf()}, "All clients left out the same announced coordinates"),
        ({"aggregation": Real()}, "Encoded, summed and decoded 4 updates"),
        ({"server": SignStep()}, "Took 20 steps of the server twice"),
    ],
    ids=name_parts,
)
def test_a_sound_part_passes_and_the_sentences_say_what_was_tried(parts: Any, sentence: str) -> None:
    tried = attempt(compose(**parts))
    assert any(sentence in each for each in tried)
    assert tried == attempt(compose(**parts))


def test_a_server_optimiser_alone_lets_no_round_be_played() -> None:
    assert len(attempt(compose(server=SignStep()))) == 1


class Amplifier(Real):
    """Passes its own check, since the norm of a row stays; and removes half of the noise from the sum."""

    def decode(self, total: Any, encoding: Any, like: Any) -> Any:
        return total


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"mechanism": HalfNoise()}, r"Noise on the sum of 3 clients has a deviation of"),
        (
            {"mechanism": Shares(), "sampling": Poisson(rate=0.5)},
            r"Noise on the sum of 0 clients has a deviation of 0 times",
        ),
        ({"sampling": OneCoinForAll()}, r"Cohort sizes have a variance of"),
        ({"trainer": HalfDeclared()}, r"One example that was replaced"),
        ({"trainer": ReadsOthers()}, r"Data of one client, replaced by other inputs, changed the update of another"),
        ({"trainer": replace(LOCAL, schedule=Factor(lambda k: -1.0))}, r"A factor must be finite and not negative"),
        ({"sparsifier": LargestAsIndependent()}, r"`depends_on_data` says that it can't"),
        (
            {"sparsifier": ThinnedNoise(), "mechanism": DistributedGaussian(clip_norm=0.3, noise_multiplier=2.0)},
            "noise",
        ),
        ({"aggregation": Amplifier()}, r"The decoded sum is off by"),
        ({"server": HiddenMomentum()}, r"The same 1 steps from the same model gave two results"),
    ],
    ids=name_parts,
)
def test_a_part_that_breaks_its_contract_is_refused(parts: Any, sentence: str) -> None:
    with pytest.raises(PartFailed, match=sentence):
        attempt(compose(**parts))


class LeakyFinish(FirstHalf):
    """Passes alone; in a round it deletes the noise where its common mask is zero and doubles the update elsewhere."""

    def finish(self, sent: Any, announcement: Any) -> Any:
        return scale(sent, 1.0) if "extra" in sent else scale(sent, 2.0)


def test_a_part_that_undoes_the_bound_shows_in_whole_rounds() -> None:
    with pytest.raises(PartFailed, match=r"deviation of 0.7\d+ times the most that one client moves it by, and 1.5"):
        attempt(compose(sparsifier=LeakyFinish()))


def test_a_trial_takes_little_time_and_leaves_the_random_generators_as_they_were() -> None:
    torch.set_num_threads(1)
    algorithm = compose(mechanism=Central(), sampling=Coins(), trainer=Noisy(), server=SignStep())
    state = torch.get_rng_state()
    params = {"weight": torch.zeros(10, 64), "bias": torch.zeros(10)}
    start = time.process_time()
    assert (
        len(try_algorithm(algorithm, POPULATION, loss, params, torch.zeros(1, 64), torch.zeros(1, dtype=torch.int64)))
        > 5
    )
    assert time.process_time() - start < 4  # 1 s on the machine of this test
    assert torch.equal(state, torch.get_rng_state())

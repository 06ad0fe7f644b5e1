"""A mechanism that breaks its contract is refused, with a sentence that says how."""

import math
from typing import Any

import pytest
import torch

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.clipping import clip
from discreet.algorithms.mechanisms import Gaussian, LocalNoise
from discreet.algorithms.population import Population
from discreet.algorithms.sampling import Poisson
from discreet.algorithms.training import LocalSgd
from discreet.algorithms.training.gradient_rules import L2Clip
from discreet.algorithms.training.schedules import Exponential
from discreet.params import add, norms, scale
from discreet.privacy.events import GaussianNoise, LaplaceNoise
from discreet.testing import PartFailed, check_mechanism
from discreet.testing.mechanism_check import try_mechanism

CLIP, NOISE = 0.5, 2.0


class Central:
    """A sound central Gaussian mechanism, as a user would write it."""

    is_private = True
    unit = "client"
    norm_order = 2
    extra_values = 0

    def bound(self, delta: Any, broadcast: Any) -> Any:
        return scale(clip(delta, CLIP), 1 / CLIP)

    def add_noise_share(self, encoded: Any, broadcast: Any, rows: Any) -> Any:
        return encoded

    def draw(self, total: Any, noise: Any) -> Any:
        return {name: NOISE * value[0] for name, value in noise.open().normal(total).items()}

    def release_sum(self, total: Any, state: Any, broadcast: Any, cohort: Any, contributors: Any, noise: Any) -> Any:
        return scale(add(total, self.draw(total, noise)), CLIP), state

    def sum_noise(self, grid: Any = None, known_shares: int = 0, contributors: Any = None) -> Any:
        return GaussianNoise(noise_multiplier=NOISE)

    def upload_noise(self, grid: Any = None) -> Any:
        return None

    def noise_deviation(self, clients: Any) -> Any:
        return NOISE


class Local(Central):
    """A sound local Laplace mechanism."""

    norm_order = 1

    def bound(self, delta: Any, broadcast: Any) -> Any:
        return scale(clip(delta, CLIP, 1), 1 / CLIP)

    def add_noise_share(self, encoded: Any, broadcast: Any, rows: Any) -> Any:
        one = {name: value[0] for name, value in encoded.items()}
        return add(encoded, scale(rows.open().laplace(one), NOISE))

    def release_sum(self, total: Any, state: Any, *rest: Any) -> Any:
        return scale(total, CLIP), state

    def sum_noise(self, grid: Any = None, known_shares: int = 0, contributors: Any = None) -> Any:
        return None

    def upload_noise(self, grid: Any = None) -> Any:
        return LaplaceNoise(noise_multiplier=NOISE)

    def noise_deviation(self, clients: Any) -> Any:
        return None


class Shares(Central):
    """Each client brings a share of the noise, a quarter of it for four clients."""

    def add_noise_share(self, encoded: Any, broadcast: Any, rows: Any) -> Any:
        one = {name: value[0] for name, value in encoded.items()}
        return add(encoded, scale(rows.open().normal(one), NOISE / 2))

    def draw(self, total: Any, noise: Any) -> Any:
        return scale(total, 0)

    def sum_noise(self, grid: Any = None, known_shares: int = 0, contributors: Any = None) -> Any:
        shares = (4 if contributors is None else contributors) - known_shares
        return GaussianNoise(noise_multiplier=NOISE * math.sqrt(shares / 4)) if shares > 0 else None

    def noise_deviation(self, clients: Any) -> Any:
        return NOISE * math.sqrt(len(clients) / 4)


@pytest.mark.parametrize("sound", [Central(), Local(), Shares()], ids=lambda each: type(each).__name__)
def test_a_sound_mechanism_of_a_users_own_passes_and_says_what_was_measured(sound: Any) -> None:
    (tried, noise) = check_mechanism(sound)
    assert tried.startswith("Tried 11 updates of one client (zero, small, huge, one-hot, aligned, infinite and NaN)")
    assert "is declared" in noise


class NoNoise(Central):
    def draw(self, total: Any, noise: Any) -> Any:
        return scale(total, 0)


class HalfNoise(Central):
    def draw(self, total: Any, noise: Any) -> Any:
        return scale(super().draw(total, noise), 0.5)


class SlightlyLess(Central):
    def draw(self, total: Any, noise: Any) -> Any:
        return scale(super().draw(total, noise), 0.93)


class NoNoiseForNobody(Shares):
    """Declares the noise of four shares whoever joins."""

    def sum_noise(self, grid: Any = None, known_shares: int = 0, contributors: Any = None) -> Any:
        return GaussianNoise(noise_multiplier=NOISE)


class OwnShareCounts(Shares):
    """Declares to a client the noise that the client itself brought."""

    def sum_noise(self, grid: Any = None, known_shares: int = 0, contributors: Any = None) -> Any:
        return super().sum_noise(grid, 0, contributors)


class SameSeed(Central):
    def draw(self, total: Any, noise: Any) -> Any:
        generator = torch.Generator().manual_seed(0)
        return {name: NOISE * torch.randn(value.shape, generator=generator) for name, value in total.items()}


class RepeatedNoise(Central):
    def __init__(self) -> None:
        self.noise: Any = None

    def draw(self, total: Any, noise: Any) -> Any:
        self.noise = self.noise or super().draw(total, noise)
        return self.noise


class SeedOfTheRound(Central):
    def release_sum(self, total: Any, state: Any, broadcast: Any, cohort: Any, contributors: Any, noise: Any) -> Any:
        generator = torch.Generator().manual_seed(broadcast.round)
        drawn = {name: NOISE * torch.randn(value.shape, generator=generator) for name, value in total.items()}
        return scale(add(total, drawn), CLIP), state


class TorchsOwnGenerator(Central):
    def draw(self, total: Any, noise: Any) -> Any:
        return {name: NOISE * torch.randn(value.shape) for name, value in total.items()}


class OneDrawForAll(Central):
    def draw(self, total: Any, noise: Any) -> Any:
        return {name: value.flatten()[0].expand_as(value) for name, value in super().draw(total, noise).items()}


class RepeatedDraw(Central):
    """One draw for both halves of a tensor."""

    def draw(self, total: Any, noise: Any) -> Any:
        drawn = super().draw(total, noise)
        half = drawn["weight"].shape[0] // 2
        drawn["weight"][half:] = drawn["weight"][:half]
        return drawn


class SparseNoise(Central):
    """The right variance, and hardly ever any noise."""

    def draw(self, total: Any, noise: Any) -> Any:
        streams = noise.open()
        coins, drawn = streams.normal(total), streams.normal(total)
        return {
            name: NOISE * 3.15 * drawn[name][0] * (coins[name][0] > 1.2816) + 1e-9 * drawn[name][0] for name in total
        }


class MissingInOneTensor(Central):
    def draw(self, total: Any, noise: Any) -> Any:
        drawn = scale(super().draw(total, noise), 1.1)
        return drawn | {"bias": drawn["bias"] * 0.1}


class MissingInOneCoordinate(Central):
    def draw(self, total: Any, noise: Any) -> Any:
        drawn = super().draw(total, noise)
        drawn["weight"][0, 0] = 0
        return drawn


class NoClip(Central):
    def bound(self, delta: Any, broadcast: Any) -> Any:
        return scale(delta, 1 / CLIP)


class ClipThatLetsNanThrough(Central):
    def bound(self, delta: Any, broadcast: Any) -> Any:
        sizes = norms(delta)
        return {
            name: value * (1 / sizes.clamp(min=CLIP)).to(value).reshape(-1, *[1] * (value.dim() - 1))
            for name, value in delta.items()
        }


class ClipOfEachTensor(Central):
    def bound(self, delta: Any, broadcast: Any) -> Any:
        return {name: clip({name: value}, CLIP)[name] / CLIP for name, value in delta.items()}


class ClipInTheWrongNorm(Local):
    def bound(self, delta: Any, broadcast: Any) -> Any:
        return scale(clip(delta, CLIP), 1 / CLIP)


class UndoneClip(Central):
    """Clips as it should, and sends the rest beside the bounded rows to make up for it."""

    def add_noise_share(self, encoded: Any, broadcast: Any, rows: Any) -> Any:
        return scale(encoded, 3.0)


class ClipByTheLargest(Central):
    """Scales all rows by the largest norm of the block, which shows in every upload."""

    def bound(self, delta: Any, broadcast: Any) -> Any:
        clipped = clip(delta, CLIP)
        return scale(clipped, 1 / max(CLIP, float(norms(delta).nan_to_num(0, 0, 0).max())))


class RawState(Central):
    """Keeps the sum before its noise, which the next round announces."""

    def init(self, params: Any) -> Any:
        return {name: torch.zeros_like(value) for name, value in params.items()}

    def release_sum(self, total: Any, state: Any, *rest: Any) -> Any:
        released, _ = super().release_sum(total, state, *rest)
        return released, dict(total)


class SpoiltByNobody(Central):
    def release_sum(self, total: Any, state: Any, broadcast: Any, cohort: Any, contributors: Any, noise: Any) -> Any:
        released, state = super().release_sum(total, state, broadcast, cohort, contributors, noise)
        return scale(released, contributors / contributors if contributors else math.nan), state


class WrongDeviation(Central):
    def noise_deviation(self, clients: Any) -> Any:
        return NOISE * len(clients)


class SharedShares(Shares):
    """All clients add the noise of the first."""

    def add_noise_share(self, encoded: Any, broadcast: Any, rows: Any) -> Any:
        one = {name: value[0] for name, value in encoded.items()}
        drawn = rows.open().normal(one)
        return add(encoded, {name: NOISE / 2 * value[:1].expand_as(value) for name, value in drawn.items()})

    def sum_noise(self, grid: Any = None, known_shares: int = 0, contributors: Any = None) -> Any:
        return None

    def noise_deviation(self, clients: Any) -> Any:
        return None


class GaussianForLaplace(Local):
    def add_noise_share(self, encoded: Any, broadcast: Any, rows: Any) -> Any:
        one = {name: value[0] for name, value in encoded.items()}
        return add(encoded, scale(rows.open().normal(one), math.sqrt(2) * NOISE))


class HalfLaplace(Local):
    def add_noise_share(self, encoded: Any, broadcast: Any, rows: Any) -> Any:
        one = {name: value[0] for name, value in encoded.items()}
        return add(encoded, scale(rows.open().laplace(one), NOISE / 2))


class FadingByRound(Central):
    def release_sum(self, total: Any, state: Any, broadcast: Any, cohort: Any, contributors: Any, noise: Any) -> Any:
        drawn = scale(self.draw(total, noise), 1.0 if broadcast.round < 10 else 0.1)
        return scale(add(total, drawn), CLIP), state


class FadingByState(Central):
    def init(self, params: Any) -> Any:
        return {"strength": torch.ones(())}

    def release_sum(self, total: Any, state: Any, broadcast: Any, cohort: Any, contributors: Any, noise: Any) -> Any:
        drawn = scale(self.draw(total, noise), float(state["strength"]))
        return scale(add(total, drawn), CLIP), {"strength": state["strength"] * 0.7}


class RawValues(Local):
    """Sends the first value of the update in clear, beside the noisy update."""

    extra_values = 1

    def add_noise_share(self, encoded: Any, broadcast: Any, rows: Any) -> Any:
        return super().add_noise_share(encoded, broadcast, rows) | {"raw": encoded["weight"][:, 0, 0]}

    def release_sum(self, total: Any, *rest: Any) -> Any:
        return super().release_sum({name: value for name, value in total.items() if name != "raw"}, *rest)


class MoreValues(RawValues):
    extra_values = 0


class MoreTensors(Central):
    def release_sum(self, total: Any, *rest: Any) -> Any:
        released, state = super().release_sum(total, *rest)
        return released | {"sum": total["bias"]}, state


class Crash(Central):
    def release_sum(self, *given: Any) -> Any:
        raise KeyError("weight")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (
            NoNoise,
            r"Noise on the sum of 3 clients has a deviation of \S+ times the most that one client moves it by, and 2",
        ),
        (
            HalfNoise,
            r"Noise on the sum of 3 clients has a deviation of (0.9\d+|1|1.0\d+) times the most that one client",
        ),
        (SlightlyLess, r"Noise on the sum of 3 clients has a deviation of 1.8\d+ times the most that one client"),
        (NoNoiseForNobody, r"Noise on the sum of 3 clients has a deviation of 1.7\d+ times"),
        (OwnShareCounts, r"without the noise share of one of them, has a deviation of 1.4\d+ times"),
        (SameSeed, r"Two rounds carry the same noise: the correlation is 1.00. Draw noise from `rows` and `noise`"),
        (RepeatedNoise, r"Two rounds carry the same noise: the correlation is 1.00"),
        (SeedOfTheRound, r"Two runs with different keys carry the same noise: the correlation is 1.00"),
        (TorchsOwnGenerator, r"The same round with the same random streams gave two results"),
        (OneDrawForAll, r"Noise on the sum"),
        (RepeatedDraw, r"Parts of a model carry the same noise: shifted against itself"),
        (SparseNoise, r"Noise on the sum of 3 clients is not gaussian: its distribution is 0.4\d+ away"),
        (MissingInOneTensor, r"in the tensor 'bias', and"),
        (MissingInOneCoordinate, r"is missing in 1 of 16384 coordinates"),
        (NoClip, r"`bound` left the norm of a random update at \S+, and it must be at most 1"),
        (ClipThatLetsNanThrough, r"`bound` left the norm of an update with one NaN at nan, and it must be at most 1"),
        (ClipOfEachTensor, r"`bound` left the norm of a random update at 1.41\d+, and it must be at most 1"),
        (ClipInTheWrongNorm, r"`bound` left the norm of a small random update at \S+, and it must be at most 1"),
        (UndoneClip, r"Noise on the sum of 3 clients has a deviation of 0.6\d+ times the most that one client"),
        (ClipByTheLargest, r"of one client changed what another client uploads"),
        (RawState, r"The mechanism's state 'weight' depends on a client's update and carries no noise"),
        (SpoiltByNobody, r"With an empty cohort, the result of the round is not finite"),
        (WrongDeviation, r"has a deviation of (1.9\d+|2|2.0\d+) clip norms, and `noise_deviation` says 6"),
        (SharedShares, r"Two clients add the same noise: the correlation is 1.00"),
        (GaussianForLaplace, r"Noise on an upload is not laplace"),
        (
            HalfLaplace,
            r"Noise on an upload has a deviation of 1.4\d* times the most that one client moves it by, and 2.828",
        ),
        (FadingByRound, r"Noise on the sum of 3 clients in round 50 has a deviation of 0\.1995 times"),
        (FadingByState, r"Noise on the sum of 3 clients in round 50 has a deviation of 0.68"),
        (RawValues, r"Noise on an upload is missing in 1 of 16385 coordinates"),
        (MoreValues, r"A client sends 1 values beside its update, and `extra_values` says 0"),
        (MoreTensors, r"`release_sum` must return the model's tensors and nothing else"),
        (Crash, r"test_mechanism_check.py:Crash failed in release_sum: KeyError: 'weight'"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_mechanism_that_breaks_its_contract_is_refused(wrong: Any, sentence: str) -> None:
    with pytest.raises(PartFailed, match=sentence):
        check_mechanism(wrong())


def test_where_nobody_may_join_the_server_must_add_all_the_noise() -> None:
    """A sum without noise would say that nobody was drawn."""
    poisson = Poisson(rate=0.5)
    assert check_mechanism(Central(), sampling=poisson)
    with pytest.raises(PartFailed, match="Noise on the sum of 0 clients has a deviation of 0 times"):
        check_mechanism(Shares(), sampling=poisson)


def test_noise_left_open_is_filled_in() -> None:
    assert "1 is declared (gaussian)" in check_mechanism(Gaussian(clip_norm=0.1))[1]


def test_clients_with_noise_of_their_own_are_each_measured() -> None:
    tried = check_mechanism(LocalNoise(kind="local_gaussian", clip_norm=1.0, noise_multiplier=(1.0, 2.0, 3.0, 1.0)))
    assert [f"{multiplier} is declared" in sentence for multiplier, sentence in zip("123", tried[1:], strict=True)]


def test_a_bound_that_shrinks_with_the_learning_rate_is_measured_in_its_own_round() -> None:
    """The noise of a round is relative to the bound of that round."""
    trainer = LocalSgd(
        learning_rate=0.1, batch_size=8, steps=1, gradient_clip=L2Clip(bound=1.0), schedule=Exponential(decay=0.9)
    )
    local = LocalNoise(kind="local_gaussian", noise_multiplier=1.5)
    population, params = Population(examples=(8,) * 4), {"weight": torch.zeros(20, 30)}
    algorithm = Algorithm(trainer=trainer, mechanism=local).for_population(population, 600)
    assert "1.5 is declared" in try_mechanism(algorithm, population, params)[1]

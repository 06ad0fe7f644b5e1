"""The contract of every mechanism: its bound for any input, and the noise it claims, on the sum and on one upload."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.mechanisms import (
    AdaptiveGaussian,
    AnyMechanism,
    DistributedGaussian,
    Gaussian,
    IntegerNoise,
    LocalNoise,
    Mechanism,
    NoPrivacy,
)
from discreet.algorithms.sampling import AnySampling, Everyone, Poisson
from discreet.errors import InvalidInput, UnsoundCombination
from discreet.params import Params, norms, sum_clients
from discreet.part import from_plain, to_plain
from discreet.privacy.events import GaussianNoise, LaplaceNoise
from discreet.randomness.streams import RunKey
from discreet.testing import check_mechanism
from tests.federations import CPU, linear

COHORT = 4
ALL: list[Mechanism] = [
    NoPrivacy(),
    Gaussian(clip_norm=0.7, noise_multiplier=1.3),
    DistributedGaussian(clip_norm=0.7, noise_multiplier=1.3, shares=COHORT),
    LocalNoise(kind="local_gaussian", clip_norm=0.7, noise_multiplier=1.3),
    LocalNoise(kind="local_laplace", clip_norm=0.7, noise_multiplier=1.3),
    LocalNoise(kind="local_laplace", noise_multiplier=1.3),
    AdaptiveGaussian(clip_norm=0.7, noise_multiplier=1.3),
    AdaptiveGaussian(clip_norm=0.7, noise_multiplier=1.3, flag=0.6),
    AdaptiveGaussian(clip_norm=0.7, noise_multiplier=1.3, flag=0.99990490095),  # single precision rounds it up
]
PRIVATE = [mechanism for mechanism in ALL if mechanism.is_private]
TRAINED_TO = 0.4  # the bound that training gives, where a mechanism has no clip


def broadcast(mechanism: Mechanism) -> Broadcast:
    return Broadcast(0, linear(), mechanism.announce(mechanism.init(linear()), TRAINED_TO))


def clip_of(mechanism: Mechanism) -> float:
    return getattr(mechanism, "clip_norm", None) or TRAINED_TO


@pytest.mark.parametrize("sampling", [Everyone(), Poisson(rate=0.5)], ids=lambda s: s.kind)
@pytest.mark.parametrize("mechanism", [*ALL, DistributedGaussian(noise_multiplier=1.3)], ids=str)
def test_it_keeps_the_contract_in_whole_rounds(mechanism: Mechanism, sampling: AnySampling) -> None:
    """If nobody may join, a sum of nobody must carry all the noise, or it would say that nobody was drawn."""
    unfilled = replace(mechanism, shares=None) if isinstance(mechanism, DistributedGaussian) else mechanism
    assert check_mechanism(unfilled, COHORT, sampling)


@pytest.mark.parametrize("kind", ["skellam", "discrete_gaussian"])
@pytest.mark.parametrize("clip_norm", [0.7, None])
@pytest.mark.parametrize("colluding", [0, 1])
def test_integer_noise_keeps_the_contract_in_whole_rounds(kind: Any, clip_norm: float | None, colluding: int) -> None:
    mechanism = IntegerNoise(kind=kind, clip_norm=clip_norm, noise_multiplier=1.3, colluding=colluding)
    assert kind in check_mechanism(mechanism, COHORT)[1]


@pytest.mark.parametrize("mechanism", ALL, ids=lambda m: m.kind)
def test_it_comes_back_from_plain_data(mechanism: Mechanism) -> None:
    assert from_plain(AnyMechanism, to_plain(mechanism)) == mechanism


@pytest.mark.parametrize("mechanism", PRIVATE, ids=lambda m: m.kind)
@given(rows=st.lists(st.lists(st.floats(width=32), min_size=4, max_size=4), min_size=1, max_size=5))
@example(rows=[[0.0, 0.0, 0.0, 0.699999988079071]])  # the largest single-precision number below the clip
def test_no_client_counts_for_more_than_one(mechanism: Mechanism, rows: list[list[float]]) -> None:
    block = torch.tensor(rows)
    bounded = mechanism.bound({"w": block[:, :3], "b": block[:, 3:]}, broadcast(mechanism))
    assert bool((norms(bounded, order=mechanism.norm_order) <= 1).all())


@pytest.mark.parametrize(
    "mechanism",
    [DistributedGaussian(noise_multiplier=1.0), IntegerNoise(kind="skellam"), LocalNoise(kind="local_gaussian")],
    ids=lambda m: m.kind,
)
def test_a_learning_rate_that_decayed_to_nothing_moves_nothing_and_spoils_nothing(mechanism: Mechanism) -> None:
    said = Broadcast(0, linear(), mechanism.announce(mechanism.init(linear()), 0.0))
    still = {name: torch.zeros(1, *value.shape) for name, value in linear().items()}
    assert all(bool((value == 0).all()) for value in mechanism.bound(still, said).values())


def test_a_row_as_long_as_the_clip_is_one_long_for_the_lattice_too() -> None:
    """In single precision many were too long by a last digit, and the lattice refused them: one bit about the data."""
    mechanism = IntegerNoise(kind="skellam", clip_norm=1.3)
    rows = torch.randn(2000, 20, generator=torch.Generator().manual_seed(0))
    close = rows / rows.double().norm(dim=1, keepdim=True).float() * (1.3 * (1 - torch.rand(2000, 1) * 1e-8))
    said = Broadcast(0, {"w": torch.zeros(20)}, mechanism.announce(mechanism.init({"w": torch.zeros(20)}), None))
    assert float(norms(mechanism.bound({"w": close}, said)).max()) <= 1 + 1e-12


def draw_noise(mechanism: Mechanism, clients: int, rounds: int = 2000) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what clients with zero updates send and what is released of their sum, for many rounds: only noise."""
    zero: Params = {name: torch.zeros(clients, *value.shape) for name, value in linear().items()}
    said, state, key = broadcast(mechanism), mechanism.init(linear()), RunKey.from_seed(2)
    uploads, released = [], []
    for round in range(rounds):
        rows = key.rows(round, b"", list(range(clients)), CPU)
        sent = mechanism.add_noise_share(zero, said, rows) if clients else zero
        noise = key.rows(round, b"", [-1], CPU)
        result, _ = mechanism.release_sum(sum_clients(sent), state, said, COHORT, clients, noise)
        uploads += list(torch.cat([value.flatten(start_dim=1) for value in sent.values()], dim=1)[:1])
        released.append(torch.cat([value.flatten() for value in result.values()]))
    return torch.cat(uploads) if uploads else torch.zeros(0), torch.cat(released)


@pytest.mark.parametrize("mechanism", [m for m in PRIVATE if m.sum_noise()], ids=lambda m: m.kind)
def test_the_noise_on_the_sum_is_what_it_claims(mechanism: Mechanism) -> None:
    """Chi-square on 2,000 × 18 normals: |z| < 5 has a false-alarm rate of 6e-7; 3 % more noise has z = 8."""
    noise = mechanism.sum_noise()
    assert isinstance(noise, GaussianNoise)
    _, released = draw_noise(mechanism, COHORT)
    standard = released / (noise.noise_multiplier * released_unit_sum(mechanism))
    assert abs(float(standard.square().mean()) - 1) / math.sqrt(2 / standard.numel()) < 5


@pytest.mark.parametrize("mechanism", PRIVATE, ids=lambda m: m.kind)
def test_the_deviation_of_the_sums_noise_is_what_it_claims(mechanism: Mechanism) -> None:
    """As above, including the clients' own noise. The square of a standard normal has variance 2, and that of a sum of
    four Laplace draws 2.75."""
    deviation = mechanism.noise_deviation(range(COHORT))
    assert deviation is not None
    _, released = draw_noise(mechanism, COHORT)
    standard = released / (deviation * released_unit_sum(mechanism))
    spread = math.sqrt((2.75 if mechanism.norm_order == 1 else 2) / standard.numel())
    assert abs(float(standard.square().mean()) - 1) / spread < 5


@pytest.mark.parametrize("mechanism", [m for m in PRIVATE if m.sum_noise()], ids=lambda m: m.kind)
def test_the_server_adds_all_its_noise_though_nobody_joined(mechanism: Mechanism) -> None:
    """A sum without noise would reveal that nobody was drawn. As above: |z| < 5 has a false-alarm rate of 6e-7."""
    noise = mechanism.sum_noise()
    assert isinstance(noise, GaussianNoise)
    _, released = draw_noise(mechanism.for_cohort(COHORT, COHORT), 0)
    standard = released / (noise.noise_multiplier * released_unit_sum(mechanism))
    assert abs(float(standard.square().mean()) - 1) / math.sqrt(2 / standard.numel()) < 5


@pytest.mark.parametrize("joined", [0, 1, 3, 4])
def test_with_a_share_for_everybody_the_sum_has_the_same_noise_however_many_join(joined: int) -> None:
    """z²C² for each number of joiners: |z| < 5 has a false-alarm rate of 6e-7; a share too few has z > 30."""
    mechanism = DistributedGaussian(clip_norm=0.7, noise_multiplier=1.3).for_cohort(4, 4)
    _, released = draw_noise(mechanism, joined)
    standard = released / (1.3 * 0.7)
    assert abs(float(standard.square().mean()) - 1) / math.sqrt(2 / standard.numel()) < 5
    assert mechanism.noise_deviation(range(joined)) == 1.3


def test_with_fewer_shares_than_joiners_there_is_more_noise_than_planned() -> None:
    """The server can add noise but not remove it: four of two shares have a variance of 2z²."""
    mechanism = DistributedGaussian(clip_norm=1.0, noise_multiplier=1.3, shares=2)
    _, released = draw_noise(mechanism, 4)
    standard = released / (1.3 * math.sqrt(2))
    assert abs(float(standard.square().mean()) - 1) / math.sqrt(2 / standard.numel()) < 5
    assert mechanism.noise_deviation(range(4)) == pytest.approx(1.3 * math.sqrt(2))


@pytest.mark.parametrize("mechanism", [m for m in PRIVATE if m.upload_noise()], ids=lambda m: m.kind)
def test_the_noise_on_one_upload_is_what_it_claims(mechanism: Mechanism) -> None:
    """Uploads are in units of the clip. As above for normals; |Laplace| is exponential, with mean and deviation b."""
    noise = mechanism.upload_noise()
    uploads, _ = draw_noise(mechanism, 1)
    if isinstance(noise, GaussianNoise):
        standard = uploads / noise.noise_multiplier
        assert abs(float(standard.square().mean()) - 1) / math.sqrt(2 / standard.numel()) < 5
        return
    assert isinstance(noise, LaplaceNoise)
    sizes = uploads.abs() / noise.noise_multiplier
    assert abs(float(sizes.mean()) - 1) / math.sqrt(1 / sizes.numel()) < 5
    assert abs(float(sizes.square().mean()) - 2) / math.sqrt(20 / sizes.numel()) < 5  # a normal of this mean has 1.57


def released_unit_sum(mechanism: Mechanism) -> float:
    """Return the released value of a sum that is 1 in one coordinate, without noise."""
    one, state = {"w": torch.ones(1)}, mechanism.init(linear())
    said, silent = broadcast(mechanism), _Silent()
    released, _ = mechanism.release_sum(one, state, said, COHORT, COHORT, silent)  # type: ignore[arg-type]
    return float(released["w"])


@pytest.mark.parametrize("mechanism", PRIVATE, ids=lambda m: m.kind)
def test_an_update_within_the_clip_is_released_as_it_is(mechanism: Mechanism) -> None:
    said, state = broadcast(mechanism), mechanism.init(linear())
    update = {"w": torch.full((1, 2), 0.1)}
    total_of = sum_clients(mechanism.bound(update, said))
    released, _ = mechanism.release_sum(total_of, state, said, COHORT, COHORT, _Silent())  # type: ignore[arg-type]
    assert released["w"].tolist() == pytest.approx([0.1, 0.1])
    assert list(released) == ["w"]


class _Silent:
    """Rows without noise, to see how far one client moves the sum."""

    def open(self) -> "_Silent":
        return self

    def normal(self, like: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {name: torch.zeros(1, *value.shape) for name, value in like.items()}


@pytest.mark.parametrize(
    "still_open",
    [
        Gaussian(clip_norm=1.0),
        AdaptiveGaussian(clip_norm=1.0),
        DistributedGaussian(clip_norm=1.0),
        LocalNoise(kind="local_gaussian"),
        LocalNoise(kind="local_laplace"),
    ],
    ids=lambda m: m.kind,
)
def test_noise_left_open_is_filled_once(still_open: Any) -> None:
    assert still_open.sum_noise() is None
    assert still_open.upload_noise() is None
    assert still_open.with_noise(2.0).noise_multiplier == 2.0
    assert still_open.with_noise(1.0).with_noise(2.0).noise_multiplier == 1.0


def test_a_share_of_noise_protects_an_upload_by_itself_less() -> None:
    mechanism = DistributedGaussian(clip_norm=1.0, noise_multiplier=0.95).for_cohort(50, 50)
    assert mechanism.shares == 50
    noise = mechanism.upload_noise()
    assert isinstance(noise, GaussianNoise)
    assert noise.noise_multiplier == pytest.approx(0.1343, abs=1e-4)  # Shi et al.'s, seen in clear


@pytest.mark.parametrize("known", [0, 1, 3])
def test_whoever_knows_shares_of_the_noise_is_priced_at_the_others(known: int) -> None:
    """Of four shares of z² = 4 each: 16, 12 and 4 are left. Someone who knows all of them faces no noise."""
    mechanism = DistributedGaussian(clip_norm=1.0, noise_multiplier=4.0, shares=4)
    noise = mechanism.sum_noise(known_shares=known)
    assert isinstance(noise, GaussianNoise)
    assert noise.noise_multiplier**2 == pytest.approx(16 - 4 * known)
    assert mechanism.sum_noise(known_shares=4) is None


def test_an_adaptive_clip_settles_at_its_quantile() -> None:
    """100 clients with norms 0.01 … 1.00: after 200 rounds with little noise the clip norm is near the 0.8 quantile."""
    mechanism = AdaptiveGaussian(clip_norm=5.0, quantile=0.8, noise_multiplier=0.01)
    update = {"w": torch.arange(1, 101)[:, None] / 100}
    state = mechanism.init({"w": torch.zeros(1)})
    for round in range(200):
        said = Broadcast(round, {"w": torch.zeros(1)}, mechanism.announce(state, None))
        sent = sum_clients(mechanism.bound(update, said))
        _, state = mechanism.release_sum(sent, state, said, 100, 100, RunKey.from_seed(1).rows(round, b"", [-1], CPU))
    assert float(state["clip"]) == pytest.approx(0.8, abs=0.02)


def test_an_adaptive_clip_survives_a_round_in_which_nobody_came() -> None:
    mechanism = AdaptiveGaussian(clip_norm=1.0, noise_multiplier=1.0)
    state = mechanism.init(linear())
    said = Broadcast(0, linear(), mechanism.announce(state, None))
    nothing = {name: torch.zeros_like(value) for name, value in linear().items()}
    released, after = mechanism.release_sum(nothing, state, said, 10, 0, RunKey.from_seed(1).rows(0, b"", [-1], CPU))
    assert set(released) == set(linear())
    assert math.isfinite(float(after["clip"]))


def test_more_shares_than_clients_who_bring_them_are_refused() -> None:
    with pytest.raises(UnsoundCombination, match="100 shares, and 50 clients"):
        DistributedGaussian(clip_norm=1.0, noise_multiplier=1.0, shares=100).for_cohort(50, 50)


def test_a_flag_leaves_something_for_the_update() -> None:
    with pytest.raises(InvalidInput, match="below 1"):
        AdaptiveGaussian(clip_norm=1.0, flag=1.0)

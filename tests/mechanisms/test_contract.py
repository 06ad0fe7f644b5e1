"""What every mechanism keeps: its bound for any input, and the noise that it claims."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from discreet.broadcast import Broadcast
from discreet.mechanisms import AnyMechanism, Gaussian, Mechanism, NoPrivacy
from discreet.params import norms
from discreet.part import plain, read
from discreet.privacy.events import GaussianNoise
from discreet.randomness import CPU, RunKey
from tests.federations import linear

ALL: list[Mechanism] = [NoPrivacy(), Gaussian(clip_norm=0.7, noise_multiplier=1.3)]
PRIVATE = [mechanism for mechanism in ALL if mechanism.private]
BROADCAST = Broadcast(0, linear(), {})


@pytest.mark.parametrize("mechanism", ALL, ids=lambda m: m.kind)
def test_it_comes_back_from_plain_data(mechanism: Mechanism) -> None:
    assert read(AnyMechanism, plain(mechanism)) == mechanism


@pytest.mark.parametrize("mechanism", PRIVATE, ids=lambda m: m.kind)
@given(rows=st.lists(st.lists(st.floats(width=32), min_size=4, max_size=4), min_size=1, max_size=5))
def test_no_client_counts_for_more_than_one(mechanism: Mechanism, rows: list[list[float]]) -> None:
    block = torch.tensor(rows)
    bounded = mechanism.bound({"w": block[:, :3], "b": block[:, 3:]}, BROADCAST)
    assert bool((norms(bounded) <= 1).all())


@pytest.mark.parametrize("mechanism", PRIVATE, ids=lambda m: m.kind)
def test_the_noise_on_the_sum_is_what_it_claims(mechanism: Mechanism) -> None:
    """Chi-square on 2,000 × 18 normals: |z| < 5 has a false-alarm rate of 6e-7; 3 % more noise has z = 8."""
    zero = {name: torch.zeros_like(value) for name, value in linear().items()}
    draws = []
    for round in range(2000):
        released, _ = mechanism.on_server(
            zero, mechanism.init(zero), BROADCAST, RunKey.seed(2).rows(round, b"", [-1], CPU)
        )
        draws.append(torch.cat([value.flatten() for value in released.values()]))
    noise = mechanism.noise()
    assert isinstance(noise, GaussianNoise)
    one_client, _ = mechanism.on_server({"w": torch.ones(1)}, {}, BROADCAST, _Silent())  # type: ignore[arg-type]
    standard = torch.cat(draws) / (noise.noise_multiplier * float(one_client["w"]))
    assert abs(float(standard.square().mean()) - 1) / math.sqrt(2 / standard.numel()) < 5


class _Silent:
    """Rows without noise, to see what one whole client moves the sum by."""

    def open(self) -> "_Silent":
        return self

    def normal(self, like: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {name: torch.zeros(1, *value.shape) for name, value in like.items()}


def test_noise_left_open_is_filled_once() -> None:
    assert Gaussian(clip_norm=1.0).noise() is None
    assert Gaussian(clip_norm=1.0).with_noise(2.0).noise() == GaussianNoise(noise_multiplier=2.0)
    assert Gaussian(clip_norm=1.0, noise_multiplier=1.0).with_noise(2.0).noise_multiplier == 1.0

"""What a round sends: the coordinates that all send, at the width they are sent in."""

from typing import Any

import pytest
import torch

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.mechanisms import AdaptiveGaussian, Gaussian, LocalNoise
from discreet.algorithms.message_sizes import message_bits
from discreet.algorithms.recipes.shared_noise import distributed_noise
from discreet.algorithms.sparsifiers import AllCoordinates, PublicTopK, RandomK, ServerTopK, TopK
from discreet.algorithms.training import LocalSgd

TWENTY = {"weight": torch.zeros(3, 5), "bias": torch.zeros(5)}
TRAINER = LocalSgd(learning_rate=0.1, batch_size=5, epochs=1)


@pytest.mark.parametrize(
    ("sparsifier", "sent"),
    [
        (AllCoordinates(), 20),
        (RandomK(fraction=0.3), 6),
        (PublicTopK(fraction=0.33), 7),
        (TopK(fraction=0.3), 20),  # the message must not reveal which of them are zero
        (ServerTopK(fraction=0.3), 20),
    ],
    ids=lambda part: getattr(part, "kind", part),
)
def test_only_a_mask_that_all_share_leaves_something_out(sparsifier: Any, sent: int) -> None:
    algorithm = Algorithm(trainer=TRAINER, sparsifier=sparsifier, mechanism=Gaussian(clip_norm=1.0))
    assert message_bits(algorithm, TWENTY) == (32 * sent, 32 * 20)


@pytest.mark.parametrize(("rotated", "sent"), [(False, 20), (True, 32)])
def test_a_rotation_is_over_a_power_of_two_and_all_of_it_is_sent(rotated: bool, sent: int) -> None:
    parts = distributed_noise("skellam", 1.0, clip_norm=1.0, bits=20, rotated=rotated)
    algorithm = Algorithm(trainer=TRAINER, **parts)
    assert message_bits(algorithm, TWENTY).up == 20 * sent


def test_double_precision_takes_twice_the_bits() -> None:
    doubles = {name: value.double() for name, value in TWENTY.items()}
    assert message_bits(Algorithm(trainer=TRAINER), doubles) == (64 * 20, 64 * 20)


def test_clients_with_noise_of_their_own_send_single_precision() -> None:
    mechanism = LocalNoise(kind="local_laplace", clip_norm=1.0, noise_multiplier=(0.5, 0.7))
    assert message_bits(Algorithm(trainer=TRAINER, mechanism=mechanism), TWENTY) == (32 * 20, 32 * 20)


def test_an_adaptive_clip_sends_a_flag_beside_the_update() -> None:
    algorithm = Algorithm(trainer=TRAINER, mechanism=AdaptiveGaussian(clip_norm=1.0))
    assert message_bits(algorithm, TWENTY) == (32 * 21, 32 * 20)

"""The scattering transform: equal to kymatio's, and what its definition promises."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from discreet.data.features.scatternet import ScatterNet
from discreet.errors import InvalidInput

REFERENCE = Path(__file__).with_name("scatternet_reference.npz")  # by tools/scatternet_reference.py
PI = 3.1415  # kymatio's, which normalises each filter
FILTERS = torch.tensor([1] + [2] * 16 + [3] * 64)  # passed on the way to each of the 81 features


def reference(which: str) -> tuple[Tensor, Tensor]:
    with np.load(REFERENCE) as stored:
        return torch.from_numpy(stored[which]).float() / 255, torch.from_numpy(stored[f"{which}_found"])


@pytest.mark.parametrize(
    ("which", "shape"), [("grey", (3, 81, 7, 7)), ("colour", (1, 243, 8, 8))], ids=["28 by 28", "32 by 32 in colour"]
)
def test_features_are_those_of_kymatio(which: str, shape: tuple[int, ...]):
    images, expected = reference(which)
    found = ScatterNet(*images.shape[-2:])(images)
    assert found.shape == shape
    assert torch.allclose(found, expected.reshape(shape), rtol=0, atol=1e-4)
    exact = expected * ((PI / math.pi) ** FILTERS)[:, None, None]
    assert torch.allclose(found, exact.reshape(shape), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("depth", "rotations", "count"), [(1, 6, 7), (2, 8, 81), (3, 4, 1 + 12 + 48)])
def test_there_are_1_and_LJ_and_L2_times_pairs_of_scales(depth: int, rotations: int, count: int):
    found = ScatterNet(32, 24, depth, rotations)(torch.rand(2, 3, 32, 24))
    assert found.shape == (2, 3 * count, 32 >> depth, 24 >> depth)


def test_a_constant_has_a_mean_and_no_moduli():
    found = ScatterNet(28, 28)(torch.full((1, 1, 28, 28), 0.7))[0]
    assert torch.allclose(found[0], torch.tensor(0.7), atol=1e-6)
    assert float(found[1:].abs().max()) < 1e-6


def test_features_are_each_examples_own_and_move_no_further_than_the_pixels():
    images = torch.rand(5, 1, 28, 28, generator=torch.Generator().manual_seed(1))
    net = ScatterNet(28, 28)
    found = net(images)
    assert torch.allclose(found[3:4], net(images[3:4]), atol=1e-6)
    features, pixels = (torch.cdist(each.flatten(1), each.flatten(1)) for each in (found, images))
    assert bool((features <= pixels).all())


def test_a_shift_by_one_cell_shifts_the_features():
    image = torch.zeros(2, 1, 32, 32)
    image[0, 0, 13:17, 14] = 1
    image[1, 0, 17:21, 14] = 1
    first, second = ScatterNet(32, 32)(image)
    assert torch.allclose(first[:, 2:5], second[:, 3:6], atol=2e-3)
    assert not torch.allclose(first, second, atol=2e-2)


def test_many_images_are_done_in_pieces_and_torch_keeps_its_threads():
    images = torch.rand(70, 1, 28, 28, generator=torch.Generator().manual_seed(2))
    net, threads = ScatterNet(28, 28), torch.get_num_threads()
    assert torch.allclose(net(images)[65], net(images[65:66])[0], atol=1e-6)
    assert torch.get_num_threads() == threads


@pytest.mark.cuda
def test_a_gpu_gives_the_same():
    images, _ = reference("colour")
    net = ScatterNet(32, 32)
    expected = net(images)
    assert torch.allclose(net.cuda()(images.cuda()).cpu(), expected, rtol=0, atol=1e-5)


def test_an_image_no_larger_than_a_cell_is_refused():
    with pytest.raises(InvalidInput, match="depth 3 needs images of more than 8 pixels a side, and got 8 by 28"):
        ScatterNet(8, 28, depth=3)

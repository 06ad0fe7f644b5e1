"""The statistics by which noise is compared with what a part declares."""

import pytest
import torch

from discreet.testing.noise_statistics import repetition


@pytest.mark.parametrize("width", [8, 9, 12, 19, 30, 650])
def test_noise_of_small_models_does_not_seem_to_repeat_itself(width: int) -> None:
    """The limit is 7 standard errors; with the mean of each row removed, short rows exceeded it by chance alone."""
    values = torch.randn(17_000 // width, width, generator=torch.Generator().manual_seed(width))
    assert repetition(values) < 6
    halves = values[:, : width // 2]
    assert repetition(torch.cat([halves, halves], dim=1)) > 20

"""Write tests/data/features/scatternet_reference.npz: the values of kymatio 0.3.0 that ours must equal.

kymatio is no dependency of ours: install it beside (`pip install --no-deps kymatio==0.3.0`), run this, remove it. Only
its 2-D torch frontend is imported, since the package as a whole needs a function that scipy no longer has.
"""

from pathlib import Path

import numpy as np
import torch
from kymatio.scattering2d.frontend.torch_frontend import ScatteringTorch2D
from numpy.typing import NDArray

TARGET = Path(__file__).resolve().parents[1] / "tests" / "data" / "features" / "scatternet_reference.npz"


def images(size: int) -> NDArray[np.uint8]:
    """Noise, an impulse off the centre, and a constant."""
    noise = np.random.default_rng(size).integers(256, size=(size, size), dtype=np.uint8)
    impulse = np.zeros((size, size), dtype=np.uint8)
    impulse[size // 3, size // 2] = 255
    return np.stack([noise, impulse, np.full((size, size), 128, dtype=np.uint8)])


def features(pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
    """(n, channels, size, size) → (n, channels, 81, size/4, size/4)"""
    transform = ScatteringTorch2D(J=2, shape=pictures.shape[-2:], L=8)
    found: torch.Tensor = transform(torch.from_numpy(pictures.astype(np.float32) / 255))
    return found.numpy()


def main() -> None:
    grey, colour = images(28)[:, None], images(32)[None]  # three pictures of one channel, one of three channels
    np.savez_compressed(TARGET, grey=grey, grey_found=features(grey), colour=colour, colour_found=features(colour))


if __name__ == "__main__":
    main()

"""ScatterNet: the 2-D scattering transform with Morlet wavelets (Bruna & Mallat 2013), a fixed extractor of features.

An image is filtered by wavelets of increasing width in several directions, and the modulus is taken; then the same is
done with each modulus. The features are local means. Nothing is fitted, so it costs no privacy. The values agree with
kymatio's Scattering2D up to rounding.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import torch
from torch import Tensor, nn
from torch.nn import functional

from discreet.errors import InvalidInput

VERSION = 1  # of the values: when it changes, cached features are computed again
WIDTH = 0.8  # of the narrowest wavelet's envelope, in pixels; it doubles from scale to scale
FREQUENCY = 3 * math.pi / 4  # of the narrowest wavelet; it halves from scale to scale
PIECE = 16  # images that one thread computes at once
PERIODS = 2  # on each side: the widest envelope is zero beyond them


class ScatterNet(nn.Module):
    """Map (n, channels, height, width) to (n, channels·K, height/2^depth, width/2^depth), each channel separately.

    K = 1 + L·J + L²·J(J−1)/2 for J = depth and L = rotations: the local means of the image, of its first moduli (by
    scale, then direction) and of its second moduli (by the first's scale and direction, then the second's).
    """

    def __init__(self, height: int, width: int, depth: int = 2, rotations: int = 8) -> None:
        super().__init__()
        cell = 2**depth
        if min(height, width) <= cell:
            raise InvalidInput(
                f"ScatterNet of depth {depth} needs images of more than {cell} pixels a side, and got "
                f"{height} by {width}.",
                fix="Lower depth.",
            )
        self.depth = depth
        self.padding = (*_padding(width, cell), *_padding(height, cell))
        padded = (height + sum(self.padding[2:]), width + sum(self.padding[:2]))
        for scale in range(depth):
            wavelets = torch.stack([_morlet(*padded, scale, turn, rotations) for turn in range(rotations)])
            for level in range(scale + 1):  # the resolution of the input; the output has the resolution of `scale`
                spectrum = _low_frequencies(_low_frequencies(wavelets, level, -2), level, -1) / 4 ** (scale - level)
                self.register_buffer(_filter_name(scale, level), spectrum.to(torch.complex64))
        for level in range(depth + 1):
            self.register_buffer(f"rows_{level}", _local_mean_matrix(padded[0], depth, level).float())
            self.register_buffer(f"columns_{level}", _local_mean_matrix(padded[1], depth, level).float())

    def forward(self, images: Tensor) -> Tensor:
        """Compute the features of a batch of images."""
        examples, channels = images.shape[:2]
        planes = images.flatten(0, 1).to(torch.float32)
        features = self._scatter(planes) if planes.is_cuda else self._scatter_in_threads(planes)
        return features.reshape(examples, channels * features.shape[1], *features.shape[2:])

    def _scatter_in_threads(self, planes: Tensor) -> Tensor:
        """Let each core compute pieces that fit its cache. Torch would split every small operation over all cores."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with ThreadPoolExecutor(threads) as pool:
                return torch.cat(list(pool.map(self._scatter, torch.split(planes, PIECE))))
        finally:
            torch.set_num_threads(threads)

    def _scatter(self, planes: Tensor) -> Tensor:
        """Compute the features of images with one channel, as (n, K, height, width)."""
        padded = functional.pad(planes[:, None], self.padding, mode="reflect")
        first, second = [self._means(padded, 0)], []
        spectrum = torch.fft.fft2(padded[:, 0])
        for scale in range(self.depth):
            moduli = self._moduli(spectrum, scale, level=0)
            first.append(self._means(moduli, scale))
            if scale + 1 < self.depth:
                second.append(self._second_order(torch.fft.fft2(moduli), scale))
        return torch.cat([*first, *second], dim=1)

    def _second_order(self, spectra: Tensor, level: int) -> Tensor:
        """Filter each first modulus at all wider scales; a modulus has only lower frequencies than its input."""
        wider = range(level + 1, self.depth)
        means = [self._means(self._moduli(spectra, scale, level), scale) for scale in wider]
        return torch.cat(means, dim=2).flatten(1, 2)

    def _moduli(self, spectra: Tensor, scale: int, level: int) -> Tensor:
        """Return |x ∗ ψ| in each direction at every 2^scale-th pixel: products of spectra are folded before one FFT."""
        wavelets = self.get_buffer(_filter_name(scale, level))
        folds = 2 ** (scale - level)
        high, wide = (size // folds for size in wavelets.shape[-2:])
        total: Tensor | None = None
        for down, right in product(range(folds), range(folds)):
            rows, columns = slice(down * high, (down + 1) * high), slice(right * wide, (right + 1) * wide)
            block, filters = spectra[..., None, rows, columns], wavelets[:, rows, columns]
            total = block * filters if total is None else total.addcmul_(block, filters)
        assert total is not None
        filtered: Tensor = torch.fft.ifft2(total)
        return filtered.real.square().addcmul_(filtered.imag, filtered.imag).sqrt_()  # abs() is 3 × slower

    def _means(self, maps: Tensor, level: int) -> Tensor:
        """Return means weighted by a Gaussian around every 2^depth-th pixel, without the padding."""
        columns, rows = self.get_buffer(f"columns_{level}"), self.get_buffer(f"rows_{level}")
        return (maps @ columns.T).transpose(-2, -1).matmul(rows.T).transpose(-2, -1)


def _filter_name(scale: int, level: int) -> str:
    return f"wavelets_{scale}_{level}"


def _padding(size: int, cell: int) -> tuple[int, int]:
    """Return the padding before and after: at least half a cell each, up to a whole number of cells plus one."""
    missing = ((size + cell) // cell + 1) * cell - size
    return missing // 2, missing - missing // 2


def _morlet(height: int, width: int, scale: int, turn: int, rotations: int) -> Tensor:
    """Return the spectrum of e^(i ξ·u) − c in a Gaussian envelope, with the c that makes the mean zero."""
    sigma, frequency = WIDTH * 2**scale, FREQUENCY / 2**scale
    angle = (rotations // 2 - 1 - turn) * math.pi / rotations
    slant = 4 / rotations  # with more directions the envelope is longer across the wave

    rows = torch.arange(-PERIODS * height, (PERIODS + 1) * height, dtype=torch.float64)[:, None]
    columns = torch.arange(-PERIODS * width, (PERIODS + 1) * width, dtype=torch.float64)
    along = rows * math.cos(angle) + columns * math.sin(angle)
    across = columns * math.cos(angle) - rows * math.sin(angle)
    envelope = torch.exp(-(along**2 + (slant * across) ** 2) / (2 * sigma**2)) * slant / (2 * math.pi * sigma**2)
    wave = envelope * torch.exp(1j * frequency * along)
    wavelet = wave - envelope * (wave.sum() / envelope.sum())
    periods = 2 * PERIODS + 1
    spectrum: Tensor = torch.fft.fft2(wavelet.reshape(periods, height, periods, width).sum(dim=(0, 2)))
    return spectrum.real


def _local_mean_matrix(size: int, depth: int, level: int) -> Tensor:
    """Return the matrix that maps size/2^level points to local means at the inner points of size/2^depth."""
    sigma = WIDTH * 2 ** (depth - 1)
    points = torch.arange(-PERIODS * size, (PERIODS + 1) * size, dtype=torch.float64)
    gaussian = torch.exp(-(points**2) / (2 * sigma**2)) / (math.sqrt(2 * math.pi) * sigma)
    spectrum = _low_frequencies(torch.fft.fft(gaussian.reshape(-1, size).sum(dim=0)).real, level, -1)
    smoothed: Tensor = torch.fft.ifft(torch.fft.fft(torch.eye(len(spectrum), dtype=torch.float64)) * spectrum)
    return smoothed.real[:, :: 2 ** (depth - level)][:, 1:-1].T.contiguous()


def _low_frequencies(spectrum: Tensor, level: int, dim: int) -> Tensor:
    """Return the low frequencies of a spectrum: those that exist at 1/2^level of the resolution."""
    size = spectrum.shape[dim] // 2**level
    low, high = size // 2, size - size // 2
    return torch.cat([spectrum.narrow(dim, 0, low), spectrum.narrow(dim, spectrum.shape[dim] - high, high)], dim)

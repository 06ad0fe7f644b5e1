"""The settings of a convolution, and the sizes that follow from them."""

from dataclasses import dataclass

from discreet.client_layers.precision import GradientPrecision

Pair = tuple[int, int]


@dataclass(frozen=True)
class ConvolutionSettings:
    """A convolution in two dimensions; one in one dimension has height 1.

    Attributes:
        stride: Pixels between two outputs.
        padding: Zeros on each side.
        dilation: Pixels between two taps of the kernel.
        groups: Parts that the channels are divided into.
        precision: In which its products are computed.
    """

    stride: Pair
    padding: Pair
    dilation: Pair
    groups: int
    precision: GradientPrecision

    def output_size(self, size: Pair, kernel: Pair) -> Pair:
        """Return the height and width of the output; not positive where the kernel doesn't fit."""
        high, wide = (
            (size[axis] + 2 * self.padding[axis] - self.dilation[axis] * (kernel[axis] - 1) - 1) // self.stride[axis]
            + 1
            for axis in (0, 1)
        )
        return high, wide

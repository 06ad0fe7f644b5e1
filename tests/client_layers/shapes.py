"""Convolutions of every kind on small shapes: strides, paddings, dilations, groups, one and two dimensions."""

from typing import NamedTuple

from discreet.client_layers.convolution_shape import ConvolutionSettings, Pair
from discreet.client_layers.precision import GradientPrecision


class Shape(NamedTuple):
    channels: int
    outputs: int
    groups: int
    kernel: Pair
    stride: Pair
    padding: Pair
    dilation: Pair
    size: Pair

    def settings(self, precision: GradientPrecision = "tf32") -> ConvolutionSettings:
        return ConvolutionSettings(self.stride, self.padding, self.dilation, self.groups, precision)


SHAPES = {
    "a first layer": Shape(3, 8, 1, (3, 3), (1, 1), (0, 0), (1, 1), (6, 7)),
    "more channels than a block": Shape(20, 24, 1, (3, 3), (1, 1), (1, 1), (1, 1), (5, 4)),
    "a stride": Shape(17, 18, 1, (3, 3), (2, 2), (1, 1), (1, 1), (7, 6)),
    "one tap in four pixels": Shape(16, 20, 1, (1, 1), (2, 2), (0, 0), (1, 1), (6, 5)),
    "groups": Shape(32, 36, 2, (3, 2), (2, 3), (1, 2), (2, 1), (7, 6)),
    "one dimension": Shape(17, 5, 1, (1, 5), (1, 2), (0, 2), (1, 3), (1, 16)),
    "one channel": Shape(1, 6, 1, (5, 5), (1, 1), (2, 2), (1, 1), (6, 6)),
    "a stride that divides the dilation": Shape(16, 16, 1, (3, 3), (2, 2), (1, 1), (2, 2), (7, 7)),
    "a stride above the kernel": Shape(8, 4, 2, (2, 2), (3, 3), (0, 0), (1, 1), (8, 8)),
}

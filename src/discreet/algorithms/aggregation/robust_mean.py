"""Means that a few hostile clients can't move far: the median and the trimmed mean of each coordinate."""

from typing import Annotated, Literal

from pydantic import Field

from discreet.algorithms.aggregation.aggregation import Aggregation
from discreet.algorithms.aggregation.plain_sum import Plain
from discreet.lazy_torch import Tensor, torch
from discreet.params import Params
from discreet.part import Positive, part


@part
class Median(Aggregation):
    """Take the median of each coordinate over the clients; of an even number the mean of the two in the middle.

    It holds against fewer than half of the clients. In Gaussian noise its error is √(π/2) ≈ 1.25 times the mean's.

    Guarantee: that of each upload, since it only sees uploads with their noise. It is refused where only the sum has
    enough noise: one client moves a median by up to the clip norm, and a mean of n clients by 1/n of it.
    """

    kind: Literal["median"] = "median"

    is_secure = False
    needs_each_upload = True

    def for_moments(self) -> Plain:
        return Plain()  # a median of moments is not the moment of all examples

    def combine(self, rows: Params) -> Params:
        return {name: _trim(value, (len(value) - 1) // 2) for name, value in rows.items()}


@part
class TrimmedMean(Aggregation):
    """Leave out the `trim`·n largest and the `trim`·n smallest values of each coordinate, and take the others' mean.

    It holds against as many clients as it leaves out at each end: trim = 0.2 against two of ten.

    Guarantee: as that of `Median`, and refused where that is.
    """

    kind: Literal["trimmed_mean"] = "trimmed_mean"
    trim: Annotated[Positive, Field(lt=0.5)] = 0.2

    is_secure = False
    needs_each_upload = True

    def for_moments(self) -> Plain:
        return Plain()

    def combine(self, rows: Params) -> Params:
        return {name: _trim(value, int(self.trim * len(value) + 1e-9)) for name, value in rows.items()}


def _trim(values: Tensor, cut: int) -> Tensor:
    """Return n times the mean of each coordinate without its `cut` smallest and largest values.

    The values are added in their order of size, so the order of the clients changes no bit.
    """
    ordered = torch.sort(values, dim=0).values
    return ordered[cut : len(values) - cut].mean(dim=0) * len(values)

"""Centre and spread of every input, by which the clients standardise their examples."""

from __future__ import annotations

from typing import NamedTuple

from discreet.lazy_torch import Tensor
from discreet.params import Params

CENTRE, SPREAD = "input centre", "input spread"  # names in a broadcast: one value for each input, then the target's


class InputScale(NamedTuple):
    """Centre and spread of every input and of the target, which is last."""

    centre: Tensor
    spread: Tensor

    @classmethod
    def find(cls, announcement: Params) -> InputScale | None:
        """Return the scale that was announced, if one was."""
        return cls(announcement[CENTRE], announcement[SPREAD]) if CENTRE in announcement else None

    def scale_inputs(self, inputs: Tensor) -> Tensor:
        """Return standardised inputs."""
        return (inputs - self.centre[:-1].to(inputs)) / self.spread[:-1].to(inputs)

    def scale_targets(self, targets: Tensor) -> Tensor:
        """Return standardised targets. Labels of classes stay as they are."""
        if not targets.is_floating_point():
            return targets
        return (targets - self.centre[-1].to(targets)) / self.spread[-1].to(targets)

    def restore_outputs(self, outputs: Tensor) -> Tensor:
        """Return outputs in the target's own units. Those for classes stay as they are: centre 0, spread 1."""
        return outputs * self.spread[-1].to(outputs) + self.centre[-1].to(outputs)

"""What a round sends: the bits that one client gets, and those that its update takes on the way back."""

from typing import TYPE_CHECKING, NamedTuple

from discreet.params import Params, count_values

if TYPE_CHECKING:
    from discreet.algorithms.algorithm import Algorithm


class MessageBits(NamedTuple):
    """Of one client in one round."""

    up: int
    down: int


def message_bits(algorithm: "Algorithm", params: Params) -> MessageBits:
    """An update at the aggregation's width, without what a common mask leaves out; and the model as it is.

    They follow from the configuration, and say nothing of the data. Where each client chooses its own coordinates all
    of them are sent: which ones are zero belongs to what is hidden.
    """
    width = max(algorithm.aggregation.bits_per_coordinate(value.dtype) for value in params.values())
    kept = algorithm.sparsifier.coordinates(count_values(params))
    sent = algorithm.aggregation.coordinates(kept) + algorithm.mechanism.extra_values
    return MessageBits(sent * width, sum(8 * value.numel() * value.element_size() for value in params.values()))

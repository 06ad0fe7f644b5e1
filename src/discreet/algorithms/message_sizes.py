"""The size of a round's messages: the model to a client, and the client's update."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from discreet.lazy_torch import torch
from discreet.params import Params, count_values

if TYPE_CHECKING:
    from discreet.algorithms.algorithm import Algorithm


class MessageBits(NamedTuple):
    """Bits that one client uploads and downloads in a round."""

    up: int
    down: int


def message_bits(algorithm: Algorithm, params: Params) -> MessageBits:
    """Return the bits of an encoded update, without what a common mask leaves out, and of the model.

    They follow from the configuration and don't depend on data. If each client chooses its own coordinates, all of them
    are sent: which are zero must stay hidden.
    """
    types = {torch.float64 if algorithm.may_send_doubles else value.dtype for value in params.values()}
    width = max(algorithm.aggregation.bits_per_coordinate(dtype) for dtype in types)
    kept = algorithm.sparsifier.coordinates(count_values(params))
    sent = algorithm.aggregation.coordinates(kept) + algorithm.mechanism.extra_values
    return MessageBits(sent * width, sum(8 * value.numel() * value.element_size() for value in params.values()))

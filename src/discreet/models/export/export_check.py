"""Check that an exported file computes what the model computes, and explain why a model can't be exported."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from discreet.errors import DiscreetError, InvalidInput

REMEDY = "Use --to safetensors, which holds the weights alone, or a model without branches on its inputs."


@contextmanager
def explain_failure(name: str) -> Iterator[None]:
    """Turn any error of an exporter into one sentence."""
    try:
        yield
    except DiscreetError:
        raise
    except Exception as error:  # exporters raise errors of many kinds
        cause = error
        while cause.__cause__ is not None:
            cause = cause.__cause__  # type: ignore[assignment]
        lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
        reason = (lines[0] if lines else type(cause).__name__).rstrip(".")
        raise InvalidInput(f"The model can't be exported to {name}: {reason:.200}.", fix=REMEDY) from error


def compare_outputs(module: nn.Module, exported: Callable[..., Tensor], example: tuple[Tensor, ...], name: str) -> None:
    """Refuse an exported model that gives other outputs than the module, for all rows together or for any one alone.

    An exporter that records one pass loses a branch on the inputs, which shows in rows that take the other one.
    """
    rows = len(example[0])
    for which in (slice(None), *(slice(row, row + 1) for row in range(rows))):
        inputs = tuple(block[which] for block in example)
        expected, got = module(*inputs), exported(*inputs)
        if expected.shape != got.shape or not torch.allclose(expected, got.to(expected), rtol=1e-4, atol=1e-5):
            raise InvalidInput(
                f"The model can't be exported to {name}: it branches on its inputs, or on their number.", fix=REMEDY
            )

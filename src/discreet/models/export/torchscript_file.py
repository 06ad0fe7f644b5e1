"""A trained network as a TorchScript file, traced on an example."""

import io
import warnings
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from discreet.models.export.export_check import compare_outputs, explain_failure


def torchscript_bytes(module: nn.Module, example: tuple[Tensor, ...], facts: Mapping[str, str]) -> bytes:
    """Return the module as a TorchScript file, with these facts as extra files in it.

    Raises:
        InvalidInput: The module can't be traced, or what was traced does something else with some rows.
    """
    content = io.BytesIO()
    with explain_failure("TorchScript"), warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # torch.jit is deprecated; a file for libtorch is what was asked for
        traced = torch.jit.trace(module, example, check_trace=False)  # type: ignore[no-untyped-call]
        torch.jit.save(traced, content, _extra_files={name: text.encode() for name, text in facts.items()})
        content.seek(0)
        loaded: Callable[..., Tensor] = torch.jit.load(content)  # type: ignore[no-untyped-call]
        compare_outputs(module, loaded, example, "TorchScript")
    return content.getvalue()

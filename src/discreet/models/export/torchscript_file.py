"""A trained network as a TorchScript file, traced on an example."""

import io
import warnings
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from discreet.models.export.export_check import compare_outputs, explain_failure

WRITTEN_ANYWAY = ("version", "byteorder", ".data/serialization_id")  # records that torch adds to every file


def torchscript_bytes(module: nn.Module, example: tuple[Tensor, ...], facts: Mapping[str, str]) -> bytes:
    """Return the module as a TorchScript file, with these facts as extra files in it.

    Raises:
        InvalidInput: The module can't be traced, or what was traced does something else with some rows.
    """
    content = io.BytesIO()
    with explain_failure("TorchScript"), warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # torch.jit is deprecated; a file for libtorch is what was asked for
        traced = torch.jit.trace(module, example, check_trace=False, _store_inputs=False)  # type: ignore[no-untyped-call]
        torch.jit.save(traced, content, _extra_files={name: text.encode() for name, text in facts.items()})
        content = _without_source_lines(content)
        loaded: Callable[..., Tensor] = torch.jit.load(content)  # type: ignore[no-untyped-call]
        compare_outputs(module, loaded, example, "TorchScript")
    return content.getvalue()


def _without_source_lines(content: io.BytesIO) -> io.BytesIO:
    """Return the file without what describes the machine that exports it: the paths of the lines that were traced."""
    content.seek(0)
    reader, copy = torch._C.PyTorchFileReader(content), io.BytesIO()
    writer = torch._C.PyTorchFileWriter(copy)
    for name in reader.get_all_records():
        if not name.endswith(".debug_pkl") and name not in WRITTEN_ANYWAY:
            record = reader.get_record(name)
            writer.write_record(name, record, len(record))
    writer.write_end_of_file()
    copy.seek(0)
    return copy

"""A trained network as a file of a format that other programs run."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from discreet.data.tables.table_columns import TableColumns
from discreet.models.export.onnx_file import network_onnx, table_onnx
from discreet.models.export.table_network import TableNetwork
from discreet.models.export.torchscript_file import torchscript_bytes

RunnableFormat: TypeAlias = Literal["onnx", "torchscript"]


def table_model_bytes(to: RunnableFormat, model: nn.Module, columns: TableColumns, facts: Mapping[str, str]) -> bytes:
    """Return a network of a table as a file that takes the columns in their own units.

    Raises:
        InvalidInput: The network can't be exported.
        MissingExtra: A library for ONNX is not installed.
    """
    network = TableNetwork(model, columns).eval()
    with torch.no_grad():
        outputs = model(network.encode(*network.example())).double().numpy()
    columns.name_predictions(outputs)  # refuses outputs that are no probabilities
    if to == "onnx":
        return table_onnx(network, facts)
    return torchscript_bytes(network, network.example(), facts)


def model_bytes(to: RunnableFormat, model: nn.Module, inputs: Tensor, facts: Mapping[str, str]) -> bytes:
    """Return a network as a file that takes inputs as the task gives them.

    Args:
        to: The format.
        model: The network.
        inputs: One or more inputs of the right shape and type, for an example.
        facts: What to write into the file.

    Raises:
        InvalidInput: The network can't be exported.
        MissingExtra: A library for ONNX is not installed.
    """
    example = (torch.cat([inputs, inputs])[: max(2, len(inputs))],)  # of a single row, an exporter would fix the number
    if to == "onnx":
        return network_onnx(model, example, facts)
    return torchscript_bytes(model, example, facts)

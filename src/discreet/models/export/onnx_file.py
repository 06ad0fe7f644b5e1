"""A trained network as an ONNX file; a table's columns are its inputs, by their names and in their own units."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from discreet.data.tables.column_kinds import HashedText, Values
from discreet.errors import InvalidInput
from discreet.extras import import_library
from discreet.log_output import quiet_libraries
from discreet.models.export.export_check import compare_outputs, explain_failure
from discreet.models.export.table_network import TableNetwork

ML_DOMAIN = "ai.onnx.ml"
ML_OPSET, IR_VERSION = 2, 9  # what onnxruntime 1.17 and later can read
PREFIX = "network/"  # before every name inside, so that none is also the name of a column
AXIS = f"{PREFIX}axis"
PREDICTION, PROBABILITIES = "prediction", "probabilities"


def network_onnx(module: nn.Module, example: tuple[Tensor, ...], facts: Mapping[str, str]) -> bytes:
    """Return a network as an ONNX file with the input `inputs` and the output `outputs`.

    Raises:
        InvalidInput: The network can't be exported.
        MissingExtra: onnx, onnxscript or onnxruntime is not installed.
    """
    model = _export(module, example, ["inputs"])
    _check(module, model, example, ["inputs"])
    return _write_facts(model, facts)


def table_onnx(network: TableNetwork, facts: Mapping[str, str]) -> bytes:
    """Return a network of a table as an ONNX file, with one input for each column and what is predicted as outputs.

    Raises:
        InvalidInput: The network can't be exported, or a column has the name of an output.
        MissingExtra: onnx, onnxscript or onnxruntime is not installed.
    """
    for name in (PREDICTION, PROBABILITIES):
        if name in network.columns.inputs:
            raise InvalidInput(
                f"A column of the table has the name {name!r}, which an output of the ONNX file has.",
                fix="Use --to torchscript, or train on a table in which the column has another name.",
            )
    compose = import_library("onnx.compose", "ONNX")
    example = network.example()
    model = _export(network, example, list(network.blocks))
    _check(network, model, example, list(network.blocks))
    model = compose.add_prefix(model, PREFIX)
    model.opset_import.append(import_library("onnx.helper").make_opsetid(ML_DOMAIN, ML_OPSET))
    _name_columns(model, network)
    _name_outputs(model, network)
    content = _write_facts(model, facts)
    import_library("onnxruntime", "ONNX").InferenceSession(content)  # refuses a graph that is not valid
    return content


def _export(module: nn.Module, example: tuple[Tensor, ...], inputs: list[str]) -> Any:
    """Return the graph of a module, without what describes the machine that exports it."""
    for library in ("onnx", "onnxscript", "onnxruntime"):
        import_library(library, "ONNX")
    rows = {0: torch.export.Dim("rows", min=1)}
    varied = (tuple(rows for _ in example),) if isinstance(module, TableNetwork) else (rows,)
    with explain_failure("ONNX"), _quiet_exporter(), torch.no_grad():
        program = torch.onnx.export(
            module,
            example,
            dynamo=True,
            verbose=False,
            input_names=inputs,
            output_names=["outputs"],
            dynamic_shapes=varied,
        )
    assert program is not None
    model = program.model_proto
    for graph in (model.graph, *model.functions):
        for node in graph.node:
            node.ClearField("doc_string")
            node.ClearField("metadata_props")  # has the paths of source files
    for field in (model, model.graph, *model.graph.input, *model.graph.output, *model.graph.value_info):
        field.ClearField("metadata_props")
    model.ir_version = min(model.ir_version, IR_VERSION)
    return model


@contextmanager
def _quiet_exporter() -> Iterator[None]:
    """Keep what the exporter says about libraries that are not installed, and about itself, off the terminal."""
    with warnings.catch_warnings(), quiet_libraries("torch.onnx", "torch.export", "onnxscript", "onnx_ir"):
        warnings.simplefilter("ignore")
        yield


def _name_columns(model: Any, network: TableNetwork) -> None:
    """Put before the network what makes its matrices of the table's columns; each column becomes an input."""
    helper, types = import_library("onnx.helper"), import_library("onnx").TensorProto
    inputs, nodes = [], []
    columns = network.columns.inputs
    for block, names in network.blocks.items():
        parts = []
        for name in names:
            column, source = columns[name], name
            kind = types.STRING if isinstance(column, Values) else types.DOUBLE
            shape = ["rows", column.width] if isinstance(column, HashedText) else ["rows"]
            inputs.append(helper.make_tensor_value_info(name, kind, shape))
            if isinstance(column, Values):
                source = f"{PREFIX}code of {name}"
                nodes.append(_lookup(helper, name, source, column))
            if not isinstance(column, HashedText):
                nodes.append(helper.make_node("Unsqueeze", [source, AXIS], [f"{PREFIX}column {name}"]))
                source = f"{PREFIX}column {name}"
            parts.append(source)
        nodes.append(helper.make_node("Concat", parts, [PREFIX + block], axis=1))
    model.graph.initializer.append(helper.make_tensor(AXIS, types.INT64, [1], [1]))
    _replace(model.graph.input, inputs)
    _replace(model.graph.node, [*nodes, *model.graph.node])


def _lookup(helper: Any, source: str, target: str, column: Values) -> Any:
    return helper.make_node(
        "LabelEncoder",
        [source],
        [target],
        domain=ML_DOMAIN,
        keys_strings=list(column.values),
        values_int64s=list(range(column.width)),
        default_int64=-1,
    )


def _name_outputs(model: Any, network: TableNetwork) -> None:
    """Name the outputs: a number, or the most probable value and the probability of each."""
    helper, types = import_library("onnx.helper"), import_library("onnx").TensorProto
    outputs, target = f"{PREFIX}outputs", network.columns.target
    if not isinstance(target, Values):
        model.graph.node.append(helper.make_node("Identity", [outputs], [PREDICTION]))
        _replace(model.graph.output, [helper.make_tensor_value_info(PREDICTION, types.DOUBLE, ["rows"])])
        return
    none, best, total, is_unknown, code = (PREFIX + name for name in ("none", "best", "total", "is_unknown", "code"))
    model.graph.initializer.append(helper.make_tensor(none, types.INT64, [1], [-1]))
    model.graph.node.extend(
        [
            helper.make_node("Identity", [outputs], [PROBABILITIES]),
            helper.make_node("ArgMax", [outputs], [best], axis=1, keepdims=0),
            helper.make_node("ReduceSum", [outputs, AXIS], [total], keepdims=0),
            helper.make_node("IsNaN", [total], [is_unknown]),
            helper.make_node("Where", [is_unknown, none, best], [code]),
            helper.make_node(
                "LabelEncoder",
                [code],
                [PREDICTION],
                domain=ML_DOMAIN,
                keys_int64s=list(range(target.width)),
                values_strings=list(target.values),
                default_string="",
            ),
        ]
    )
    shares = helper.make_tensor_value_info(PROBABILITIES, types.DOUBLE, ["rows", target.width])
    _replace(model.graph.output, [helper.make_tensor_value_info(PREDICTION, types.STRING, ["rows"]), shares])


def _write_facts(model: Any, facts: Mapping[str, str]) -> bytes:
    """Return the file of the model with these facts in it."""
    helper = import_library("onnx.helper")
    model.producer_name, model.producer_version = "discreet", facts.get("discreet", "")
    helper.set_model_props(model, dict(facts))
    content: bytes = model.SerializeToString()
    return content


def _replace(field: Any, entries: list[Any]) -> None:
    kept = [type(entry).FromString(entry.SerializeToString()) for entry in entries]  # clearing would empty them
    del field[:]
    field.extend(kept)


def _check(module: nn.Module, model: Any, example: tuple[Tensor, ...], inputs: list[str]) -> None:
    """Run the graph in onnxruntime, and compare its outputs with the module's."""
    with explain_failure("ONNX"), torch.no_grad():
        session = import_library("onnxruntime", "ONNX").InferenceSession(model.SerializeToString())

        def run(*given: Tensor) -> Tensor:
            named = {name: each.numpy() for name, each in zip(inputs, given, strict=True)}
            return torch.from_numpy(session.run(["outputs"], named)[0])

        compare_outputs(module, run, example, "ONNX")

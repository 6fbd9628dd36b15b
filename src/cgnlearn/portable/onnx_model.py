"""ONNX models: the graph of a portable description with its inputs and outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgnlearn.portable.networks import Description
from cgnlearn.portable.onnx_graph import OPSET, OnnxGraph
from cgnlearn.portable.packing import as_json

IR_VERSION = 8  # of the file, which every runtime of the last years reads
OPSET_ML = 3


def onnx_content(description: Description) -> bytes:
    """The content of a file."""
    content: bytes = onnx_model(description).SerializeToString()
    return content


def onnx_model(description: Description) -> Any:
    """The model as a ModelProto."""
    onnx = _onnx()
    helper, numpy_helper, kinds = onnx.helper, onnx.numpy_helper, onnx.TensorProto
    nodes: list[Any] = []
    constants: list[Any] = []

    def add_node(kind: str, inputs: list[str], output: str, **options: Any) -> None:
        domain = "ai.onnx.ml" if kind == "LabelEncoder" else ""
        nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **options))

    def add_constant(name: str, value: Any) -> None:
        constants.append(numpy_helper.from_array(value.astype(object) if value.dtype.kind == "U" else value, name))

    graph = OnnxGraph(description, add_node, add_constant)
    columns = description["columns"]
    if has_text(description):
        inputs = [
            helper.make_tensor_value_info(
                column["name"], kinds.STRING if _is_text(column) else kinds.DOUBLE, ["samples", 1]
            )
            for column in columns
        ]
        read = [read_column(graph, column, column["name"]) for column in columns]
    else:
        inputs = [helper.make_tensor_value_info("X", kinds.DOUBLE, ["samples", len(columns)])]
        read = [read_column(graph, column, graph.take("X", [i])) for i, column in enumerate(columns)]
    logs = graph.predictions(graph.op("Concat", *read, axis=1))
    add_node("Identity", [logs], "log_probabilities")
    add_node("Exp", [logs], "probabilities")
    labels = labels_of(description)
    add_node("Gather", [graph.constant(labels), graph.op("ArgMax", logs, axis=1, keepdims=0)], "label", axis=0)
    shape = ["samples", len(labels)]
    outputs = [
        helper.make_tensor_value_info("label", kinds.STRING if labels.dtype.kind == "U" else kinds.INT64, ["samples"]),
        helper.make_tensor_value_info("probabilities", kinds.DOUBLE, shape),
        helper.make_tensor_value_info("log_probabilities", kinds.DOUBLE, shape),
    ]
    model = helper.make_model(
        helper.make_graph(nodes, "cgnlearn", inputs, outputs, constants, doc_string=description["title"]),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", OPSET_ML)],
        producer_name="cgnlearn",
        producer_version=description["provenance"]["cgnlearn"],
        doc_string=description["about"],
        ir_version=IR_VERSION,
    )
    helper.set_model_props(model, {"classes": as_json(description["classes"]), "columns": as_json(columns)})
    onnx.checker.check_model(model)
    return model


def labels_of(description: Description) -> Any:
    """Class labels: whole numbers as such, others as text."""
    classes = description["classes"]
    whole = all(isinstance(label, int) and not isinstance(label, bool) for label in classes)
    return np.array(classes if whole else [str(label) for label in classes])


def has_text(description: Description) -> bool:
    """Whether a level of some column is text, so that each column is an input of its own."""
    return any(map(_is_text, description["columns"]))


def read_column(graph: OnnxGraph, column: Description, name: str) -> str:
    """Values, or positions of levels, NaN where a level is unknown: (samples, 1) from the tensor of a column."""
    if column.get("fixed"):  # whatever it holds
        return graph.op("Where", graph.op("IsNaN", name), 0.0, graph.op("Mul", name, 0.0))
    if column["kind"] == "continuous":
        return name
    levels = column["levels"]
    if _is_text(column):
        keys = [str(level) for level in levels]
        code = graph.op("LabelEncoder", name, keys_strings=keys, values_int64s=list(range(len(keys))), default_int64=-1)
        code = graph.as_double(code)
        return graph.op("Where", graph.op("Less", code, 0.0), np.nan, code)
    here = graph.as_double(graph.op("Equal", name, np.array([[float(level) for level in levels] or [np.nan]])))
    code = graph.op("MatMul", here, np.arange(max(1, len(levels)), dtype=float)[:, None])
    return graph.op("Where", graph.op("Less", graph.row_sum(here), 0.5), np.nan, code)


def _is_text(column: Description) -> bool:
    return any(isinstance(level, str) for level in column.get("levels", ()))


def _onnx() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise ImportError("ONNX files need onnx: pip install 'cgnlearn[onnx]'") from error
    return onnx

"""Pipelines of scikit-learn that end in one of our classifiers, converted by skl2onnx."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgnlearn.estimators.classifier import CGNClassifier
from cgnlearn.estimators.mixture_classifier import CGNClassifierCV
from cgnlearn.portable.document import description
from cgnlearn.portable.onnx_graph import OnnxGraph
from cgnlearn.portable.onnx_model import has_text, labels_of, read_column

OPTIONS = {"zipmap": [True, False, "columns"], "nocl": [True, False]}  # those of every classifier


def register_converters() -> None:
    """Let ``skl2onnx.to_onnx`` convert `CGNClassifier` and `CGNClassifierCV`, alone or at the end of a Pipeline.

    Outputs are the label and the probabilities, in the precision of the input; all between is computed in double
    precision. Levels of discrete features must be numbers.
    """
    try:
        from skl2onnx import update_registered_converter
    except ImportError as error:
        raise ImportError("converters of pipelines need skl2onnx: pip install skl2onnx") from error
    for kind in (CGNClassifier, CGNClassifierCV):
        update_registered_converter(kind, f"Cgnlearn{kind.__name__}", _shapes, _converted, options=OPTIONS)


def _shapes(operator: Any) -> None:
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType

    n, classes = operator.inputs[0].get_first_dimension(), operator.raw_operator.classes_
    is_text = labels_of({"classes": classes.tolist()}).dtype.kind == "U"
    operator.outputs[0].type = (StringTensorType if is_text else Int64TensorType)([n])
    is_double = isinstance(operator.inputs[0].type, DoubleTensorType)
    operator.outputs[1].type = (DoubleTensorType if is_double else FloatTensorType)([n, len(classes)])


def _converted(scope: Any, operator: Any, container: Any) -> None:
    from onnx import helper
    from skl2onnx.common.data_types import DoubleTensorType

    described = description(operator.raw_operator)
    if has_text(described):
        raise ValueError("a pipeline passes a matrix of numbers on, but some levels are text: encode them as numbers")

    def add_node(kind: str, inputs: list[str], output: str, **options: Any) -> None:
        container.add_node(kind, inputs, [output], name=scope.get_unique_operator_name(kind), **options)

    def add_constant(name: str, value: Any) -> None:
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(object) if value.dtype.kind == "U" else value.dtype)
        content = [text.encode() for text in value.ravel().tolist()] if value.dtype.kind == "U" else value.ravel()
        container.add_initializer(name, kind, list(value.shape), content)

    graph = OnnxGraph(described, add_node, add_constant, scope.get_unique_variable_name("cgnlearn_"))
    whole = graph.as_double(operator.inputs[0].full_name)
    read = [read_column(graph, column, graph.take(whole, [i])) for i, column in enumerate(described["columns"])]
    logs = graph.predictions(graph.op("Concat", *read, axis=1))
    labels, best = graph.constant(labels_of(described)), graph.op("ArgMax", logs, axis=1, keepdims=0)
    add_node("Gather", [labels, best], operator.outputs[0].full_name, axis=0)
    is_double = isinstance(operator.outputs[1].type, DoubleTensorType)
    add_node("Cast", [graph.op("Exp", logs)], operator.outputs[1].full_name, to=11 if is_double else 1)

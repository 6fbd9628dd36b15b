"""A fitted classifier as a file for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cgnlearn.estimators.updated import UpdatedClassifier
from cgnlearn.files import write_whole
from cgnlearn.portable.document import description
from cgnlearn.portable.onnx_model import onnx_content
from cgnlearn.portable.packing import as_json, packed
from cgnlearn.portable.page import page
from cgnlearn.portable.r_code import r_code

ENDINGS = (".json", ".html", ".R", ".onnx")  # in the order of messages
FOR_UPDATED = (".json", ".html")


def export(model: Any, path: str | Path, *, title: str | None = None, about: str | None = None) -> None:
    """Write a fitted classifier for use outside Python.

    Parameters
    ----------
    model : CGNClassifier, CGNClassifierCV or UpdatedClassifier
        The last as ``.json`` or ``.html``.
    path : str or Path
        The ending is the format: ``.json``, the portable description; ``.html``, a calculator for a browser;
        ``.R``, a function for R; ``.onnx``, a graph for ONNX runtimes, which need complete samples.
    title, about : str, optional
        What the model is, and what it is for, in words.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from cgnlearn import CGNClassifier, export
    >>> X, y = load_iris(return_X_y=True)
    >>> path = Path(tempfile.mkdtemp(), "iris.json")
    >>> export(CGNClassifier("tan").fit(X, y), path, title="Iris")
    >>> path.read_text()[:29]
    '{"format":"cgnlearn-portable"'
    """
    write_whole(path, content(model, Path(path).suffix, title=title, about=about))


def content(model: Any, ending: str, *, title: str | None = None, about: str | None = None) -> bytes:
    """The content of a file with this ending."""
    check_ending(ending)
    if isinstance(model, UpdatedClassifier) and ending.lower() not in FOR_UPDATED:
        raise ValueError(f"a model that was updated is exported as {' or '.join(FOR_UPDATED)}, not {ending!r}")
    intervals = ending.lower() in (".html", ".json")
    found = description(model, title=title, about=about, intervals=intervals)
    if ending.lower() == ".onnx":
        return onnx_content(found)
    if ending.lower() == ".json":
        return as_json(packed(found)).encode()
    return (page(found) if ending.lower() == ".html" else r_code(found)).encode()


def check_ending(ending: str) -> None:
    """Raise unless it is the ending of a format."""
    if ending.lower() not in map(str.lower, ENDINGS):
        raise ValueError(f"the ending must be {', '.join(ENDINGS)}, not {ending!r}: choose another path")

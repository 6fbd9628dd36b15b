"""Files of models and of statistics: `save` and `load`, without pickle.

A file is a zip archive of plain arrays, of ``model.json``, the schema by which skops puts them together, with our types
under the names of `type_names`, and of ``header.json``: versions, classes, feature names, a checksum of what was
learned, and the checksum of every other entry. Nothing is built before all checksums agree and every type is known.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import zipfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from cgnlearn import __version__
from cgnlearn.files import write_whole
from cgnlearn.networks.statistics import Statistics
from cgnlearn.type_names import TYPES, named, nodes, placed

FORMAT = 4  # raised when older code can no longer read what newer code writes, or newer what older wrote
HEADER = "header.json"
MODEL = "model.json"
SCHEMA = "schema.json"  # what skops calls it, in memory
MOST_BYTES = 4 << 30  # of a file's content unpacked; what claims more is no model of ours
SMALL_BYTES = 64 << 20  # unpacked content that may be as much greater than the file as it likes
MOST_TIMES = 100  # as great as the file may any other content be; `save` does not pack tighter
PIECE = 1 << 20  # bytes of an entry that are in memory at once while its checksum is computed


class ModelFileError(ValueError):
    """A file that cannot be read, or must not be, as a model."""


def save(model: Any, path: str | Path, *, minimum_cell: float = 0.0, columns: Mapping[str, Any] | None = None) -> None:
    """Write a fitted classifier, a Pipeline that ends in one, or statistics to a file.

    Parameters
    ----------
    model : CGNClassifier, CGNClassifierCV, Pipeline or Statistics
        Statistics are written without any single row's values, so that they can be given to others.
    path : str or Path
        By custom it ends in ``.skops``, or in ``.stats`` if it holds statistics.
    minimum_cell : float
        Refuse statistics with a cell (a class, with levels of discrete columns) that has fewer rows, but some.
    columns : mapping, optional
        What the columns of the training file were, in plain values, for `read_header` to tell.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from cgnlearn import CGNClassifier, load, save
    >>> X, y = load_iris(return_X_y=True)
    >>> path = Path(tempfile.mkdtemp(), "iris.skops")
    >>> save(CGNClassifier("tan").fit(X, y), path)
    >>> load(path).predict(X[:2])
    array([0, 0])
    """
    skops_io = _skops()
    if isinstance(model, Statistics):
        model = model.shareable(minimum_cell)
    elif minimum_cell:
        raise ValueError("minimum_cell is for statistics: save the model's statistics_")
    header = _header_of(model) | {"columns": dict(columns or {})}
    try:
        dumped = skops_io.dumps(model)
    except Exception as error:  # skops raises whatever the object it cannot take apart raises
        raise ModelFileError(f"this model cannot be saved: {_one_line(error)}") from error
    foreign = sorted(set(skops_io.get_untrusted_types(data=dumped)) - set(TYPES.values()))
    if foreign:
        raise ModelFileError(
            f"this model cannot be saved: it holds {foreign[0]}, which `load` would refuse; "
            "leave it out of the model or replace it by a part of scikit-learn"
        )
    content = _packed(dumped, header, zipfile.ZIP_DEFLATED)
    if _unpacked(content) > _most_unpacked(content):  # mostly zeros
        content = _packed(dumped, header, zipfile.ZIP_STORED)
    write_whole(path, content)


def load(path: str | Path) -> Any:
    """Read the model or the statistics that `save` wrote.

    A damaged or altered file, one that names a type which is not part of cgnlearn or scikit-learn, and one written
    by a newer major version raise `ModelFileError`. No code of the file's is run.

    Examples
    --------
    >>> import tempfile
    >>> from cgnlearn import CGNClassifier
    >>> path = Path(tempfile.mkdtemp(), "model.skops")
    >>> save(CGNClassifier().fit([[0.0], [1.0], [4.0], [6.0]], list("aabb")), path)
    >>> load(path).predict([[5.0]])
    array(['b'], dtype='<U1')
    """
    skops_io = _skops()
    content = Path(path).read_bytes()
    header = _checked_header(content, path)
    try:
        content = _for_skops(content)
        foreign = sorted(set(skops_io.get_untrusted_types(data=content)) - set(TYPES.values()))
    except Exception as error:  # checksums agree, so the file was made to be wrong: anything may be raised
        raise ModelFileError(f"{path} is no model file of cgnlearn: {_one_line(error)}") from error
    if foreign:
        raise ModelFileError(
            f"{path} names the type {foreign[0]}, which is part of neither cgnlearn nor scikit-learn: it is refused, "
            "as loading it could run foreign code"
        )
    try:
        model = skops_io.loads(content, trusted=list(TYPES.values()))
        agrees = training_checksum(model) == header["training_sha256"]
    except Exception as error:
        raise ModelFileError(f"{path} cannot be put together again: {_one_line(error)}") from error
    if not agrees:
        raise ModelFileError(f"{path} holds another model than its header says: get a fresh copy of it")
    return model


def read_header(path: str | Path) -> dict[str, Any]:
    """What a model file says of itself, after its checksums have been found to agree."""
    return _checked_header(Path(path).read_bytes(), path)


def training_checksum(model: Any) -> str:
    """SHA-256 of statistics, or of those that a classifier has kept of its training data."""
    statistics = _statistics_of(model)
    digest = hashlib.sha256()
    moments = (array for of_block in statistics.moments for array in (of_block.n, of_block.mean, of_block.scatter))
    for array in (statistics.classes, *statistics.counts, *moments, statistics.missing):
        digest.update(f"{array.shape}".encode())
        digest.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()


def classifier_of(model: Any) -> Any:
    """The classifier itself, or the last step of the pipeline that holds it."""
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import check_is_fitted

    from cgnlearn.estimators.classifier import CGNClassifier
    from cgnlearn.estimators.mixture_classifier import CGNClassifierCV

    last = model
    while isinstance(last, Pipeline):
        last = last[-1]
    if isinstance(last, Statistics):
        raise TypeError("these are statistics, no model: make one of them by from_statistics, or by `cgnlearn merge`")
    if not isinstance(last, CGNClassifier | CGNClassifierCV):
        raise TypeError(f"a model file holds a CGNClassifier or a Pipeline that ends in one, not {type(last).__name__}")
    check_is_fitted(last, "statistics_")
    return last


def _statistics_of(model: Any) -> Statistics:
    found: Statistics = model if isinstance(model, Statistics) else classifier_of(model).statistics_
    return found


def _header_of(model: Any) -> dict[str, Any]:
    statistics = _statistics_of(model)
    schema = statistics.schema
    # Neither statistics nor a pipeline that takes spectra has columns of its own to tell of.
    names = getattr(model, "feature_names_in_", None if hasattr(model, "n_features_in_") else schema.names)
    return {
        "format": FORMAT,
        "holds": "statistics" if model is statistics else "model",
        "versions": {"cgnlearn": __version__, "python": platform.python_version()}
        | {name: version(name) for name in ("numpy", "scikit-learn", "skops")},
        "classes": [str(label) for label in schema.classes],
        "n_features": int(getattr(model, "n_features_in_", schema.n_columns)),
        "feature_names": None if names is None else [str(name) for name in names],
        "training_rows": float(statistics.classes.sum()),
        "training_sha256": training_checksum(model),
    }


def _packed(dumped: bytes, header: dict[str, Any], compression: int) -> bytes:
    """The file of what skops has dumped."""
    buffer, entries = io.BytesIO(), {}
    with (
        zipfile.ZipFile(io.BytesIO(dumped)) as source,
        zipfile.ZipFile(buffer, "w", compression=compression) as archive,
    ):
        for name in source.namelist():
            content = source.read(name)
            if name == SCHEMA:
                name, content = MODEL, named(content)
            archive.writestr(name, content)
            entries[name] = hashlib.sha256(content).hexdigest()
        archive.writestr(HEADER, json.dumps(header | {"entries": entries}, indent=1))
    return buffer.getvalue()


def _for_skops(content: bytes) -> bytes:
    """A file with the schema that skops looks for."""
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(SCHEMA, placed(archive.read(MODEL)))
    return buffer.getvalue()


def _checked_header(content: bytes, path: str | Path) -> dict[str, Any]:
    """The header, once every entry has been read and agrees with it."""
    damaged = f"{path} is damaged or no model file of cgnlearn: get a fresh copy of it"
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
            if HEADER not in names or len(set(names)) < len(names):
                raise ModelFileError(f"{damaged} (entries are missing or doubled)")
            # Other ways to pack are not ours, and give out more than was asked for.
            if any(entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for entry in archive.filelist):
                raise ModelFileError(f"{damaged} (it is packed in a way that is not ours)")
            if (claimed := _unpacked(content)) > (most := _most_unpacked(content)):
                raise ModelFileError(
                    f"{damaged} (it claims to unpack to {claimed >> 20} MB, and {most >> 20} MB are the most here)"
                )
            header = json.loads(archive.read(HEADER))
            file_format, written_by = int(header["format"]), header["versions"]["cgnlearn"]
            if file_format > FORMAT or _major(written_by) > _major(__version__):
                raise ModelFileError(
                    f"{path} was written by cgnlearn {written_by}, newer than this one ({__version__}): "
                    "upgrade cgnlearn"
                )
            if file_format < FORMAT:
                raise ModelFileError(f"{path} was written by an older cgnlearn: fit the model again")
            needless = set(names) - {HEADER, MODEL} - _referred(json.loads(archive.read(MODEL)))
            if needless:
                raise ModelFileError(f"{damaged} (nothing refers to its entry {min(needless)!r})")
            found = {name: _sha256_of(archive, name) for name in names if name != HEADER}
        agrees = found == header["entries"] and isinstance(header["training_sha256"], str)
    except ModelFileError:
        raise
    except Exception as error:  # whatever zipfile, zlib and json make of damage
        raise ModelFileError(f"{damaged} ({_one_line(error)})") from error
    if not agrees:
        raise ModelFileError(f"{damaged} (a checksum differs)")
    return dict(header)


def _unpacked(content: bytes) -> int:
    """How many bytes the entries claim to be; zipfile reads no more of an entry than it claims."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return sum(entry.file_size for entry in archive.filelist)


def _most_unpacked(content: bytes) -> int:
    return min(MOST_BYTES, max(SMALL_BYTES, MOST_TIMES * len(content)))


def _referred(schema: Any) -> set[str]:
    """The entries that a skops schema speaks of."""
    return {node["file"] for node in nodes(schema) if isinstance(node.get("file"), str)}


def _major(written: str) -> int:
    return int(written.split(".")[0])


def _sha256_of(archive: zipfile.ZipFile, name: str) -> str:
    digest = hashlib.sha256()
    with archive.open(name) as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError("model files need skops: pip install 'cgnlearn[files]'") from error
    return skops.io

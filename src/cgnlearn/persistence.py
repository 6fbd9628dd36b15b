"""Files of models and of statistics: `save` and `load`, without pickle.

A file is a zip archive of plain arrays, ``model.json`` (the skops schema, with our types under the names of
`type_names`) and ``header.json``: versions, classes, feature names, a checksum of the statistics, and the checksum of
every other entry. No object is built before all checksums agree and every type is known.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import zipfile
from collections.abc import Iterable, Mapping
from copy import copy
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from cgnlearn import __version__
from cgnlearn.files import write_whole
from cgnlearn.networks.statistics import Statistics
from cgnlearn.type_names import TYPES, named, nodes, placed

FORMAT = 6  # increased when older and newer versions cannot read each other's files
HEADER = "header.json"
MODEL = "model.json"
SCHEMA = "schema.json"  # skops' name of model.json
MOST_BYTES = 4 << 30  # largest unpacked size of a model file
SMALL_BYTES = 64 << 20  # unpacked size that is accepted at any compression
MOST_TIMES = 100  # largest compression above SMALL_BYTES; `save` respects it
PIECE = 1 << 20  # bytes read at once to compute a checksum


class ModelFileError(ValueError):
    """A file that cannot be loaded, or is not safe to load."""


def save(
    model: Any,
    path: str | Path,
    *,
    minimum_cell: float = 0.0,
    columns: Mapping[str, Any] | None = None,
    with_samples: bool = True,
    ids: Iterable[Any] | None = None,
) -> None:
    """Write a fitted classifier, a Pipeline that ends in one, or statistics to a file.

    Parameters
    ----------
    model : CGNClassifier, CGNClassifierCV, Pipeline or Statistics
        Statistics are saved without values of single samples, so that they can be shared.
    path : str or Path
        By convention it ends in ``.skops``, or in ``.stats`` for statistics.
    minimum_cell : float
        Refuse statistics with a non-empty cell (a class, with levels of discrete features) of fewer samples.
    columns : mapping, optional
        Roles of the columns of the training file, in plain values, for `read_header`.
    with_samples : bool
        Whether the file holds the training samples (at most 10,000), which `predict_set` of a `CGNClassifier` and
        intervals of logistic regressions need; without them these raise an error.
    ids : iterable, optional
        Of the training samples. The file keeps hashes of them and no ids; by them `cgnlearn validate` finds samples
        that the model was trained on.

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
    if not with_samples:
        model = _without_samples(model)
    header = _header_of(model) | {"columns": dict(columns or {})}
    if ids is not None and header["holds"] == "model":
        header["id_hashes"] = sorted(_hashed(ids, header["training_sha256"]))
    try:
        dumped = skops_io.dumps(model)
    except Exception as error:  # skops passes on errors of the objects
        raise ModelFileError(f"this model cannot be saved: {_one_line(error)}") from error
    foreign = sorted(set(skops_io.get_untrusted_types(data=dumped)) - set(TYPES.values()))
    if foreign:
        raise ModelFileError(
            f"this model cannot be saved: it contains {foreign[0]}, which `load` would refuse: "
            "remove it or replace it by a class of scikit-learn"
        )
    content = _packed(dumped, header, zipfile.ZIP_DEFLATED)
    if _unpacked(content) > _most_unpacked(content):  # mostly zeros
        content = _packed(dumped, header, zipfile.ZIP_STORED)
    write_whole(path, content)


def load(path: str | Path) -> Any:
    """Load a model or statistics from a file of `save`.

    A file raises `ModelFileError` if it is damaged or altered, names a type that is not part of cgnlearn or
    scikit-learn, or was written by a newer major version. No code of the file is run.

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
    except Exception as error:  # a file made on purpose, with matching checksums, may raise anything
        raise ModelFileError(f"{path} is not a model file of cgnlearn: {_one_line(error)}") from error
    if foreign:
        raise ModelFileError(
            f"{path} names the type {foreign[0]}, which is part of neither cgnlearn nor scikit-learn: it is refused, "
            "because loading it could run foreign code"
        )
    try:
        model = skops_io.loads(content, trusted=list(TYPES.values()))
        agrees = training_checksum(model) == header["training_sha256"]
    except Exception as error:
        raise ModelFileError(f"{path} cannot be restored: {_one_line(error)}") from error
    if not agrees:
        raise ModelFileError(f"{path} holds another model than its header describes: get a new copy of it")
    return model


def read_header(path: str | Path) -> dict[str, Any]:
    """Return the header of a model file whose checksums agree."""
    return _checked_header(Path(path).read_bytes(), path)


def known_ids(header: Mapping[str, Any], ids: Iterable[Any]) -> list[str]:
    """Those of the ids that are among those of the training samples of a model file."""
    known = set(header.get("id_hashes", ()))
    hashes = _hashed(ids, str(header["training_sha256"])) if known else {}
    return [name for code, name in hashes.items() if code in known]


def _hashed(ids: Iterable[Any], salt: str) -> dict[str, str]:
    """Ids by their hashes, which differ between models."""
    return {hashlib.sha256(f"{salt} {name}".encode()).hexdigest()[:16]: str(name) for name in ids}


def training_checksum(model: Any) -> str:
    """SHA-256 of statistics, or of a classifier's statistics."""
    statistics = _statistics_of(model)
    digest = hashlib.sha256()
    moments = (array for of_block in statistics.moments for array in (of_block.n, of_block.mean, of_block.scatter))
    for array in (statistics.classes, *statistics.counts, *moments, statistics.missing):
        digest.update(f"{array.shape}".encode())
        digest.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()


def classifier_of(model: Any) -> Any:
    """The classifier, or the last step of a pipeline."""
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import check_is_fitted

    from cgnlearn.estimators.classifier import CGNClassifier
    from cgnlearn.estimators.mixture_classifier import CGNClassifierCV
    from cgnlearn.estimators.updated import UpdatedClassifier

    last = model
    while isinstance(last, Pipeline):
        last = last[-1]
    if isinstance(last, Statistics):
        raise TypeError("these are statistics, not a model: fit one with from_statistics or `cgnlearn merge`")
    if not isinstance(last, CGNClassifier | CGNClassifierCV | UpdatedClassifier):
        raise TypeError(f"a model file holds a CGNClassifier or a Pipeline that ends in one, not {type(last).__name__}")
    check_is_fitted(last, "statistics_")
    return last


def _without_samples(model: Any) -> Any:
    """A copy of a classifier, or of a pipeline that ends in one, that holds no training samples."""
    from sklearn.pipeline import Pipeline

    if isinstance(model, Statistics):
        return model
    model = copy(model)
    if isinstance(model, Pipeline):
        *steps, (name, last) = model.steps
        model.steps = [*steps, (name, _without_samples(last))]
    else:
        classifier_of(model)
        model._drop_samples()
    return model


def _statistics_of(model: Any) -> Statistics:
    found: Statistics = model if isinstance(model, Statistics) else classifier_of(model).statistics_
    return found


def _header_of(model: Any) -> dict[str, Any]:
    statistics = _statistics_of(model)
    schema = statistics.schema
    # Neither statistics nor a pipeline of spectra has feature names of its own.
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
        "training_samples_held": 0 if model is statistics else classifier_of(model)._n_samples_kept,
        "training_sha256": training_checksum(model),
    }


def _packed(dumped: bytes, header: dict[str, Any], compression: int) -> bytes:
    """A model file from a dump of skops."""
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
    """Add the schema that skops expects."""
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(SCHEMA, placed(archive.read(MODEL)))
    return buffer.getvalue()


def _checked_header(content: bytes, path: str | Path) -> dict[str, Any]:
    """The header; raises unless every entry agrees with it."""
    damaged = f"{path} is damaged or not a model file of cgnlearn: get a new copy of it"
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
            if HEADER not in names or len(set(names)) < len(names):
                raise ModelFileError(f"{damaged} (missing or duplicate entries)")
            # `save` uses no other compression; some of them may unpack to more than they claim.
            if any(entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for entry in archive.filelist):
                raise ModelFileError(f"{damaged} (unknown compression)")
            if (claimed := _unpacked(content)) > (most := _most_unpacked(content)):
                raise ModelFileError(f"{damaged} (it unpacks to {claimed >> 20} MB, more than {most >> 20} MB)")
            header = json.loads(archive.read(HEADER))
            file_format, written_by = int(header["format"]), header["versions"]["cgnlearn"]
            if file_format > FORMAT or _major(written_by) > _major(__version__):
                newer = f"{path} was written by cgnlearn {written_by}, newer than this one ({__version__})"
                raise ModelFileError(f"{newer}: upgrade cgnlearn")
            if file_format < FORMAT:
                raise ModelFileError(f"{path} was written by an older cgnlearn: fit the model again")
            found = nodes(json.loads(archive.read(MODEL)))
            referred = {node["file"] for node in found if isinstance(node.get("file"), str)}
            if unused := set(names) - {HEADER, MODEL} - referred:
                raise ModelFileError(f"{damaged} (nothing refers to its entry {min(unused)!r})")
            checksums = {name: _sha256_of(archive, name) for name in names if name != HEADER}
        agrees = checksums == header["entries"] and isinstance(header["training_sha256"], str)
    except ModelFileError:
        raise
    except Exception as error:  # zipfile, zlib and json raise various errors
        raise ModelFileError(f"{damaged} ({_one_line(error)})") from error
    if not agrees:
        raise ModelFileError(f"{damaged} (a checksum differs)")
    return dict(header)


def _unpacked(content: bytes) -> int:
    """Claimed size of the entries; zipfile reads no more than that."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return sum(entry.file_size for entry in archive.filelist)


def _most_unpacked(content: bytes) -> int:
    return min(MOST_BYTES, max(SMALL_BYTES, MOST_TIMES * len(content)))


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

"""Data files: csv, tsv, parquet and npz as a data frame of attributes, the classes and the groups of the rows.

Text files are read strictly: a row with too many or too few fields, an empty cell, or a word among numbers is an
error that names the line, never a guess.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = {".csv": ",", ".tsv": "\t", ".parquet": None, ".npz": None}
MISSING = {"", "na", "n/a", "nan", "null", "?"}  # cells that say "no value", in lower case
MOSTLY = 0.9  # a column with this share of numbers is one of numbers, and its words are faults


class DataFileError(ValueError):
    """A file whose content cannot be used, said in one line."""


class NoSuchColumn(DataFileError):
    """A column was asked for that the file does not have."""


@dataclass(frozen=True, eq=False)
class Data:
    """What a file holds."""

    path: Path
    sha256: str  # of the file's bytes
    X: pd.DataFrame  # (rows, attributes): floats, and categoricals of text
    y: NDArray[np.str_] | None
    groups: NDArray[np.str_] | None
    lines: NDArray[np.intp]  # where in the file each row stands: its line in text, from 1, its row elsewhere, from 0
    n_dropped: int = 0  # rows left out because a cell was empty

    def place(self, row: int) -> str:
        """How messages speak of a row."""
        return f"{'line' if self.lines[0] else 'row'} {self.lines[row]}"


def rising_numbers(names: Iterable[Any]) -> NDArray[np.float64] | None:
    """Names as numbers if each is one (``mz`` before it apart) and they rise, as in a binned spectrum, else None."""
    try:
        numbers = np.array([float(str(name).lower().removeprefix("mz").strip("_ ")) for name in names])
    except ValueError:
        return None
    rises = len(numbers) > 1 and np.isfinite(numbers).all() and (np.diff(numbers) > 0).all()
    return numbers if rises else None


def read(
    path: Path,
    *,
    target: str | None = None,  # the column, or in npz the array, of the classes
    groups: str | None = None,  # the one that says which rows belong together
    categorical: Sequence[str] = (),  # columns of numbers that are mere labels; columns of words are categorical anyway
    columns: Sequence[str] | None = None,  # the attributes, in this order; None: all but classes and groups
    drop_missing: bool = False,  # leave out rows with an empty cell instead of refusing the file
) -> Data:
    """Read a file; its ending says what it is.

    An npz file has arrays ``X`` (rows, columns), ``y`` and, if there are any, names in ``feature_names`` or ``mz``.
    """
    import pandas as pd

    source = _source(path, target, groups)
    _refuse_unknown(path, source.columns, (target, "--target"), (groups, "--groups"),
                    *((name, "a column of the model") for name in columns or ()),
                    *((name, "--categorical") for name in categorical))  # fmt: skip
    special = [name for name in (target, groups) if name is not None]
    names = [name for name in source.columns if name not in special] if columns is None else list(columns)
    if not names:
        raise DataFileError(f"{source.path} has no columns besides the classes: give it attributes to learn from")
    empty = np.zeros(len(source.lines), bool)
    found: dict[str, NDArray[Any]] = {}
    for name in dict.fromkeys([*names, *special]):
        found[name], missing = source.values(name, name in categorical or name in special)
        if missing.any() and not drop_missing:
            advice = "fill it in, or leave such rows out with --drop-missing" if target else "fill it in"
            raise source.fault(name, "has no value", missing, advice)
        empty |= missing
    if empty.all():
        raise DataFileError(f"{source.path}: every row has an empty cell: fill them in or remove the emptiest columns")
    kept = ~empty
    X = {
        name: values[kept] if values.dtype != object else pd.Categorical(values[kept], sorted(set(values[kept])))
        for name, values in found.items()
        if name not in special
    }
    y, of_groups = (None if name is None else found[name][kept].astype(str) for name in (target, groups))
    return Data(path, source.sha256, pd.DataFrame(X), y, of_groups, source.lines[kept], int(empty.sum()))


def memory_needed(path: Path) -> int:
    """About how many bytes `read` takes for a file that can also be read in parts; 0 for others."""
    suffix = path.suffix.lower()
    if SUFFIXES.get(suffix) is not None:
        return 15 * path.stat().st_size  # a cell is an object of text
    if suffix != ".parquet":
        return 0
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        told = pq.read_metadata(path)
    except (pa.ArrowException, OSError):
        return 0  # `read` says what is wrong
    return int(5 * 8 * told.num_rows * told.num_columns)


@dataclass(frozen=True, eq=False)
class _Source:
    """Columns as they were found, with where they were found."""

    path: Path
    sha256: str
    columns: dict[str, NDArray[Any]]
    lines: NDArray[np.intp]

    def fault(self, name: str, what: str, where: NDArray[np.bool_], advice: str) -> DataFileError:
        """An error about some rows of a column."""
        more = int(where.sum()) - 1
        first = f"{'line' if self.lines[0] else 'row'} {self.lines[where][0]}"
        others = f" (and in {more} more)" if more else ""
        return DataFileError(f"{self.path}: column {name!r} {what} in {first}{others}: {advice}")

    def values(self, name: str, categorical: bool) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """A column as floats, or as objects that are text, and where it has no value."""
        column = self.columns[name]
        if column.dtype.kind in "fiub" and not categorical:
            numbers = column.astype(np.float64)
            missing = np.isnan(numbers)
        else:
            text = _as_text(column)
            missing = np.array([value.strip().lower() in MISSING for value in text])
            if categorical:
                return text.astype(object), missing
            numbers = np.array([_number(value) for value in text])
            words = np.isnan(numbers) & ~missing
            if words.sum() > (1 - MOSTLY) * (~missing).sum():
                return text.astype(object), missing
            if words.any():
                advice = f"correct it, or declare the column with --categorical {name}"
                raise self.fault(name, f"has {str(text[words][0])!r} among numbers", words, advice)
        infinite = np.isinf(numbers)
        if infinite.any():
            raise self.fault(name, "is infinite", infinite, "correct it")
        return numbers, missing


def _source(path: Path, target: str | None, groups: str | None) -> _Source:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataFileError(f"{path}: the ending must be one of {', '.join(SUFFIXES)}: rename or convert the file")
    content = path.read_bytes()
    if not content:
        raise DataFileError(f"{path} is empty: give a file with a header line and rows")
    delimiter = SUFFIXES[suffix]
    if delimiter is not None:
        found, lines = _text_columns(content, path, delimiter)
    else:
        found = _parquet_columns(content, path) if suffix == ".parquet" else _npz_columns(content, path, target, groups)
        lines = np.arange(len(next(iter(found.values()))))
    return _Source(path, hashlib.sha256(content).hexdigest(), found, lines)


def _refuse_unknown(path: Path, columns: dict[str, NDArray[Any]], *asked: tuple[str | None, str]) -> None:
    for name, why in asked:
        if name is not None and name not in columns:
            close = get_close_matches(name, columns, n=1)
            instead = f"did you mean {close[0]!r}?" if close else f"it has {_listed(list(columns))}"
            raise NoSuchColumn(f"{path} has no column {name!r} ({why}): {instead}")


def _number(text: str) -> float:
    try:
        # Python also takes 1_000 and non-ASCII digits; a data file hardly means them.
        return float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return math.nan


def _as_text(column: NDArray[Any]) -> NDArray[np.str_]:
    """Values as text; whole numbers without a decimal point, so that 1 and 1.0 are one level."""
    if column.dtype.kind == "f":
        return np.array([f"{value:.0f}" if float(value).is_integer() else repr(float(value)) for value in column])
    return np.array(["" if value is None or value != value else str(value) for value in column.tolist()], dtype=str)


def _listed(names: list[str], most: int = 8) -> str:
    return ", ".join(repr(name) for name in names[:most]) + (
        f" and {len(names) - most} more" if len(names) > most else ""
    )


# ---- the kinds of file


def _text_columns(content: bytes, path: Path, delimiter: str) -> tuple[dict[str, NDArray[Any]], NDArray[np.intp]]:
    """Every column of a csv or tsv file as text, and the line on which each row ends."""
    import csv

    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataFileError(f"{path}: line {line} is not UTF-8 text: save the file in UTF-8") from None
    if "\0" in text:
        raise DataFileError(f"{path} holds binary zeros and is no text file: export it anew")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    header: list[str] = []
    try:
        for fields in reader:
            if not header:
                header = [name.strip() for name in fields]
                _check_header(header, path)
            elif len(fields) == len(header):
                rows.append(fields)
                lines.append(reader.line_num)
            elif fields:  # a blank line is no row
                raise DataFileError(
                    f"{path}: line {reader.line_num} has {len(fields)} fields, but the header has {len(header)}: "
                    "correct the line"
                )
    except csv.Error as error:
        raise DataFileError(f"{path}: line {reader.line_num} cannot be read ({error}): check its quotes") from None
    if not rows:
        raise DataFileError(f"{path} has a header but no rows: give it rows")
    return dict(zip(header, np.array(rows, dtype=object).T, strict=True)), np.array(lines)


def _check_header(names: list[str], path: Path) -> None:
    repeated = [name for name, n in Counter(names).items() if n > 1]
    if repeated:
        raise DataFileError(f"{path}: two columns are named {repeated[0]!r}: rename one of them")
    if "" in names:
        raise DataFileError(f"{path}: column {names.index('') + 1} has no name in the header line: give it one")
    if len(names) > 1 and all(not math.isnan(_number(name)) for name in names) and rising_numbers(names) is None:
        raise DataFileError(f"{path} seems to start without a header line: give it one with the columns' names")


def _parquet_columns(content: bytes, path: Path) -> dict[str, NDArray[Any]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError("parquet files need pyarrow: pip install 'cgnlearn[frames]'") from error
    try:
        table = pq.read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError) as error:
        raise DataFileError(f"{path} is no parquet file, or damaged ({' '.join(str(error).split())[:120]})") from None
    if not table.num_rows:
        raise DataFileError(f"{path} has no rows: give it rows")
    _check_header(table.column_names, path)
    columns: dict[str, NDArray[Any]] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type):
            columns[name] = column.to_numpy() if not column.null_count else column.cast(pa.float64()).to_numpy()
        elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            columns[name] = np.array(column.to_pylist(), dtype=object)
        else:
            raise DataFileError(f"{path}: column {name!r} holds {column.type}: turn it into numbers or text")
    return columns


def _npz_columns(content: bytes, path: Path, target: str | None, groups: str | None) -> dict[str, NDArray[Any]]:
    import zipfile
    import zlib

    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, KeyError, SyntaxError, zipfile.BadZipFile, zlib.error, TypeError,
            NotImplementedError, RuntimeError, AttributeError) as error:  # fmt: skip
        raise DataFileError(
            f"{path} is no npz file of plain arrays, or damaged ({' '.join(str(error).split())[:120]})"
        ) from None
    X = arrays.pop("X", None)
    if X is None or X.ndim != 2 or X.dtype.kind not in "fiub":
        raise DataFileError(f"{path} has no array X of numbers with rows and columns; it has {_listed(list(arrays))}")
    n_rows, n_columns = X.shape
    if not n_rows or not n_columns:
        raise DataFileError(f"{path}: its array X is empty, {n_rows} rows of {n_columns} columns")
    names = [str(i) for i in range(n_columns)]
    for key in ("feature_names", "mz"):
        if key in arrays and arrays[key].shape == (n_columns,):
            names = [str(name) for name in arrays[key].tolist()]
            _check_header(names, path)
            break
    columns: dict[str, NDArray[Any]] = {name: X[:, i] for i, name in enumerate(names)}
    for asked in (target, groups):
        if asked is not None and asked not in columns:
            if asked not in arrays:
                raise NoSuchColumn(f"{path} has no array {asked!r}; it has {_listed(['X', *arrays])}")
            if arrays[asked].shape != (n_rows,):
                raise DataFileError(
                    f"{path}: the array {asked!r} must have one entry for each of the {n_rows} rows of X"
                )
            columns[asked] = arrays[asked]
    return columns

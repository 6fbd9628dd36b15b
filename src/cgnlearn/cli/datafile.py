"""Data files of every kind as columns: csv, tsv (packed or not), parquet and npz."""

from __future__ import annotations

import hashlib
import io
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cgnlearn.cli.textfile import OWN_DELIMITER, DataFileError, read_text, unpacked

PACKED = (".gz", ".bz2", ".zip")
HEAD_BYTES, HEAD_ROWS = 1 << 20, 5000  # of a file that is too great, from which its columns are judged
KINDS = (*OWN_DELIMITER, ".parquet", ".npz")


class WrongCall(DataFileError):
    """Not the file is wrong but what was asked of it, such as a column that it does not have."""


@dataclass(frozen=True, eq=False)
class Source:
    """Columns as they were found, with where they were found."""

    path: Path
    sha256: str  # of the file's bytes
    columns: dict[str, NDArray[Any]]  # numbers, or objects that are text, or None
    lines: NDArray[np.intp]  # where each row stands: its line in text, from 1, its row elsewhere, from 0
    is_text: bool = False
    decimal: str = "."
    found: tuple[str, ...] = ()  # what was found out about the file, for the person to know

    def place(self, row: int) -> str:
        """How messages speak of a row."""
        return f"{'line' if self.is_text else 'row'} {self.lines[row]}"

    def fault(self, name: str, what: str, where: NDArray[np.bool_], advice: str) -> DataFileError:
        """An error about some rows of a column."""
        more = int(where.sum()) - 1
        others = f" (and in {more} more)" if more else ""
        return DataFileError(
            f"{self.path}: column {name!r} {what} in {self.place(int(where.argmax()))}{others}: {advice}"
        )

    def refuse_unknown(self, *asked: tuple[str | None, str]) -> None:
        """Raise if a column, with who asks for it, is not there."""
        for name, why in asked:
            if name is not None and name not in self.columns:
                raise WrongCall(f"{self.path} has no column {name!r} ({why}): {self.instead_of(name)}")

    def instead_of(self, name: str) -> str:
        """What may be meant by a column that is not there."""
        close = get_close_matches(name, self.columns, n=1)
        return f"did you mean {close[0]!r}?" if close else f"it has {listed(list(self.columns))}"


def source_of(path: Path, arrays: Sequence[str] = (), *, head: bool = False) -> Source:
    """Read a file, or only its first rows; its ending says what it is.

    An npz file has arrays ``X`` (rows, columns), and names in ``feature_names`` or ``mz`` if there are any; of its
    other arrays those that ``arrays`` name become columns, if they have an entry for each row.
    """
    suffix = kind_of(path)
    content = _first_lines(path) if head and suffix in OWN_DELIMITER else path.read_bytes()
    if not content:
        raise DataFileError(f"{path} is empty: give a file with a header line and rows")
    checksum = hashlib.sha256(content).hexdigest()
    if suffix == ".parquet":
        return _counted(path, checksum, _parquet_columns(content, path, head))
    if suffix == ".npz":
        return _counted(path, checksum, _npz_columns(content, path, arrays))
    inner, inside, how = unpacked(content, path)
    if inside not in OWN_DELIMITER:
        raise DataFileError(f"{path} holds {inside or 'something without an ending'}: pack a csv or tsv file")
    if not inner:
        raise DataFileError(f"{path} is empty: give a file with a header line and rows")
    text = read_text(inner, path, inside, lambda names: check_header(names, path))
    found = (*(() if how is None else (how,)), *text.found)
    return Source(path, checksum, dict(text.columns), text.lines, True, text.decimal, found)


def kind_of(path: Path) -> str:
    """The ending that says what a file is; refused if none does."""
    suffix = path.suffix.lower()
    inside = Path(path.stem).suffix.lower() if suffix in (".gz", ".bz2") else suffix
    if suffix not in (*KINDS, *PACKED) or inside not in (*OWN_DELIMITER, ".parquet", ".npz", ".zip"):
        endings = ", ".join((*KINDS, ".csv.gz", ".csv.bz2", ".zip"))
        raise DataFileError(f"{path}: the ending must be one of {endings}: rename or convert the file")
    if suffix in (".gz", ".bz2") and inside not in OWN_DELIMITER:
        raise DataFileError(f"{path}: only csv and tsv files are read packed: unpack it first")
    return suffix


def memory_needed(path: Path) -> int:
    """About how many bytes it takes to read a file that can also be read in parts; 0 for others."""
    suffix = path.suffix.lower()
    if suffix in OWN_DELIMITER:
        return 15 * path.stat().st_size  # a cell is an object of text
    if suffix != ".parquet":
        return 0
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        told = pq.read_metadata(path)
    except (pa.ArrowException, OSError):
        return 0  # who reads it says what is wrong
    return int(5 * 8 * told.num_rows * told.num_columns)


def rising_numbers(names: Iterable[Any]) -> NDArray[np.float64] | None:
    """Names as numbers if each is one (``mz`` before it apart) and they rise, as in a binned spectrum, else None."""
    try:
        numbers = np.array([float(str(name).lower().removeprefix("mz").strip("_ ")) for name in names])
    except ValueError:
        return None
    rises = len(numbers) > 1 and np.isfinite(numbers).all() and (np.diff(numbers) > 0).all()
    return numbers if rises else None


def check_header(names: list[str], path: Path) -> None:
    """Refuse names that are doubled or missing, and rows where names should be."""
    repeated = [name for name, n in Counter(names).items() if n > 1]
    if repeated and repeated[0]:
        raise DataFileError(f"{path}: two columns are named {repeated[0]!r}: rename one of them")
    if "" in names:
        raise DataFileError(f"{path}: column {names.index('') + 1} has no name in the header line: give it one")
    if len(names) > 1 and all(not math.isnan(number(name)) for name in names) and rising_numbers(names) is None:
        raise DataFileError(f"{path} seems to start without a header line: give it one with the columns' names")


def number(text: str, decimal: str = ".") -> float:
    """The number that a cell stands for, or NaN."""
    try:
        # Python also takes 1_000 and non-ASCII digits; a data file hardly means them.
        return float(text.replace(decimal, ".")) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return math.nan


def listed(names: Sequence[str], most: int = 8) -> str:
    """The first names, and how many more there are."""
    return ", ".join(repr(name) for name in names[:most]) + (
        f" and {len(names) - most} more" if len(names) > most else ""
    )


def _first_lines(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(HEAD_BYTES)
    return content[: content.rfind(b"\n") + 1] or content


def _counted(path: Path, checksum: str, columns: dict[str, NDArray[Any]]) -> Source:
    return Source(path, checksum, columns, np.arange(len(next(iter(columns.values())))))


# ---- the kinds of file


def _parquet_columns(content: bytes, path: Path, head: bool) -> dict[str, NDArray[Any]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError("parquet files need pyarrow: pip install 'cgnlearn[frames]'") from error
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        table = pa.Table.from_batches([next(file.iter_batches(HEAD_ROWS))]) if head else file.read()
        if not table.num_rows or not table.num_columns:
            raise DataFileError(f"{path} has no rows, or no columns: give it some")
        check_header(table.column_names, path)
        return {
            name: _parquet_column(column, name, path)
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
        raise DataFileError(f"{path} is no parquet file, or damaged ({_short(error)})") from None


def _parquet_column(column: Any, name: str, path: Path) -> NDArray[Any]:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        found: NDArray[Any] = column.to_numpy() if not column.null_count else column.cast(pa.float64()).to_numpy()
        return found
    if pa.types.is_decimal(kind):
        return np.asarray(column.cast(pa.float64()).to_numpy(), float)
    if pa.types.is_temporal(kind):
        column = column.cast(pa.string())
    elif not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)):
        raise DataFileError(f"{path}: column {name!r} holds {kind}: turn it into numbers or text")
    return np.array([value if value is None else value.strip() for value in column.to_pylist()], dtype=object)


def _npz_columns(content: bytes, path: Path, wanted: Sequence[str]) -> dict[str, NDArray[Any]]:
    import zipfile
    import zlib

    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, KeyError, SyntaxError, zipfile.BadZipFile, zlib.error, TypeError,
            NotImplementedError, RuntimeError, AttributeError, MemoryError, OverflowError) as error:  # fmt: skip
        raise DataFileError(f"{path} is no npz file of plain arrays, or damaged ({_short(error)})") from None
    X = arrays.pop("X", None)
    if X is None or X.ndim != 2 or X.dtype.kind not in "fiub":
        raise DataFileError(f"{path} has no array X of numbers with rows and columns; it has {listed(list(arrays))}")
    n_rows, n_columns = X.shape
    if not n_rows or not n_columns:
        raise DataFileError(f"{path}: its array X is empty, {n_rows} rows of {n_columns} columns")
    names = [str(i) for i in range(n_columns)]
    for key in ("feature_names", "mz"):
        if key in arrays and arrays[key].shape == (n_columns,):
            names = [str(name) for name in arrays[key].tolist()]
            check_header(names, path)
            break
    columns: dict[str, NDArray[Any]] = {name: X[:, i] for i, name in enumerate(names)}
    for asked in wanted:
        if asked in columns:
            continue
        if asked not in arrays:
            raise WrongCall(f"{path} has no array {asked!r}; it has {listed(['X', *arrays])}")
        if arrays[asked].shape != (n_rows,):
            raise DataFileError(f"{path}: the array {asked!r} must have one entry for each of the {n_rows} rows of X")
        own = arrays[asked]
        columns[asked] = (
            own if own.dtype.kind in "fiub" else np.array([str(one).strip() for one in own.tolist()], object)
        )
    return columns


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__

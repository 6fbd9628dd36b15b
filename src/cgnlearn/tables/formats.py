"""Files as columns: csv and tsv (packed or not), Parquet and Arrow, in memory or in batches; xlsx and npz in memory."""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property, reduce
from operator import or_
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cgnlearn.tables.numerals import Marks, Numeral, in_words, numerals
from cgnlearn.tables.sheets import sheet_of
from cgnlearn.tables.text import OPENERS, OWN_DELIMITER, DataFileError, Strings, TextFile, check_header

PACKED = (*OPENERS, ".zip")
ARROW = {".parquet": "parquet", ".arrow": "ipc", ".feather": "ipc"}
EXCEL = (".xlsx", ".xlsm")
KINDS = (*OWN_DELIMITER, *ARROW, *EXCEL, ".npz")
STREAMED = (*OWN_DELIMITER, *ARROW, *PACKED)
WHOLE = {".npz": 3, **dict.fromkeys(EXCEL, 4)}  # kinds that are read whole, and bytes of memory for an unpacked byte
PIECE = 1 << 16  # bytes of a column of a Parquet file that are read at once
NPZ_DAMAGE = (
    *(OSError, ValueError, EOFError, LookupError, SyntaxError, TypeError, AttributeError, ArithmeticError),
    *(MemoryError, RuntimeError, zipfile.BadZipFile, zlib.error),
)


class ColumnError(DataFileError):
    """The request does not match the file, such as a column that it does not have."""


class Words(Strings):
    """A column of text as distinct cells and the index of each row's cell, -1 for none."""

    def __init__(self, cells: list[str], index: NDArray[Any]) -> None:
        self.distinct = cells, index

    def __getitem__(self, row: int) -> str:
        cells, index = self.distinct
        return cells[index[row]]

    def floats(self) -> None:
        return None  # each distinct cell is parsed once instead


NEITHER = ", neither numbers nor text"
TYPES = ("numbers", "levels", "text")  # levels: categories that are not text
Column = NDArray[Any] | Strings  # numbers, or text


@dataclass(frozen=True, eq=False)
class Rows:
    """A batch of rows with unparsed cells."""

    path: Path
    columns: dict[str, Column]
    places: NDArray[np.intp]  # line or row of each row in its file, from 1; a header counts where there is one
    is_text: bool = False
    numerals: Mapping[str, Numeral] = field(default_factory=dict)  # how numbers are written; default: decimal points
    parsed: dict[str, Any] = field(default_factory=dict)  # columns as numbers, once parsed

    def place(self, row: int) -> str:
        return f"{'line' if self.is_text else 'row'} {self.places[row]}"


@dataclass(frozen=True, eq=False)
class Source:
    """Files of one kind with the same columns."""

    path: Any  # the file, or a description of several for messages
    names: tuple[str, ...]
    read: Callable[[Sequence[str], int | None], Iterator[Rows]]  # columns, and rows at once; None: all
    memory: int = 0  # about how many bytes it takes to read all rows at once; 0 if batches are not possible
    is_text: bool = False
    types: dict[str, str] = field(default_factory=dict)  # if the file declares them: one of TYPES, or another type
    layout: tuple[str, ...] = ()  # what is unusual about a text file or a sheet
    index: tuple[str, ...] = ()  # columns that are the index of a pandas frame

    @cached_property
    def sha256(self) -> str:
        with Path(self.path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @cached_property
    def whole(self) -> Rows:
        [rows] = self.read([name for name in self.names if name not in self.unreadable], None)
        return rows

    @property
    def unreadable(self) -> dict[str, str]:
        """The types of columns that are neither numbers nor text, such as lists."""
        return {name: kind for name, kind in self.types.items() if kind.endswith(NEITHER)}

    def batches(self, names: Iterable[str], n_rows: int | None) -> Iterator[Rows]:
        """Columns in batches of rows; None: all rows, cached."""
        return iter([self.whole]) if n_rows is None else self.read(list(names), n_rows)

    def refuse_unknown(self, *columns: tuple[str | None, str]) -> None:
        """Raise if a column, given with the reason it is needed, does not exist."""
        for name, why in columns:
            if name is not None and name not in self.names:
                raise ColumnError(f"{self.path} has no column {name!r} ({why}){self.hint(name)}")

    def refuse_unreadable(self, *names: str | None) -> None:
        """Raise if a column that is needed holds neither numbers nor text."""
        for name in names:
            if name in self.unreadable:
                raise DataFileError(f"{self.path}: column {name!r} holds {self.unreadable[name]}: convert it")

    def hint(self, name: str) -> str:
        """The end of a message about a column that does not exist."""
        close = self.close(name)
        return f": did you mean {close!r}?" if close else f": it has {listed(self.names)}"

    def close(self, name: str) -> str | None:
        """The column with the most similar name, in whatever case, if there is one."""
        names = {other.casefold(): other for other in reversed(self.names)}
        found = get_close_matches(name.casefold(), names, n=1)
        return names[found[0]] if found else None


def source_of(given: Any, arrays: Sequence[str] = (), sheet: str | None = None) -> Source:
    """Open a file, several, folders of them, or a pyarrow dataset; the ending determines the kind.

    An npz file has an array ``X`` (rows, columns), and may have names in ``feature_names`` or ``mz``; its other arrays
    become columns if they are named in ``arrays`` and have an entry for each row. ``sheet``: of an xlsx file.
    """
    if not isinstance(given, str | Path | list | tuple):
        return _arrow_source(given, "the source")
    several = not isinstance(given, str | Path) or Path(given).is_dir()
    paths = _files(given) if several else [Path(str(given))]
    what = paths[0] if len(paths) == 1 else str(given) if isinstance(given, str | Path) else "the source"
    endings = {_ending(path) for path in paths}
    if len(endings) > 1:
        raise DataFileError(f"{what}: all files must end in the same one of {', '.join(STREAMED)}")
    [ending] = endings
    if several and ending in WHOLE:
        raise DataFileError(f"{what}: {ending[1:]} files are read one at a time: name one")
    if sheet is not None and ending not in EXCEL:
        raise ColumnError(f"{what} has no sheets, which xlsx files have: omit --sheet")
    if ending == ".npz":
        return _npz_source(paths[0], arrays)
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist: give a file or a folder of files")
        if not path.is_file():
            raise DataFileError(f"{path} is not a regular file: save its content to one")
        if not path.stat().st_size:
            raise DataFileError(f"{path} is empty: use a file with a header line and rows")
    if ending in EXCEL:
        return _sheet_source(paths[0], sheet)
    return _arrow_source(_dataset(paths, ARROW[ending], what), what) if ending in ARROW else _text_source(paths, what)


def whole_bytes(path: Path) -> int:
    """About how many bytes a file takes that cannot be read in batches; 0 if it can."""
    if path.suffix.lower() not in WHOLE:
        return 0
    try:
        with zipfile.ZipFile(path) as archive:
            return WHOLE[path.suffix.lower()] * sum(member.file_size for member in archive.infolist())
    except (OSError, *NPZ_DAMAGE):
        return 0  # which reading explains


def listed(names: Sequence[str], most: int = 8) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more


def _files(given: Any) -> list[Path]:
    """The files, those of a folder in the order of their names."""
    found: list[Path] = []
    for path in map(Path, given if isinstance(given, list | tuple) else [given]):
        inside = (file for file in path.rglob("*") if file.suffix.lower() in STREAMED and not file.name.startswith("."))
        found += sorted(inside) if path.is_dir() else [path]
    if not found:
        raise DataFileError(f"{given} has no files that end in one of {', '.join(STREAMED)}")
    return found


def _ending(path: Path) -> str:
    """The ending of a file, refused if unknown."""
    suffix = path.suffix.lower()
    inside = Path(path.stem).suffix.lower() if suffix in OPENERS else suffix
    if suffix == ".xls":
        raise DataFileError(f"{path}: the format xls is not read: save the file as xlsx or csv")
    if suffix not in (*KINDS, *PACKED) or inside not in (*KINDS, ".zip"):
        endings = ", ".join((*KINDS, ".csv.gz", ".csv.bz2", ".zip"))
        raise DataFileError(f"{path}: the ending must be one of {endings}: rename or convert the file")
    if suffix in OPENERS and inside not in OWN_DELIMITER:
        raise DataFileError(f"{path}: only csv and tsv files are read packed: unpack it first")
    return suffix


# ---- the kinds of file


def _text_source(paths: list[Path], what: Any) -> Source:
    files = [TextFile.of(path) for path in paths]
    for file in files[1:]:
        if set(file.names) != set(files[0].names):
            other = sorted(set(file.names) ^ set(files[0].names))[0]
            raise DataFileError(f"{what}: the files differ in column {other!r}: give them the same columns")

    def read(names: Sequence[str], n_rows: int | None) -> Iterator[Rows]:
        for file in files:
            for columns, lines in file.batches(names, n_rows):
                yield Rows(file.path, dict(columns), lines, True, written)

    marks = {name: reduce(or_, [file.marks.get(name, Marks()) for file in files]) for name in files[0].names}
    written = numerals(marks, by_semicolons=any(file.delimiter == ";" for file in files))
    words = [*dict.fromkeys(word for file in files for word in file.layout), *in_words(written, marks)]
    layout = tuple(sorted(words, key=lambda word: word.startswith("in ")))  # the encoding is the last
    memory = 15 * sum(file.n_bytes for file in files)  # a cell is a Python string
    return Source(what, files[0].names, read, memory, True, layout=layout)


def _sheet_source(path: Path, name: str | None) -> Source:
    sheet = sheet_of(path, name)
    written = numerals(sheet.marks, by_semicolons=True)
    rows = Rows(path, sheet.columns, sheet.rows, numerals=written)
    layout = (*sheet.layout, *in_words(written, sheet.marks))
    return Source(path, tuple(sheet.columns), lambda names, n_at_once: iter([rows]), layout=layout)


def _dataset(paths: list[Path], form: str, what: Any) -> Any:
    """Files of typed columns; text of Parquet files is read as dictionaries."""
    try:
        import pyarrow as pa
        import pyarrow.dataset as ds
    except ImportError as error:
        raise ImportError("parquet and arrow files need pyarrow: pip install 'cgnlearn[frames]'") from error
    files = [str(path) for path in paths]
    with _arrow_errors(what):
        found = ds.dataset(files, format=form)
        if form != "parquet":
            return found
        words = {field.name for field in found.schema if field.type in (pa.string(), pa.large_string())}
        # Pieces of a column at a time, in reused memory: clearing memory for whole row groups takes a third of the
        # reading time.
        pieces = ds.ParquetFragmentScanOptions(use_buffered_stream=True, buffer_size=PIECE, pre_buffer=False)
        options = ds.ParquetReadOptions(dictionary_columns=words)
        return ds.dataset(files, format=ds.ParquetFileFormat(options, default_fragment_scan_options=pieces))


@contextmanager
def _arrow_errors(what: Any) -> Iterator[None]:
    """Errors of pyarrow as one line."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
        raise DataFileError(f"{what} cannot be read: it is of another kind or damaged ({_short(error)})") from None


def _arrow_source(dataset: Any, what: Any) -> Source:
    kinds = dict(zip(dataset.schema.names, dataset.schema.types, strict=True))
    with _arrow_errors(what):
        n_rows = dataset.count_rows()
    if not n_rows or not kinds:
        raise DataFileError(f"{what} has no rows or no columns: add some")
    check_header(dataset.schema.names, what)

    def read(names: Sequence[str], n_at_once: int | None) -> Iterator[Rows]:
        n_done = 0
        with _arrow_errors(what):
            if n_at_once is None:
                table = dataset.to_table(columns=list(names)).unify_dictionaries()
                columns = {name: table.column(name).combine_chunks() for name in names}
                yield Rows(what, {n: _typed(column, n, what) for n, column in columns.items()}, np.arange(n_rows) + 1)
                return
            sizes = {"batch_size": n_at_once, "batch_readahead": 2, "fragment_readahead": 1}
            for batch in dataset.scanner(columns=list(names), **sizes).to_batches():
                places = np.arange(n_done, n_done + batch.num_rows) + 1
                n_done += batch.num_rows
                if len(places):
                    yield Rows(what, {name: _typed(batch.column(name), name, what) for name in names}, places)

    types = {name: _type(kind) for name, kind in kinds.items()}
    index = tuple(name for name in _index(dataset.schema.metadata) if name in kinds)
    return Source(what, tuple(kinds), read, 5 * 8 * n_rows * len(kinds), types=types, index=index)


def _index(metadata: Mapping[bytes, bytes] | None) -> list[str]:
    """The columns that pandas stored as the index of a frame."""
    try:
        found = json.loads((metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
    except (ValueError, AttributeError):
        return []
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def _type(kind: Any) -> str:
    """One of `TYPES`, or the name of another type."""
    import pyarrow as pa

    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    if any(is_one(kind) for is_one in numbers):
        return "numbers"
    if pa.types.is_dictionary(kind):
        return "text" if _type(kind.value_type) == "text" else "levels"
    text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_boolean)
    if any(is_one(kind) for is_one in text):
        return "text"
    return str(kind) if pa.types.is_temporal(kind) else f"{kind}{NEITHER}"


def _typed(column: Any, name: str, what: Any) -> Column:
    """A typed column as numbers or text."""
    import pyarrow as pa

    if _type(column.type) == "levels":
        column = column.dictionary_decode()
    kind = column.type
    if _type(kind) == "numbers":
        plain = pa.types.is_floating(kind) or not (column.null_count or pa.types.is_decimal(kind))
        try:
            found: NDArray[Any] = (column if plain else column.cast(pa.float64())).to_numpy(zero_copy_only=False)
            return found
        except pa.ArrowInvalid:  # beyond 2**53, where floats have gaps
            column = column.cast(pa.string())
            kind = column.type
    if pa.types.is_boolean(kind):  # as in a csv file, and as frames are read
        index = column.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        return Words(["False", "True"], index)
    if pa.types.is_temporal(kind) or pa.types.is_string_view(kind):
        column = column.cast(pa.string())
    elif _type(kind) != "text":
        raise DataFileError(f"{what}: column {name!r} holds {_type(kind)}: convert it")
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    cells = column.dictionary.to_pylist()
    index = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    if None in cells:
        index = np.where(np.array([cell is None for cell in cells])[index] & (index >= 0), -1, index)
    return Words(["" if cell is None else cell.strip() for cell in cells], index)


def _npz_source(path: Path, wanted: Sequence[str]) -> Source:
    try:
        with path.open("rb") as content, np.load(content, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except NPZ_DAMAGE as error:
        raise DataFileError(f"{path} is not an npz file of plain arrays, or damaged ({_short(error)})") from None
    X = arrays.pop("X", None)
    if X is None:
        raise DataFileError(f"{path} has no array X of numbers with rows and columns; it has {listed(list(arrays))}")
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        shape = f"{X.dtype} of shape {X.shape}"
        raise DataFileError(f"{path}: its array X is {shape}: make it one of numbers with rows and columns")
    n_rows, n_columns = X.shape
    if not n_rows or not n_columns:
        raise DataFileError(f"{path}: its array X is empty, {n_rows} rows of {n_columns} columns")
    names = [str(i) for i in range(n_columns)]
    for key in ("feature_names", "mz"):
        if key in arrays and arrays[key].shape == (n_columns,):
            names = [str(name) for name in arrays[key].tolist()]
            check_header(names, path)
            break
    columns: dict[str, Column] = {name: X[:, i] for i, name in enumerate(names)}
    for asked in (name for name in wanted if name not in columns):
        if asked not in arrays:
            raise ColumnError(f"{path} has no array {asked!r}; it has {listed(['X', *arrays])}")
        if arrays[asked].shape != (n_rows,):
            raise DataFileError(f"{path}: the array {asked!r} must have one entry for each of the {n_rows} rows of X")
        own = arrays[asked]
        columns[asked] = own if own.dtype.kind in "fiub" else Strings([_as_text(one).strip() for one in own.tolist()])
    rows = Rows(path, columns, np.arange(n_rows) + 1)
    return Source(path, tuple(columns), lambda names, n_at_once: iter([rows]))


def _as_text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__

"""Text files, packed or not: encoding, delimiter and decimal mark are detected before the rows are read.

A row with too many or too few fields is an error that names the line.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import math
import zipfile
import zlib
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from itertools import islice
from pathlib import Path, PurePath
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from cgnlearn.tables.numerals import Marks, number

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
OWN_DELIMITER = {".csv": ",", ".tsv": "\t"}
OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
FIRST_NAME = "Unnamed: 0"  # of a first column without a name
CELLS_TRIED = 1000  # after as many decimal points in a column only its cells with commas are looked at
LINES_TRIED = 20  # to detect the delimiter
CHUNK = 1 << 20
LONGEST_LINE = 1 << 27  # bytes: a line is in memory at once, however small the packed file is
BLOCK = 1 << 23  # bytes that pyarrow reads at once
NOT_WINDOWS = frozenset(b"\x81\x8d\x8f\x90\x9d")  # undefined in cp1252
DAMAGE = (OSError, EOFError, zlib.error, zipfile.BadZipFile, ValueError, RuntimeError, NotImplementedError)


class DataFileError(ValueError):
    """A file whose content cannot be used."""


class Strings:
    """The cells of a column of text, without the spaces around them."""

    def __init__(self, cells: list[str]) -> None:
        self.cells = cells

    def __getitem__(self, row: int) -> str:
        return self.cells[row]

    def floats(self) -> NDArray[np.float64] | None:
        """The cells as numbers, or None if one is not a number."""
        together = "".join(self.cells)
        if not together.isascii() or "_" in together:  # not numbers for `number`
            return None
        try:
            return np.array(list(map(float, self.cells)))
        except ValueError:
            return None

    @cached_property
    def distinct(self) -> tuple[list[str], NDArray[Any]]:
        """The distinct cells in order of appearance, and the index of each row's cell, -1 for none."""
        place = {cell: i for i, cell in enumerate(dict.fromkeys(self.cells))}
        return list(place), np.fromiter(map(place.__getitem__, self.cells), np.intp, len(self.cells))


class ArrowStrings(Strings):
    """The cells in Arrow's memory, much faster."""

    def __init__(self, column: Any) -> None:
        import pyarrow.compute as pc

        self.column = pc.utf8_trim_whitespace(column)

    def __getitem__(self, row: int) -> str:
        return str(self.column[row].as_py())

    def floats(self) -> NDArray[np.float64] | None:
        import pyarrow as pa

        try:
            return np.asarray(self.column.cast(pa.float64()).to_numpy(zero_copy_only=False))
        except pa.ArrowInvalid:
            return None

    @cached_property
    def distinct(self) -> tuple[list[str], NDArray[Any]]:
        coded = self.column.dictionary_encode()
        return coded.dictionary.to_pylist(), coded.indices.to_numpy(zero_copy_only=False)


Batch = tuple[dict[str, Strings], NDArray[np.intp]]  # columns, and the line on which each row ends, from 1


@dataclass(frozen=True)
class TextFile:
    """A text file and its format."""

    path: Path
    n_bytes: int  # unpacked
    encoding: str
    delimiter: str
    names: tuple[str, ...] = ()
    marks: dict[str, Marks] = field(default_factory=dict)  # in the numbers of each column; none: points only
    layout: tuple[str, ...] = ()  # everything but UTF-8, the ending's delimiter and how numbers are written
    is_plain: bool = False  # a row is a line without quotes

    @classmethod
    def of(cls, path: Path, otherwise: str | None = None) -> TextFile:
        """Detect the format; a file that ends in neither csv nor tsv is read as ``otherwise``."""
        inside, packed = _packing(path)
        suffix = inside if inside in OWN_DELIMITER else otherwise
        if suffix is None:
            raise DataFileError(f"{path} holds {inside or 'a file without an ending'}: pack a csv or tsv file")
        n_bytes, encoding, is_plain = _encoding(path)
        if not n_bytes:
            raise DataFileError(f"{path} is empty: use a file with a header line and rows")
        own = OWN_DELIMITER[suffix]
        with _opened_text(path, encoding) as file:
            delimiter = _delimiter([line for _, line in zip(range(LINES_TRIED + 1), file, strict=False)], own)
        form = cls(path, n_bytes, encoding, delimiter)
        with _opened_text(path, encoding) as file:
            if (first := file.readline().strip()).startswith("sep=") and len(first) < 6:
                raise DataFileError(f"{path} begins with {first!r}, which is for Excel only: remove the first line")
        records = form._records()
        names, _ = next(records, ((), 0))
        check_header(names, path)
        if next(records, None) is None:
            raise DataFileError(f"{path} has a header but no rows: add rows")
        marks = {} if is_plain and delimiter == "," else form._marks(names)
        layout = (
            packed,
            f"separated by {DELIMITERS[delimiter]}" if delimiter != own else "",
            {"utf-16": "in UTF-16", "cp1252": "in Latin-1"}.get(encoding, ""),
        )
        return cls(path, n_bytes, encoding, delimiter, tuple(names), marks, tuple(filter(None, layout)), is_plain)

    def batches(self, names: Sequence[str], n_rows: int | None) -> Iterator[Batch]:
        """Columns in batches of rows; None: all rows."""
        n_done = 0
        if self.is_plain and n_rows is not None and find_spec("pyarrow"):
            n_done, is_finished = yield from self._plain_batches(names, n_rows)
            if is_finished:
                return
        records = islice(self._records(), 1 + n_done, None)
        while rows := list(islice(records, n_rows)):
            lines = np.array([line for _, line in rows])
            places = {name: self.names.index(name) for name in names}
            yield {name: Strings([row[i].strip() for row, _ in rows]) for name, i in places.items()}, lines

    def _plain_batches(self, names: Sequence[str], n_rows: int) -> Generator[Batch, None, tuple[int, bool]]:
        """The rows up to the first that pyarrow refuses; return how many, and whether these are all."""
        import pyarrow as pa
        from pyarrow import csv as arrow

        columns = arrow.ConvertOptions(column_types=dict.fromkeys(self.names, pa.string()), include_columns=list(names))
        rows = arrow.ReadOptions(column_names=self.names, skip_rows=1, block_size=BLOCK)
        n_done = 0
        with _opened(self.path) as file:
            try:
                fields = arrow.ParseOptions(delimiter=self.delimiter, quote_char=False)
                for block in arrow.open_csv(file, rows, fields, columns):
                    for start in range(0, block.num_rows, n_rows):
                        batch = block.slice(start, n_rows)
                        lines = np.arange(n_done, n_done + batch.num_rows) + 2
                        n_done += batch.num_rows
                        yield {name: ArrowStrings(batch.column(name)) for name in names}, lines
            except pa.ArrowInvalid:
                return n_done, False
        return n_done, True

    def _records(self) -> Iterator[tuple[list[str], int]]:
        """The header and the rows, each with the line on which it ends."""
        with _opened_text(self.path, self.encoding) as file:
            reader = csv.reader(file, delimiter=self.delimiter, strict=True, skipinitialspace=True)
            header: list[str] = []
            try:
                for fields in reader:
                    if not fields:  # a blank line
                        continue
                    if not header:
                        header = [name.strip() for name in fields]
                        header[0] = header[0] or FIRST_NAME  # names or numbers of rows, as R and pandas write them
                        yield header, reader.line_num
                    elif len(fields) == len(header):
                        yield fields, reader.line_num
                    elif any(cell.strip() for cell in fields):
                        raise DataFileError(
                            f"{self.path}: line {reader.line_num} has {len(fields)} fields, but the header has "
                            f"{len(header)}: correct the line"
                        )
            except csv.Error as error:
                message = f"{self.path}: line {reader.line_num} cannot be read ({error}): check its quotes"
                raise DataFileError(message) from None

    def _marks(self, names: Sequence[str]) -> dict[str, Marks]:
        """The marks in the numbers of each column."""
        found = [Marks() for _ in names]
        records = self._records()
        next(records)
        settled: set[int] = set()
        n_rows = 0
        for fields, _ in records:
            n_rows += 1
            for i, cell in enumerate(fields):
                if "," in cell or ("." in cell and i not in settled):
                    found[i].add(cell)
                    if found[i].decimal["."] > CELLS_TRIED:
                        settled.add(i)
        for i in settled:
            found[i].decimal["."] = n_rows
        return dict(zip(names, found, strict=True))


def check_header(names: Sequence[str], path: Path) -> None:
    """Refuse duplicate or missing names, and numbers where names should be."""
    repeated = [name for name, n in Counter(names).items() if n > 1]
    if repeated and repeated[0]:
        raise DataFileError(f"{path}: two columns are named {repeated[0]!r}: rename one of them")
    if "" in names:
        raise DataFileError(f"{path}: column {names.index('') + 1} has no name in the header line: add one")
    if len(names) > 1 and all(not math.isnan(number(name)) for name in names) and rising_numbers(names) is None:
        raise DataFileError(f"{path} seems to have no header line: add one with the names of the columns")


def rising_numbers(names: Iterable[Any]) -> NDArray[np.float64] | None:
    """Names as numbers (without a prefix ``mz``) if they rise, as in a binned spectrum, otherwise None."""
    try:
        numbers = np.array([float(str(name).lower().removeprefix("mz").strip("_ ")) for name in names])
    except ValueError:
        return None
    rises = len(numbers) > 1 and np.isfinite(numbers).all() and (np.diff(numbers) > 0).all()
    return numbers if rises else None


# ---- packing, encoding, delimiter


def _packing(path: Path) -> tuple[str, str]:
    """The ending of the unpacked file, and how it is packed."""
    suffix = path.suffix.lower()
    if suffix == ".zip":
        with _unpacking(path), zipfile.ZipFile(path) as archive:
            member = _only_member(archive, path)
        return PurePath(member).suffix.lower(), f"{member} inside"
    if suffix in OPENERS:
        return Path(path.stem).suffix.lower(), f"packed by {suffix[1:]}"
    return suffix, ""


def is_zipped_table(path: Path) -> bool:
    """Whether a zip file holds one csv or tsv file and nothing else."""
    if path.suffix.lower() != ".zip":
        return False
    with _unpacking(path), zipfile.ZipFile(path) as archive:
        files = _members(archive)
    return len(files) == 1 and PurePath(files[0]).suffix.lower() in OWN_DELIMITER


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked while they are read."""
    suffix = path.suffix.lower()
    if suffix == ".zip":
        with _unpacking(path), zipfile.ZipFile(path) as archive, archive.open(_only_member(archive, path)) as file:
            yield file
    elif suffix in OPENERS:
        with _unpacking(path), OPENERS[suffix](path) as file:
            yield file
    else:
        with path.open("rb") as file:
            yield file


@contextmanager
def _opened_text(path: Path, encoding: str) -> Iterator[IO[str]]:
    with _opened(path) as file, io.TextIOWrapper(file, encoding, newline="") as text:
        yield text


def _only_member(archive: zipfile.ZipFile, path: Path) -> str:
    files = _members(archive)
    if len(files) != 1:
        raise DataFileError(f"{path} holds {len(files)} files: pack exactly one csv or tsv file into it")
    return files[0]


def _members(archive: zipfile.ZipFile) -> list[str]:
    """The files in an archive, without hidden ones."""
    return [name for name in archive.namelist() if not name.endswith("/") and not name.startswith(("__MACOSX/", "."))]


@contextmanager
def _unpacking(path: Path) -> Iterator[None]:
    """Errors of unpacking as one line."""
    try:
        yield
    except DataFileError:
        raise
    except DAMAGE as error:
        message = " ".join(str(error).split())[:120]
        raise DataFileError(f"{path} cannot be unpacked ({message}): get a fresh copy of it") from None


def _encoding(path: Path) -> tuple[int, str, bool]:
    """Number of bytes, encoding, and whether each row is a line without quotes."""
    n_bytes, n_lines, fault_line, n_open = 0, 0, 0, 0
    decoder = codecs.getincrementaldecoder("utf-8")()
    rest = codecs.getincrementaldecoder("utf-8")("ignore")
    is_windows = is_plain = True
    before = b"\n"  # a file that begins with a blank line is not plain either
    with _opened(path) as file:
        while chunk := file.read(CHUNK):
            if not n_bytes and chunk.startswith((b"\xff\xfe", b"\xfe\xff")):
                return _size_of_utf16(path), "utf-16", False
            if b"\0" in chunk:
                raise DataFileError(f"{path} holds binary zeros and is not a text file: export it again")
            # UTF-8 characters beside invalid bytes: a damaged file. Latin-1 is read as cp1252.
            if is_windows and not chunk.isascii():
                is_windows = rest.decode(chunk).isascii() and NOT_WINDOWS.isdisjoint(chunk)
            if not fault_line:
                fault_line = _fault_line(decoder, chunk, n_lines)
            n_bytes += len(chunk)
            n_lines += chunk.count(b"\n")
            last = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
            n_open = n_open + len(chunk) if last < 0 else len(chunk) - last
            if n_open > LONGEST_LINE:
                raise DataFileError(
                    f"{path}: line {n_lines + 1} is longer than {LONGEST_LINE >> 20} MB: check the file"
                )
            is_plain = is_plain and b'"' not in chunk and _has_no_blank_line(before + chunk)
            before = chunk[-2:]
    if not fault_line and not _fault_line(decoder, b"", n_lines, final=True):
        return n_bytes, "utf-8-sig", is_plain
    if is_windows:
        return n_bytes, "cp1252", False
    line = fault_line or n_lines + 1
    raise DataFileError(f"{path}: line {line} is neither UTF-8 nor Latin-1 text: save the file in UTF-8")


def _has_no_blank_line(chunk: bytes) -> bool:
    """Whether all lines end in the same way and none is blank; a chunk that ends within a line end may not look so."""
    n_returns = chunk.count(b"\r")
    return b"\n\n" not in chunk and (not n_returns or (n_returns == chunk.count(b"\n") and b"\n\r" not in chunk))


def _fault_line(decoder: Any, chunk: bytes, n_lines: int, *, final: bool = False) -> int:
    """The line of the first byte that cannot be decoded, or 0."""
    try:
        decoder.decode(chunk, final)
    except UnicodeDecodeError as error:
        return int(n_lines + error.object[: error.start].count(b"\n") + 1)
    return 0


def _size_of_utf16(path: Path) -> int:
    n_bytes, decoder = 0, codecs.getincrementaldecoder("utf-16")()
    with _opened(path) as file:
        try:
            while chunk := file.read(CHUNK):
                n_bytes += len(chunk)
                if "\0" in decoder.decode(chunk):
                    raise DataFileError(f"{path} holds binary zeros and is not a text file: export it again")
            decoder.decode(b"", True)
        except UnicodeDecodeError:
            raise DataFileError(f"{path} starts like UTF-16 text but is not: save the file in UTF-8") from None
    return n_bytes


def _delimiter(lines: Sequence[str], own: str) -> str:
    """The delimiter that gives most fields, equally many in each line; otherwise most in the header."""
    counts: dict[str, list[int]] = {}
    for delimiter in (own, *(other for other in DELIMITERS if other != own)):
        counts[delimiter] = []
        try:
            for fields in csv.reader(lines[:LINES_TRIED], delimiter=delimiter):
                if fields:
                    counts[delimiter].append(len(fields))
        except csv.Error:
            continue
        if len(lines) > LINES_TRIED:  # the last line may be half a row
            counts[delimiter] = counts[delimiter][:2] + counts[delimiter][2:-1]
    even = {delimiter: n[0] for delimiter, n in counts.items() if n and set(n) == {n[0]} and n[0] > 1}
    if even:
        return max(even, key=lambda delimiter: even[delimiter])
    return max(counts, key=lambda delimiter: counts[delimiter][:1])

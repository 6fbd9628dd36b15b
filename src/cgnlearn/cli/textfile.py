"""Files of text, packed or not: their encoding, delimiter and decimal sign are found out, and told.

Rows are read strictly: one with too many or too few fields is an error that names the line.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
OWN_DELIMITER = {".csv": ",", ".tsv": "\t"}
MOST_BYTES = 4 << 30  # of a packed file's content; what holds more is no table to be read at once
LINES_TRIED = 20  # from which the delimiter is told
# 1,037 may be a decimal or a thousand; other commas between digits are decimal where commas part no fields.
COMMA_NUMBER = re.compile(r"[-+]?(\d+(,\d*)?|,\d+)([eE][-+]?\d+)?")
THOUSAND = re.compile(r"[-+]?\d{1,3}(,\d{3})+")


class DataFileError(ValueError):
    """A file whose content cannot be used, said in one line."""


class Text(NamedTuple):
    """A table of text as it was found."""

    columns: dict[str, NDArray[np.object_]]  # cells without the spaces around them
    lines: NDArray[np.intp]  # the line on which each row ends, from 1
    decimal: str  # "." or ","
    found: tuple[str, ...]  # what a reader could not know: everything but UTF-8, the ending's delimiter, points


def unpacked(content: bytes, path: Path) -> tuple[bytes, str, str | None]:
    """The content of a file that may be packed, the ending that says what it is, and how it was packed."""
    suffix = path.suffix.lower()
    if suffix == ".zip":
        inside, content = _only_member(content, path)
        return content, PurePath(inside).suffix.lower(), f"{inside} inside"
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
    if suffix not in openers:
        return content, suffix, None
    with _damage_told(path), openers[suffix](io.BytesIO(content)) as file:
        return _limited(file.read, path), Path(path.stem).suffix.lower(), f"packed by {suffix[1:]}"


def read_text(content: bytes, path: Path, suffix: str, check_header: Callable[[list[str]], None]) -> Text:
    """The table in a file whose ending (inside, if it was packed) is csv or tsv."""
    text, encoding = _decoded(content, path)
    if "\0" in text:
        raise DataFileError(f"{path} holds binary zeros and is no text file: export it anew")
    own = OWN_DELIMITER[suffix]
    delimiter = _delimiter(text, own)
    columns, lines = _table(text, path, delimiter, check_header)
    decimal = "," if delimiter != "," and _has_decimal_commas(columns, delimiter) else "."
    found = (
        f"separated by {DELIMITERS[delimiter]}" if delimiter != own else "",
        "with decimal commas" if decimal == "," else "",
        encoding or "",
    )
    return Text(columns, lines, decimal, tuple(filter(None, found)))


def _decoded(content: bytes, path: Path) -> tuple[str, str | None]:
    """The text, and its encoding if that is not UTF-8."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return content.decode("utf-16"), "in UTF-16"
        except UnicodeDecodeError:
            raise DataFileError(f"{path} starts like UTF-16 text but is none: save the file in UTF-8") from None
    try:
        return content.decode("utf-8-sig"), None
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        others = content.decode("utf-8", errors="ignore")
        # Signs that are UTF-8 beside one that is not: a damaged file. Latin-1 is read as Windows writes it.
        if others.isascii():
            try:
                return content.decode("cp1252"), "in Latin-1"
            except UnicodeDecodeError:
                pass
        raise DataFileError(f"{path}: line {line} is neither UTF-8 nor Latin-1 text: save the file in UTF-8") from None


def _delimiter(text: str, own: str) -> str:
    """The one that cuts the first lines into most fields, equally many in each; else that of most in the header."""
    start = text.split("\n", LINES_TRIED)
    sample = "\n".join(start[:LINES_TRIED])
    counts: dict[str, list[int]] = {}
    for delimiter in (own, *(other for other in DELIMITERS if other != own)):
        counts[delimiter] = []
        try:
            for fields in csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter):
                if fields:
                    counts[delimiter].append(len(fields))
        except csv.Error:
            continue
        if len(start) > LINES_TRIED:  # the last line may be half a row
            counts[delimiter] = counts[delimiter][:2] + counts[delimiter][2:-1]
    even = {delimiter: n[0] for delimiter, n in counts.items() if n and set(n) == {n[0]} and n[0] > 1}
    if even:
        return max(even, key=lambda delimiter: even[delimiter])
    return max(counts, key=lambda delimiter: counts[delimiter][:1])


def _table(
    text: str, path: Path, delimiter: str, check_header: Callable[[list[str]], None]
) -> tuple[dict[str, NDArray[np.object_]], NDArray[np.intp]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    header: list[str] = []
    try:
        for fields in reader:
            if not fields:  # a blank line is no row
                continue
            if not header:
                header = [name.strip() for name in fields]
                check_header(header)
            elif len(fields) == len(header):
                rows.append([cell.strip() for cell in fields])
                lines.append(reader.line_num)
            elif any(cell.strip() for cell in fields):
                raise DataFileError(
                    f"{path}: line {reader.line_num} has {len(fields)} fields, but the header has {len(header)}: "
                    "correct the line"
                )
    except csv.Error as error:
        raise DataFileError(f"{path}: line {reader.line_num} cannot be read ({error}): check its quotes") from None
    if not rows:
        raise DataFileError(f"{path} has a header but no rows: give it rows")
    return dict(zip(header, np.array(rows, dtype=object).T, strict=True)), np.array(lines)


def _has_decimal_commas(columns: dict[str, NDArray[np.object_]], delimiter: str) -> bool:
    for column in columns.values():
        with_comma = [cell for cell in column.tolist() if "," in cell]
        decimal = with_comma and all(COMMA_NUMBER.fullmatch(cell) for cell in with_comma)
        if decimal and (delimiter == ";" or not all(THOUSAND.fullmatch(cell) for cell in with_comma)):
            return True
    return False


def _only_member(content: bytes, path: Path) -> tuple[str, bytes]:
    """The name and the content of the one file in a zip archive."""
    with _damage_told(path), zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = [
            name for name in archive.namelist() if not name.endswith("/") and not name.startswith(("__MACOSX/", "."))
        ]
        if len(files) != 1:
            raise DataFileError(f"{path} holds {len(files)} files: pack exactly one csv or tsv file into it")
        with archive.open(files[0]) as file:
            return files[0], _limited(file.read, path)


def _limited(read: Callable[[int], bytes], path: Path) -> bytes:
    content = read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise DataFileError(f"{path} unpacks to more than {MOST_BYTES >> 30} GB: unpack it first")
    return content


@contextmanager
def _damage_told(path: Path) -> Iterator[None]:
    """What unpackers raise, as one line."""
    try:
        yield
    except DataFileError:
        raise
    except (
        OSError, EOFError, zlib.error, zipfile.BadZipFile, ValueError, RuntimeError, NotImplementedError,
    ) as error:  # fmt: skip
        said = " ".join(str(error).split())[:120]
        raise DataFileError(f"{path} cannot be unpacked ({said}): get a fresh copy of it") from None

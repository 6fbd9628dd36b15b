"""Text of two columns, m/z and intensity, with any common separator and with or without a header."""

from __future__ import annotations

import re

import numpy as np

from cgnlearn.data.arrays import Floats
from cgnlearn.spectra.spectrum import Spectrum, SpectrumError

MAX_HEADER_LINES = 50
BINNED = b"bin_index binned_intensity"  # the header of files of DRIAMS whose first column numbers bins
BINNED_FROM, BINNED_TO = 2000.0, 20_000.0  # m/z
_LINE = re.compile(rb"([^\r\n]*)(?:\r\n|\r|\n|\Z)")


def parse(content: bytes, name: str) -> Spectrum:
    """Parse a text file; ``name`` is the file's name in messages.

    Columns are separated by semicolons, tabs, commas or blanks; with semicolons and tabs the decimal sign may be a
    comma. Lines that start with # and up to 50 lines before the first pair of numbers are skipped.
    """
    if b"\0" in content:
        raise SpectrumError(f"{name}: it has binary zeros and is not text: export it again")
    content = content.removeprefix(b"\xef\xbb\xbf")
    n_before, start, line = _first_pair(content, name)
    separator = next((sign for sign in (";", "\t") if sign in line), None)
    point = "," if separator and "," in line else "."
    if separator is None:
        separator = "," if "," in line else None
    body = memoryview(content)[start:]
    columns = _parsed_by_arrow(body, separator, point)
    if columns is None:
        columns = _parsed_by_numpy(body, separator, point, name, n_before)
    if content[:start].rstrip().endswith(BINNED):
        columns = [_mz_of_bins(columns[0], name), columns[1]]
    metadata: dict[str, object] = {"file": name}
    if not content.endswith((b"\n", b"\r")):
        metadata["notes"] = ("the last line has no line end: the file may be truncated",)
    return Spectrum(columns[0], columns[1], metadata)


def _mz_of_bins(numbers: Floats, name: str) -> Floats:
    """The centres of the bins that DRIAMS numbers from 0 on."""
    if not np.array_equal(numbers, np.arange(len(numbers))):
        raise SpectrumError(f"{name}: its bins are not numbered from 0 on: copy it again")
    return BINNED_FROM + (numbers + 0.5) * (BINNED_TO - BINNED_FROM) / len(numbers)


def _parsed_by_arrow(body: memoryview, separator: str | None, point: str) -> list[Floats] | None:
    """The two columns by Arrow, many times faster than NumPy; None without Arrow or if a line is unusual."""
    try:
        import pyarrow as pa
        from pyarrow import csv
    except ImportError:
        return None
    names = ["mz", "intensity"]
    types = dict.fromkeys(names, pa.float64())
    try:
        table = csv.read_csv(
            pa.BufferReader(body),
            csv.ReadOptions(use_threads=False, column_names=names),
            csv.ParseOptions(delimiter=separator or " ", quote_char=False),
            csv.ConvertOptions(column_types=types, null_values=[], decimal_point=point),
        )
    except pa.ArrowInvalid:
        return None
    columns = [table[name].to_numpy() for name in names]
    for values in columns:
        values.flags.writeable = False
    return columns


def _parsed_by_numpy(body: memoryview, separator: str | None, point: str, name: str, n_before: int) -> list[Floats]:
    """The two columns by NumPy, which accepts any blanks and comments, and whose errors name the line."""
    lines = bytes(body).decode("latin-1").splitlines()
    if point == ",":
        lines = [line.replace(",", ".") for line in lines]
    try:
        values = np.loadtxt(lines, delimiter=separator, comments="#", ndmin=2, dtype=np.float64)
    except ValueError as error:
        raise SpectrumError(f"{name}: {_explained(str(error), n_before)}") from None
    if values.shape[1] != 2:
        raise SpectrumError(f"{name}: {values.shape[1]} columns: give two, m/z and intensity")
    return [values[:, 0], values[:, 1]]


def _first_pair(content: bytes, name: str) -> tuple[int, int, str]:
    """The first line with two numbers: the numbers of lines and bytes before it, and the line itself."""
    n_skipped = 0
    for number, match in enumerate(_LINE.finditer(content)):
        line = match[1].decode("latin-1")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        fields = re.split(r"[;\t]", line) if re.search(r"[;\t]", line.strip()) else re.split(r"[,\s]+", line.strip())
        if len(fields) >= 2 and all(_is_number(field.strip().replace(",", ".")) for field in fields):
            return number, match.start(), line
        n_skipped += 1
        if n_skipped > MAX_HEADER_LINES:
            break
    raise SpectrumError(f"{name}: no two columns of numbers found: give m/z and intensity, or remove it")


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _explained(error: str, n_before: int) -> str:
    """NumPy's message with the line of the file instead of the row of the block."""
    row = re.search(r"at row (\d+)", error)
    is_uneven = "columns changed" in error  # NumPy counts rows from 1 here, elsewhere from 0
    line = f"line {n_before + int(row[1]) + (not is_uneven)}" if row else "a line"
    if is_uneven:
        return f"{line} has another number of columns than the first: correct it"
    word = re.search(r"could not convert string (.*) to float64", error)
    return f"{line} has {word[1][:40] if word else 'a word'} instead of a number: correct it"

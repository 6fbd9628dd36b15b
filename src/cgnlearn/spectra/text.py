"""Two columns of text: m/z and intensity, with any common separator and with or without a header."""

from __future__ import annotations

import io
import re

import numpy as np
from numpy.typing import NDArray

from cgnlearn.spectra.spectrum import Spectrum, SpectrumError

Floats = NDArray[np.float64]
MOST_HEADER_LINES = 50
_LINE = re.compile(rb"([^\r\n]*)(?:\r\n|\r|\n|\Z)")


def parse(content: bytes, name: str) -> Spectrum:
    """The spectrum of a text file.

    Columns are separated by semicolons, tabs, commas or blanks; beside semicolons and tabs the decimal sign may be a
    comma. Lines that start with # and up to 50 lines before the first pair of numbers are passed over.

    Parameters
    ----------
    content : bytes
    name : str
        What to call the spectrum in messages.
    """
    if b"\0" in content:
        raise SpectrumError(f"{name}: it holds binary zeros and is no text: export it anew")
    content = content.removeprefix(b"\xef\xbb\xbf")
    n_before, start, line = _first_pair(content, name)
    separator = next((sign for sign in (";", "\t") if sign in line), None)
    point = "," if separator and "," in line else "."
    if separator is None:
        separator = "," if "," in line else None
    body = memoryview(content)[start:]
    values = _quickly(body, separator, point)
    if values is None:
        values = _strictly(body, separator, point, name, n_before)
    notes = () if content.endswith((b"\n", b"\r")) else ("the last line has no end: the file may have been cut",)
    return Spectrum(values[0], values[1], {"file": name} | ({"notes": notes} if notes else {}))


def _quickly(body: memoryview, separator: str | None, point: str) -> list[Floats] | None:
    """The two columns by Arrow, many times as fast as NumPy; None where it is absent or finds anything amiss."""
    try:
        import pyarrow as pa
        from pyarrow import csv
    except ImportError:
        return None
    names = ["mz", "intensity"]
    try:
        table = csv.read_csv(
            pa.BufferReader(body),
            csv.ReadOptions(use_threads=False, column_names=names),
            csv.ParseOptions(delimiter=separator or " ", quote_char=False),
            csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.float64()), null_values=[], decimal_point=point,
                strings_can_be_null=False,
            ),
        )  # fmt: skip
    except pa.ArrowInvalid:
        return None
    columns = [table[name].to_numpy() for name in names]
    for values in columns:
        values.flags.writeable = False
    return columns


def _strictly(body: memoryview, separator: str | None, point: str, name: str, n_before: int) -> list[Floats]:
    """The two columns by NumPy, which takes any blanks and comments, and whose errors say where they are."""
    lines = bytes(body).decode("latin-1").splitlines()
    if point == ",":
        lines = [line.replace(",", ".") for line in lines]
    try:
        values = np.loadtxt(lines, delimiter=separator, comments="#", ndmin=2, dtype=np.float64)
    except ValueError as error:
        raise SpectrumError(f"{name}: {_explained(str(error), n_before)}") from None
    if values.shape[1] != 2:
        raise SpectrumError(f"{name}: it has {values.shape[1]} columns: give two, m/z and intensity")
    return [values[:, 0], values[:, 1]]


def write(spectrum: Spectrum, separator: str = " ") -> bytes:
    """Two columns with as many digits as it takes, and a header where the separator is a comma."""
    out = io.StringIO()
    if separator == ",":
        out.write("mz,intensity\n")
    for mz, intensity in zip(spectrum.mz.tolist(), spectrum.intensity.tolist(), strict=True):
        out.write(f"{mz!r}{separator}{int(intensity) if intensity.is_integer() else repr(intensity)}\n")
    return out.getvalue().encode("ascii")


def _first_pair(content: bytes, name: str) -> tuple[int, int, str]:
    """Where the numbers begin: the lines and the bytes before, and the line itself."""
    passed = 0
    for number, found in enumerate(_LINE.finditer(content)):
        line = found[1].decode("latin-1")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        fields = re.split(r"[;\t]", line) if re.search(r"[;\t]", line.strip()) else re.split(r"[,\s]+", line.strip())
        if len(fields) >= 2 and all(_is_number(field.strip().replace(",", ".")) for field in fields):
            return number, found.start(), line
        passed += 1
        if passed > MOST_HEADER_LINES:
            break
    raise SpectrumError(f"{name}: it has no two columns of numbers: it is no spectrum, or in a form that is not read")


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _explained(error: str, n_before: int) -> str:
    """NumPy's complaint with the line of the file instead of the row of the block."""
    row = re.search(r"at row (\d+)", error)
    uneven = "columns changed" in error  # rows are then counted from 1, else from 0
    where = f"line {n_before + int(row[1]) + (not uneven)} " if row else "a line "
    if uneven:
        return f"{where}has another number of columns than the first: correct it"
    word = re.search(r"could not convert string (.*) to float64", error)
    return f"{where}holds {word[1][:40] if word else 'a word'} among numbers: correct it"

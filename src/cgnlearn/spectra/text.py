"""Two columns of text: m/z and intensity, with any common separator and with or without a header."""

from __future__ import annotations

import io
import re

import numpy as np

from cgnlearn.spectra.spectrum import Spectrum, SpectrumError

MOST_HEADER_LINES = 50


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
    text = (
        content.decode("utf-8-sig", errors="replace")
        if content.startswith(b"\xef\xbb\xbf")
        else content.decode("latin-1")
    )
    lines = text.splitlines()
    first = _first_pair(lines, name)
    separator = next((sign for sign in (";", "\t") if sign in lines[first]), None)
    body = lines[first:]
    if separator is None:
        separator = "," if "," in lines[first] else None
    elif "," in lines[first]:
        body = [line.replace(",", ".") for line in body]
    try:
        values = np.loadtxt(body, delimiter=separator, comments="#", ndmin=2, dtype=np.float64)
    except ValueError as error:
        raise SpectrumError(f"{name}: {_explained(str(error), first)}") from None
    if values.shape[1] != 2:
        raise SpectrumError(f"{name}: it has {values.shape[1]} columns: give two, m/z and intensity")
    notes = () if text.endswith(("\n", "\r")) else ("the last line has no end: the file may have been cut",)
    return Spectrum(values[:, 0], values[:, 1], {"file": name} | ({"notes": notes} if notes else {}))


def write(spectrum: Spectrum, separator: str = " ") -> bytes:
    """Two columns with as many digits as it takes, and a header where the separator is a comma."""
    out = io.StringIO()
    if separator == ",":
        out.write("mz,intensity\n")
    for mz, intensity in zip(spectrum.mz.tolist(), spectrum.intensity.tolist(), strict=True):
        out.write(f"{mz!r}{separator}{int(intensity) if intensity.is_integer() else repr(intensity)}\n")
    return out.getvalue().encode("ascii")


def _first_pair(lines: list[str], name: str) -> int:
    """The number of the line on which the numbers begin."""
    passed = 0
    for number, line in enumerate(lines):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        fields = re.split(r"[;\t]", line) if re.search(r"[;\t]", line.strip()) else re.split(r"[,\s]+", line.strip())
        if len(fields) >= 2 and all(_is_number(field.strip().replace(",", ".")) for field in fields):
            return number
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

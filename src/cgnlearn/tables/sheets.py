"""Sheets of Excel files as columns, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.tables.numerals import Marks
from cgnlearn.tables.text import FIRST_NAME, DataFileError, Strings, check_header

EMPTY = ("", None)


class Sheet(NamedTuple):
    """The columns of a sheet."""

    columns: dict[str, Any]  # arrays of numbers, or text
    rows: NDArray[np.intp]  # number of each row in the sheet, from 1
    marks: dict[str, Marks]  # in numbers that are text
    layout: tuple[str, ...]  # which sheet it is, if there are several


def sheet_of(path: Path, name: str | None = None) -> Sheet:
    """Read a sheet, by default the first; its first row has the names of the columns."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError as error:
        raise ImportError("xlsx files need python-calamine: pip install 'cgnlearn[excel]'") from error
    try:
        book = CalamineWorkbook.from_path(path)
        names = book.sheet_names
        if not names or (name is not None and name not in names):
            raise DataFileError(f"{path} has no sheet {name!r}: it has {', '.join(map(repr, names)) or 'none'}")
        cells = book.get_sheet_by_name(name or names[0]).to_python(skip_empty_area=False)
    except (CalamineError, OSError, ValueError) as error:
        if isinstance(error, DataFileError):
            raise
        message = " ".join(str(error).split())[:120]
        raise DataFileError(f"{path} is not a readable xlsx file ({message}): save it again") from None
    used = [i for i, row in enumerate(cells) if any(cell not in EMPTY for cell in row)]
    what = f"{path}, sheet {name or names[0]!r},"
    if len(used) < 2:
        advice = "name another with --sheet" if len(names) > 1 else "add a header and rows"
        raise DataFileError(f"{what} has no rows below a header: {advice}")
    header = [_text(cell) for cell in cells[used[0]]]
    kept = [i for i, title in enumerate(header) if title or any(cells[row][i] not in EMPTY for row in used)]
    header[0] = header[0] or FIRST_NAME
    check_header([header[i] for i in kept], path)
    columns, marks = {}, {}
    for i in kept:
        columns[header[i]] = _column([cells[row][i] for row in used[1:]])
        if isinstance(columns[header[i]], Strings):
            marks[header[i]] = Marks()
            for cell in columns[header[i]].cells:
                if "." in cell or "," in cell:
                    marks[header[i]].add(cell)
    layout = (f"from sheet {name or names[0]!r}, one of {len(names)}",) if name is None and len(names) > 1 else ()
    return Sheet(columns, np.array(used[1:]) + 1, marks, layout)


def _column(cells: Sequence[Any]) -> Any:
    """Numbers if all cells are; otherwise text."""
    kinds = {type(cell) for cell in cells if cell not in EMPTY}
    if kinds <= {int, float}:
        return np.array([np.nan if cell in EMPTY else cell for cell in cells], float)
    return Strings([_text(cell) for cell in cells])


def _text(cell: Any) -> str:
    if isinstance(cell, float):
        return repr(cell).removesuffix(".0")
    return cell.isoformat() if hasattr(cell, "isoformat") else "" if cell is None else str(cell).strip()

"""A folder of results that an interrupted evaluation goes on from.

``rows.csv`` gets the rows of each fold as it finishes, in one write; ``manifest.json`` says what they are results of.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cgnlearn.evaluation import METRICS, FoldResult, Split, Summary, Task


class OtherResults(ValueError):
    """The folder holds results of other data or settings."""


class Results:
    """Results on disk.

    Parameters
    ----------
    folder : Path
    manifest : dict
        All that the results depend on; a folder with another manifest is refused.
    lines : ndarray of int
        What each row is called in its file.
    y : ndarray of str
        The classes of the rows.
    classes : sequence of str
        The columns of the log probabilities.
    """

    def __init__(
        self,
        folder: Path,
        manifest: dict[str, Any],
        lines: NDArray[np.intp],
        y: NDArray[np.str_],
        classes: Sequence[str],
    ) -> None:
        self.folder = folder
        self.manifest = manifest
        self.lines = lines
        self.y = y
        self.classes = list(classes)
        self._header = ["model", "repeat", "fold", "row", "line", "true", *(f"log p({label})" for label in classes)]

    @property
    def rows_path(self) -> Path:
        """Where the rows are."""
        return self.folder / "rows.csv"

    def open(self, splits: Sequence[Split]) -> list[FoldResult]:
        """Make the folder, or take up what it holds: the folds that were finished. A half-written one is dropped."""
        self.folder.mkdir(parents=True, exist_ok=True)
        manifest_path = self.folder / "manifest.json"
        written = json.dumps(self.manifest, indent=1, sort_keys=True) + "\n"
        if manifest_path.exists():
            self._check_same(manifest_path)
        found = self._finished(splits) if self.rows_path.exists() else []
        write_whole(self.rows_path, _csv_text([self._header]) + "".join(self._block(result) for result in found))
        write_whole(manifest_path, written)
        return found

    def append(self, result: FoldResult) -> None:
        """Add one fold's rows."""
        with self.rows_path.open("a", encoding="utf-8", newline="") as file:
            file.write(self._block(result))

    def write_summary(self, summaries: Sequence[Summary]) -> None:
        """Write ``summary.csv``, one line per model."""
        write_whole(self.folder / "summary.csv", summary_text(summaries))

    def _block(self, result: FoldResult) -> str:
        task = result.task
        rows = []
        for i, row in enumerate(result.rows.tolist()):
            said = [""] * len(self.classes) if result.log_proba is None else map(repr, result.log_proba[i].tolist())
            rows.append([task.model, task.repeat, task.fold, row, int(self.lines[row]), self.y[row], *said])
        return _csv_text(rows)

    def _finished(self, splits: Sequence[Split]) -> list[FoldResult]:
        tests = {(split.repeat, split.fold): split.test for split in splits}
        blocks: dict[Task, list[list[str]]] = {}
        text = self.rows_path.read_bytes().decode("utf-8", errors="replace")
        whole = text[: text.rfind("\n") + 1]  # a last line that was cut may still look like numbers
        for fields in csv.reader(io.StringIO(whole, newline="")):
            if len(fields) == len(self._header) and fields != self._header and _whole_numbers(fields[1:4]):
                blocks.setdefault(Task(fields[0], int(fields[1]), int(fields[2])), []).append(fields)
        finished = []
        for task, block in blocks.items():
            rows = np.array([int(fields[3]) for fields in block], np.intp)
            test = tests.get((task.repeat, task.fold))
            if test is None or not np.array_equal(rows, test):
                continue
            said = [fields[6:] for fields in block]
            try:
                numbers = None if said[0][0] == "" else np.array(said, dtype=float)
            except ValueError:
                continue
            result = FoldResult(task, rows, numbers)
            if self._block(result) == _csv_text(block):
                finished.append(result)
        return finished

    def _check_same(self, path: Path) -> None:
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            raise OtherResults(f"{path} cannot be read: remove the folder or choose another one") from None
        now = json.loads(json.dumps(self.manifest))
        for name in {**now, **before}:
            if before.get(name) != now.get(name):
                difference = f"{_short(before.get(name))}, not {_short(now.get(name))}"
                raise OtherResults(
                    f"{self.folder} holds results with another {name} ({difference}): "
                    "choose another folder or remove this one"
                )


def summary_text(summaries: Sequence[Summary]) -> str:
    """The summaries as csv."""
    names = [part for name in METRICS for part in (name, f"{name}_sd")]
    rows: list[list[Any]] = [["model", "folds", "folds_without_answer", *names]]
    for summary in summaries:
        values: list[str] = []
        for name in METRICS:
            mean, sd = summary.metrics.get(name, (None, None))
            values += ["" if value is None else repr(value) for value in (mean, sd)]
        rows.append([summary.model, summary.n_folds, summary.n_without, *values])
    return _csv_text(rows)


def _whole_numbers(fields: Sequence[str]) -> bool:
    """Whether all fields are whole numbers."""
    return all(field.isascii() and field.isdigit() for field in fields)


def _csv_text(rows: Sequence[Sequence[Any]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    beside = path.with_name(path.name + ".part")
    beside.write_text(text, encoding="utf-8", newline="")
    os.replace(beside, path)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."

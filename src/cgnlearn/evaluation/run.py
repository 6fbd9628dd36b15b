"""Resumable parallel runs of independent units of work.

A folder holds ``rows.csv``, to which the rows of each unit are appended in one write, and ``manifest.json`` with the
settings of the results and the sessions that computed them. The finished rows do not depend on the number of processes
or on interruptions.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import platform
import signal
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from threading import Thread, current_thread, main_thread
from time import perf_counter, sleep
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from cgnlearn import __version__
from cgnlearn.data.arrays import Floats
from cgnlearn.files import add_whole, defused, held, write_whole

Result = TypeVar("Result")
Row = Sequence[Any]
FORMER = "models"  # a setting of earlier versions, with addresses in memory, which match nothing
ADVICE = "choose another folder, or remove it"


class OtherResultsError(ValueError):
    """The folder holds results of other data, other settings or another version."""


class Unit(NamedTuple):
    """The smallest part of the work."""

    name: str  # of a model, or of a data set
    repeat: int
    fold: int


def _unchanged(unit: Unit, rows: Any) -> Any:
    return rows


@dataclass(frozen=True)
class Work(Generic[Result]):
    """All units to be computed."""

    columns: tuple[str, ...]  # of the rows; the first three are those of `Unit`
    sizes: Mapping[Unit, int]  # number of rows of each unit, in the order of work and of the finished file
    compute: Callable[..., Result]  # returns the result of a unit; a function of a module, to be pickled
    arguments: Callable[[Unit], tuple[Any, ...]]  # of ``compute``
    settings: Mapping[str, Any]  # on which the results depend: seeds, checksums of the data
    # Convert a result to rows without the unit, and rows of a file back to a result; None if they are invalid.
    rows: Callable[[Unit, Result], Sequence[Row]] = _unchanged
    result: Callable[[Unit, Sequence[Sequence[str]]], Result | None] = _unchanged


class Run(Generic[Result]):
    """Work with its results so far, resumed from a folder; a folder with other results is refused."""

    def __init__(self, work: Work[Result], folder: Path | None = None) -> None:
        self.work, self.folder = work, folder
        self._results: dict[Unit, Result] = {}
        self._sessions: list[dict[str, Any]] = []
        if folder is not None:
            self._resume(folder)

    @property
    def results(self) -> list[Result]:
        """The finished results, in the order of the work."""
        return [self._results[unit] for unit in self.work.sizes if unit in self._results]

    @property
    def missing(self) -> list[Unit]:
        """Units still to be computed."""
        return [unit for unit in self.work.sizes if unit not in self._results]

    def go_on(self, jobs: int | None = 1, among: Container[Unit] | None = None) -> Iterator[Unit]:
        """Compute the missing units, or those among the given ones, and yield each when it is finished."""
        if self.folder is None:
            yield from self._computing(jobs, among)
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        with held(self.folder):
            self._resume(self.folder)  # again, as another run may have added results
            yield from self._computing(jobs, among)

    def _computing(self, jobs: int | None, among: Container[Unit] | None) -> Iterator[Unit]:
        from joblib import Parallel, delayed, parallel_config

        missing = [unit for unit in self.missing if among is None or unit in among]
        started, main = perf_counter(), os.getpid()
        self._sessions.append(_session(jobs))
        self._write_manifest()  # first: rows without a manifest would be refused
        self._write_rows()
        compute, arguments = self.work.compute, self.work.arguments
        tasks = (delayed(_computed)(unit, compute, arguments(unit), main) for unit in missing)
        # One thread in each process, as the processes use all cores.
        with parallel_config(backend="loky", inner_max_num_threads=1):
            with _interrupts_ignored():
                computed = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)(tasks)
            for unit, result in computed:
                block = self._block(unit, result)
                self._results[unit] = result
                if self.folder is not None:
                    add_whole(self.folder / "rows.csv", block)
                yield unit
        self._write_rows()
        self._sessions[-1] |= {"units": len(missing), "seconds": round(perf_counter() - started, 1)}
        self._write_manifest()

    # ---- rows

    def _write_rows(self) -> None:
        if self.folder is not None:
            blocks = (self._block(unit, self._results[unit]) for unit in self.work.sizes if unit in self._results)
            write_whole(self.folder / "rows.csv", chain([csv_text(self.work.columns)], blocks))

    def _block(self, unit: Unit, result: Result) -> str:
        rows = [(*unit, *row) for row in self.work.rows(unit, result)]
        if len(rows) != self.work.sizes[unit] or any(len(row) != len(self.work.columns) for row in rows):
            raise ValueError(f"the rows of {unit} do not match the columns {', '.join(self.work.columns)}")
        return csv_text(*rows)

    def _resume(self, folder: Path) -> None:
        """Read the results of the folder; units written incompletely by a killed process are dropped."""
        manifest, path = folder / "manifest.json", folder / "rows.csv"
        self._results = {}
        if manifest.exists():
            self._sessions = self._checked(manifest)
        elif path.exists():
            raise OtherResultsError(f"{path} has no manifest.json beside it: {ADVICE}")
        rows = list(_complete_lines(path)) if path.exists() else []
        if rows and rows[0] != list(self.work.columns):
            raise OtherResultsError(f"{path} holds other columns: {ADVICE}")
        units = {tuple(map(str, unit)): unit for unit in self.work.sizes}
        found: dict[Unit, list[list[str]]] = {}
        for fields in rows:
            if len(fields) == len(self.work.columns) and tuple(fields[:3]) in units:
                found.setdefault(units[*fields[:3]], []).append(fields)
        for unit, block in found.items():
            if len(block) == self.work.sizes[unit]:
                result = self.work.result(unit, [fields[3:] for fields in block])
                # A round trip detects damaged numbers.
                if result is not None and self._block(unit, result) == csv_text(*block):
                    self._results[unit] = result

    # ---- manifest

    @property
    def _settings(self) -> dict[str, Any]:
        """All settings, as read back from JSON."""
        settings: dict[str, Any] = json.loads(json.dumps({"cgnlearn": __version__, **self.work.settings}))
        return settings

    def _checked(self, path: Path) -> list[dict[str, Any]]:
        """The earlier sessions, if their settings are the same."""
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
            was, sessions = dict(before["settings"]), list(before["sessions"])
        except (ValueError, KeyError, TypeError):
            raise OtherResultsError(f"{path} is not a manifest of cgnlearn: {ADVICE}") from None
        now = self._settings
        if FORMER in was and FORMER not in now:
            raise OtherResultsError(f"{path.parent} is of an earlier version and cannot be continued: {ADVICE}")
        for name, before, after in _differences(was, now):
            raise OtherResultsError(
                f"{path.parent} holds results with another {name} ({before}, not {after}): {ADVICE}"
            )
        return sessions

    def _write_manifest(self) -> None:
        if self.folder is not None:
            text = json.dumps({"settings": self._settings, "sessions": self._sessions}, indent=1)
            write_whole(self.folder / "manifest.json", text + "\n")


def _session(jobs: int | None) -> dict[str, Any]:
    """Time, machine and software of a session, for the reader."""
    packages = ("numpy", "scipy", "scikit-learn", "numba", "joblib")
    found: dict[str, Any] = {"started": datetime.now(UTC).isoformat(timespec="seconds"), "system": platform.system()}
    found |= {"machine": platform.machine(), "cores": os.cpu_count(), "jobs": jobs}
    return found | {"software": {"python": platform.python_version(), **{name: version(name) for name in packages}}}


# ---- processes


def _computed(unit: Unit, compute: Callable[..., Result], arguments: tuple[Any, ...], main: int) -> tuple[Unit, Result]:
    if os.getpid() != main:
        _end_with(main)
    with _thread_pools().limit(limits=1):
        return unit, compute(*arguments)


@cache
def _end_with(main: int) -> None:
    """End this process when the main one is killed; a worker would wait for minutes."""

    def watch() -> None:
        while os.getppid() == main:
            sleep(1)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


@cache  # the search takes as long as a small fold
def _thread_pools() -> Any:
    return ThreadpoolController()


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Let processes started here ignore Ctrl-C, which a terminal sends to all; this process handles it."""
    if current_thread() is not main_thread():  # signals are handled in the main thread only
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# ---- files


def csv_text(*rows: Row) -> str:
    """Rows as csv; floats with ten digits, which do not depend on the order of summation."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows([f"{v:.10g}" if isinstance(v, float) else defused(v) for v in row] for row in rows)
    return buffer.getvalue()


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a finished file, gzipped or not, as mappings."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _complete_lines(path: Path) -> Iterator[list[str]]:
    text = path.read_bytes().decode("utf-8", errors="replace")
    complete = text[: text.rfind("\n") + 1]  # a truncated last line may still look like numbers
    with suppress(csv.Error):  # a damaged quote makes the rest one endless field
        yield from csv.reader(io.StringIO(complete, newline=""))


def fingerprint(X: Floats, y: Iterable[Any]) -> dict[str, Any]:
    """Shape and SHA-256 checksum of data, for settings."""
    content = hashlib.sha256(np.ascontiguousarray(X, dtype="<f8").tobytes())
    content.update("\n".join(map(str, y)).encode())
    return {"shape": list(X.shape), "sha256": content.hexdigest()}


def _differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Name and both values of each setting that differs, of mappings by their own names."""
    for name in {**now, **was}:
        before, after = was.get(name), now.get(name)
        if isinstance(before, dict) and isinstance(after, dict):
            yield from ((f"{name} of {inner}", a, b) for inner, a, b in _differences(before, after))
        elif before != after:
            yield name, *_apart(str(before), str(after))


def _apart(first: str, second: str) -> tuple[str, str]:
    """Two texts, shortened to where they differ."""
    n_common = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), 0)
    start = max(n_common - 25, 0)

    def part(text: str) -> str:
        end = start + 57
        return ("..." if start else "") + text[start:end] + ("..." if len(text) > end else "")

    return part(first), part(second)

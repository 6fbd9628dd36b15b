"""How an experiment runs: folds cut, units computed side by side, and all that the numbers depend on written down."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from time import perf_counter, sleep
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn import __version__
from cgnlearn.evaluation import cut, interrupts_ignored
from cgnlearn.experiments.rowfile import Row, RowFile, Unit
from cgnlearn.model.densities import Floats
from cgnlearn.results import write_whole

LEAST = float(np.log(np.nextafter(0.0, 1.0)))  # log of the smallest positive double


@dataclass(frozen=True)
class Experiment:
    """What is to be computed.

    Parameters
    ----------
    columns : tuple of str
        Of the rows, after those of `Unit`.
    sizes : dict
        Every unit with its number of rows, in the order in which they are computed.
    work : callable
        A module's function that returns the rows of one unit.
    arguments : callable
        What it is called with, given the unit.
    settings : dict
        All that the numbers depend on, such as seeds and checksums of the data.
    """

    columns: tuple[str, ...]
    sizes: Mapping[Unit, int]
    work: Callable[..., list[Row]]
    arguments: Callable[[Unit], tuple[Any, ...]]
    settings: Mapping[str, Any]


class Progress(NamedTuple):
    """How far a run is."""

    done: int
    total: int


def run(experiment: Experiment, folder: Path, jobs: int) -> Iterator[Progress]:
    """Compute what is missing in ``folder / "rows.csv"``, one unit after the other as they finish.

    The finished file does not depend on ``jobs``, nor on how often the run was interrupted and called again.
    ``manifest.json`` says what the rows are results of; a folder with results of anything else is refused.
    """
    from joblib import Parallel, delayed, parallel_config

    folder.mkdir(parents=True, exist_ok=True)
    rows_path = folder / "rows.csv"
    manifest = Manifest(folder / "manifest.json", experiment.settings)
    if rows_path.exists() and not manifest.path.exists():
        raise ValueError(f"{rows_path} has no manifest.json beside it: choose another folder, or remove it")
    manifest.begin(jobs=jobs)
    file = RowFile(rows_path, (*Unit._fields, *experiment.columns), experiment.sizes)
    missing = file.missing
    done, total = len(experiment.sizes) - len(missing), len(experiment.sizes)
    yield Progress(done, total)
    main = os.getpid()
    tasks = (delayed(_rows_of)(unit, experiment.work, experiment.arguments(unit), main) for unit in missing)
    # One thread in each process, else the processes would fight for the cores.
    with parallel_config(backend="loky", inner_max_num_threads=1):
        with interrupts_ignored():
            results = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)(tasks)
        for unit, rows in results:
            file.append(unit, rows)
            done += 1
            yield Progress(done, total)
    file.finish()
    manifest.end(units=len(missing))


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a finished file, gzipped or not, by column."""
    content = path.read_bytes()
    header, *lines = (gzip.decompress(content) if path.suffix == ".gz" else content).decode().splitlines()
    return [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]


def _rows_of(
    unit: Unit, work: Callable[..., list[Row]], arguments: tuple[Any, ...], main: int
) -> tuple[Unit, list[Row]]:
    if os.getpid() != main:
        _end_with(main)
    with _thread_pools().limit(limits=1):
        return unit, work(*arguments)


@cache
def _end_with(main: int) -> None:
    """Let this process end when the main one is killed: a worker would wait minutes for more to do."""

    def watch() -> None:
        while os.getppid() == main:
            sleep(1)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


@cache
def _thread_pools() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


# ---- folds and what a fold's predictions are worth


def split(y: NDArray[Any], unit: Unit, *, n_folds: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The training and the test rows of a unit; repetition r is cut with ``seed + r``."""
    found = cut(y, n_folds=n_folds, seed=seed + unit.repetition)[unit.fold]
    return found.train, found.test


class Worth(NamedTuple):
    """What predictions are worth."""

    correct: int
    cll: float  # summed log probability of the true classes
    zeros: int  # true classes whose probability is no positive double, counted as the smallest one


def worth(log_joint: Floats, true: NDArray[np.intp]) -> Worth:
    """Of log joint probabilities (rows, classes), normalised or not."""
    log_proba = log_joint - np.logaddexp.reduce(log_joint, axis=1, keepdims=True)
    of_true = log_proba[np.arange(len(true)), true]
    return Worth(
        correct=int((log_proba.argmax(axis=1) == true).sum()),
        cll=float(np.maximum(of_true, LEAST).sum()),
        zeros=int((of_true < LEAST).sum()),
    )


# ---- the manifest


class Manifest:
    """What the rows of a folder are results of, and when and where they were computed.

    Parameters
    ----------
    path : Path
    settings : dict
        All that the numbers depend on besides the software. If the file names other settings or other software
        it is refused.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path = path
        self._content: dict[str, Any] = json.loads(json.dumps({"settings": settings, "software": software()}))
        self._sessions: list[dict[str, Any]] = []
        if path.exists():
            self._go_on(path)

    def _go_on(self, path: Path) -> None:
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
            self._sessions = before.pop("sessions")
        except (ValueError, KeyError, AttributeError):
            raise ValueError(f"{path} is no manifest of ours: choose another folder, or remove it") from None
        for part, now in self._content.items():
            for name in sorted({*now, *before.get(part, {})}):
                was = before.get(part, {}).get(name)
                if was != now.get(name):
                    raise ValueError(
                        f"{path.parent} holds results with another {name} ({_short(was)}, now "
                        f"{_short(now.get(name))}): choose another folder, or remove it"
                    )

    def begin(self, **session: Any) -> None:
        """Write down that a session begins."""
        self._started = perf_counter()
        started = datetime.now(UTC).isoformat(timespec="seconds")
        machine = {"system": platform.system(), "machine": platform.machine(), "cores": os.cpu_count()}
        self._sessions.append({"started": started, **machine, **session})
        self._write()

    def end(self, **session: Any) -> None:
        """Write down how long it took."""
        self._sessions[-1] |= session | {"seconds": round(perf_counter() - self._started, 1)}
        self._write()

    def _write(self) -> None:
        write_whole(self.path, json.dumps(self._content | {"sessions": self._sessions}, indent=1) + "\n")


def software() -> dict[str, str]:
    """Versions of all that computes, and a checksum of our own source."""
    packages = ("numpy", "scipy", "scikit-learn", "numba", "joblib")
    source = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        source.update(path.read_bytes())
    versions = {name: version(name) for name in packages}
    return {"python": platform.python_version(), "cgnlearn": __version__, **versions, "source": source.hexdigest()}


def data_checksum(X: Floats, y: Sequence[Any] | NDArray[Any]) -> str:
    """SHA-256 of a set with its rows in their order."""
    content = hashlib.sha256(np.ascontiguousarray(X, dtype="<f8").tobytes())
    content.update("\n".join(map(str, y)).encode())
    return content.hexdigest()


def _short(value: Any) -> str:
    shown = str(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."

"""Folders and archives of spectra with a table of labels: one way from them to features, and to fitted pipelines."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from cgnlearn.spectra.presets import one_by_one, parted
from cgnlearn.spectra.readers import stream
from cgnlearn.spectra.spectrum import Spectrum, SpectrumError
from cgnlearn.spectra.steps import Step, Trim
from cgnlearn.tables.formats import ColumnError, listed
from cgnlearn.tables.text import TextFile

if TYPE_CHECKING:
    import pandas as pd

TARGET = "label"  # the column of the classes where none is named


class Label(NamedTuple):
    """What a table of labels says of a spectrum."""

    sample: str | None  # None: the table has no such column, and the reader's guess will do
    label: str | None
    group: str | None  # of the column that was asked for


@dataclass(frozen=True, eq=False)
class Folder:
    """Spectra on disk with what a table says of them, read anew whenever they are gone through."""

    path: Path
    labels: Path | None = None
    target: str | None = None  # the column of the classes; None: label
    groups: str | None = None  # a column of the table
    needed: bool = True  # every spectrum needs a label
    skip_bad: bool = False
    ignore: Sequence[Path] = ()
    tell: Callable[[str], Any] = lambda remark: None  # gets what the person should know, a line each time
    files: list[str] = field(default_factory=list)  # of the spectra gone through last
    told: list[Label] = field(default_factory=list)  # and what the table says of them

    @cached_property
    def known(self) -> dict[str, Label]:
        """What the table says."""
        if self.labels is None:
            return {}
        return read_labels(self.labels, target=self.target, groups=self.groups, needed=self.needed, tell=self.tell)

    def spectra(self, *, quiet: bool = False) -> Iterator[Spectrum]:
        """One after another; afterwards, unless it is ``quiet``, what was left out is told, or refused."""
        self.files.clear()
        self.told.clear()
        refused: list[SpectrumError] = []
        used: set[str] = set()
        ignore = [*self.ignore, *([self.labels] if self.labels else [])]
        for spectrum in stream(self.path, refused=refused.append if self.skip_bad else None, ignore=ignore):
            file, sample = str(spectrum.metadata["file"]), str(spectrum.metadata["sample"])
            names = (file, f"{self.path.name}/{file}", sample)  # a table may stand beside the folder
            key = next((name for name in names if name in self.known), file)
            if key not in self.known and self.labels is not None:
                raise ValueError(
                    f"{spectrum.name}: {self.labels} has no line for it (its first names {next(iter(self.known))!r}): "
                    f"add one for {file!r}, or remove the spectrum"
                )
            found = self.known.get(key, Label(None, None, None))
            used.add(key)
            self.files.append(file)
            self.told.append(found._replace(sample=found.sample or sample))
            yield spectrum
        if quiet:
            return
        for error in refused:
            self.tell(f"left out {error}")
        missing = set(self.known) - used
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            message = f"{self.labels}: {min(missing)}{more} has a label but no spectrum in {self.path}"
            if not self.skip_bad and self.needed:
                raise ValueError(f"{message}: remove the line, or go on with --skip-bad")
            self.tell(message)

    @property
    def samples(self) -> NDArray[np.str_]:
        """Which sample each spectrum is of."""
        return np.array([found.sample for found in self.told], dtype=str)

    def features(self, steps: Sequence[Any], *, fit: bool = False) -> pd.DataFrame:
        """What steps make of the spectra, few of which are in memory at once; ``fit``: the last one is fitted first.

        Where its bins lie depends on the axes alone: the first pass trims, the second does everything.
        """
        n_first = next(i for i, step in enumerate(steps) if not isinstance(step, Step))
        first, others = steps[:n_first], steps[n_first:]
        if fit:
            trimming = [step for step in first if isinstance(step, Trim)]
            others[0].fit(one_by_one(trimming, self.spectra(quiet=True)))
        X: Any = one_by_one(first, self.spectra())
        for step in others:
            X = step.transform(X)
        return X

    def kept_together(self) -> NDArray[np.str_] | None:
        """The groups that were asked for, or the samples if these repeat."""
        if self.groups is not None:
            return np.array([found.group for found in self.told], dtype=str)
        n_samples = len(set(self.samples.tolist()))
        if n_samples == len(self.told):
            return None
        self.tell(
            f"warning: {len(self.told)} spectra are of {n_samples} samples and --groups is not given: spectra of one "
            "sample are kept together"
        )
        return self.samples

    def training(self, steps: Pipeline) -> Training:
        """The labelled spectra after those first steps that learn nothing."""
        done, others = parted(steps)
        digest = hashlib.sha256()

        def digested() -> Iterator[Spectrum]:
            for spectrum in self.spectra():
                digest.update(f"{self.files[-1]} {self.told[-1]}\n".encode())
                digest.update(spectrum.mz.tobytes())
                digest.update(spectrum.intensity.tobytes())
                yield spectrum

        spectra = list(one_by_one(done, digested()))
        y = np.array([found.label for found in self.told], dtype=str)
        return Training(self.path, digest.hexdigest(), spectra, self.files, y, self.kept_together(), done, others)


@dataclass(frozen=True, eq=False)
class Training:
    """Labelled spectra after the steps that learn nothing, and the steps that are still to be learned."""

    path: Path
    sha256: str  # of names, labels and points
    spectra: list[Spectrum]
    files: list[str]
    y: NDArray[np.str_]
    groups: NDArray[np.str_] | None
    done: list[Any]
    others: Any
    is_text: bool = False
    n_dropped: int = 0
    missing: dict[str, Any] = field(default_factory=dict)

    @property
    def ids(self) -> NDArray[np.str_]:
        """Spectra are called by their files."""
        return np.array(self.files)

    @property
    def lines(self) -> NDArray[np.intp]:
        """Spectra are counted from 0."""
        return np.arange(len(self.y))

    @cached_property
    def X(self) -> pd.DataFrame:
        """The features of all spectra, for a report to tell of."""
        return clone(self.others).fit_transform(self.spectra)

    def before(self, model: Any) -> Any:
        """The steps that are still to be learned, and a model."""
        return Pipeline([*clone(self.others).steps, ("classifier", model)])

    def whole(self, fitted: Pipeline) -> Pipeline:
        """A pipeline that was fitted to these spectra, from raw spectra on."""
        return Pipeline([*((type(step).__name__.lower(), step) for step in self.done), *fitted.steps])


def read_labels(
    path: Path,
    *,
    target: str | None = None,
    groups: str | None = None,
    needed: bool = True,
    tell: Callable[[str], Any] = lambda remark: None,
) -> dict[str, Label]:
    """File or sample → what a table says of it; columns are found whether they are written large or small."""
    table = TextFile.of(path, ".csv")
    if table.layout:
        tell(f"{path} is read as text {', '.join(table.layout)}")
    [(found, lines)] = table.batches(table.names, None)
    columns = {name.lower(): column.cells for name, column in reversed(found.items())}
    its = f"it has {listed(table.names)}"
    key = "file" if "file" in columns else "sample"
    if key not in columns:
        raise ValueError(f"{path} needs a column file, or sample, that names the spectra, but {its}: rename one")
    classes = (target or TARGET).lower()
    if needed and classes not in columns:
        if target is None:
            raise ValueError(f"{path} needs a column {TARGET}, but {its}: name that of the classes with --target")
        raise ColumnError(f"{path} has no column {target!r} (--target): {its}")
    if groups is not None and groups.lower() not in columns:
        raise ColumnError(f"{path} has no column {groups!r} (--groups): {its}")
    empty = [""] * len(lines)
    known: dict[str, Label] = {}
    for i, line in enumerate(lines.tolist()):
        said = {column: columns.get(column, empty)[i] for column in ("file", "sample", classes, (groups or "").lower())}
        for column in (key, *([classes] if needed else []), *([groups.lower()] if groups else [])):
            if not said[column]:
                raise ValueError(f"{path}: line {line} lacks its {column}: fill it in")
        name = plain_name(said[key])
        if name in known:
            raise ValueError(f"{path}: line {line} names {said[key]!r} for the second time: remove it")
        known[name] = Label(said["sample"] or None, said[classes] or None, said[groups.lower()] if groups else None)
    return known


def plain_name(name: str) -> str:
    """A spectrum's name as the readers have it, however the path to it is written: a Bruker spectrum is a folder."""
    place = PurePosixPath(name.replace("\\", "/"))
    return str(place.parent if place.name in ("fid", "acqu", "acqus") else place)

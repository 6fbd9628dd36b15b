"""Folders and archives of spectra with a table of labels, as features or as training data of a pipeline."""

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
from cgnlearn.spectra.spectrum import Spectrum, SpectrumError, first_and_count
from cgnlearn.spectra.steps import Step, Trim
from cgnlearn.tables.formats import ColumnError, listed
from cgnlearn.tables.text import TextFile

if TYPE_CHECKING:
    import pandas as pd

TARGET = "label"  # default column of the classes


class Label(NamedTuple):
    """The line of a table of labels for a spectrum."""

    sample: str | None = None  # None: the table has no such column; the reader derives it from the file name
    label: str | None = None
    group: str | None = None


@dataclass(frozen=True, eq=False)
class Folder:
    """Spectra on disk with their labels; they are read anew in each pass."""

    path: Path
    labels: Path | None = None
    target: str | None = None  # column of the classes; None: label
    groups: str | None = None  # column of the groups
    needed: bool = True  # every spectrum needs a label
    skip_bad: bool = False
    ignore: Sequence[Path] = ()
    notify: Callable[[str], Any] = lambda message: None  # gets messages for the user, a line each
    files: list[str] = field(default_factory=list)  # of the spectra in the last pass
    matched: list[Label] = field(default_factory=list)  # their labels

    @cached_property
    def known(self) -> dict[str, Label]:
        """The table of labels by file or sample; the case of its column names does not matter."""
        path = self.labels
        if path is None:
            return {}
        table = TextFile.of(path, ".csv")
        if table.layout:
            self.notify(f"{path} is read as text {', '.join(table.layout)}")
        [(batch, lines)] = table.batches(table.names, None)
        columns = {name.lower(): column.cells for name, column in reversed(batch.items())}
        present = f"it has {listed(table.names)}"
        key = "file" if "file" in columns else "sample"
        if key not in columns:
            raise ValueError(f"{path} needs a column file or sample that names the spectra, but {present}: rename one")
        target, groups = (self.target or TARGET).lower(), (self.groups or "").lower()
        if self.needed and target not in columns:
            if self.target is None:
                raise ValueError(f"{path} needs a column {TARGET}, but {present}: name the column with --target")
            raise ColumnError(f"{path} has no column {self.target!r} (--target): {present}")
        if groups and groups not in columns:
            raise ColumnError(f"{path} has no column {self.groups!r} (--groups): {present}")
        empty = [""] * len(lines)
        required = [key, *([target] if self.needed else []), *([groups] if groups else [])]
        known: dict[str, Label] = {}
        for i, line in enumerate(lines.tolist()):
            cell = {column: columns.get(column, empty)[i] or None for column in ("file", "sample", target, groups)}
            lacking = next((column for column in required if cell[column] is None), None)
            if lacking is not None:
                raise ValueError(f"{path}: line {line} lacks its {lacking}: fill it in")
            place = PurePosixPath(str(cell[key]).replace("\\", "/"))
            name = str(place.parent if place.name in ("fid", "acqu", "acqus") else place)  # Bruker: the folder
            if name in known:
                raise ValueError(f"{path}: line {line} names {cell[key]!r} for the second time: remove it")
            known[name] = Label(cell["sample"], cell[target], cell[groups] if groups else None)
        return known

    def spectra(self, *, quiet: bool = False) -> Iterator[Spectrum]:
        """Yield the spectra; then, unless ``quiet``, report skipped files and labels without a spectrum."""
        self.files.clear()
        self.matched.clear()
        refused: list[SpectrumError] = []
        used: set[str] = set()
        ignore = [*self.ignore, *([self.labels] if self.labels else [])]
        for spectrum in stream(self.path, refused=refused.append if self.skip_bad else None, ignore=ignore):
            file, sample = str(spectrum.metadata["file"]), str(spectrum.metadata["sample"])
            names = (file, f"{self.path.name}/{file}", sample)  # the table may be beside the folder
            key = next((name for name in names if name in self.known), file)
            if key not in self.known and self.labels is not None:
                raise ValueError(
                    f"{spectrum.name}: {self.labels} has no line for it (its first names {next(iter(self.known))!r}): "
                    f"add one for {file!r}, or remove the spectrum"
                )
            label = self.known.get(key, Label())
            used.add(key)
            self.files.append(file)
            self.matched.append(label._replace(sample=label.sample or sample))
            yield spectrum
        if quiet:
            return
        for error in refused:
            self.notify(f"skipped {error}")
        missing = sorted(set(self.known) - used)
        if missing:
            message = f"{self.labels}: {first_and_count(missing)} has a label but no spectrum in {self.path}"
            if not self.skip_bad and self.needed:
                raise ValueError(f"{message}: remove the line, or go on with --skip-bad")
            self.notify(message)

    @property
    def samples(self) -> NDArray[np.str_]:
        """The sample of each spectrum."""
        return np.array([label.sample for label in self.matched], dtype=str)

    def features(self, steps: Sequence[Any], *, fit: bool = False) -> pd.DataFrame:
        """Transform the spectra to features, with few spectra in memory; ``fit``: fit the bins first.

        The bins depend on the axes only: the first pass trims the spectra, the second applies all steps.
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

    def training(self, steps: Pipeline) -> Training:
        """The labelled spectra after the first steps that learn nothing, grouped by column or by repeated sample."""
        done, others = parted(steps)
        digest = hashlib.sha256()

        def digested() -> Iterator[Spectrum]:
            for spectrum in self.spectra():
                digest.update(f"{self.files[-1]} {self.matched[-1]}\n".encode())
                digest.update(spectrum.mz.tobytes())
                digest.update(spectrum.intensity.tobytes())
                yield spectrum

        spectra = list(one_by_one(done, digested()))
        y = np.array([label.label for label in self.matched], dtype=str)
        n_samples = len(set(self.samples.tolist()))
        groups = self.samples if n_samples < len(y) else None
        if self.groups is not None:
            groups = np.array([label.group for label in self.matched], dtype=str)
        elif groups is not None:
            self.notify(
                f"warning: {len(y)} spectra are of {n_samples} samples and --groups is not given: spectra of one "
                "sample are kept together"
            )
        return Training(self.path, digest.hexdigest(), spectra, self.files, y, groups, done, others)


@dataclass(frozen=True, eq=False)
class Training:
    """Labelled spectra after the steps that learn nothing, with the interface of a table's training data."""

    path: Path
    sha256: str  # of names, labels and points
    spectra: list[Spectrum]
    files: list[str]
    y: NDArray[np.str_]
    groups: NDArray[np.str_] | None
    done: list[Any]  # the steps that learn nothing
    others: Any  # pipeline of the steps that are still to be fitted
    is_text: bool = False
    n_dropped: int = 0
    missing: dict[str, Any] = field(default_factory=dict)

    @property
    def ids(self) -> NDArray[np.str_]:
        return np.array(self.files)

    @property
    def lines(self) -> NDArray[np.intp]:
        return np.arange(len(self.y)) + 1

    @cached_property
    def X(self) -> pd.DataFrame:
        """Features of all spectra, for a report."""
        return clone(self.others).fit_transform(self.spectra)

    def before(self, model: Any) -> Any:
        """A pipeline of the steps that are still to be fitted, and a model."""
        return Pipeline([*clone(self.others).steps, ("classifier", model)])

    def whole(self, fitted: Pipeline) -> Pipeline:
        """A pipeline that was fitted to these spectra, with the steps before it: it takes raw spectra."""
        return Pipeline([*((type(step).__name__.lower(), step) for step in self.done), *fitted.steps])

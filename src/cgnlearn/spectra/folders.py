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

from cgnlearn.spectra.binning import Peaks
from cgnlearn.spectra.isolates import SPECIES, is_table_of_isolates, isolate, labelled_codes
from cgnlearn.spectra.presets import one_by_one, parted
from cgnlearn.spectra.quality import Quality, Survey, confounded, quality, remarks
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
    batch: str | None = None
    date: str | None = None


@dataclass(frozen=True, eq=False)
class Folder:
    """Spectra on disk with their labels; they are read anew in each pass."""

    path: Path
    labels: Path | None = None
    by_folder: bool = False  # the label of a spectrum is the name of its folder, not in a table
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
        if is_table_of_isolates(columns):
            target = self.target or SPECIES
            codes = labelled_codes(path, columns, table.names, target, self.notify)
            return {code: Label(isolate(code), label) for code, label in codes.items()}
        present = f"it has {listed(table.names)}"
        key = "file" if "file" in columns else "sample"
        if key not in columns:
            raise ValueError(f"{path} needs a column file or sample that names the spectra, but {present}: rename one")
        target, groups = (self.target or TARGET).lower(), (self.groups or "").lower()
        if target not in columns and (self.needed or self.target is not None):
            if self.target is None:
                raise ValueError(f"{path} needs a column {TARGET}, but {present}: name the column with --target")
            raise ColumnError(f"{path} has no column {self.target!r} (--target): {present}")
        if groups and groups not in columns:
            raise ColumnError(f"{path} has no column {self.groups!r} (--groups): {present}")
        empty = [""] * len(lines)
        required = [key, *([target] if self.needed else []), *([groups] if groups else [])]
        known: dict[str, Label] = {}
        for i, line in enumerate(lines.tolist()):
            named = ("file", "sample", target, groups, "batch", "date")
            cell = {column: columns.get(column, empty)[i] or None for column in named}
            lacking = next((column for column in required if cell[column] is None), None)
            if lacking is not None:
                raise ValueError(f"{path}: line {line} lacks its {lacking}: fill it in")
            place = PurePosixPath(str(cell[key]).replace("\\", "/"))
            name = str(place.parent if place.name in ("fid", "acqu", "acqus") else place)  # Bruker: the folder
            if name in known:
                raise ValueError(f"{path}: line {line} names {cell[key]!r} for the second time: remove it")
            group = cell[groups] if groups else None
            known[name] = Label(cell["sample"], cell[target], group, cell["batch"], cell["date"])
        return known

    def spectra(
        self, *, quiet: bool = False, refused: Callable[[SpectrumError], object] | None = None
    ) -> Iterator[Spectrum]:
        """Yield the spectra; then, unless ``quiet``, report skipped files and labels without a spectrum.

        ``refused`` is called with the error of each file that is skipped, as with ``skip_bad``. A table of labels that
        are needed may cover a part of the spectra: the others are skipped.
        """
        self.files.clear()
        self.matched.clear()
        skipped: list[SpectrumError] = []
        to_skip = refused or (skipped.append if self.skip_bad else None)
        unlabelled: list[str] = []
        used: set[str] = set()
        ignore = [*self.ignore, *([self.labels] if self.labels else [])]
        for spectrum in stream(self.path, refused=to_skip, ignore=ignore):
            file, sample = str(spectrum.metadata["file"]), str(spectrum.metadata["sample"])
            names = (file, f"{self.path.name}/{file}", sample)  # the table may be beside the folder
            key = next((name for name in names if name in self.known), file)
            if key not in self.known and self.labels is not None and self.needed:
                unlabelled.append(file)
                continue
            label = self.known.get(key, Label())
            used.add(key)
            if label.label is None and self.needed and self.labels is not None:
                continue  # an isolate without a result
            self.files.append(file)
            self.matched.append(label._replace(sample=label.sample or sample))
            yield spectrum
        if self.by_folder:
            folders = folder_labels(self.files)
            self.matched[:] = [of._replace(label=name) for of, name in zip(self.matched, folders, strict=True)]
        if unlabelled and not self.files:
            raise ValueError(
                f"{self.labels} names none of the {len(unlabelled)} spectra (its first line names "
                f"{next(iter(self.known), '')!r}, the first spectrum is {unlabelled[0]!r}): correct the names"
            )
        if quiet:
            return
        if unlabelled:
            self.notify(f"{first_and_count(unlabelled)} skipped: {self.labels} has no line for it")
        for error in skipped:
            self.notify(f"skipped {error}")
        missing = sorted(name for name in set(self.known) - used if self.known[name].label or not self.needed)
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

        Bins depend on the axes only: the first pass trims the spectra, the second applies all steps. Peaks need them in
        both passes.
        """
        n_first = next(i for i, step in enumerate(steps) if not isinstance(step, Step))
        first, others = steps[:n_first], steps[n_first:]
        if fit:
            needed = first if isinstance(others[0], Peaks) else [step for step in first if isinstance(step, Trim)]
            others[0].fit(one_by_one(needed, self.spectra(quiet=True)))
        X: Any = one_by_one(first, self.spectra())
        for step in others:
            X = step.transform(X)
        return X

    def training(self, steps: Pipeline) -> Training:
        """The labelled spectra after the first steps that learn nothing, grouped by column or by repeated sample."""
        done, others = parted(steps)
        digest = hashlib.sha256()
        spectra: list[Spectrum] = []
        found: list[Quality] = []
        axes: list[str] = []
        example: list[tuple[str, Spectrum]] = []
        for raw in self.spectra():
            digest.update(f"{self.files[-1]} {self.matched[-1]}\n".encode())
            digest.update(raw.mz.tobytes())
            digest.update(raw.intensity.tobytes())
            example = example or _step_by_step(raw, done)
            (spectrum,) = one_by_one(done, [raw])
            spectra.append(spectrum)
            found.append(quality(raw))
            axes.append(str(hash(raw.mz.tobytes())))
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
        dates = [of.date or spectrum.metadata.get("date") for of, spectrum in zip(self.matched, spectra, strict=True)]
        warnings = class_warnings(self.matched, axes, dates)
        told = [", ".join(remark.what for remark in of) for of in remarks(found, y.tolist())]
        survey = Survey(self.files, found, told, warnings, example)
        return Training(self.path, digest.hexdigest(), spectra, self.files, y, groups, done, others, survey)


def class_warnings(matched: Sequence[Label], axes: Sequence[str], dates: Sequence[str | None]) -> list[str]:
    """Sentences about the m/z axis, batch and date if the class goes with them."""
    by: dict[str, list[str | None]] = {"m/z axis": list(axes), "batch": [of.batch for of in matched]}
    by["date"] = [date and date[:10] for date in dates]
    return confounded([str(of.label) for of in matched], [str(of.sample) for of in matched], by)


def folder_labels(files: Sequence[str]) -> list[str]:
    """The folder of each file below those that are common to all, as its class.

    Examples
    --------
    >>> folder_labels(["run/case/a.txt", "run/case/more/b.txt", "run/control/c.txt"])
    ['case', 'case', 'control']
    """
    parents = [PurePosixPath(file.replace("\\", "/")).parent.parts for file in files]
    depth = 0
    while parents and len({of[: depth + 1] for of in parents}) == 1 and all(len(of) > depth for of in parents):
        depth += 1
    for file, of in zip(files, parents, strict=True):
        if len(of) <= depth:
            raise ValueError(
                f"{file} is in no folder that names its class (--labels folders): put the spectra of each class into "
                "a folder of its own"
            )
    return [of[depth] for of in parents]


def _step_by_step(raw: Spectrum, steps: Sequence[Step]) -> list[tuple[str, Spectrum]]:
    """A spectrum before and after each step."""
    found = [("raw", raw)]
    for step in steps:
        found.append((type(step).__name__, step.transform([found[-1][1]])[0]))
    return found


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
    survey: Survey
    is_text: bool = False
    excluded: dict[str, int] = field(default_factory=dict)  # as of a table; folders name what they skip
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

"""Folders and archives of spectra as data: their labels and samples, and pipelines from raw spectra to classes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cgnlearn.cli.labels import TARGET, Label, read_labels
from cgnlearn.cli.options import EXISTING, _options
from cgnlearn.cli.terminal import print_table, say, waiting

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from cgnlearn.evaluation.study import Study
    from cgnlearn.spectra import Spectrum, SpectrumError

labels_option = click.option(
    "--labels", type=EXISTING,
    help="For spectra: table with columns file (or sample) and label; a column sample beside file names replicates.",
)  # fmt: skip
skip_option = click.option("--skip-bad", is_flag=True, help="Leave out spectra that cannot be read, and say which.")
preset_options = _options(
    click.option("--preset", type=click.Choice(("maldi", "seldi")), default="maldi", show_default=True,
                 help="From spectra to features. maldi: the whole chain. seldi: binning only."),
    click.option("--width", type=click.FloatRange(0, min_open=True), help="Width of a bin in m/z."),
    skip_option,
)  # fmt: skip


sample_options = _options(
    click.option("--by-sample", is_flag=True, help="Of spectra: a line for each sample, its replicates combined."),
    click.option("--correlation", type=click.FloatRange(0, 1), default=1.0, show_default=True,
                 help="Of the replicates of a sample: 1 averages their log odds, 0 adds them."),
)  # fmt: skip


def is_folder(path: Path) -> bool:
    """Whether data are a folder or an archive of spectra; a zipped table is none."""
    from cgnlearn.spectra.archives import is_archive

    inner = Path(path.stem).suffix.lower() if path.suffix.lower() == ".zip" else ""
    return path.is_dir() or (is_archive(path.name) and inner not in (".csv", ".tsv"))


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
    files: list[str] = field(default_factory=list)  # of the spectra gone through last
    told: list[Label] = field(default_factory=list)  # and what the table says of them

    @cached_property
    def known(self) -> dict[str, Label]:
        """What the table says."""
        if self.labels is None:
            return {}
        return read_labels(self.labels, target=self.target, groups=self.groups, needed=self.needed)

    def spectra(self, *, quiet: bool = False) -> Iterator[Spectrum]:
        """One after another; afterwards, unless it is ``quiet``, what was left out is said, or refused."""
        from cgnlearn.spectra import stream

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
            say(f"left out {error}")
        missing = set(self.known) - used
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            message = f"{self.labels}: {min(missing)}{more} has a label but no spectrum in {self.path}"
            if not self.skip_bad and self.needed:
                raise ValueError(f"{message}: remove the line, or go on with --skip-bad")
            say(message)

    @property
    def samples(self) -> NDArray[np.str_]:
        """Which sample each spectrum is of."""
        import numpy as np

        return np.array([found.sample for found in self.told], dtype=str)

    def features(self, model: Any) -> pd.DataFrame:
        """What the steps of a pipeline before its last make of the spectra, few of which are in memory at once."""
        from cgnlearn.spectra.presets import flat, one_by_one
        from cgnlearn.spectra.steps import Step

        steps = [step for _, step in flat(model)]
        n_first = next(i for i, step in enumerate(steps) if not isinstance(step, Step))
        X: Any = one_by_one(steps[:n_first], self.spectra())
        for step in steps[n_first:-1]:
            X = step.transform(X)
        return X

    def kept_together(self) -> NDArray[np.str_] | None:
        """The groups that were asked for, or the samples if these repeat."""
        import numpy as np

        if self.groups is not None:
            return np.array([found.group for found in self.told], dtype=str)
        n_samples = len(set(self.samples.tolist()))
        if n_samples == len(self.told):
            return None
        say(
            f"warning: {len(self.told)} spectra are of {n_samples} samples and --groups is not given: spectra of one "
            "sample are kept together"
        )
        return self.samples


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
        import numpy as np

        return np.array(self.files)

    @property
    def lines(self) -> NDArray[np.intp]:
        """Spectra are counted from 0."""
        import numpy as np

        return np.arange(len(self.y))

    @cached_property
    def X(self) -> pd.DataFrame:
        """The features of all spectra, for a report to tell of."""
        from sklearn.base import clone

        return clone(self.others).fit_transform(self.spectra)

    def before(self, model: Any) -> Any:
        """The steps that are still to be learned, and a model."""
        from sklearn.base import clone
        from sklearn.pipeline import Pipeline

        return Pipeline([*clone(self.others).steps, ("classifier", model)])

    def fitted(self, model: Any) -> Any:
        """A model, fitted on all spectra, as a pipeline from raw spectra on."""
        from sklearn.pipeline import Pipeline

        from cgnlearn.evaluation.grouped import fit_options

        fitted = self.before(model)
        fitted.fit(self.spectra, self.y, **fit_options(fitted, self.y, self.groups))
        return Pipeline([*((type(step).__name__.lower(), step) for step in self.done), *fitted.steps])


def training_spectra(
    path: Path, labels: Path | None, groups: str | None, *, target: str | None = None, preset: str,
    width: float | None, skip_bad: bool,
) -> Training:  # fmt: skip
    """The spectra that the options ask for."""
    import numpy as np

    from cgnlearn.spectra import preset as preset_of
    from cgnlearn.spectra.presets import one_by_one, parted

    if labels is None:
        raise click.UsageError(
            f"{path} is a folder or an archive of spectra: add --labels TABLE, a csv file with the columns file, such "
            f"as {_first_file(path)}, and {target or TARGET}"
        )
    steps = preset_of(preset).set_output(transform="pandas")
    if width is not None:
        steps.set_params(bin__width=width)
    done, others = parted(steps)
    folder = Folder(path, labels, target, groups, skip_bad=skip_bad)
    digest = hashlib.sha256()

    def digested() -> Iterator[Spectrum]:
        for spectrum in folder.spectra():
            digest.update(f"{folder.files[-1]} {folder.told[-1]}\n".encode())
            digest.update(spectrum.mz.tobytes())
            digest.update(spectrum.intensity.tobytes())
            yield spectrum

    with waiting(f"reading {path}"):
        spectra = list(one_by_one(done, digested()))
    y = np.array([found.label for found in folder.told], dtype=str)
    return Training(path, digest.hexdigest(), spectra, folder.files, y, folder.kept_together(), done, others)


def _first_file(path: Path) -> str:
    """What the first spectrum of a folder is called in a table of labels."""
    from cgnlearn.spectra import SpectrumError, stream

    try:
        return str(next(stream(path)).metadata["file"])
    except (SpectrumError, StopIteration):
        return "a.mzML"


def checked(model: Any, data: Path) -> bool:
    """Whether data are spectra, if the model takes what they are."""
    from cgnlearn.spectra.presets import takes_spectra

    of_spectra = is_folder(data)
    if of_spectra and not takes_spectra(model):
        raise click.UsageError(f"{data} is a folder or an archive, but the model was trained on a table: give one")
    if takes_spectra(model) and not of_spectra:
        raise click.UsageError(f"the model takes raw spectra: give a folder, a zip or a tar file of them, not {data}")
    return of_spectra


def print_by_sample(study: Study) -> None:
    """A table of metrics by sample, the log odds of its spectra averaged, and how much these repeat each other."""
    import numpy as np

    from cgnlearn.evaluation.study import FoldResult, pooled, summarise
    from cgnlearn.spectra import by_sample as combined
    from cgnlearn.spectra import replicate_correlation

    assert study.groups is not None
    samples, first, number = np.unique(study.groups, return_index=True, return_inverse=True)
    if len(set(zip(number.tolist(), study.true.tolist(), strict=True))) > len(samples):
        return  # groups of more than one class are no samples
    results = []
    for result in study.results:
        log_proba, rows = result.log_proba, np.unique(number[result.rows])
        if log_proba is not None:
            log_proba = combined(log_proba, number[result.rows]).log_proba
        results.append(FoldResult(result.unit, rows, log_proba))
    found = summarise(results, study.true[first])
    print_table(found, "by sample, the log odds of its spectra averaged", unit="sample")
    best = [result for result in study.results if result.unit.name == study.chosen and not result.unit.repeat]
    if best:
        rows = np.concatenate([result.rows for result in best])
        rho = replicate_correlation(*pooled(best, study.true), number[rows])
        say(f"{study.chosen}: log odds of one sample's spectra correlate by {rho:.2f} (for predict --correlation)")

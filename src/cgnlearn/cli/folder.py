"""Folders and archives of spectra: labels, samples, and pipelines from raw spectra to classes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cgnlearn.cli.options import EXISTING, combined
from cgnlearn.cli.terminal import print_table, say

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from cgnlearn.evaluation.study import Study
    from cgnlearn.spectra.folders import Folder, Training

LABELS = "For spectra: table with columns file (or sample) and label; a column sample beside file names replicates."
PRESET = "Preprocessing of spectra. maldi: all steps. seldi: binning only.  [default: maldi]"
CORRELATION = "Correlation of a sample's replicates: 1 averages their log odds, 0 adds them.  [default: 1]"

labels_option = click.option("--labels", type=EXISTING, help=LABELS)
skip_option = click.option("--skip-bad", is_flag=True, help="Skip spectra that cannot be read, and list them.")
preset_options = combined(
    click.option("--preset", type=click.Choice(("maldi", "seldi")), help=PRESET),
    click.option("--width", type=click.FloatRange(0, min_open=True), help="Width of a bin in m/z."),
    skip_option,
)
sample_options = combined(
    click.option("--by-sample", is_flag=True, help="For spectra: a line for each sample, its replicates combined."),
    click.option("--correlation", type=click.FloatRange(0, 1), help=CORRELATION),
)


def is_folder(path: Path, labels: Path | None = None) -> bool:
    """Whether data are a folder or an archive of spectra; without labels a zip file of one csv or tsv is a table."""
    from cgnlearn.spectra.archives import is_archive
    from cgnlearn.tables.text import is_zipped_table

    return path.is_dir() or (is_archive(path.name) and (labels is not None or not is_zipped_table(path)))


def class_column(target: str | None) -> str:
    """The column of a table of labels that holds the classes."""
    from cgnlearn.spectra.folders import TARGET

    return target or TARGET


def opened(path: Path, labels: Path | None, **more: Any) -> Folder:
    """A folder of spectra, whose messages are printed."""
    from cgnlearn.spectra.folders import Folder

    return Folder(path, labels, notify=say, **more)


def steps_of(preset: str | None, width: float | None) -> Pipeline:
    """The preprocessing steps."""
    from cgnlearn.spectra import preset as preset_of

    steps = preset_of(preset or "maldi").set_output(transform="pandas")
    return steps if width is None else steps.set_params(bin__width=width)


def needed_labels(path: Path, labels: Path | None, target: str | None) -> Path:
    """The table of labels, refused if there is none."""
    if labels is not None:
        return labels
    from cgnlearn.spectra import SpectrumError, stream

    try:
        first = str(next(stream(path)).metadata["file"])
    except (SpectrumError, StopIteration):
        first = "a.mzML"
    raise click.UsageError(
        f"{path} is a folder or an archive of spectra: add --labels TABLE, a csv file with the columns file, such "
        f"as {first}, and {class_column(target)}"
    )


def fitted_pipeline(training: Training, model: Any) -> Any:
    """Fit a pipeline from raw spectra to classes."""
    from cgnlearn.evaluation.grouped import fit_options

    fitted = training.before(model)
    fitted.fit(training.spectra, training.y, **fit_options(fitted, training.y, training.groups))
    return training.whole(fitted)


def checked(model: Any, data: Path) -> bool:
    """Whether data are spectra; raises if the model needs the other kind."""
    from cgnlearn.spectra.archives import is_archive
    from cgnlearn.spectra.presets import takes_spectra

    of_spectra = data.is_dir() or is_archive(data.name) if takes_spectra(model) else is_folder(data)
    if of_spectra and not takes_spectra(model):
        raise click.UsageError(f"{data} is a folder or an archive, but the model was trained on a table: use a table")
    if takes_spectra(model) and not of_spectra:
        raise click.UsageError(f"the model needs raw spectra: use a folder, a zip or a tar file of them, not {data}")
    return of_spectra


def print_by_sample(study: Study) -> None:
    """Print metrics by sample, the log odds of its spectra averaged, and the correlation of these."""
    import numpy as np

    from cgnlearn.evaluation.study import FoldResult, pooled, summarise
    from cgnlearn.spectra import by_sample as combined
    from cgnlearn.spectra import replicate_correlation

    assert study.groups is not None
    samples, first, number = np.unique(study.groups, return_index=True, return_inverse=True)
    if len(set(zip(number.tolist(), study.true.tolist(), strict=True))) > len(samples):
        return  # groups with several classes are not samples
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

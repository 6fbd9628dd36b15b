"""Folders and archives of spectra: labels, samples, and pipelines from raw spectra to classes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cgnlearn.cli.options import Input, combined
from cgnlearn.cli.terminal import Beside, print_table, say

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from cgnlearn.evaluation.study import Study
    from cgnlearn.spectra.folders import Folder, Training

LABELS = "For spectra: table with columns file (or sample), label, maybe sample, batch and date; or the word folders."
FOLDERS = Path("folders")  # the word
PRESET = "Preprocessing of spectra. maldi: all steps. seldi: binning only. driams: its 6,000 bins.  [default: maldi]"
CORRELATION = "Correlation of a sample's replicates: 1 averages their log odds, 0 adds them.  [default: 1]"


class LabelsInput(Input):
    """A table of labels, or the word folders: each class has a folder of its own."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return FOLDERS if str(value) == FOLDERS.name else super().convert(value, param, ctx)


labels_option = click.option("--labels", type=LabelsInput(), metavar="FILE|folders", help=LABELS)
skip_option = click.option("--skip-bad", is_flag=True, help="Skip spectra that cannot be read, and list them.")
preset_options = combined(
    click.option("--preset", type=click.Choice(("maldi", "seldi", "driams")), help=PRESET),
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

    by_folder = labels is FOLDERS
    return Folder(path, None if by_folder else labels, by_folder, notify=say, **more)


def steps_of(preset: str | None, width: float | None, *, peaks: bool = False) -> Pipeline:
    """The preprocessing steps, the last of which makes bins or finds peaks."""
    from cgnlearn.spectra import Peaks
    from cgnlearn.spectra import preset as preset_of

    steps = preset_of(preset or "maldi")
    if peaks:
        steps.steps[-1] = ("peaks", Peaks())
    elif width is not None:
        steps.set_params(bin__width=width)
    return steps.set_output(transform="pandas")


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
        f"as {first}, and {class_column(target)}, or --labels folders"
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
    from cgnlearn.evaluation.decisions import auc_by_model
    from cgnlearn.evaluation.of_samples import correlation_of_replicates, of_samples

    found = of_samples(study)
    if found is None:
        return  # groups with several classes are not samples
    print_table(found.summaries, "by sample, the log odds of its spectra averaged", Beside(auc=auc_by_model(found)))
    rho = correlation_of_replicates(study)
    if rho is not None:
        say(f"{study.chosen}: log odds of one sample's spectra correlate by {rho:.2f} (for predict --correlation)")

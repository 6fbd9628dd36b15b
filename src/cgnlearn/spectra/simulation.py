"""Simulated raw time-of-flight spectra of serum with the true peaks and effects, and their files."""

from __future__ import annotations

import gzip
import io
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import poisson
from sklearn.utils import check_random_state

from cgnlearn.data.arrays import Floats
from cgnlearn.files import whole_file, write_whole
from cgnlearn.spectra.spectrum import Spectrum, extra

ISOTOPE_SPACING = 1.00235  # Da, the mean of peptides
HEAVY_ISOTOPES = 1 / 1_800  # per Da: a peptide of 1,800 Da has one heavy isotope on average
CORRELATION = 0.6  # of the log heights of neighbouring peaks
CALIBRATION = {"ML1": 4.0e6, "ML2": 300.0, "ML3": 0.0}  # of a linear instrument, as Bruker's parameters


@dataclass(frozen=True, eq=False)
class RawSpectra:
    """Simulated spectra with their true peaks and effects.

    Parameters
    ----------
    spectra : tuple of Spectrum
    target : ndarray (spectra,)
        ``"control"`` or ``"case"``.
    groups : ndarray (spectra,)
        The sample of each spectrum.
    peaks : ndarray (peaks,)
        True m/z, the mean over isotopes, in ascending order.
    effects : ndarray (peaks,)
        Difference of mean log height, case minus control: 0 except for markers.
    """

    spectra: tuple[Spectrum, ...]
    target: NDArray[np.str_]
    groups: NDArray[np.str_]
    peaks: Floats
    effects: Floats

    def write(self, folder: str | Path, format: str = "mzML") -> None:
        """Write ``spectra/`` (a file or Bruker folder each), ``labels.csv`` and ``truth.json`` into a folder.

        Parameters
        ----------
        folder : path
        format : str
            ``"mzML"``, ``"mgf"``, ``"txt"``, ``"csv"``, ``"csv.gz"`` or ``"bruker"``.

        Examples
        --------
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> make_raw_spectra(2, n_points=500, random_state=0).write(folder, "txt")
        >>> sorted(path.name for path in folder.rglob("*"))
        ['labels.csv', 'sample1_1.txt', 'sample2_1.txt', 'spectra', 'truth.json']
        """
        if format not in FORMATS:
            raise ValueError(f"format must be one of {', '.join(FORMATS)}, not {format!r}")
        folder = Path(folder)
        (folder / "spectra").mkdir(parents=True, exist_ok=True)
        lines = ["file,sample,label"]
        for spectrum, label, sample in zip(self.spectra, self.target, self.groups, strict=True):
            file = FORMATS[format](spectrum, folder / "spectra", spectrum.metadata["id"])
            lines.append(f"{file},{sample},{label}")
        write_whole(folder / "labels.csv", "\n".join(lines) + "\n")
        truth = {"peaks": self.peaks.tolist(), "effects": self.effects.tolist()}
        write_whole(folder / "truth.json", json.dumps(truth, indent=1) + "\n")


def make_raw_spectra(
    n_samples: int = 100,
    *,
    n_replicates: int = 1,
    n_points: int = 20_000,
    mass_range: tuple[float, float] = (1_000.0, 12_000.0),
    n_peaks: int = 60,
    n_markers: int = 8,
    effect: float = 1.0,
    calibration_error: float = 2e-4,
    random_state: Any = None,
) -> RawSpectra:
    """Simulate raw spectra of two classes as recorded by a linear time-of-flight instrument.

    Points are equally spaced in flight time. The isotopes of a peak follow a Poisson distribution, and their width
    follows from the resolution. Log heights vary between samples, with correlation between neighbouring peaks, and less
    between replicates; those of markers differ between the classes. Each spectrum has a decaying baseline, a gain, an
    error of calibration, counting noise that is correlated between neighbouring points, and electronic noise.
    Intensities are non-negative integers.

    Parameters
    ----------
    n_samples : int
        Number of samples, half of them in each class.
    n_replicates : int
        Number of spectra of each sample.
    n_points : int
        Number of points of each spectrum.
    mass_range : pair of float
        m/z of the first and the last point.
    n_peaks, n_markers : int
        Number of peaks, and of those whose height depends on the class.
    effect : float
        Difference of the mean log height of a marker between the classes; within a class log heights have a standard
        deviation of about 0.5.
    calibration_error : float
        Standard deviation of the relative error of m/z.
    random_state : int, RandomState or None

    Examples
    --------
    >>> made = make_raw_spectra(4, n_replicates=2, n_points=1000, random_state=0)
    >>> len(made.spectra), made.groups.tolist()[:3], int((made.effects != 0).sum())
    (8, ['sample1', 'sample1', 'sample2'], 8)
    """
    lightest, heaviest = mass_range
    if n_samples < 2 or n_replicates < 1 or n_points < 100:
        raise ValueError("raw spectra need at least 2 samples, 1 replicate and 100 points")
    if not 0 < lightest < heaviest:
        raise ValueError(f"mass_range must be two positive numbers in ascending order, not {mass_range!r}")
    if not 0 <= n_markers <= n_peaks:
        raise ValueError(f"n_markers must lie between 0 and n_peaks, {n_peaks}, not {n_markers!r}")
    rng = check_random_state(random_state)
    mz, timing = _axis(lightest, heaviest, n_points)
    is_case = rng.permutation(n_samples) < n_samples // 2
    margin = 0.02 * (np.sqrt(heaviest) - np.sqrt(lightest))
    peaks = np.sort(rng.uniform(np.sqrt(lightest) + margin, np.sqrt(heaviest) - margin, n_peaks)) ** 2
    effects = np.zeros(n_peaks)
    effects[rng.choice(n_peaks, n_markers, replace=False)] = effect * rng.choice([-1.0, 1.0], n_markers)
    mean = rng.normal(4.5, 0.8, n_peaks)
    deviation = rng.standard_normal((n_samples, n_peaks))
    for peak in range(1, n_peaks):
        deviation[:, peak] = CORRELATION * deviation[:, peak - 1] + np.sqrt(1 - CORRELATION**2) * deviation[:, peak]
    log_heights = mean + 0.5 * deviation + np.outer(is_case - 0.5, effects)
    decay = (mz - lightest) / (0.15 * (heaviest - lightest))

    spectra = []
    for sample in range(n_samples):
        for replicate in range(n_replicates):
            heights = np.exp(log_heights[sample] + rng.normal(0.0, 0.1, n_peaks))
            drift = rng.normal(0.0, calibration_error) + rng.normal(0.0, calibration_error / 3) * (mz / heaviest)
            signal = _signal(mz / (1 + drift), peaks, heights)
            baseline = 10.0 + rng.lognormal(4.0, 0.25) * np.exp(-decay * rng.lognormal(0.0, 0.1))
            expected = rng.lognormal(0.0, 0.2) * (signal + baseline)
            counting = np.convolve(np.sqrt(expected) * rng.standard_normal(n_points), [0.25, 0.5, 0.25], "same")
            recorded = np.rint(np.maximum(expected + 1.5 * counting + rng.normal(0.0, 1.5, n_points), 0))
            name = f"sample{sample + 1}"
            metadata = {"sample": name, "replicate": replicate + 1, "id": f"{name}_{replicate + 1}", "timing": timing}
            spectra.append(Spectrum(mz, recorded, metadata))
    target = np.repeat(np.where(is_case, "case", "control"), n_replicates)
    groups = np.array([spectrum.metadata["sample"] for spectrum in spectra])
    return RawSpectra(tuple(spectra), target, groups, peaks, effects)


def _axis(lightest: float, heaviest: float, n_points: int) -> tuple[Floats, dict[str, float]]:
    """m/z of points equally spaced in flight time, and their Bruker parameters."""
    slope = np.sqrt(1e12 / CALIBRATION["ML1"])
    first, last = CALIBRATION["ML2"] + slope * np.sqrt([lightest, heaviest])
    timing = {"DELAY": float(first), "DW": float((last - first) / (n_points - 1)), **CALIBRATION}
    time = timing["DELAY"] + timing["DW"] * np.arange(n_points)
    return ((time - CALIBRATION["ML2"]) / slope) ** 2, timing


def _signal(true_mz: Floats, peaks: Floats, heights: Floats, resolution: float = 800.0) -> Floats:
    """The sum of all peaks at the true m/z of each point."""
    signal = np.zeros(len(true_mz))
    for mass, height in zip(peaks, heights, strict=True):
        heavy = mass * HEAVY_ISOTOPES
        numbers = np.arange(int(poisson.ppf(0.001, heavy)), int(poisson.ppf(0.999, heavy)) + 1)
        centres = mass + (numbers - heavy) * ISOTOPE_SPACING
        width = mass / resolution / 2.355
        first, after = np.searchsorted(true_mz, [centres[0] - 5 * width, centres[-1] + 5 * width])
        distance = (true_mz[first:after, None] - centres) / width
        shape = np.exp(-0.5 * distance**2) @ poisson.pmf(numbers, heavy)
        if len(shape):
            signal[first:after] += height * shape / max(shape.max(), 1e-300)
    return signal


def _text(spectrum: Spectrum, folder: Path, name: str, *, ending: str, separator: str) -> str:
    lines = ["mz,intensity"] if separator == "," else []
    for mz, intensity in zip(spectrum.mz.tolist(), spectrum.intensity.tolist(), strict=True):
        lines.append(f"{mz!r}{separator}{int(intensity) if intensity.is_integer() else repr(intensity)}")
    data = ("\n".join(lines) + "\n").encode("ascii")
    write_whole(folder / f"{name}{ending}", gzip.compress(data, mtime=0) if ending.endswith(".gz") else data)
    return f"{name}{ending}"


def _bruker(spectrum: Spectrum, folder: Path, name: str) -> str:
    place = folder / name / "0_A1" / "1" / "1SLin"
    place.mkdir(parents=True, exist_ok=True)
    parameters = {**spectrum.metadata["timing"], "TD": len(spectrum), "BYTORDA": 0, "HPClUse": "no"}
    lines = [f"##${key}= {value!r}".replace("'", "") for key, value in parameters.items()]
    write_whole(place / "acqus", "\n".join(lines) + "\n")
    write_whole(place / "fid", np.rint(spectrum.intensity).astype("<i4").tobytes())
    return place.relative_to(folder).as_posix()


def _mgf(spectrum: Spectrum, folder: Path, name: str) -> str:
    scan = {"m/z array": spectrum.mz, "intensity array": spectrum.intensity, "params": {"title": name}}
    file = io.StringIO()
    extra("pyteomics.mgf").write([scan], file, fragment_format="%.17g %.17g", write_charges=False)
    write_whole(folder / f"{name}.mgf", file.getvalue())
    return f"{name}.mgf"


def _mzml(spectrum: Spectrum, folder: Path, name: str) -> str:
    psims, vocabulary = extra("psims.mzml"), extra("psims.controlled_vocabulary.controlled_vocabulary")
    arrays = {"m/z array": np.float64, "intensity array": np.float64}
    with warnings.catch_warnings(), whole_file(folder / f"{name}.mzML") as file:
        warnings.simplefilter("ignore")  # psims leaves some of its own files open
        resolver = vocabulary.OBOCache(enabled=False, use_remote=False)
        with psims.MzMLWriter(file, close=False, vocabulary_resolver=resolver) as out:
            out.controlled_vocabularies()
            out.file_description(["MS1 spectrum", "profile spectrum"])
            out.software_list([{"id": "cgnlearn", "version": "0", "params": ["custom unreleased software tool"]}])
            instrument = out.InstrumentConfiguration(id="IC1", component_list=[], params=["instrument model"])
            out.instrument_configuration_list([instrument])
            out.data_processing_list([out.DataProcessing([], id="DP1")])
            with out.run(id="run", instrument_configuration="IC1"), out.spectrum_list(count=1):
                options = {"params": ["MS1 spectrum", {"ms level": 1}], "compression": "zlib", "encoding": arrays}
                out.write_spectrum(spectrum.mz, spectrum.intensity, id="scan=1", centroided=False, **options)
    return f"{name}.mzML"


# Write a spectrum into a folder under a name and return its path within the folder; Bruker files need ``timing``.
FORMATS: dict[str, Callable[[Spectrum, Path, str], str]] = {
    "mzML": _mzml,
    "mgf": _mgf,
    "txt": partial(_text, ending=".txt", separator=" "),
    "csv": partial(_text, ending=".csv", separator=","),
    "csv.gz": partial(_text, ending=".csv.gz", separator=","),
    "bruker": _bruker,
}

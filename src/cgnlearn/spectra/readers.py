"""Spectra from files: `read` returns a list, `stream` yields one at a time."""

from __future__ import annotations

import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Literal, overload

from cgnlearn.spectra import bruker, scans, text
from cgnlearn.spectra.archives import Reader, content, decompressed, is_archive, opened
from cgnlearn.spectra.spectrum import Spectrum, SpectrumError, first_and_count

TEXT_ENDINGS = (".txt", ".csv", ".tsv", ".dat", ".asc", ".xy", ".tab")
SCAN_ENDINGS = {".mzml": "mzML", ".mzxml": "mzXML", ".mgf": "MGF"}
STAGES = ("raw", "preprocessed", "binned_6000")  # folders of a site of DRIAMS, beside id
NEEDS_CONVERSION = (".mzmlb", ".imzml", ".ibd", ".cdf", ".nc", ".msd", ".xml", ".raw", ".baf", ".wiff", ".t2d")


@overload
def read(path: str | Path, *, skip_bad: Literal[False] = False) -> list[Spectrum]: ...
@overload
def read(path: str | Path, *, skip_bad: Literal[True]) -> tuple[list[Spectrum], list[SpectrumError]]: ...
def read(path: str | Path, *, skip_bad: bool = False) -> list[Spectrum] | tuple[list[Spectrum], list[SpectrumError]]:
    """Read spectra from a file, a folder or an archive.

    Formats: mzML, mzXML, MGF and text of two columns, each plain or compressed by gzip; Bruker flex folders (``fid``
    beside ``acqu`` or ``acqus``); folders, zip and tar archives of these. Limits: 1 GiB for a file, 100,000 files and
    16 GiB for an archive, and 200 times its compressed size.

    Points at negative m/z, common in SELDI files, are dropped, with a warning.

    Parameters
    ----------
    path : path
    skip_bad : bool
        Skip files that cannot be read, and return their errors.

    Returns
    -------
    list of Spectrum
        In the order of the file names and of the scans in a file. ``metadata`` has ``file``, the path within the
        folder, and where known ``scan``, ``id``, ``spot`` and ``level``.
    list of SpectrumError
        With ``skip_bad`` only: the files skipped, with reasons.

    Raises
    ------
    SpectrumError
        One line: which file cannot be read, why, and what to do.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("mz,intensity\\n1000.0,3\\n1000.5,8\\n")
    >>> read(folder)
    [Spectrum(a.csv: 2 points, m/z 1000 to 1000.5)]
    """
    refused: list[SpectrumError] = []
    spectra = list(stream(path, refused=refused.append if skip_bad else None))
    return (spectra, refused) if skip_bad else spectra


def stream(
    path: str | Path,
    *,
    refused: Callable[[SpectrumError], object] | None = None,
    ignore: Iterable[str | Path] = (),
) -> Iterator[Spectrum]:
    """Yield the spectra of `read` one at a time, to save memory.

    Parameters
    ----------
    path : path
    refused : callable, optional
        Called with the error of each file that cannot be read and is skipped; None: the error is raised.
    ignore : iterable of paths
        Files in the folder that are not spectra, such as a table of labels.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("1000.0 3\\n1000.5 8\\n")
    >>> _ = (folder / "b.txt").write_text("nothing")
    >>> problems = []
    >>> [len(spectrum) for spectrum in stream(folder, refused=problems.append)]
    [2]
    >>> print(problems[0])
    b.txt: no two columns of numbers found: give m/z and intensity, or remove it
    """
    notes: defaultdict[str, list[str]] = defaultdict(list)
    for parse in _parsers(Path(path), {Path(os.path.abspath(file)) for file in ignore}):
        try:
            for spectrum in map(_without_negative_mz, parse()):
                for note in spectrum.metadata.get("notes", ()):
                    notes[note].append(spectrum.name)
                yield spectrum
        except SpectrumError as error:
            if refused is None:
                raise
            refused(error)
    for note, names in notes.items():
        warnings.warn(f"{first_and_count(names)}: {note}", stacklevel=2)


def _parsers(path: Path, ignore: set[Path]) -> Iterator[Callable[[], Iterable[Spectrum]]]:
    """A function for each file, or Bruker folder, that reads its spectra."""
    if not path.exists():
        raise SpectrumError(f"{path}: there is no such file or folder")
    if path.name in ("fid", "acqu", "acqus") and path.is_file():
        path = path.parent
    if not path.is_dir() and not is_archive(path.name):
        yield partial(_from_file, str(path), partial(content, path))
        return
    if path.is_dir() and (path / "id").is_dir() and any((path / stage).is_dir() for stage in STAGES):
        raise SpectrumError(f"{path}: a site of DRIAMS: name the spectra of a year, as in raw/2018, or use read_driams")
    with opened(path) as opened_files:
        files = {
            PurePosixPath(name): read
            for name, read in opened_files.items()
            if Path(os.path.abspath(path / name)) not in ignore
        }
        if not files:
            raise SpectrumError(f"{path}: it has no files: name a folder or an archive of spectra")
        flex = {place.parent for place in files if place.name == "fid"}
        for place, read in files.items():
            folder = place.parent
            if flex.isdisjoint(place.parents):
                yield partial(_from_file, str(place), read)
            elif place.name == "fid":
                acqu = files.get(folder / "acqus", files.get(folder / "acqu"))
                yield partial(_from_flex, str(folder if folder.name else path), read, acqu)


def _from_flex(name: str, fid: Reader, acqu: Reader | None) -> Iterator[Spectrum]:
    if acqu is None:
        raise SpectrumError(f"{name}: its fid has neither acqu nor acqus beside it: copy the whole folder")
    # SAMPLE/REPLICATE/MEASUREMENT: a folder for each replicate and, within it, one for the kind of measurement.
    sample = "/".join(PurePosixPath(name).parts[:-2]) or name
    spectrum = bruker.parse(fid(), acqu(), name)
    yield Spectrum(spectrum.mz, spectrum.intensity, {**spectrum.metadata, "sample": sample})


def _from_file(name: str, read: Reader) -> Iterator[Spectrum]:
    place = PurePosixPath(name.replace("\\", "/"))
    if is_archive(name):
        raise SpectrumError(f"{name}: an archive within an archive or a folder: unpack it, or read it separately")
    is_packed = place.suffix.lower() == ".gz"
    ending = (PurePosixPath(place.stem) if is_packed else place).suffix.lower()
    if ending in NEEDS_CONVERSION:
        raise SpectrumError(f"{name}: {ending} files are not read: convert it to mzML or to text of two columns")
    if ending not in SCAN_ENDINGS and ending not in TEXT_ENDINGS:
        known = ", ".join((*TEXT_ENDINGS, ".mzML", ".mzXML", ".mgf"))
        raise SpectrumError(f"{name}: its ending is none of {known}: rename or remove it")
    try:
        data = read()
    except OSError as error:
        raise SpectrumError(f"{name}: it cannot be read ({error.strerror or error})") from None
    if not data:
        raise SpectrumError(f"{name}: it is empty: copy it again, or remove it")
    if is_packed:
        data = decompressed(data, name)
    format = SCAN_ENDINGS.get(ending)
    spectra = scans.parse(data, format, name) if format else [text.parse(data, name)]
    sample = place.name.split(".")[0] if format or is_packed else place.stem
    for spectrum in spectra:
        yield Spectrum(spectrum.mz, spectrum.intensity, {"sample": sample, **spectrum.metadata})


def _without_negative_mz(spectrum: Spectrum) -> Spectrum:
    """The points from m/z 0 on, with notes for the user in the metadata."""
    notes = list(spectrum.metadata.get("notes", ()))
    start = int((spectrum.mz < 0).sum())
    if start == len(spectrum):
        raise SpectrumError(f"{spectrum.name}: every m/z is negative: remove it")
    mz, intensity = spectrum.mz[start:], spectrum.intensity[start:]
    if start:
        notes.append("points at negative m/z are dropped")
    if (intensity < 0).any():
        notes.append("some intensities are negative")
    return Spectrum(mz, intensity, {**spectrum.metadata, "notes": tuple(notes)}) if notes else spectrum

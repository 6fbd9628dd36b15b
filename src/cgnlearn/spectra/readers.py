"""Spectra from files: `read` for a list of them, `stream` for one after another."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Literal, overload

from cgnlearn.spectra import bruker, scans, text
from cgnlearn.spectra.archives import Entry, content, inflated, is_archive, opened
from cgnlearn.spectra.spectrum import Spectrum, SpectrumError

TEXT_ENDINGS = (".txt", ".csv", ".tsv", ".dat", ".asc", ".xy", ".tab")
SCAN_ENDINGS = {".mzml": "mzML", ".mzxml": "mzXML", ".mgf": "MGF"}
CONVERT = {
    ".mzmlb": "mzMLb", ".imzml": "imzML", ".ibd": "imzML", ".cdf": "netCDF", ".nc": "netCDF", ".msd": "mMass",
    ".xml": "XML of an unknown kind", ".raw": "raw", ".baf": "Bruker baf", ".wiff": "Sciex wiff", ".t2d": "Sciex t2d",
}  # fmt: skip


@overload
def read(path: str | Path, *, skip_bad: Literal[False] = False) -> list[Spectrum]: ...
@overload
def read(path: str | Path, *, skip_bad: Literal[True]) -> tuple[list[Spectrum], list[SpectrumError]]: ...
def read(path: str | Path, *, skip_bad: bool = False) -> list[Spectrum] | tuple[list[Spectrum], list[SpectrumError]]:
    """Read spectra from a file, a folder or an archive.

    mzML, mzXML and MGF, two columns of text (csv, txt and their like), each plain or in gzip; Bruker flex folders
    (``fid`` beside ``acqu`` or ``acqus``); a folder, zip or tar file of any of these. A file of up to 1 GiB is read, an
    archive of up to 100,000 files and 16 GiB unpacked; what unpacks to more than 200 times its size is refused.

    Points before m/z 0, as SELDI files have them, are cut; a warning tells of that and of whatever else was noticed.

    Parameters
    ----------
    path : path
    skip_bad : bool
        Leave out what cannot be read, and return what was left out.

    Returns
    -------
    list of Spectrum
        In the order of the files' names, scans in their order. ``metadata`` has ``file``, the path from the folder on,
        and where known ``scan``, ``id``, ``spot`` and ``level``.
    list of SpectrumError
        With ``skip_bad`` only: what was left out, and why.

    Raises
    ------
    SpectrumError
        In one line: which file cannot be read, why, and what to do.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("mz,intensity\\n1000.0,3\\n1000.5,8\\n")
    >>> read(folder)
    [Spectrum(a.csv: 2 points, m/z 1000 to 1000.5)]
    """
    refused: list[SpectrumError] = []
    found = list(stream(path, refused=refused.append if skip_bad else None))
    return (found, refused) if skip_bad else found


def stream(
    path: str | Path,
    *,
    refused: Callable[[SpectrumError], object] | None = None,
    ignore: Iterable[str | Path] = (),
) -> Iterator[Spectrum]:
    """Spectra as in `read`, one after another, so that few of them are in memory at once.

    Parameters
    ----------
    path : path
    refused : callable, optional
        Called with the error of each file that cannot be read, which is then left out; None: the error is raised.
    ignore : iterable of paths
        Files in the folder that are no spectra, such as a table of labels.

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
    b.txt: it has no two columns of numbers: it is no spectrum, or in a form that is not read
    """
    path = Path(path)
    notes: list[tuple[str, str]] = []
    for item in _spectra(path, {Path(os.path.abspath(file)) for file in ignore}, refused is not None):
        if isinstance(item, SpectrumError):
            assert refused is not None
            refused(item)
            continue
        try:
            spectrum = _from_zero_on(item)
        except SpectrumError as error:
            if refused is None:
                raise
            refused(error)
            continue
        notes += [(note, spectrum.name) for note in spectrum.metadata.get("notes", ())]
        yield spectrum
    counts = Counter(note for note, _ in notes)
    for note, n in counts.items():
        first = next(name for told, name in notes if told == note)
        warnings.warn(f"{first}: {note}" + (f" (and {n - 1} more)" if n > 1 else ""), stacklevel=2)


def _spectra(path: Path, ignore: set[Path], skip_bad: bool) -> Iterator[Spectrum | SpectrumError]:
    """The spectra of all files, and their errors as values where they are to be skipped."""
    if not path.exists():
        raise SpectrumError(f"{path}: there is no such file or folder")
    if path.name in ("fid", "acqu", "acqus") and path.is_file():
        path = path.parent
    if not path.is_dir() and not is_archive(path.name):
        yield from _kept_apart(partial(_of_file, str(path), partial(content, path)), skip_bad)
        return
    with opened(path) as entries:
        kept = [entry for entry in entries if Path(os.path.abspath(path / entry.name)) not in ignore]
        if not kept:
            raise SpectrumError(f"{path}: it holds no files: name a folder or an archive of spectra")
        for work in _jobs(kept, path):
            yield from _kept_apart(work, skip_bad)


def _kept_apart(work: Callable[[], Iterable[Spectrum]], skip_bad: bool) -> Iterator[Spectrum | SpectrumError]:
    try:
        yield from work()
    except SpectrumError as error:
        if not skip_bad:
            raise
        yield error


def _jobs(entries: list[Entry], path: Path) -> Iterator[Callable[[], Iterable[Spectrum]]]:
    """What is to be read, by name: a folder with a ``fid`` is one spectrum, other files stand for themselves."""
    by_name = {entry.name: entry for entry in entries}
    flex = {str(PurePosixPath(name).parent) for name in by_name if PurePosixPath(name).name == "fid"}
    for name, entry in by_name.items():
        place = PurePosixPath(name)
        if not flex.isdisjoint(map(str, place.parents)):
            if place.name == "fid":
                files = {file: by_name.get(str(place.parent / file)) for file in ("fid", "acqus", "acqu")}
                yield partial(_of_flex, str(path) if str(place.parent) == "." else str(place.parent), files)
        else:
            yield partial(_of_file, name, entry.read)


def _of_flex(name: str, files: dict[str, Entry | None]) -> Iterator[Spectrum]:
    fid, parameters = files["fid"], files["acqus"] or files["acqu"]
    if fid is None or parameters is None:
        raise SpectrumError(f"{name}: its fid has neither acqu nor acqus beside it: copy the whole folder")
    # Replicates of a spot stand in folders 1, 2, … of its own, and in each a folder for the kind of measurement.
    sample = "/".join(PurePosixPath(name).parts[:-2]) or name
    found = bruker.parse(fid.read(), parameters.read(), name)
    yield Spectrum(found.mz, found.intensity, {**found.metadata, "sample": sample})


def _of_file(name: str, read_bytes: Callable[[], bytes]) -> Iterator[Spectrum]:
    place = PurePosixPath(name.replace("\\", "/"))
    packed = place.suffix.lower() == ".gz"
    if is_archive(name):
        raise SpectrumError(f"{name}: it is an archive within an archive or a folder: unpack it, or read it by itself")
    ending = PurePosixPath(place.stem).suffix.lower() if packed else place.suffix.lower()
    if ending not in SCAN_ENDINGS and ending not in TEXT_ENDINGS:
        if ending in CONVERT:
            raise SpectrumError(f"{name}: {CONVERT[ending]} is not read: convert it to mzML or to two columns of text")
        known = ", ".join((*TEXT_ENDINGS, ".mzML", ".mzXML", ".mgf"))
        raise SpectrumError(f"{name}: its ending is none of those that are read ({known}): rename or remove it")
    try:
        found = read_bytes()
    except OSError as error:
        raise SpectrumError(f"{name}: it cannot be read ({error.strerror or error})") from None
    if not found:
        raise SpectrumError(f"{name}: it is empty: copy it anew, or remove it")
    if packed:
        found = inflated(found, name)
    kind = SCAN_ENDINGS.get(ending)
    spectra = scans.parse(found, kind, name) if kind else iter([text.parse(found, name)])
    sample = place.name.split(".")[0] if kind or packed else place.stem
    for spectrum in spectra:
        yield Spectrum(spectrum.mz, spectrum.intensity, {"sample": sample, **spectrum.metadata})


def _from_zero_on(spectrum: Spectrum) -> Spectrum:
    """The points from m/z 0 on, and notes on what is odd."""
    notes = list(spectrum.metadata.get("notes", ()))
    n_before = int((spectrum.mz < 0).sum())
    mz, intensity = spectrum.mz[n_before:], spectrum.intensity[n_before:]
    if n_before:
        if n_before == len(spectrum):
            raise SpectrumError(f"{spectrum.name}: every m/z is negative: it is no spectrum")
        notes.append("points at negative m/z are cut")
    if (intensity < 0).any():
        notes.append("some intensities are negative")
    if not notes:
        return spectrum
    return Spectrum(mz, intensity, {**spectrum.metadata, "notes": tuple(notes)})

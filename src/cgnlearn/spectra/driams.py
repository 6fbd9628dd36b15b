"""Spectra in the folders of DRIAMS (Weis et al. 2022), with species or resistances as classes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.spectra.folders import Folder
from cgnlearn.spectra.isolates import OF, SPECIES
from cgnlearn.spectra.spectrum import Spectrum, SpectrumError

TABLES = "id"  # the folder of the tables


class Driams(NamedTuple):
    """Spectra of DRIAMS with their classes.

    Examples
    --------
    >>> Driams._fields
    ('spectra', 'target', 'groups')
    """

    spectra: list[Spectrum]
    target: NDArray[np.str_]
    groups: NDArray[np.str_]  # isolates, which may have replicates


def read_driams(
    site: str | Path,
    year: int | str | None = None,
    target: str = SPECIES,
    *,
    species: str | None = None,
    stage: str = "raw",
    skip_bad: bool = False,
) -> Driams:
    """Read the spectra of a site of DRIAMS, such as DRIAMS-A, or of a folder with its layout.

    ``site`` has the spectra in ``STAGE/YEAR/CODE.txt`` and a table ``id/YEAR/YEAR_clean.csv`` with the columns
    ``code``, ``species`` and one for each antibiotic (R, I, S; other marks, such as -, are no result). Warnings count
    the codes without a result, those without a file, and the files without a code.

    Parameters
    ----------
    site : path
    year : int or str, optional
        None: all years.
    target : str
        ``"species"``, or an antibiotic: ``"R"`` (resistant or intermediate) against ``"S"``.
    species : str, optional
        Only isolates of this species.
    stage : str
        ``"raw"``, ``"preprocessed"`` or ``"binned_6000"``. Bins are read as m/z, from 2,000 to 20,000.
    skip_bad : bool
        Skip files that cannot be read, with a warning.

    Returns
    -------
    Driams

    Examples
    --------
    >>> import tempfile
    >>> site = Path(tempfile.mkdtemp()) / "DRIAMS-X"
    >>> for folder in ("raw/2018", "id/2018"):
    ...     (site / folder).mkdir(parents=True)
    >>> for code in "ab":
    ...     _ = (site / f"raw/2018/{code}.txt").write_text("# of the instrument\\n2000.0 3\\n2001.0 8\\n")
    >>> table = "code,species,Ciprofloxacin\\na,Escherichia coli,R\\nb,Escherichia coli,S\\n"
    >>> _ = (site / "id/2018/2018_clean.csv").write_text(table)
    >>> read_driams(site, 2018, "Ciprofloxacin").target.tolist()
    ['R', 'S']
    """
    site = Path(site)
    known = sorted(path.name for path in (site / TABLES).glob("*") if path.is_dir())
    if not known:
        raise SpectrumError(f"{site}: it has no tables {TABLES}/YEAR/YEAR_clean.csv: name the folder of a DRIAMS site")
    years = known if year is None else [str(year)]
    if years[0] not in known:
        raise SpectrumError(f"{site}: it has no year {year}: choose one of {', '.join(known)}")
    wanted = target if species is None else f"{target}{OF}{species}"

    def refuse(error: SpectrumError) -> None:
        if not skip_bad:
            raise error
        told.append(f"skipped {error}")

    spectra: list[Spectrum] = []
    labels: list[str] = []
    groups: list[str] = []
    for name in years:
        told: list[str] = []
        path, table = site / stage / name, site / TABLES / name / f"{name}_clean.csv"
        for needed in (path, table):
            if not needed.exists():
                raise SpectrumError(f"{needed}: there is no such file or folder: download it, or choose another year")
        folder = Folder(path, table, target=wanted, skip_bad=True, notify=told.append)
        spectra += folder.spectra(refused=refuse)
        labels += [str(of.label) for of in folder.matched]
        groups += [str(of.sample) for of in folder.matched]
        for message in told:
            warnings.warn(message, stacklevel=2)
    return Driams(spectra, np.array(labels, dtype=str), np.array(groups, dtype=str))

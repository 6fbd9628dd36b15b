"""Spectra to files in the formats that are read."""

from __future__ import annotations

import gzip
import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cgnlearn.files import whole_file, write_whole
from cgnlearn.spectra import text
from cgnlearn.spectra.scans import NEEDED
from cgnlearn.spectra.spectrum import Spectrum


def write_spectrum(spectrum: Spectrum, folder: Path, format: str) -> str:
    """Write a spectrum under its ``id`` into a folder.

    Parameters
    ----------
    spectrum : Spectrum
        With ``id`` among its metadata, and for ``"bruker"`` the ``timing`` of its points.
    folder : Path
    format : str
        One of `FORMATS`.

    Returns
    -------
    str
        Its path from the folder on, as a reader gives it.
    """
    return FORMATS[format](spectrum, folder, str(spectrum.metadata["id"]))


def _text(spectrum: Spectrum, folder: Path, name: str) -> str:
    write_whole(folder / f"{name}.txt", text.write(spectrum))
    return f"{name}.txt"


def _csv(spectrum: Spectrum, folder: Path, name: str) -> str:
    write_whole(folder / f"{name}.csv", text.write(spectrum, ","))
    return f"{name}.csv"


def _packed_csv(spectrum: Spectrum, folder: Path, name: str) -> str:
    write_whole(folder / f"{name}.csv.gz", gzip.compress(text.write(spectrum, ","), mtime=0))
    return f"{name}.csv.gz"


def _bruker(spectrum: Spectrum, folder: Path, name: str) -> str:
    place = folder / name / "0_A1" / "1" / "1SLin"
    place.mkdir(parents=True, exist_ok=True)
    parameters = {**spectrum.metadata["timing"], "TD": len(spectrum), "BYTORDA": 0, "HPClUse": "no"}
    lines = [f"##${key}= {value!r}".replace("'", "") for key, value in parameters.items()]
    write_whole(place / "acqus", "\n".join(lines) + "\n")
    write_whole(place / "fid", np.rint(spectrum.intensity).astype("<i4").tobytes())
    return place.relative_to(folder).as_posix()


def _mgf(spectrum: Spectrum, folder: Path, name: str) -> str:
    try:
        from pyteomics import mgf
    except ImportError as error:
        raise ImportError(NEEDED) from error
    scan = {"m/z array": spectrum.mz, "intensity array": spectrum.intensity, "params": {"title": name}}
    file = io.StringIO()
    mgf.write([scan], file, fragment_format="%.17g %.17g", write_charges=False)
    write_whole(folder / f"{name}.mgf", file.getvalue())
    return f"{name}.mgf"


def _mzml(spectrum: Spectrum, folder: Path, name: str) -> str:
    try:
        from psims.controlled_vocabulary.controlled_vocabulary import OBOCache
        from psims.mzml import MzMLWriter
    except ImportError as error:
        raise ImportError(NEEDED) from error
    parts: dict[str, Any] = {"id": "run", "instrument_configuration": "IC1"}
    with warnings.catch_warnings(), whole_file(folder / f"{name}.mzML") as file:
        warnings.simplefilter("ignore")  # psims leaves files of its own open
        with MzMLWriter(file, close=False, vocabulary_resolver=OBOCache(enabled=False, use_remote=False)) as out:
            out.controlled_vocabularies()
            out.file_description(["MS1 spectrum", "profile spectrum"])
            out.software_list([{"id": "cgnlearn", "version": "0", "params": ["custom unreleased software tool"]}])
            out.instrument_configuration_list(
                [out.InstrumentConfiguration(id="IC1", component_list=[], params=["instrument model"])]
            )
            out.data_processing_list([out.DataProcessing([], id="DP1")])
            with out.run(**parts), out.spectrum_list(count=1):
                out.write_spectrum(
                    spectrum.mz,
                    spectrum.intensity,
                    id="scan=1",
                    centroided=False,
                    params=["MS1 spectrum", {"ms level": 1}],
                    compression="zlib",
                    encoding={"m/z array": np.float64, "intensity array": np.float64},
                )
    return f"{name}.mzML"


FORMATS: dict[str, Callable[[Spectrum, Path, str], str]] = {
    "mzML": _mzml, "mgf": _mgf, "txt": _text, "csv": _csv, "csv.gz": _packed_csv, "bruker": _bruker,
}  # fmt: skip

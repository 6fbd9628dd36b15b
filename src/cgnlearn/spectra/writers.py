"""Writing of spectra in the formats that can be read."""

from __future__ import annotations

import gzip
import io
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from cgnlearn.files import whole_file, write_whole
from cgnlearn.spectra import text
from cgnlearn.spectra.scans import NEEDED
from cgnlearn.spectra.spectrum import Spectrum


def _text(spectrum: Spectrum, folder: Path, name: str, *, ending: str, separator: str) -> str:
    data = text.write(spectrum, separator)
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
    arrays = {"m/z array": np.float64, "intensity array": np.float64}
    with warnings.catch_warnings(), whole_file(folder / f"{name}.mzML") as file:
        warnings.simplefilter("ignore")  # psims leaves some of its own files open
        with MzMLWriter(file, close=False, vocabulary_resolver=OBOCache(enabled=False, use_remote=False)) as out:
            out.controlled_vocabularies()
            out.file_description(["MS1 spectrum", "profile spectrum"])
            out.software_list([{"id": "cgnlearn", "version": "0", "params": ["custom unreleased software tool"]}])
            instrument = out.InstrumentConfiguration(id="IC1", component_list=[], params=["instrument model"])
            out.instrument_configuration_list([instrument])
            out.data_processing_list([out.DataProcessing([], id="DP1")])
            with out.run(id="run", instrument_configuration="IC1"), out.spectrum_list(count=1):
                out.write_spectrum(
                    spectrum.mz,
                    spectrum.intensity,
                    id="scan=1",
                    centroided=False,
                    params=["MS1 spectrum", {"ms level": 1}],
                    compression="zlib",
                    encoding=arrays,
                )
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

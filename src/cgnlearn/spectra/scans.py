"""Files that hold one scan after another: mzML and mzXML, read by pyteomics and lxml, and MGF."""

from __future__ import annotations

import io
import warnings
import zlib
from base64 import b64decode
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from cgnlearn.spectra.spectrum import Spectrum, SpectrumError

MOST_BYTES = 80_000_000  # of one array: ten million points
MOST_INFLATION = 1032  # zlib cannot do better, so that short arrays need not be looked at
NEEDED = "mzML, mzXML and MGF files need pyteomics and lxml: pip install 'cgnlearn[spectra]'"


def parse(content: bytes, kind: str, name: str) -> Iterator[Spectrum]:
    """The scans of a file that have points; one without points is told of in the metadata of the next.

    Parameters
    ----------
    content : bytes
    kind : str
        ``"mzML"``, ``"mzXML"`` or ``"MGF"``.
    name : str
        What to call the file in messages.
    """
    scans = _mgf(content) if kind == "MGF" else _xml(content, kind, name)
    n_scans = n_empty = 0
    while True:
        try:
            scan = next(scans, None)
            arrays = None if scan is None else [_array(scan, key, name) for key in ("m/z array", "intensity array")]
        except (SpectrumError, ImportError):
            raise
        except Exception as error:  # the parsers raise whatever comes to them when a file is damaged
            why = " ".join(str(error).split())[:120] or type(error).__name__
            raise SpectrumError(f"{name}: it is damaged, or no {kind} file ({why}): export it anew") from None
        if scan is None or arrays is None:
            break
        n_scans += 1
        if not len(arrays[0]) and not len(arrays[1]):
            n_empty += 1
            continue
        yield Spectrum(arrays[0], arrays[1], _metadata(scan, n_scans, n_empty, name))
    if n_scans == n_empty:
        what = "no spectra" if not n_scans else "only spectra without points"
        raise SpectrumError(f"{name}: it holds {what}: leave it out")


def _metadata(scan: dict[str, Any], number: int, n_empty: int, name: str) -> dict[str, Any]:
    known = {"file": name, "scan": number}
    identity = scan.get("id", scan.get("params", {}).get("title"))
    level = scan.get("ms level", scan.get("msLevel"))
    if identity is not None:
        known["id"] = str(identity)
    if level is not None:
        known["level"] = int(level)
    if n_empty and number == n_empty + 1:
        known["notes"] = (f"{n_empty} scans before this one have no points and are left out",)
    return known


def _xml(content: bytes, kind: str, name: str) -> Iterator[dict[str, Any]]:
    # No file of these formats declares a document type, and without one there are no entities to expand.
    if content[:4].count(b"\0") or content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise SpectrumError(f"{name}: it is XML in UTF-16, which is not read: export it in UTF-8")
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise SpectrumError(f"{name}: it declares a document type or entities, which no {kind} file needs: refused")
    try:
        from pyteomics import mzml, mzxml

        options = {"cv": _vocabulary()} if kind == "mzML" else {}
    except ImportError as error:
        raise ImportError(NEEDED) from error
    reader: Any = mzml.MzML if kind == "mzML" else mzxml.MzXML
    with reader(io.BytesIO(content), use_index=False, decode_binary=False, huge_tree=False, **options) as scans:
        yield from scans


@cache
def _vocabulary() -> Any:
    """The names of mzML's terms from the installed copy: left alone, pyteomics asks the network for each file."""
    from psims.controlled_vocabulary.controlled_vocabulary import OBOCache

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # psims leaves its file open
        return OBOCache(enabled=False, use_remote=False).load("http://purl.obolibrary.org/obo/ms/psi-ms.obo")


def _mgf(content: bytes) -> Iterator[dict[str, Any]]:
    try:
        from pyteomics import mgf
    except ImportError as error:
        raise ImportError(NEEDED) from error
    text = io.StringIO(content.decode("utf-8"))
    n_begun = content.count(b"BEGIN IONS")
    n_found = 0
    for scan in mgf.read(text, use_index=False, convert_arrays=1, read_charges=False):
        n_found += 1
        yield scan
    if n_found < n_begun:
        raise ValueError(f"{n_begun} spectra begin and {n_found} end")


def _array(scan: dict[str, Any], key: str, name: str) -> Any:
    found = scan.get(key)
    if found is None:
        if int(scan.get("defaultArrayLength", scan.get("peaksCount", 0))):
            raise SpectrumError(f"{name}: a scan lacks its {key}: export it anew")
        return np.empty(0)
    if isinstance(found, np.ndarray):
        return found.astype(np.float64)
    if not isinstance(found.data, str) or not found.data.strip():  # an empty element
        values = np.empty(0)
    else:
        _refuse_bomb(found, name)
        decoded = found.decode()
        values = np.asarray(decoded if decoded.dtype.names is None else decoded[key], dtype=np.float64)
    said = scan.get("defaultArrayLength", scan.get("peaksCount"))
    if said is not None and int(said) != len(values):
        raise SpectrumError(f"{name}: a scan has {len(values)} points where it says {said}: export it anew")
    return values


def _refuse_bomb(record: Any, name: str) -> None:
    if "zlib" not in str(record.compression) or len(record.data) * MOST_INFLATION < MOST_BYTES:
        return
    unpacking = zlib.decompressobj()
    unpacking.decompress(b64decode(record.data), MOST_BYTES)
    if unpacking.unconsumed_tail:
        raise SpectrumError(f"{name}: a compressed array holds more than {MOST_BYTES} bytes: refused")

"""Files that hold one scan after another: mzML and mzXML, read by pyteomics and lxml, and MGF."""

from __future__ import annotations

import io
import warnings
import zlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from cgnlearn.spectra.spectrum import Spectrum, SpectrumError

MOST_BYTES = 80_000_000  # of one array: ten million points
KEYS = ("m/z array", "intensity array")
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
            arrays = None if scan is None else _arrays(scan, name)
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
        scans.compression_type_map = {
            way: partial(_unpacked, way=way, decode=decode) for way, decode in scans.compression_type_map.items()
        }
        yield from scans


def _unpacked(packed: bytes, way: str, decode: Callable[[bytes], Any]) -> Any:
    """What pyteomics would unpack, if it is not too much."""
    if "zlib" not in way:
        return decode(packed)
    unpacking = zlib.decompressobj()
    found = unpacking.decompress(packed, MOST_BYTES)
    if unpacking.unconsumed_tail:
        raise _TooLong
    if not unpacking.eof:
        raise zlib.error("incomplete or truncated stream")
    return found if way == "zlib compression" else decode(packed)


class _TooLong(Exception):
    """A compressed array that holds more than `MOST_BYTES`."""


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


def _arrays(scan: dict[str, Any], name: str) -> list[Any]:
    """m/z and intensities."""
    said = scan.get("defaultArrayLength", scan.get("peaksCount"))
    decoded: dict[int, Any] = {}  # mzXML has both in one piece
    arrays = []
    for key in KEYS:
        found = scan.get(key)
        if found is None:
            if int(said or 0):
                raise SpectrumError(f"{name}: a scan lacks its {key}: export it anew")
            arrays.append(np.empty(0))
            continue
        if isinstance(found, np.ndarray):
            arrays.append(found.astype(np.float64))
            continue
        values = np.empty(0)
        if isinstance(found.data, str) and found.data.strip():
            if id(found.data) not in decoded:
                try:
                    whole = found.source.decode_data_array(found.data, found.compression, found.dtype)
                except _TooLong:
                    raise SpectrumError(
                        f"{name}: a compressed array holds more than {MOST_BYTES} bytes: refused"
                    ) from None
                decoded[id(found.data)] = whole
            whole = decoded[id(found.data)]
            values = np.asarray(whole if whole.dtype.names is None else whole[key], dtype=np.float64)
            values.flags.writeable = False
        if said is not None and int(said) != len(values):
            raise SpectrumError(f"{name}: a scan has {len(values)} points where it says {said}: export it anew")
        arrays.append(values)
    return arrays

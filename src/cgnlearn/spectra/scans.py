"""Files of many scans: mzML, mzXML and MGF, read by pyteomics."""

from __future__ import annotations

import io
import warnings
import zlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cgnlearn.spectra.spectrum import Spectrum, SpectrumError, extra

MAX_BYTES = 80_000_000  # of one array: ten million points
KEYS = ("m/z array", "intensity array")


def parse(content: bytes, kind: str, name: str) -> Iterator[Spectrum]:
    """Yield the scans of an mzML, mzXML or MGF file; scans without points are skipped and noted in the metadata."""
    scans = _mgf(content) if kind == "MGF" else _xml(content, kind, name)
    n_scans = n_empty = 0
    while True:
        try:
            scan = next(scans, None)
            arrays = None if scan is None else _arrays(scan, name)
        except (SpectrumError, ImportError):
            raise
        except Exception as error:  # the parsers raise errors of any type when a file is damaged
            why = " ".join(str(error).split())[:120] or type(error).__name__
            raise SpectrumError(f"{name}: damaged, or not a {kind} file ({why}): export it again") from None
        if scan is None or arrays is None:
            break
        n_scans += 1
        if not len(arrays[0]) and not len(arrays[1]):
            n_empty += 1
            continue
        yield Spectrum(arrays[0], arrays[1], _metadata(scan, n_scans, n_empty, name))
    if n_scans == n_empty:
        what = "no spectra" if not n_scans else "only spectra without points"
        raise SpectrumError(f"{name}: it has {what}: remove it")


def _metadata(scan: dict[str, Any], number: int, n_empty: int, name: str) -> dict[str, Any]:
    known: dict[str, Any] = {"file": name, "scan": number}
    if (identity := scan.get("id", scan.get("params", {}).get("title"))) is not None:
        known["id"] = str(identity)
    if (level := scan.get("ms level", scan.get("msLevel"))) is not None:
        known["level"] = int(level)
    if n_empty and number == n_empty + 1:
        known["notes"] = (f"{n_empty} scans before this one have no points and are skipped",)
    return known


def _xml(content: bytes, kind: str, name: str) -> Iterator[dict[str, Any]]:
    # These formats need no document type; without one there are no entities that could expand without limit.
    if content[:4].count(b"\0") or content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise SpectrumError(f"{name}: XML in UTF-16 is not read: export it in UTF-8")
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise SpectrumError(f"{name}: it declares a document type or entities, which no {kind} file needs: refused")
    reader = getattr(extra(f"pyteomics.{kind.lower()}"), "MzML" if kind == "mzML" else "MzXML")
    options = {"cv": _vocabulary()} if kind == "mzML" else {}
    with reader(io.BytesIO(content), use_index=False, decode_binary=False, huge_tree=False, **options) as scans:
        scans.compression_type_map = {
            compression: partial(_decompressed, compression=compression, decode=decode, name=name)
            for compression, decode in scans.compression_type_map.items()
        }
        yield from scans


def _decompressed(packed: bytes, compression: str, decode: Callable[[bytes], Any], name: str) -> Any:
    """The result of pyteomics' ``decode``, if it is within the limit."""
    if "zlib" not in compression:
        return decode(packed)
    decompressor = zlib.decompressobj()
    unpacked = decompressor.decompress(packed, MAX_BYTES)
    if decompressor.unconsumed_tail:
        raise SpectrumError(f"{name}: a compressed array has more than {MAX_BYTES} bytes: refused")
    if not decompressor.eof:
        raise zlib.error("incomplete or truncated stream")
    return unpacked if compression == "zlib compression" else decode(packed)


@cache
def _vocabulary() -> Any:
    """mzML's vocabulary from the installed copy; by default pyteomics downloads it for each file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # psims leaves its file open
        vocabulary = extra("psims.controlled_vocabulary.controlled_vocabulary")
        return vocabulary.OBOCache(enabled=False, use_remote=False).load("http://purl.obolibrary.org/obo/ms/psi-ms.obo")


def _mgf(content: bytes) -> Iterator[dict[str, Any]]:
    text = io.StringIO(content.decode("utf-8"))
    n_begun, n_ended = content.count(b"BEGIN IONS"), 0
    for scan in extra("pyteomics.mgf").read(text, use_index=False, convert_arrays=1, read_charges=False):
        n_ended += 1
        yield scan
    if n_ended < n_begun:
        raise ValueError(f"{n_begun} spectra begin and {n_ended} end")


def _arrays(scan: dict[str, Any], name: str) -> list[NDArray[np.float64]]:
    """m/z and intensities of a scan, checked against the number of points that it declares."""
    declared = scan.get("defaultArrayLength", scan.get("peaksCount"))
    decoded: dict[int, Any] = {}  # mzXML has both arrays in one string, decoded once
    arrays = []
    for key in KEYS:
        record = scan.get(key)
        if record is None and int(declared or 0):
            raise SpectrumError(f"{name}: a scan lacks its {key}: export it again")
        if isinstance(record, np.ndarray):
            arrays.append(record.astype(np.float64))
            continue
        values = np.empty(0)
        if record is not None and isinstance(record.data, str) and record.data.strip():
            if id(record.data) not in decoded:
                encoded = record.data, record.compression, record.dtype
                decoded[id(record.data)] = record.source.decode_data_array(*encoded)
            raw = decoded[id(record.data)]
            values = np.asarray(raw if raw.dtype.names is None else raw[key], dtype=np.float64)
            values.flags.writeable = False
        if declared is not None and int(declared) != len(values):
            raise SpectrumError(f"{name}: a scan declares {declared} points and has {len(values)}: export it again")
        arrays.append(values)
    return arrays

"""The files of a folder, zip or tar archive, read within limits and without writing to named files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, Any

from cgnlearn.spectra.spectrum import SpectrumError

MAX_FILE_BYTES = 2**30  # of one file, unpacked
MAX_ARCHIVE_BYTES = 2**34  # of all files in an archive, unpacked
MAX_FILES = 100_000
MAX_RATIO = 200  # unpacked to packed size; real spectra reach 3 to 10, decompression bombs far more
RATIO_FROM_BYTES = 10 * 2**20  # below this size the ratio is not checked
ARCHIVE_ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
HIDDEN = ("Thumbs.db", "desktop.ini", "__MACOSX")
_OPENERS: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}
_DAMAGED = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError)

Reader = Callable[[], bytes]
Files = Mapping[str, Reader]  # by path within the folder or archive, with slashes


def is_archive(name: str) -> bool:
    """Whether a file name ends like that of an archive."""
    return name.lower().endswith(ARCHIVE_ENDINGS)


@contextmanager
def opened(path: Path) -> Iterator[Files]:
    """Open a folder or an archive and return its files in the order of their names, without hidden ones."""
    if path.is_dir():
        yield _visible(_files_of_folder(path), path)
    elif path.name.lower().endswith(".zip"):
        with _explained_errors(path), zipfile.ZipFile(path) as archive:
            yield _visible(_files_of_zip(archive, path), path)
    else:
        with _explained_errors(path), tempfile.TemporaryFile() as unpacked:
            with path.open("rb") as stream:
                opener = _OPENERS.get(stream.read(2), open)
            with opener(path, "rb") as stream:
                unpacked.writelines(_chunks(stream, path.stat().st_size, path, MAX_ARCHIVE_BYTES))
            unpacked.seek(0)
            with tarfile.open(fileobj=unpacked, mode="r:") as tar:
                yield _visible(_files_of_tar(tar, path), path)


def content(path: Path) -> bytes:
    """The bytes of a file, if they are within the limit."""
    if path.stat().st_size > MAX_FILE_BYTES:
        raise SpectrumError(f"{path}: it is larger than {MAX_FILE_BYTES} bytes, too large for a spectrum")
    return path.read_bytes()


def decompressed(packed: bytes, name: str) -> bytes:
    """The bytes of a gzip file, if they are within the limits."""
    with _explained_errors(name, "gzip file"), gzip.open(io.BytesIO(packed)) as stream:
        return b"".join(_chunks(stream, len(packed), name))


def _files_of_folder(folder: Path) -> Iterator[tuple[str, Reader]]:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for path in (Path(place, name) for name in files):
            if path.exists() and not path.is_file():
                warnings.warn(f"{path} is not a regular file and is skipped", stacklevel=2)
                continue
            yield path.relative_to(folder).as_posix(), partial(content, path)


def _files_of_zip(archive: zipfile.ZipFile, path: Path) -> Iterator[tuple[str, Reader]]:
    members = [member for member in archive.infolist() if not member.is_dir()]
    n_bytes = sum(member.file_size for member in members)
    if n_bytes > MAX_ARCHIVE_BYTES:
        raise SpectrumError(f"{path}: it unpacks to {n_bytes} bytes: the limit is {MAX_ARCHIVE_BYTES}")
    for member in members:
        open_member = partial(archive.open, member)
        yield _member(path, member.filename, open_member, member.compress_size, member.file_size)


def _files_of_tar(archive: tarfile.TarFile, path: Path) -> Iterator[tuple[str, Reader]]:
    for member in archive:
        if member.isdir():
            continue
        if not member.isreg():
            raise SpectrumError(f"{path}: {member.name} is a link or a device: pack the files themselves")
        yield _member(path, member.name, partial(archive.extractfile, member), member.size, member.size)


def _member(path: Path, name: str, open_member: Callable[[], Any], n_packed: int, n_bytes: int) -> tuple[str, Reader]:
    """The name of an archive's member, if it stays inside the archive, and a function that reads it."""
    place = PurePosixPath(name.replace("\\", "/"))
    if place.is_absolute() or ".." in place.parts or ":" in place.parts[0]:
        raise SpectrumError(f"{path}: its member {name!r} points outside the archive: refused")

    def read() -> bytes:
        with _explained_errors(f"{path}: {name}"), open_member() as stream:
            unpacked = b"".join(_chunks(stream, n_packed, f"{path}: {name}"))
            if len(unpacked) < n_bytes:
                raise EOFError("it ends early")
            return unpacked

    return str(place), read


def _visible(files: Iterator[tuple[str, Reader]], path: Path) -> Files:
    first = dict(islice(files, MAX_FILES))
    if next(files, None) is not None:
        raise SpectrumError(f"{path}: it has more than {MAX_FILES} files: choose fewer")
    return {
        name: first[name]
        for name in sorted(first)
        if not any(part.startswith(".") or part in HIDDEN for part in name.split("/"))
    }


def _chunks(
    stream: IO[bytes] | gzip.GzipFile, n_packed: int, name: object, limit: int = MAX_FILE_BYTES
) -> Iterator[bytes]:
    """The content of a compressed stream, as long as it is within the limits."""
    n_bytes = 0
    while chunk := stream.read(2**20):
        n_bytes += len(chunk)
        if n_bytes > limit or n_bytes > max(RATIO_FROM_BYTES, MAX_RATIO * n_packed):
            raise SpectrumError(
                f"{name}: it unpacks to more than {limit} bytes or {MAX_RATIO} times its size: refused as a "
                "decompression bomb"
            )
        yield chunk


@contextmanager
def _explained_errors(name: object, kind: str = "archive") -> Iterator[None]:
    """Turn the errors of damaged files into a `SpectrumError` of one line."""
    try:
        yield
    except SpectrumError:
        raise
    except (*_DAMAGED, OSError, ValueError, RuntimeError) as error:
        raise SpectrumError(f"{name}: damaged, or not a readable {kind} ({error}): copy it again") from None

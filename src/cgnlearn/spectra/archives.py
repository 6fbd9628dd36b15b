"""Folders, zip and tar files as one thing: entries with a name and bytes, within limits, without writing to disk."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from cgnlearn.spectra.spectrum import SpectrumError

MOST_BYTES = 2**30  # of one file, unpacked
MOST_TOTAL = 2**34  # of all files in an archive, unpacked
MOST_ENTRIES = 100_000
MOST_INFLATION = 200  # spectra shrink to a third or a tenth; what shrinks more is made to fill the disk
ALWAYS_ALLOWED = 10 * 2**20
TAR_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
ARCHIVE_ENDINGS = (".zip", *TAR_ENDINGS)
_OPENERS: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}
_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError, ValueError,
            RuntimeError, NotImplementedError)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A file in a folder or an archive.

    Parameters
    ----------
    name : str
        Its path from the folder on, with slashes.
    read : callable
        Gives its bytes, or raises `SpectrumError` if they are too many or damaged.
    """

    name: str
    read: Callable[[], bytes]


def is_archive(name: str) -> bool:
    """Whether a name ends like that of an archive."""
    return name.lower().endswith(ARCHIVE_ENDINGS)


@contextmanager
def opened(path: Path) -> Iterator[list[Entry]]:
    """The entries of a folder or an archive in the order of their names; hidden files are no entries.

    Parameters
    ----------
    path : Path
    """
    if path.is_dir():
        yield _in_folder(path)
    elif path.name.lower().endswith(".zip"):
        with _told(path), zipfile.ZipFile(path) as archive:
            yield _in_zip(archive, path)
    else:
        with _told(path), tempfile.TemporaryFile() as unpacked:
            _unpack(path, unpacked)
            with tarfile.open(fileobj=unpacked, mode="r:") as tar:
                yield _in_tar(tar, path)


def content(path: Path) -> bytes:
    """The bytes of a file, if they are not too many."""
    if path.stat().st_size > MOST_BYTES:
        raise SpectrumError(f"{path}: it is larger than {MOST_BYTES} bytes: a spectrum that large is not read")
    return path.read_bytes()


def inflated(packed: bytes, name: str) -> bytes:
    """The bytes within a gzip file, if they are not too many."""
    try:
        with gzip.open(io.BytesIO(packed)) as stream:
            return _limited(stream, len(packed), name)
    except SpectrumError:
        raise
    except _DAMAGED as error:
        raise SpectrumError(f"{name}: it is damaged, or no gzip file ({error}): copy it anew") from None


def _in_folder(folder: Path) -> list[Entry]:
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            path = Path(place, name)
            found.append(Entry(path.relative_to(folder).as_posix(), lambda path=path: content(path)))  # type: ignore[misc]
            if len(found) > MOST_ENTRIES:
                raise SpectrumError(f"{folder}: it holds more than {MOST_ENTRIES} files: name a smaller folder")
    return _shown(found)


def _in_zip(archive: zipfile.ZipFile, path: Path) -> list[Entry]:
    members = [member for member in archive.infolist() if not member.is_dir()]
    _check_total(path, len(members), sum(member.file_size for member in members))

    def reader(member: zipfile.ZipInfo) -> Callable[[], bytes]:
        def read() -> bytes:
            with _told(path, member.filename), archive.open(member) as stream:
                return _limited(stream, member.compress_size, f"{path}: {member.filename}")

        return read

    return _shown([Entry(_inside(member.filename, path), reader(member)) for member in members])


def _in_tar(archive: tarfile.TarFile, path: Path) -> list[Entry]:
    members = []
    for member in archive:
        if member.isdir():
            continue
        if not member.isreg():
            raise SpectrumError(f"{path}: {member.name} is a link or a device: pack the files themselves")
        members.append(member)
        _check_total(path, len(members), 0)

    def reader(member: tarfile.TarInfo) -> Callable[[], bytes]:
        def read() -> bytes:
            with _told(path, member.name):
                stream = archive.extractfile(member)
                assert stream is not None
                found = _limited(stream, member.size, f"{path}: {member.name}")
                if len(found) < member.size:
                    raise EOFError("it ends early")
                return found

        return read

    return _shown([Entry(_inside(member.name, path), reader(member)) for member in members])


def _shown(entries: list[Entry]) -> list[Entry]:
    hidden = ("Thumbs.db", "desktop.ini")
    return sorted(
        (e for e in entries if not any(p.startswith(".") or p in (*hidden, "__MACOSX") for p in e.name.split("/"))),
        key=lambda entry: entry.name,
    )


def _inside(name: str, path: Path) -> str:
    """The name, if it stays inside the archive."""
    place = PurePosixPath(name.replace("\\", "/"))
    if place.is_absolute() or ".." in place.parts or ":" in place.parts[0]:
        raise SpectrumError(f"{path}: its entry {name!r} leads out of the archive: refused")
    return str(place)


def _unpack(path: Path, target: IO[bytes]) -> None:
    """Write the tar file within a compressed one."""
    with path.open("rb") as stream:
        start = stream.read(2)
    opener = _OPENERS.get(start, open)
    size, allowed = path.stat().st_size, 0
    with opener(path, "rb") as stream:
        while chunk := stream.read(2**20):
            allowed += len(chunk)
            _check_inflation(allowed, size, str(path), MOST_TOTAL)
            target.write(chunk)
    target.seek(0)


def _limited(stream: IO[bytes] | gzip.GzipFile, n_packed: int, name: str) -> bytes:
    chunks, total = [], 0
    while chunk := stream.read(2**20):
        total += len(chunk)
        _check_inflation(total, n_packed, name, MOST_BYTES)
        chunks.append(chunk)
    return b"".join(chunks)


def _check_inflation(n_bytes: int, n_packed: int, name: str, most: int) -> None:
    if n_bytes > most or (n_bytes > ALWAYS_ALLOWED and n_bytes > MOST_INFLATION * n_packed):
        raise SpectrumError(
            f"{name}: it unpacks to more than {most} bytes, or {MOST_INFLATION} times its size: refused as a bomb"
        )


def _check_total(path: Path, n_entries: int, n_bytes: int) -> None:
    if n_entries > MOST_ENTRIES or n_bytes > MOST_TOTAL:
        raise SpectrumError(
            f"{path}: it holds {n_entries} files of {n_bytes} bytes: at most {MOST_ENTRIES} of {MOST_TOTAL} are read"
        )


@contextmanager
def _told(path: Path, entry: str | None = None) -> Iterator[None]:
    """Errors of an archive as one line that names it."""
    try:
        yield
    except SpectrumError:
        raise
    except _DAMAGED as error:
        name = path if entry is None else f"{path}: {entry}"
        raise SpectrumError(f"{name}: the archive is damaged, or none ({error}): copy it anew") from None

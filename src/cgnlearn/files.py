"""Files that are written completely or not at all, and folders locked by one process."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from filelock import FileLock, Timeout


class NotWrittenError(OSError):
    """A file could not be written; an existing file at its path is unchanged."""


class FolderInUseError(RuntimeError):
    """Another process uses the folder."""


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` at the end, or is removed after an error.

    Devices and pipes, which cannot be replaced, are written directly.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "numbers.txt")
    >>> with whole_file(path) as file:
    ...     _ = file.write(b"1 2 3")
    >>> path.read_text()
    '1 2 3'
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    if _is_special(target):
        with target.open("wb") as file:
            yield file
        return
    try:
        with _beside(target) as new:
            with new.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())  # some file systems report only now that they are full
            if target.exists():
                shutil.copymode(target, new)
            os.replace(new, target)
    except OSError as error:
        if error.errno is None or (error.filename is not None and not _is_about(error, target)):
            raise  # an error of the caller, such as a file it reads
        raise _not_written(path, error, target) from error


def write_whole(path: str | Path, content: bytes | str | Iterable[str]) -> None:
    """Write bytes, a text, or several texts, completely or not at all."""
    with whole_file(path) as file:
        if isinstance(content, bytes):
            file.write(content)
        else:
            file.writelines(text.encode() for text in ([content] if isinstance(content, str) else content))


def defused(text: object) -> object:
    """A cell of a csv file that no spreadsheet runs as a formula: an apostrophe is put before =, +, - and @.

    Examples
    --------
    >>> defused("=HYPERLINK(1)"), defused("-1.5"), defused("a=b")
    ("'=HYPERLINK(1)", '-1.5', 'a=b')
    """
    if not isinstance(text, str) or not text.startswith(("=", "+", "-", "@", "\t", "\r")):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def add_whole(path: Path, text: str) -> None:
    """Append a text to a file, completely or not at all."""
    content = text.encode()
    with path.open("ab", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        try:
            if file.write(content) < len(content):  # there was room for a part of it
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            file.truncate(size)
            raise _not_written(path, error, path) from error


def check_writable(path: str | Path, *, makes_folder: bool = False) -> None:
    """Raise if a file or folder cannot be written; ``makes_folder``: missing folders will be created."""
    target = Path(os.path.realpath(path))
    if _is_special(target):
        if not os.access(target, os.W_OK):
            raise NotWrittenError(f"{path} cannot be written: choose another")
        return
    folder = target if target.is_dir() else target.parent
    while makes_folder and not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.exists():
        raise NotWrittenError(f"{path} cannot be written: there is no folder {folder}, create it first")
    if not folder.is_dir():
        raise NotWrittenError(f"{path} cannot be written: {folder} is not a folder, choose another")
    try:
        with _beside(folder / target.name) as trial:
            trial.touch(exist_ok=False)
    except OSError as error:
        raise _not_written(path, error, target) from error


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes; the lock of a killed process is void."""
    lock = FileLock(folder / ".lock", timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise FolderInUseError(f"{folder} is in use by another run: wait for it, or choose another folder") from error
    try:
        yield
    finally:
        with suppress(PermissionError):  # Windows does not remove an open file; there the release does
            Path(lock.lock_file).unlink(missing_ok=True)  # before the release, after which another may hold it
        lock.release()


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """The path of a temporary file in the same folder, removed at the end."""
    new = target.with_name(f".{target.name[:40]}.{uuid4().hex[:8]}.part")
    try:
        yield new
    finally:
        new.unlink(missing_ok=True)


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def _is_about(error: OSError, target: Path) -> bool:
    return Path(os.fsdecode(error.filename)).parent == target.parent


def _not_written(path: str | Path, error: OSError, target: Path) -> NotWrittenError:
    kept = "; the existing file is unchanged" if target.is_file() else ""
    return NotWrittenError(
        f"{path} cannot be written ({error.strerror or error}){kept}: free some space or choose another place"
    )

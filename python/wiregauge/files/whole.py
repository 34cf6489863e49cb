"""Atomic file writes: a file appears under its name only when it is complete.

It is written next to its place under a hidden name, synced, and renamed: a reader sees the old or the new content,
never a part, even after a crash. Leftovers of a killed writer are hidden and begin with `TEMPORARY`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = [
    "TEMPORARY",
    "ForeignFileError",
    "check_place",
    "cure_for",
    "new_folder",
    "put_in_place",
    "sync_folder",
    "whole",
    "write_whole",
]

TEMPORARY: Final = ".wiregauge-"
"""Prefix of the hidden names of unfinished files. The file's own name is not part of it: with it, a name of the
greatest length would be too long."""
_HEAD: Final = 4096
_TAIL: Final = 16_384
"""Octets at the end of a file that are looked through too: a PDF says only there what wrote it."""
_FULL: Final = {errno.ENOSPC, errno.EDQUOT}
_NO_LINKS: Final = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class ForeignFileError(OSError):
    """A file of that name exists that must not be replaced."""

    def __init__(self, path: Path) -> None:
        why = "there is a file of that name that this command did not make; name another or remove it"
        if path.is_dir():
            why = "is a directory; name a file, in it or elsewhere"
        super().__init__(errno.EEXIST, why, str(path))


@contextlib.contextmanager
def whole(path: Path, *, replacing: bytes | None = b"", is_synced: bool = True) -> Iterator[Path]:
    """A temporary path to write to. It becomes `path` when the block succeeds, and is removed when it does not.

    `replacing` says what may be replaced: `b""` any file, None none, other bytes a file with them in its first 4 or
    last 16 KiB, as in files written by this program. `is_synced` False, for a file that is replaced all the time and
    may be empty after a crash of the machine, waits for no disk. Raises ForeignFileError for another file, and OSError
    where the disk refuses.
    """
    _check(path, replacing)
    beside = _beside(path)
    try:
        yield beside
        if not is_synced:
            beside.replace(path)
        elif replacing == b"":
            put_in_place(beside, path)
        else:
            _sync(beside)
            _check(path, replacing)
            _put(beside, path, new=not path.exists())
            sync_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)


def write_whole(
    path: Path, content: bytes | str, *, replacing: bytes | None = b"", is_synced: bool = True
) -> None:
    """Writes `content` (text as UTF-8) atomically; see `whole`. Raises OSError."""
    with whole(path, replacing=replacing, is_synced=is_synced) as beside:
        beside.write_bytes(
            content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")
        )


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder for several files: on failure it is left as it was before, or removed."""
    before = {one.name for one in path.iterdir()} if path.is_dir() else None
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield path
    except BaseException:
        if before is None:
            shutil.rmtree(path, ignore_errors=True)
        else:
            for one in (one for one in path.iterdir() if one.name not in before):
                shutil.rmtree(one, ignore_errors=True)
                if not one.is_dir():
                    one.unlink(missing_ok=True)
        raise


def check_place(path: Path, *, replacing: bytes | None = b"") -> None:
    """Raises, before any work, what `whole` would for a path that is taken or not writable."""
    _check(path, replacing)
    beside = _beside(path)
    beside.touch()
    beside.unlink()


def put_in_place(made: Path, path: Path) -> None:
    """Moves a finished file durably to its place on the same file system, replacing what is there.

    Raises OSError, with `made` unchanged.
    """
    _sync(made)
    made.replace(path)
    sync_folder(path.parent)


def move_folder(folder: Path, place: Path) -> None:
    """Moves a folder to a place on the same disk. Raises OSError, FileExistsError where something is there."""
    if place.exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place))
    folder.replace(place)


def cure_for(error: OSError) -> str:
    """The cure where a file could not be written into a directory."""
    if error.errno in _FULL:
        return "make room"
    if error.errno == errno.ENOENT:
        return "make its directory first, or name another"
    return "make the directory writable or copy it to one that is"


def unwritten(place: Path, error: OSError) -> str:
    """The sentence that a file could not be written, with the cure."""
    return f"{place}: cannot be written ({error.strerror}); {cure_for(error)}"


def sync_folder(folder: Path) -> None:
    """Syncs a folder to make its names durable; ignored on file systems that cannot."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _beside(path: Path) -> Path:
    return path.with_name(f"{TEMPORARY}{os.getpid()}-{os.urandom(4).hex()}{path.suffix[:8]}")


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _put(beside: Path, path: Path, *, new: bool) -> None:
    """Gives the file its name; a new one only if nobody else took it meanwhile."""
    if not new:
        beside.replace(path)
        return
    try:
        os.link(beside, path, follow_symlinks=False)
    except FileExistsError:
        raise ForeignFileError(path) from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        beside.replace(path)  # a file system without links: the earlier check has to suffice


def _check(path: Path, replacing: bytes | None) -> None:
    if replacing == b"" or not (path.exists() or path.is_symlink()):
        return
    if replacing is None or not path.is_file():
        raise ForeignFileError(path)
    with path.open("rb") as file:
        found = replacing in file.read(_HEAD)
        if not found:
            file.seek(max(path.stat().st_size - _TAIL, 0))
            found = replacing in file.read(_TAIL)
    if not found:
        raise ForeignFileError(path)

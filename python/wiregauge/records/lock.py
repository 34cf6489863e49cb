"""Write lock of a run directory: one process at a time; the kernel releases it when the process ends.

The lock file is made by the first process that finds none. So of several commands that begin a run in one place at
once, the one whose file it is makes the run directory, and the others know before they have touched anything.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path
from typing import Final

__all__ = ["LOCK", "Lock", "is_locked"]

LOCK: Final = ".lock"
_GLANCE_S: Final = 0.5
"""How long to wait for a lock, s, that may be held for an instant only to ask whether the directory is being
written."""


class Lock:
    """A lock that is held."""

    def __init__(self, path: Path, handle: int) -> None:
        self._path = path
        self._handle = handle

    @classmethod
    def make(cls, root: Path) -> Lock:
        """Makes the lock of a directory that has none, and holds it. Raises FileExistsError, OSError."""
        path = root / LOCK
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666)
        fcntl.flock(handle, fcntl.LOCK_EX)
        return cls(path, handle)

    @classmethod
    def take(cls, root: Path) -> Lock:
        """Holds the lock of a directory. Raises BlockingIOError when another process has it, OSError."""
        path = root / LOCK
        limit = time.monotonic() + _GLANCE_S
        while True:
            handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_of(path, handle):
                    return cls(path, handle)
            except BlockingIOError:
                if time.monotonic() > limit:
                    os.close(handle)
                    raise
            # The file was removed between opening and locking: this lock is no longer the directory's.
            os.close(handle)
            time.sleep(0.01)

    def release(self) -> None:
        """Removes the lock's file, then unlocks it, so that no free lock is found that is about to vanish."""
        if _is_of(self._path, self._handle):
            with contextlib.suppress(OSError):
                self._path.unlink()
        os.close(self._handle)


def is_locked(root: Path) -> bool:
    """Whether a process holds the lock of a directory. A lock that may not be looked at counts as free."""
    try:
        handle = os.open(root / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False


def _is_of(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except OSError:
        return False

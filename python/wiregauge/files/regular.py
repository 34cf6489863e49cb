"""Opening files that a user or a directory of others names: regular files only, never waiting, never without an end.

Opening a FIFO waits for a writer, reading a device may never end, and neither heeds Ctrl-C within a library. Asking
first what a name is and opening it then would race; a file that was opened without waiting can be asked.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path
from typing import Final

__all__ = ["LARGEST", "SMALL", "check_regular", "open_regular", "read_regular", "read_text"]

LARGEST: Final = 1 << 30
"""Bytes that are read of a file whose content is wanted in memory, unless less is said."""
SMALL: Final = 16 << 20
"""Bytes of a configuration, a list or a key, at most."""


def open_regular(path: Path) -> io.BufferedReader:
    """Opens a regular file for reading. Raises OSError, also for what is no file, with a reason in plain words."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise _no_file(path) from None
        raise
    except ValueError as error:  # a NUL in the path
        raise OSError(errno.EINVAL, f"is no path ({error})", str(path)) from None
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise _no_file(path)
        # Opened by its name, so that the file knows it.
        return io.BufferedReader(io.FileIO(str(path), "rb", opener=lambda *_: handle))
    except BaseException:
        os.close(handle)
        raise


def check_regular(path: Path) -> None:
    """Raises what `open_regular` would, for a file that a library is about to open by its name."""
    open_regular(path).close()


def read_regular(path: Path, most: int = LARGEST) -> bytes:
    """The bytes of a regular file of at most `most` bytes. Raises OSError."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(most + 1) if size <= most else b""
    if size > most or len(data) > most:
        raise OSError(
            errno.EFBIG, f"is too large: {max(size, len(data))} B, and at most {most} B are read", str(path)
        )
    return data


def read_text(path: Path, most: int = LARGEST, encoding: str = "utf-8", errors: str = "strict") -> str:
    """The text of a regular file, its line ends as `\\n`. Raises OSError, UnicodeDecodeError."""
    text = read_regular(path, most).decode(encoding, errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _no_file(path: Path) -> OSError:
    return OSError(errno.EINVAL, "is a FIFO, a socket or a device; name a regular file", str(path))

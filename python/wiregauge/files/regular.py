"""Opens files named by a user or a foreign directory: regular files only, without blocking or endless reading.

Opening a FIFO waits for a writer, reading a device may never end, and neither obeys Ctrl-C within a library. Checking
a name before opening it would race; so the file is opened without blocking and then checked.
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
"""The most bytes that are read of a file into memory, by default."""
SMALL: Final = 16 << 20
"""The most bytes of a configuration, a list or a key."""


def open_regular(path: Path) -> io.BufferedReader:
    """Opens a regular file for reading. Raises OSError, also for other kinds of files, with a reason in plain words."""
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
        # Opened by its name, so that the file object has it.
        return io.BufferedReader(io.FileIO(str(path), "rb", opener=lambda *_: handle))
    except BaseException:
        os.close(handle)
        raise


def is_file(path: Path) -> bool:
    """Whether a file is there; False also for a name that no file can have, for which `Path.is_file` raises OSError."""
    try:
        return path.is_file()
    except OSError:
        return False


def check_regular(path: Path) -> None:
    """Raises what `open_regular` would, for a file that a library will open by its name."""
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

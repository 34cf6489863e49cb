"""Containment of foreign run directories: no command follows a link or a path out of them.

Nothing that writes run directories makes links or devices. So they are refused in one place, before anything of the
directory is read or written: files opened by name later, by this program or a library, are inside.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from wiregauge.records.errors import DamagedError

__all__ = ["check_contained", "check_names", "is_inside"]


def check_contained(root: Path) -> None:
    """Refuses a directory with a symbolic link, a FIFO or a device anywhere in it. Raises DamagedError, OSError."""
    folders = [root]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except (FileNotFoundError, PermissionError):
            # Deleted meanwhile, or reported by the code that reads it.
            continue
        for entry in found:
            if entry.is_symlink():
                raise DamagedError(
                    f"{entry.path}: is a symbolic link; a run directory has none, and nothing outside of it is "
                    "touched: put the file itself there or remove the link"
                )
            if entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))
            elif not entry.is_file(follow_symlinks=False) and not _is_socket(entry):
                raise DamagedError(
                    f"{entry.path}: is a FIFO or a device; a run directory has none: remove it, or restore the file "
                    "from a copy"
                )


def _is_socket(entry: os.DirEntry[str]) -> bool:
    """Whether the entry is a socket: agents of a running run listen at sockets, which cannot be opened as files."""
    try:
        return stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
    except OSError:
        return True  # gone meanwhile


def is_inside(name: str) -> bool:
    """Whether a path of a manifest is one below its directory, as this program writes it."""
    parts = PurePosixPath(name).parts
    return bool(parts) and not name.startswith("/") and ".." not in parts and "\0" not in name


def check_names(names: Iterable[str], manifest: Path) -> None:
    """Refuses paths that lead out of the directory. Raises DamagedError."""
    for name in names:
        if not is_inside(name):
            raise DamagedError(
                f"{manifest}: is damaged or was altered: it lists {name}, which is no path within the run directory; "
                "restore it from a copy"
            )

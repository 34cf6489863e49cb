"""What can be wrong with a run directory."""

from __future__ import annotations

__all__ = ["DamagedError", "NoRoomError", "RunDirectoryError"]


class RunDirectoryError(Exception):
    """The run directory cannot be used; the text says why and what to do."""


class DamagedError(RunDirectoryError):
    """What was recorded is not what was written, or not all of it: no figure can be given. The text names the file."""


class NoRoomError(RunDirectoryError):
    """The disk has no room to begin a run directory."""

"""Errors of run directories."""

from __future__ import annotations

from pathlib import Path

__all__ = [
    "DamagedError",
    "NoRoomError",
    "OtherVersionError",
    "RunDirectoryError",
    "UnfinishedError",
    "UnwritableError",
]


class RunDirectoryError(Exception):
    """The run directory cannot be used; the text gives the reason and the cure."""


class DamagedError(RunDirectoryError):
    """A recorded file is damaged or incomplete: no figure can be given. The text names the file."""


class OtherVersionError(RunDirectoryError):
    """The run directory was written by a version whose manifest this one does not read."""


class NoRoomError(RunDirectoryError):
    """The disk has no room to begin a run directory."""


class UnwritableError(RunDirectoryError):
    """The directory cannot be written; `reason` is the system's message."""

    def __init__(self, root: Path, reason: str | None) -> None:
        super().__init__(f"{root}: cannot be written: {reason}")
        self.reason = reason


class UnfinishedError(RunDirectoryError):
    """A campaign was killed, and its files cannot be made readable here."""

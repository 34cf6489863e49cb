"""The verbosity of commands: `-q` and `-v`, with the same meaning in every command."""

from __future__ import annotations

from typing import Final, Literal

__all__ = ["is_quiet", "is_verbose", "set_loudness"]

Loudness = Literal["quiet", "usual", "verbose"]
_NOW: Final[list[Loudness]] = ["usual"]


def set_loudness(*, quiet: bool, verbose: bool) -> None:
    """Sets the verbosity of this command; the last call counts."""
    _NOW[0] = "quiet" if quiet else "verbose" if verbose else "usual"


def is_quiet() -> bool:
    """Whether only the answer and errors are printed."""
    return _NOW[0] == "quiet"


def is_verbose() -> bool:
    """Whether the duration of each stage, and the origin of unexpected errors, are printed too."""
    return _NOW[0] == "verbose"

"""How much a command says besides its answer: `-q` and `-v`, which mean the same in every command."""

from __future__ import annotations

from typing import Final, Literal

__all__ = ["is_quiet", "is_verbose", "set_loudness"]

Loudness = Literal["quiet", "usual", "verbose"]
_NOW: Final[list[Loudness]] = ["usual"]


def set_loudness(*, quiet: bool, verbose: bool) -> None:
    """For this command; the last call counts."""
    _NOW[0] = "quiet" if quiet else "verbose" if verbose else "usual"


def is_quiet() -> bool:
    """Whether only the answer and errors are to be printed."""
    return _NOW[0] == "quiet"


def is_verbose() -> bool:
    """Whether also how long each stage took is to be printed, and where an error that nobody expected came from."""
    return _NOW[0] == "verbose"

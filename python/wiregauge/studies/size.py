"""The sizes of studies, and the error of a study that cannot run."""

from __future__ import annotations

from typing import Literal

__all__ = ["SIZES", "Size", "StudyError"]

Size = Literal["quick", "usual", "full"]
SIZES: tuple[Size, ...] = ("quick", "usual", "full")


class StudyError(Exception):
    """A study that does not exist, or whose files do not match; the text is a sentence with its cure."""

"""In which sizes a study runs, and what is said where one does not."""

from __future__ import annotations

from typing import Literal

__all__ = ["SIZES", "Size", "StudyError"]

Size = Literal["quick", "usual", "full"]
SIZES: tuple[Size, ...] = ("quick", "usual", "full")


class StudyError(Exception):
    """A study that there is not, or whose files do not belong together; the text is a sentence with its cure."""

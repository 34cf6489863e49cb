"""Sentences on a terminal: broken between words, never within one, a command, a link or an interval.

A terminal would break them itself, after whatever letter stands in its last column. A file gets each sentence as one
line, for programs to search. Commands that stand by themselves are not wrapped at all: they are there to be copied.
"""

from __future__ import annotations

import re
import shutil
from typing import IO, Final

__all__ = ["breaks", "indent_of", "width_for", "wrapped"]

_WHOLE: Final = re.compile(r"(?:`[^`]*`|\[[^\[\]]{0,40}\]|[^\s`\[]|[`\[])+")
"""A word; what stands between marks of code, and an interval in brackets, are one."""
_MARK: Final = re.compile(r"(?:[-·•] )?")


def width_for(stream: IO[str]) -> int | None:
    """Columns that a sentence has on this stream; None where it is to stay one line."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def indent_of(text: str) -> int:
    """Columns by which the lines after the first are indented: as far as the first, and beyond its mark of a list."""
    begin = len(text) - len(text.lstrip())
    mark = _MARK.match(text, begin)
    return begin + (len(mark[0]) if mark else 0)


def breaks(text: str, width: int, indent: int) -> list[tuple[int, int]]:
    """Begin and end of each line. A word that is longer than a line has one of its own, which the terminal breaks."""
    lines: list[tuple[int, int]] = []
    begin = end = 0
    for word in _WHOLE.finditer(text):
        room = width - (indent if lines else 0)
        if end > begin and word.end() - begin > room and text[begin:end].strip():
            lines.append((begin, end))
            begin = word.start()
        end = word.end()
    return [*lines, (begin, end)]


def wrapped(text: str, width: int | None, indent: int | None = None) -> str:
    """The lines of a sentence, those after the first indented."""
    if width is None or len(text) <= width:
        return text
    by = indent_of(text) if indent is None else indent
    return ("\n" + " " * by).join(text[begin:end] for begin, end in breaks(text, width, by))

"""Wraps sentences on a terminal between words, never within a word, a command, a link or an interval.

A terminal would break them itself, after any letter in its last column. A file gets each sentence as one line, for
programs to search. Separate commands are not wrapped at all, so that they can be copied.
"""

from __future__ import annotations

import re
import shutil
from typing import IO, Final

__all__ = ["breaks", "indent_of", "width_for", "wrapped"]

_WHOLE: Final = re.compile(r"(?:`[^`]*`|\[[^\[\]]{0,40}\]|[^\s`\[]|[`\[])+")
"""A word; text between code marks, and an interval in brackets, count as one."""
_MARK: Final = re.compile(r"(?:[-·•] )?")


def width_for(stream: IO[str]) -> int | None:
    """The width of a sentence on this stream, columns; None where it stays one line."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def indent_of(text: str) -> int:
    """The indentation of the lines after the first, columns: that of the first, plus its list mark."""
    begin = len(text) - len(text.lstrip())
    mark = _MARK.match(text, begin)
    return begin + (len(mark[0]) if mark else 0)


def breaks(text: str, width: int, indent: int) -> list[tuple[int, int]]:
    """Begin and end of each line. A word longer than a line has its own, which the terminal breaks."""
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
    """The sentence in lines, indented after the first."""
    if width is None or len(text) <= width:
        return text
    by = indent_of(text) if indent is None else indent
    return ("\n" + " " * by).join(text[begin:end] for begin, end in breaks(text, width, by))

"""Makes foreign texts safe to print: without terminal control and invisible characters.

Names come from captures, run directories, hosts and file names. They may contain control characters (an escape
sequence clears a screen), line ends (a name that forges a line), direction marks (text that reads differently),
zero-width characters, halves of surrogate pairs. These are escaped as in JSON and Python, `\\n` and `\\u001b`;
everything else stays.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Final

__all__ = ["printable", "printable_content", "printable_lines"]

_UNSEEN: Final = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
"""Categories of Unicode: control, format, surrogate, private use, line and paragraph separator."""


_HARMLESS: Final = re.compile(
    "[\\x20-\\x7e\\xa1-\\xac\\xae-\\u02ff\\u2010-\\u2027\\u202f-\\u205f\\u2070-\\u22ff]*"
)
"""Characters of nearly every text, which need no look-up."""
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """The text as one printable line; most texts are unchanged.

    >>> printable("port 1")
    'port 1'
    >>> print(printable("a\\x1b[2J\\nb"))
    a\\u001b[2J\\nb
    """
    return text if _HARMLESS.fullmatch(text) else "".join(map(_shown, text))


def printable_lines(text: str) -> str:
    """The text made printable, with its line ends."""
    if _HARMLESS.fullmatch(text):
        return text
    return "\n".join(map(printable, text.split("\n")))


def printable_content(content: Any) -> Any:
    """Foreign JSON content with every string in it, keys too, made printable."""
    if isinstance(content, str):
        return printable(content)
    if isinstance(content, dict):
        return {printable(key): printable_content(value) for key, value in content.items()}
    return [printable_content(one) for one in content] if isinstance(content, list) else content


def _shown(character: str) -> str:
    if unicodedata.category(character) not in _UNSEEN:
        return character
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    if code > 0xFFFF:
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
    return f"\\u{code:04x}"

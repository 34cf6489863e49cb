"""Indented JSON from compiled code, since a sweep writes its manifest whenever runs begin or end."""

from __future__ import annotations

import numbers
from typing import Any


def indented(content: Any) -> str:
    """The content as JSON with one space of indentation for each level, and a line feed at the end.

    Equals `json.dumps(content, indent=1, ensure_ascii=False)`, except for exponents (`1e16`, not `1e+16`), in a tenth
    of the time. NaN and infinities become null, since JSON has no form for them. Raises TypeError for other types
    that JSON lacks.
    """
    import msgspec  # many commands write no file

    return msgspec.json.format(msgspec.json.encode(content, enc_hook=_plain), indent=1).decode() + "\n"


def _plain(value: Any) -> Any:
    """A number of a library as a Python number."""
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"a {type(value).__name__} has no form in JSON")

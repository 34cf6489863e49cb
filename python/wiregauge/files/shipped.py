"""Finds the files shipped with the program besides its code: the pages of `docs`, the tests of `examples`.

The wheel has them in the package, where `tools/build_backend.py` puts them; a checkout has them at its root.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

__all__ = ["shipped"]

_PACKAGE = Path(__file__).resolve().parents[1]


def shipped(folder: Literal["docs", "examples"]) -> Path:
    """The path of the folder in this installation."""
    packed = _PACKAGE / "shipped" / folder
    return packed if packed.is_dir() else _PACKAGE.parents[1] / folder

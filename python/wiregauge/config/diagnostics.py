"""Diagnostics for the author of a test: file, line, element, limit, cure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from wiregauge.files import printable


class Diagnostic(Struct, frozen=True):
    """One thing that is wrong. `line` is 0 and `element` empty where the file as a whole is meant."""

    file: str
    line: int
    element: str
    message: str
    limit: str = ""
    cure: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        element = f"{self.element}: " if self.element else ""
        limit = f" (limit: {self.limit})" if self.limit else ""
        cure = f"; {self.cure}" if self.cure else ""
        return printable(f"{where}: {element}{self.message}{limit}{cure}")

    def as_dict(self) -> dict[str, str | int]:
        """The form of `wiregauge check --json`."""
        return {
            "file": self.file,
            "line": self.line,
            "element": self.element,
            "message": self.message,
            "limit": self.limit,
            "cure": self.cure,
        }


MOST_DIAGNOSTICS: Final = 50
"""Most diagnostics reported for one file; the rest are counted only, to be seen after these are fixed."""


class TestError(Exception):
    """A test that cannot be run. Its text is one line per diagnostic, in the order of the file.

    `diagnostics` are the first `MOST_DIAGNOSTICS` of them, `total` is their number. `beyond`: number of diagnostics not
    given.
    """

    __test__ = False  # the name is the field's; pytest must not take it for a test case

    def __init__(self, diagnostics: Sequence[Diagnostic], beyond: int = 0) -> None:
        ordered = sorted(diagnostics, key=lambda diagnostic: diagnostic.line)
        self.diagnostics = tuple(ordered[:MOST_DIAGNOSTICS])
        self.total = len(ordered) + beyond
        super().__init__("\n".join([*map(str, self.diagnostics), *self.remark]))

    @property
    def remark(self) -> tuple[str, ...]:
        """The line that follows the diagnostics where there are more; else empty."""
        more = self.total - len(self.diagnostics)
        if not more:
            return ()
        file = self.diagnostics[0].file
        return (f"{file}: {self.total} faults in all, of which these are the first {len(self.diagnostics)}",)


def shown(value: str) -> str:
    """A value fit for a message: at most 40 characters, none of them a control character."""
    text = "".join(char if char.isprintable() else " " for char in value[:40])
    return text + "…" if len(value) > 40 else text

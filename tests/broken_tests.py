"""The faulty tests of `tests/broken`: a valid test, replacements in it, and the expected messages.

`NAME.xml` is a valid test and `NAME.toml` has one table for each fault made from it:

- `replace`: pairs of an old text, which stands in the valid test exactly once, and the new one in its place
- `says`: the messages, one a line, each with the number of its line and without the name of the file
- `what`: what is wrong, where neither the name of the fault nor its message says it
- `encoding`: that of the file if it is not UTF-8

A fault that shares nothing with a valid test has its entire `text`; such tables are in a file without a valid test.

The wrong lines are those with the mark `<!-- wrong -->`, or without a mark all those absent from the valid test. Where
a mark is impossible, `wrong` lists their numbers.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

FOLDER = Path(__file__).parent / "broken"
TABLES = sorted(FOLDER.glob("*.toml"))
VALID = sorted(FOLDER.glob("*.xml"))
MARK = "<!-- wrong -->"


class Fault(Struct, frozen=True):
    """A faulty test."""

    table: Path
    name: str
    text: str
    encoding: str
    says: tuple[str, ...]
    """The expected messages, in the form of `without_file`."""
    wrong: frozenset[int]
    """The numbers of the lines that messages must name."""

    def write(self, folder: Path) -> Path:
        """Writes the test into a folder and returns its path."""
        path = folder / f"{self.name}.xml"
        path.write_bytes(self.text.encode(self.encoding))
        return path


def without_file(message: str, path: Path) -> str:
    """A message in the form of the tables."""
    return message.removeprefix(f"{path}:").lstrip()


def replaced(text: str, pairs: list[list[str]]) -> str:
    """The text with each old text, which must occur exactly once, replaced by the new one."""
    places = []
    for old, new in pairs:
        if text.count(old) != 1:
            raise ValueError(f"{text.count(old)} times in the valid test, not once: {old}")
        places.append((text.index(old), old, new))
    for at, old, new in sorted(places, reverse=True):
        if text[at : at + len(old)] != old:
            raise ValueError(f"another replacement of the same fault overlaps this one: {old}")
        text = text[:at] + new + text[at + len(old) :]
    return text


def wrong_lines(text: str, valid: str) -> frozenset[int]:
    """The marked lines, or without a mark those that are neither blank nor in the valid test."""
    lines = dict(enumerate(text.split("\n"), 1))
    marked = {number for number, line in lines.items() if MARK in line}
    there = {"", *(line.strip() for line in valid.split("\n"))}
    return frozenset(marked or (number for number, line in lines.items() if line.strip() not in there))


def read_fault(table: Path, name: str, row: dict[str, Any], valid: str) -> Fault:
    """The fault that a table describes."""
    unknown = row.keys() - {"what", "replace", "text", "encoding", "wrong", "says"}
    if unknown or ("text" in row) == ("replace" in row):
        raise ValueError(f"{table.name}: {name} has unknown keys {unknown}, or not one of text and replace")
    try:
        text = row["text"] if "text" in row else replaced(valid, row["replace"])
    except ValueError as error:
        raise ValueError(f"{table.name}: {name}: {error}") from error
    wrong = frozenset(row["wrong"]) if "wrong" in row else wrong_lines(text, valid)
    return Fault(table, name, text, row.get("encoding", "utf-8"), tuple(row["says"].splitlines()), wrong)


@cache
def faults() -> tuple[Fault, ...]:
    """All faults of all tables."""
    found = []
    for table in TABLES:
        valid = table.with_suffix(".xml")
        text = valid.read_text(encoding="utf-8") if valid in VALID else ""
        rows = tomllib.loads(table.read_text(encoding="utf-8"))
        found += [read_fault(table, name, row, text) for name, row in rows.items()]
    return tuple(found)

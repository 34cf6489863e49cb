"""Settings of a simulation of OMNeT++ (omnetpp.ini): sections, their order, and what they assign to a parameter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from wiregauge.inet.values import InetError

__all__ = ["Assignment", "Settings", "configurations", "read_settings"]

GENERAL: Final = "General"
_SECTION = re.compile(r"\[\s*(?:Config\s+)?([\w-]+)\s*\]$")
_RANGE = re.compile(r"(\d+)\.\.(\d+)$")
_MOST_NUMBERS: Final = 10_000
_MOST_INCLUDED: Final = 16


class Assignment(Struct, frozen=True):
    """A line of the file: a pattern of parameters, or an option of the simulation, and its value as it is written."""

    pattern: str
    value: str
    place: str
    """File and line."""

    @property
    def is_option(self) -> bool:
        """Whether it sets the simulation itself."""
        return "." not in self.pattern


class Settings:
    """The assignments of one configuration, the first that fits a parameter wins; and which of them were asked for."""

    def __init__(self, assignments: Sequence[Assignment]) -> None:
        self._assignments = assignments
        self._used: set[Assignment] = set()

    def option(self, name: str) -> str | None:
        """An option of the simulation."""
        return self._first(one for one in self._assignments if one.pattern == name)

    def parameter(self, path: str) -> str | None:
        """The value of a parameter by its full path without the network's name, as it is written."""
        return self._first(one for one in self._assignments if not one.is_option and fits(one.pattern, path))

    def _first(self, found: Iterator[Assignment]) -> str | None:
        one = next(found, None)
        if one is None:
            return None
        self._used.add(one)
        return one.value

    def unused(self) -> Iterator[Assignment]:
        """What nobody asked for."""
        return (one for one in self._assignments if one not in self._used)


def fits(pattern: str, path: str) -> bool:
    """Whether a pattern of parameters is for the parameter with this path within the network."""
    return _pattern(pattern).fullmatch(f"network.{path}") is not None


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """Wildcards as OMNeT++ has them: * within a name, ** across names, {a..b} and [a..b] numbers."""
    parts, at = [], 0
    first, dot, _ = text.partition(".")
    if dot and re.fullmatch(r"\w+", first):
        text = "network" + text[len(first) :]
    while at < len(text):
        letter = text[at]
        if text.startswith("**", at):
            parts.append(".*")
            at += 2
            continue
        if letter in "{[":
            end = text.find("}" if letter == "{" else "]", at)
            numbers = _RANGE.match(text[at + 1 : end]) if end > 0 else None
            if numbers is not None and int(numbers[2]) - int(numbers[1]) <= _MOST_NUMBERS:
                choice = "|".join(map(str, range(int(numbers[1]), int(numbers[2]) + 1)))
                parts.append(f"(?:{choice})" if letter == "{" else rf"\[(?:{choice})\]")
                at = end + 1
                continue
        parts.append({"*": "[^.]*", "?": "[^.]"}.get(letter, re.escape(letter)))
        at += 1
    return re.compile("".join(parts), re.DOTALL)


def configurations(file: Path) -> Sequence[str]:
    """The configurations that a file has, in its order, without those that are for others to extend."""
    sections = _sections(file)
    abstract = {
        name
        for name, lines in sections.items()
        if any(line.pattern == "abstract" and line.value == "true" for line in lines)
    }
    return [name for name in sections if name not in abstract]


def read_settings(file: Path, configuration: str | None) -> Settings:
    """What a configuration assigns, or the general section alone. Raises InetError, OSError, UnicodeDecodeError."""
    sections = _sections(file)
    wanted = configuration or GENERAL
    if wanted not in sections and configuration is not None:
        raise InetError(
            [
                f'{file}: there is no configuration "{wanted}"; it has {", ".join(configurations(file)) or "none"}'
            ]
        )
    found: list[Assignment] = []
    left, known = [wanted], set()
    while left:
        name = left.pop(0)
        if name in known:
            continue
        known.add(name)
        if name not in sections and name != GENERAL:
            raise InetError([f'{file}: a configuration extends "{name}", which is not there'])
        lines = sections.get(name, [])
        found += lines
        extended = next((one.value for one in lines if one.pattern == "extends"), "")
        left += [part.strip() for part in extended.split(",") if part.strip()]
        if not left and GENERAL not in known:
            left = [GENERAL]
    return Settings(found)


def _sections(file: Path) -> dict[str, list[Assignment]]:
    sections: dict[str, list[Assignment]] = {}
    now: list[Assignment] = sections.setdefault(GENERAL, [])
    for place, line in _lines(file, 0):
        section = _SECTION.match(line)
        if section is not None:
            now = sections.setdefault(section[1], [])
            continue
        pattern, equals, value = line.partition("=")
        if not equals:
            raise InetError([f'{place}: "{line[:60]}" is neither a section nor an assignment'])
        now.append(Assignment(pattern.strip(), value.strip(), place))
    if not sections[GENERAL]:
        del sections[GENERAL]
    return sections


def _lines(file: Path, depth: int) -> Iterator[tuple[str, str]]:
    """Lines without comments, each with its place; one that begins with a space goes on with the line before it."""
    from wiregauge.files import read_text

    gathered: tuple[str, str] | None = None
    for number, raw in enumerate(read_text(file).splitlines(), 1):
        line = _without_comment(raw).rstrip()
        if not line.strip():
            continue
        if gathered is not None and (raw[:1] in " \t" or gathered[1].endswith("\\")):
            gathered = gathered[0], f"{gathered[1].rstrip(chr(92))} {line.strip()}"
            continue
        if gathered is not None:
            yield gathered
        gathered = f"{file}:{number}", line.strip()
        if line.startswith("include "):
            if depth >= _MOST_INCLUDED:
                raise InetError([f"{file}:{number}: files include one another deeper than {_MOST_INCLUDED}"])
            gathered = None
            yield from _lines(file.parent / line.removeprefix("include ").strip(), depth + 1)
    if gathered is not None:
        yield gathered


def _without_comment(line: str) -> str:
    is_text, at = False, 0
    while at < len(line):
        if line[at] == "\\" and is_text:
            at += 1
        elif line[at] == '"':
            is_text = not is_text
        elif line[at] == "#" and not is_text:
            return line[:at]
        at += 1
    return line

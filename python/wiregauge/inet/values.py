"""Values of OMNeT++: quantities with units, texts, lists, objects, and the operations on them that constants need."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final, TypeAlias

from msgspec import Struct

__all__ = ["Call", "InetError", "Quantity", "UnreadableError", "Value", "evaluated", "picos"]


class InetError(ValueError):
    """What one side has and the other lacks, or is not carried; `reasons` name each."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = tuple(reasons)


class UnreadableError(ValueError):
    """An expression that is no constant, or none that is understood here."""


class Quantity(Struct, frozen=True):
    """A number in the base unit of its dimension: s, B, bps, m, or none."""

    value: Fraction
    dimension: str = ""


class Call(Struct, frozen=True):
    """A function of constants, such as exponential(200us)."""

    name: str
    arguments: Sequence[Value]


Value: TypeAlias = "Quantity | str | bool | Call | Sequence[Value] | Mapping[str, Value]"

_UNITS: Final[Mapping[str, tuple[str, Fraction]]] = {
    "": ("", Fraction(1)),
    **{
        unit: ("s", Fraction(size))
        for unit, size in (
            ("d", 86400),
            ("h", 3600),
            ("min", 60),
            ("s", 1),
            ("ms", Fraction(1, 10**3)),
            ("us", Fraction(1, 10**6)),
            ("ns", Fraction(1, 10**9)),
            ("ps", Fraction(1, 10**12)),
            ("fs", Fraction(1, 10**15)),
        )
    },
    "b": ("B", Fraction(1, 8)),
    "B": ("B", Fraction(1)),
    "kB": ("B", Fraction(1000)),
    "KiB": ("B", Fraction(1024)),
    "MB": ("B", Fraction(10**6)),
    "MiB": ("B", Fraction(2**20)),
    "bps": ("bps", Fraction(1)),
    "kbps": ("bps", Fraction(10**3)),
    "Mbps": ("bps", Fraction(10**6)),
    "Gbps": ("bps", Fraction(10**9)),
    "m": ("m", Fraction(1)),
    "km": ("m", Fraction(1000)),
}
_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*(?P<unit>[A-Za-z]*)|(?P<text>"(?:[^"\\]|\\.)*")"""
    r"""|(?P<name>[A-Za-z_][\w.]*)|(?P<sign>&&|\|\||[=!<>]=|[^\s]))"""
)
_ESCAPED = re.compile(r"\\(.)")
_DEEPEST: Final = 40


def evaluated(text: str) -> Value:
    """The value of an expression. Raises UnreadableError."""
    reader = _Reader(text)
    value = reader.value(0)
    if reader.kind != "end":
        raise UnreadableError(f"{text.strip()!r} goes on after a value")
    return value


def picos(value: Value) -> int:
    """A time in whole picoseconds. Raises UnreadableError."""
    if not isinstance(value, Quantity) or value.dimension != "s":
        raise UnreadableError("it is no time")
    whole = value.value * 10**12
    if whole.denominator != 1:
        raise UnreadableError("it has fractions of a picosecond")
    return int(whole)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self.kind, self._word, self._unit = "end", "", ""
        self._next()

    def _next(self) -> None:
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            self.kind, self._word = "end", ""
            return
        self._at = found.end()
        self.kind = str(found.lastgroup) if found["number"] is None else "number"
        self._word, self._unit = found[self.kind], found["unit"] or ""

    def _takes(self, word: str) -> bool:
        if self.kind == "sign" and self._word == word:
            self._next()
            return True
        return False

    def _needs(self, word: str) -> None:
        if not self._takes(word):
            raise UnreadableError(
                f"{self._text.strip()!r} is no constant: {word!r} is not where it should be"
            )

    def value(self, depth: int) -> Value:
        if depth > _DEEPEST:
            raise UnreadableError(f"it is nested deeper than {_DEEPEST}")
        left = self._product(depth)
        while self.kind == "sign" and self._word in "+-":
            sign = 1 if self._word == "+" else -1
            self._next()
            right = self._product(depth)
            one, other = _number(left), _number(right)
            if one.dimension != other.dimension:
                raise UnreadableError("it adds two units")
            left = Quantity(one.value + sign * other.value, one.dimension)
        return left

    def _product(self, depth: int) -> Value:
        left = self._single(depth)
        while self.kind == "sign" and self._word in "*/":
            divides = self._word == "/"
            self._next()
            one, other = _number(left), _number(self._single(depth))
            if other.dimension and (divides or one.dimension):
                raise UnreadableError("it multiplies or divides units")
            if divides and not other.value:
                raise UnreadableError("it divides by zero")
            value = one.value / other.value if divides else one.value * other.value
            left = Quantity(value, one.dimension or other.dimension)
        return left

    def _single(self, depth: int) -> Value:
        kind, word, unit = self.kind, self._word, self._unit
        self._next()
        if kind == "number":
            if unit not in _UNITS:
                raise UnreadableError(f"the unit {unit} is not known here")
            dimension, size = _UNITS[unit]
            return Quantity(Fraction(word) * size, dimension)
        if kind == "text":
            return _ESCAPED.sub(r"\1", word[1:-1])
        if kind == "name":
            return self._named(word, depth)
        match word:
            case "-":
                number = _number(self._single(depth + 1))
                return Quantity(-number.value, number.dimension)
            case "(":
                value = self.value(depth + 1)
                self._needs(")")
                return value
            case "[":
                return self._list("]", depth)
            case "{":
                return self._object(depth)
        raise UnreadableError(f"{self._text.strip()!r} is no constant")

    def _named(self, word: str, depth: int) -> Value:
        if word in ("true", "false"):
            return word == "true"
        if word == "expr" and self.kind == "sign" and self._word == "(":
            return self._expression()
        if self._takes("("):
            return Call(word, self._list(")", depth))
        raise UnreadableError(f"{word} is no constant")

    def _expression(self) -> Value:
        """The text of expr(…), which is for later."""
        begin, open_ = self._at, 1
        for at in range(begin, len(self._text)):
            open_ += {"(": 1, ")": -1}.get(self._text[at], 0)
            if not open_:
                self._at = at + 1
                self._next()
                return Call("expr", (self._text[begin:at].strip(),))
        raise UnreadableError("a bracket of expr is not closed")

    def _list(self, end: str, depth: int) -> Sequence[Value]:
        found: list[Value] = []
        while not self._takes(end):
            found.append(self.value(depth + 1))
            if not self._takes(","):
                self._needs(end)
                break
        return found

    def _object(self, depth: int) -> Mapping[str, Value]:
        found: dict[str, Value] = {}
        while not self._takes("}"):
            if self.kind not in ("name", "text"):
                raise UnreadableError("an object has a member without a name")
            name = self._word.strip('"')
            self._next()
            self._needs(":")
            found[name] = self.value(depth + 1)
            if not self._takes(","):
                self._needs("}")
                break
        return found


def _number(value: Value) -> Quantity:
    if not isinstance(value, Quantity):
        raise UnreadableError("it computes with what is no number")
    return value

"""Checks a certificate as a whole, and says what is proved, what is assumed and what was not checked."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NoReturn

from .claims import Claims
from .network import Network
from .numbers_of_test import compared
from .reading import MOST_DIGITS, RefutedError, UnreadableError, parts, text, timed, unreadable
from .reading import said as name_of
from .steps import Analysis

__all__ = ["Checked", "check", "check_bytes"]

SCHEMA: Final = 1
PROVED, STEP_FAILS, NOT_ALL_CHECKED = 0, 1, 4
MOST_LISTED: Final = 12
"""Bounds that the text lists."""
_MOST_BYTES: Final = 1 << 30
_DAMAGED: Final = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError)


@dataclass
class Checked:
    """What was found."""

    name: str
    proved: int = 0
    """Bounds that follow from the premises."""
    claimed: int = 0
    limits: int = 0
    """Limits that the bounds keep."""
    bounds: list[tuple[str, str, Fraction]] = field(default_factory=list)
    """Flow, target and bound, in the unit of time."""
    resting: set[tuple[str, str]] = field(default_factory=set)
    """Flow and target of bounds that rest on what is not checked."""
    time_unit: str = "s"
    assumptions: list[str] = field(default_factory=list)
    """What the certificate rests on and no step can show."""
    unchecked: list[str] = field(default_factory=list)
    """What it claims by theorems that are not checked here."""
    premises: list[str] = field(default_factory=list)
    """How the premises compare with the test; empty without a test."""
    refuted: str | None = None
    """The step that does not hold."""

    @property
    def code(self) -> int:
        """The exit code."""
        if self.refuted is not None:
            return STEP_FAILS
        return NOT_ALL_CHECKED if self.unchecked else PROVED

    @property
    def verdict(self) -> str:
        """One line."""
        if self.refuted is not None:
            return f"{self.name}: NOT PROVED: {self.refuted}"
        limits = f", {self.limits} limit{'s' * (self.limits != 1)} kept" if self.limits else ""
        count = len(self.unchecked)
        rest = (
            f"; {count} {'thing is' if count == 1 else 'things are'} NOT CHECKED"
            if count
            else "; nothing is left unchecked"
        )
        return f"{self.name}: {self.proved} of {self.claimed} bounds proved{limits}{rest}"

    def lines(self) -> Iterator[str]:
        """The result as text."""
        yield self.verdict
        if self.refuted is not None:
            return
        for heading, listed in (
            ("Bounds, the greatest first:", self._bounds()),
            ("Not checked:", self.unchecked),
            ("Premises against the test:", self.premises),
            ("Assumed:", self.assumptions),
        ):
            if listed:
                yield ""
                yield heading
                yield from (f"- {one}" for one in listed)

    def _bounds(self) -> list[str]:
        ordered = sorted(self.bounds, key=lambda one: (-one[2], one[0], one[1]))
        listed = [
            f"flow {flow} to {to}: {timed(delay, self.time_unit)}{', NOT CHECKED' * ((flow, to) in self.resting)}"
            for flow, to, delay in ordered[:MOST_LISTED]
        ]
        more = len(ordered) - len(listed)
        return [*listed, *([f"and {more} more, which --json has"] if more else [])]

    def as_json(self) -> dict[str, Any]:
        """The result as JSON."""
        return {
            "schema": SCHEMA,
            "certificate": self.name,
            "time_unit": self.time_unit,
            "proved": self.proved,
            "claimed": self.claimed,
            "limits_kept": self.limits,
            "bounds": [
                {"flow": flow, "target": to, "delay": float(delay)} for flow, to, delay in self.bounds
            ],
            "not_checked": self.unchecked,
            "premises": self.premises,
            "assumptions": self.assumptions,
            "refuted": self.refuted,
        }


def check(place: Path, test: Path | None = None) -> Checked:
    """Checks a certificate; with a test, also whether its premises are that of the test. Raises `UnreadableError`."""
    return check_bytes(_bytes(place), None if test is None else _bytes(test))


def check_bytes(data: bytes, test: bytes | None = None) -> Checked:
    """Checks a certificate, as `check` does."""
    with _long_numbers():
        try:
            certificate = json.loads(data, parse_float=_no_float, parse_constant=_no_float)
            if not isinstance(certificate, dict) or certificate.get("certificate") != "bounds":
                unreadable("it is no certificate of bounds")
            if certificate["schema"] != SCHEMA:
                unreadable(
                    f"its schema is {str(certificate['schema'])[:20]}, and this program reads {SCHEMA}"
                )
            return _checked(certificate, test)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            unreadable(f"it is no JSON: {str(error)[:80]}")
        except RecursionError:
            unreadable("it is nested too deeply")
        except KeyError as error:
            unreadable(f"a part is missing: {str(error)[:80]}")
        except _DAMAGED as error:
            unreadable(f"a part has another form: {str(error)[:80]}")


def _checked(certificate: dict[str, Any], test: bytes | None) -> Checked:
    found = Checked(
        text(certificate["name"], "name"), time_unit=text(certificate["time_unit"], "unit of time")
    )
    network = Network(certificate["premises"], packetizer=certificate["packetizer"])
    try:
        if test is not None:
            if hashlib.sha256(test).hexdigest() != certificate["source"]["sha256"]:
                raise RefutedError("the certificate is of another file than the test")
            found.premises = compared(certificate, network, test)
        analyses = [Analysis(network, one) for one in parts(certificate["analyses"], "analyses")]
        for analysis in analyses:
            analysis.check()
        claims = Claims(network, analyses, parts(certificate["sets"], "sets"), found.time_unit)
        claims.conclude(certificate["conclusions"], certificate["proofs"])
        claims.keep(certificate["limits"], certificate["premises"]["places"])
    except RefutedError as error:
        found.refuted = str(error)
        return found
    said = [text(one, "an assumption") for one in parts(certificate["assumptions"], "assumptions")]
    found.assumptions = list(dict.fromkeys([*said, *_orders(analyses)]))
    for node in sorted({node for analysis in analyses for node in analysis.full}):
        found.assumptions.append(f"delays at {name_of(node)} are of frames that find room in its buffer")
    found.proved, found.claimed, found.limits = claims.proved, len(certificate["conclusions"]), claims.limits
    found.claimed -= sum("slowest_of" in one for one in certificate["conclusions"])
    found.bounds = [(*key, bound) for key, bound in claims.bounds.items()]
    found.resting = claims.resting
    found.unchecked = [*claims.unchecked, *sorted(claims.assumed)]
    return found


def _orders(analyses: list[Analysis]) -> Iterator[str]:
    if not all(analysis.fifo for analysis in analyses):
        yield "every server serves whenever something waits (a strict service curve)"
    if any(analysis.grouping for analysis in analyses):
        yield "nothing comes over a link faster than its capacity"


@contextmanager
def _long_numbers() -> Iterator[None]:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(MOST_DIGITS)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(before)


def _no_float(written: str) -> NoReturn:
    unreadable(f"the number {written[:40]} is no fraction")


def _bytes(place: Path) -> bytes:
    try:
        if place.stat().st_size > _MOST_BYTES:
            unreadable(f"{place} is larger than {_MOST_BYTES} bytes")
        return place.read_bytes()
    except OSError as error:
        raise UnreadableError(f"{place}: {error.strerror}") from error

"""Reads the output of linuxptp's programs. Agents start them: `crates/agent/src/clocks` has their configurations."""

from __future__ import annotations

import re

from msgspec import Struct

__all__ = ["Said", "read_line", "read_pmc"]


class Said(Struct, frozen=True):
    """A line about a clock. `monotonic_s` is CLOCK_MONOTONIC of the host that printed it."""

    monotonic_s: float
    program: str
    state: str
    offset_ns: float | None = None
    delay_ns: float | None = None
    frequency_ppb: float | None = None
    is_port: bool = False
    """Whether `state` is that of a port, not of the servo."""


_PREFIX = re.compile(r"^(?P<program>ptp4l|phc2sys)\[(?P<time>\d+\.\d+)\]: (?:\[[^\]]*\] )?(?P<rest>.*)$")
_NUMBER = r"[+-]?\d+"
_SERVO = re.compile(
    rf"(?:master|phc|sys) offset\s+(?P<offset>{_NUMBER})\s+(?P<state>s\d)\s+freq\s+(?P<freq>{_NUMBER})"
    rf"(?:\s+(?:path )?delay\s+(?P<delay>{_NUMBER}))?"
)
_SUMMARY = re.compile(
    rf"rms\s+(?P<rms>\d+)\s+max\s+(?P<max>\d+)\s+freq\s+(?P<freq>{_NUMBER})\s+\+/-\s+\d+"
    rf"(?:\s+delay\s+(?P<delay>{_NUMBER})\s+\+/-\s+\d+)?"
)
_PORT = re.compile(r"port (?P<port>[1-9]\d*)(?: \([^)]*\))?: (?P<before>[A-Z_]+) to (?P<state>[A-Z_]+)\b")


def read_line(line: str) -> Said | None:
    """The content of a line of ptp4l or phc2sys; None where it is not about a clock."""
    found = _PREFIX.match(line.strip())
    if found is None:
        return None
    time, program, rest = float(found["time"]), found["program"], found["rest"]
    if servo := _SERVO.search(rest):
        delay = servo["delay"]
        return Said(
            time,
            program,
            servo["state"],
            float(servo["offset"]),
            float(delay) if delay is not None else None,
            float(servo["freq"]),
        )
    if summary := _SUMMARY.search(rest):
        delay = summary["delay"]
        # The largest of several offsets: a bound without a sign.
        return Said(
            time,
            program,
            "s2",
            float(summary["max"]),
            float(delay) if delay is not None else None,
            float(summary["freq"]),
        )
    if port := _PORT.search(rest):
        return Said(time, program, port["state"], is_port=True)
    return None


def read_pmc(text: str) -> dict[str, dict[str, str]]:
    """The results of pmc: the fields of each data set, as text."""
    found: dict[str, dict[str, str]] = {}
    current: dict[str, str] | None = None
    for line in text.splitlines():
        head = re.search(r"RESPONSE MANAGEMENT (\w+)\s*$", line)
        if head:
            current = found.setdefault(head[1], {})
            continue
        fields = line.split(None, 1)
        if current is not None and line[:1].isspace() and len(fields) == 2:
            current[fields[0]] = fields[1].strip()
        elif line.strip() and not line[:1].isspace():
            current = None
    return found

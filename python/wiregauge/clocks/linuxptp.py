"""linuxptp: the commands and configurations it is given, and what it prints.

Written for linuxptp 3.1 and 4.x: `slaveOnly` is the name of the option that both know. The sequence is that of the MAPS
paper (2015, "Time-synchronization"): the interface's clock is set, ptp4l and phc2sys are started, and the
run waits until they are stable.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from wiregauge.plan import Ptp

__all__ = [
    "PACKAGE",
    "Said",
    "phc2sys_command",
    "phc_ctl_command",
    "pmc_command",
    "ptp4l_command",
    "ptp4l_configuration",
    "read_line",
    "read_pmc",
]

PACKAGE = "linuxptp"
"""Name of the package in the distributions."""
FREE_RUNNING_ESTIMATE = 0
"""log2 of the seconds between two offsets that a free-running ptp4l prints; it accepts nothing shorter."""
_PICOS = 10**12


def _log2_seconds(picoseconds: int) -> int:
    """The exponent that PTP transmits for an interval; the plan has made sure it is whole."""
    return round(math.log2(picoseconds / _PICOS))


def ptp4l_configuration(ptp: Ptp, *, server: bool, interface: str, socket: str) -> str:
    """The file for one end system; `ptp` as in the plan, `socket` is where pmc finds this instance."""
    interval = _log2_seconds(ptp.interval)
    options: dict[str, object] = {
        "time_stamping": ptp.timestamps,
        # Above it lie clocks that nobody chose; the server has to win against all of them.
        "priority1": 100 if server else 255,
        "slaveOnly": 0 if server else 1,
        "free_running": 0 if ptp.steer else 1,
        "freq_est_interval": FREE_RUNNING_ESTIMATE,
        "network_transport": "L2",
        "delay_mechanism": "E2E",
        "logSyncInterval": interval,
        "logMinDelayReqInterval": interval,
        # Announcing as often as four times a second makes the beginning short; it is of no account afterwards.
        "logAnnounceInterval": -2,
        "summary_interval": interval,
        "uds_address": socket,
    }
    if ptp.timestamps == "software":
        # Without a clock in the interface ptp4l's own servo sets the system's clock.
        options |= {
            "pi_proportional_const": ptp.kp_thousandths / 1000,
            "pi_integral_const": ptp.ki_thousandths / 1000,
        }
    lines = [f"{name} {value}" for name, value in options.items()]
    return "\n".join(["[global]", *lines, f"[{interface}]", ""])


def ptp4l_command(configuration: str) -> list[str]:
    """In the foreground, saying everything on standard output."""
    return ["ptp4l", "-m", "-q", "-f", configuration]


def phc_ctl_command(interface: str) -> list[str]:
    """Sets the interface's clock from the system's, once."""
    return ["phc_ctl", "-q", interface, "set"]


def phc2sys_command(ptp: Ptp, *, server: bool, interface: str) -> list[str]:
    """Keeps the interface's clock by the system's on the server, and the system's by the interface's elsewhere.

    Both hold UTC: an offset of 0 is stated, or phc2sys would wait for ptp4l to tell it one.
    """
    source, sink = ("CLOCK_REALTIME", interface) if server else (interface, "CLOCK_REALTIME")
    constants = ["-P", f"{ptp.kp_thousandths / 1000:g}", "-I", f"{ptp.ki_thousandths / 1000:g}"]
    # Once a second, by the fastest of five readings, as in the MAPS paper.
    return ["phc2sys", "-m", "-q", "-s", source, "-c", sink, "-O", "0", "-R", "1", "-N", "5", *constants]


def pmc_command(socket: str) -> list[str]:
    """Asks one instance of ptp4l for its state."""
    return ["pmc", "-u", "-b", "0", "-s", socket, "GET CURRENT_DATA_SET", "GET PORT_DATA_SET"]


@dataclass(frozen=True, slots=True)
class Said:
    """A line that says something of a clock. `monotonic_s` is CLOCK_MONOTONIC of the host that printed it."""

    monotonic_s: float
    program: str
    state: str
    offset_ns: float | None = None
    delay_ns: float | None = None
    frequency_ppb: float | None = None
    is_port: bool = False
    """`state` is that of a port, not of the servo."""


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
    """What a line of ptp4l or phc2sys says; None where it says nothing of a clock."""
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
        # The largest of several: a bound, whose sign is not told.
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
    """The results of pmc: by name of the data set its fields, as text."""
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

"""Checks of the host's clock: its source, its synchronisation, and its accuracy."""

from __future__ import annotations

from typing import Final

from wiregauge.examining.checks.base import Check, Verdict, degrades, fine, prevents
from wiregauge.examining.facts import Look, NotKnownError

__all__ = ["CHECKS"]

_QUICK: Final = ("tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page", "timebase", "stp")
_SLOW: Final = ("hpet", "acpi_pm", "xen", "hyperv_clocksource_msr")
_TICKING: Final = ("jiffies", "refined-jiffies", "pit")
_WORST_ERROR_US: Final = 1_000
_CHRONY: Final = "apt install chrony && systemctl enable --now chrony"
_OF_NTP: Final = ("chronyd", "ntpd", "systemd-timesyn")
"""Process names of NTP programs, as the kernel truncates them."""
_SOURCES: Final = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


def clock_source(look: Look) -> Verdict:
    """The speed and resolution with which the kernel reads its clock."""
    source = look.text("clock-source")
    if source in _QUICK:
        return fine(source)
    if source in _SLOW:
        return degrades(f"{source}, which takes a microsecond or more to read", f"echo tsc > {_SOURCES}")
    if source in _TICKING:
        return prevents(f"{source}, which only counts ticks", f"echo tsc > {_SOURCES}")
    raise NotKnownError(f"how quickly {source} can be read is not known")


def clock_synchronised(look: Look) -> Verdict:
    """Whether the kernel's clock is marked as synchronised, and its error bound."""
    error_us, ahead = look.number("clock-max-error-us"), look.number("clock-tai-offset-s")
    if not look.truth("clock-synchronised"):
        return degrades("not synchronised", _CHRONY)
    seen = f"synchronised, at most {error_us} us off" + (f", TAI {ahead} s ahead" if ahead else "")
    return fine(seen) if error_us <= _WORST_ERROR_US else degrades(seen, "chronyc makestep")


def clock_programs(look: Look) -> Verdict:
    """Whether one program sets the clock, and no other works against it."""
    running = look.texts("clock-programs")
    ntp = [name for name in running if name in _OF_NTP]
    if not running:
        return degrades("no program that keeps the clock is seen running", _CHRONY)
    if len(ntp) > 1 or (ntp and "phc2sys" in running):
        rest = ntp if "phc2sys" in running else ntp[1:]
        cure = f"systemctl disable --now {' '.join(map(_service, rest))}"
        return degrades(f"{', '.join(running)} set the same clock", cure)
    if "ptp4l" in running and "phc2sys" not in running and not ntp:
        return degrades(
            "ptp4l without phc2sys: the interface's clock is kept, not the host's", "phc2sys -a -r"
        )
    return fine(", ".join(running))


def _service(program: str) -> str:
    return {"chronyd": "chrony", "systemd-timesyn": "systemd-timesyncd"}.get(program, program)


CHECKS: Final = (
    Check(
        "clock-source",
        "clocks",
        "each timestamp costs, and is uncertain by, the time it takes to read the clock",
        clock_source,
    ),
    Check(
        "clock-synchronised",
        "clocks",
        "one-way latencies to other hosts carry the clock's offset, unless the test compares clocks by exchanges",
        clock_synchronised,
    ),
    Check(
        "clock-programs",
        "clocks",
        "a clock that nobody keeps drifts, and one that two programs set is pulled to and fro",
        clock_programs,
    ),
)

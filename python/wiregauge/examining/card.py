"""What a report about network cards says: card, driver, kernel, and what they can do; nothing that names a host.

`wiregauge doctor --report` prints one, and `docs/reference/cards` has those that were sent in.
"""

from __future__ import annotations

import array
import fcntl
import re
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypedDict, TypeVar

from wiregauge.examining.facts import Fact, Look, NotKnownError, interfaces_in

__all__ = ["CardReport", "CardSeen", "Measured", "card_report"]

_SIOCETHTOOL: Final = 0x8946
_GDRVINFO: Final = 3
_DRVINFO_BYTES: Final = 196
_PCI_NAMES: Final = (Path("/usr/share/misc/pci.ids"), Path("/usr/share/hwdata/pci.ids"))
T = TypeVar("T")


class WakeUps(TypedDict):
    """How late a thread of the highest priority woke up, ns."""

    n: int
    p50_ns: int
    p99_ns: int
    max_ns: int


class Timestamps(TypedDict):
    """Sources of timestamps: `hardware`, `software` or `none`; None: not known."""

    transmit: str | None
    receive: str | None
    filters: list[str] | None
    """Frames of which the card timestamps reception: `all`, or kinds of PTP."""
    clock: bool | None
    """Whether the card has a clock."""
    clock_uncertainty_ns: int | None
    """Of a reading of it together with the system clock."""


class CardSeen(TypedDict):
    """Cards of one kind, under one driver, that can do the same. None: it could not be read."""

    card: str | None
    """Vendor and device by the names of the PCI list where it is installed, and by number."""
    driver: str | None
    firmware: str | None
    rate_bps: int | None
    ports: int
    timestamps: Timestamps
    xdp: str | None
    """`driver, zero copy`, `driver` or `generic`."""
    receive_queues: int | None


class Measured(TypedDict):
    """One flow of a run; times in ns, None where n does not support the figure or clocks leave it open."""

    bench: str
    between: str
    """The drivers that frames passed, as the bench states them."""
    protocol: str
    payload_bytes: int | None
    measure: str
    """`latency`, or `rtt` of a relayed flow."""
    sent: int
    lost: int
    unknown: int
    p50_ns: float | None
    p99_ns: float | None
    max_ns: float | None
    uncertainty_ns: float | None
    """Half width of the 95 % interval of the mean, errors of clocks and timestamps included."""
    validity: str


class CardReport(TypedDict):
    """A report; `schema` is that of this type."""

    schema: int
    wiregauge: str
    kernel: str
    preemption: str | None
    processor: str | None
    wake_ups: WakeUps | None
    cards: list[CardSeen]
    measured: list[Measured]


def card_report(
    version: str,
    host: Mapping[str, str],
    interfaces: Sequence[Mapping[str, Any]],
    facts: Sequence[Fact],
    measured: Sequence[Measured],
) -> CardReport:
    """The report of this machine, out of what its agent found (`host`, `interfaces`, `facts`)."""
    look = Look(facts)
    clocks = {one["name"]: one.get("cross_timestamp_uncertainty_ns") for one in interfaces}
    cards: list[CardSeen] = []
    for name in interfaces_in(facts):
        seen = _seen(Look(facts, name), clocks.get(name))
        alike = next((one for one in cards if {**one, "ports": 1} == seen), None)
        if alike is None:
            cards.append(seen)
        else:
            alike["ports"] += 1
    return CardReport(
        schema=1,
        wiregauge=version,
        kernel=host["kernel"],
        preemption=_known(lambda: look.text("kernel-preemption")),
        processor=host.get("cpu"),
        wake_ups=_known(
            lambda: WakeUps(
                n=look.number("wake-ups"),
                p50_ns=look.number("wake-late-p50-ns"),
                p99_ns=look.number("wake-late-p99-ns"),
                max_ns=look.number("wake-late-max-ns"),
            )
        ),
        cards=cards,
        measured=list(measured),
    )


def _known(fact: Callable[[], T]) -> T | None:
    try:
        return fact()
    except NotKnownError:
        return None


def _seen(look: Look, clock_uncertainty_ns: int | None) -> CardSeen:
    driver, firmware = _driver(look.interface)
    filters = _known(lambda: look.texts("timestamp-filters"))
    clock = _known(lambda: look.text("timestamp-clock"))
    return CardSeen(
        card=_card(Path("/sys/class/net") / look.interface / "device"),
        driver=driver,
        firmware=firmware,
        rate_bps=_known(lambda: look.number("rate-bps")),
        ports=1,
        timestamps=Timestamps(
            transmit=_known(lambda: look.text("timestamps-transmit")),
            receive=_known(lambda: look.text("timestamps-receive")),
            filters=None if filters is None else list(filters),
            clock=None if clock is None else bool(clock),
            clock_uncertainty_ns=clock_uncertainty_ns,
        ),
        xdp=_known(lambda: _xdp(look)),
        receive_queues=_known(lambda: look.number("receive-queues")),
    )


def _xdp(look: Look) -> str:
    if not look.truth("xdp-by-driver"):
        return "generic"
    return "driver, zero copy" if look.truth("xdp-zero-copy") else "driver"


def _driver(interface: str) -> tuple[str | None, str | None]:
    """Names of driver and firmware (ETHTOOL_GDRVINFO), also of virtual interfaces."""
    told = array.array("B", struct.pack("=I", _GDRVINFO).ljust(_DRVINFO_BYTES, b"\0"))
    request = struct.pack("16sP", interface.encode(), told.buffer_info()[0]).ljust(40, b"\0")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, _SIOCETHTOOL, request)
    except OSError:
        return None, None
    texts = [told[begin : begin + 32].tobytes().split(b"\0")[0].decode(errors="replace") for begin in (4, 68)]
    known = [None if text in ("", "N/A") else text for text in texts]
    return known[0], known[1]


def _card(device: Path) -> str | None:
    """Vendor and device of a card on PCI, as in `Intel Corporation I210 (8086:1533)`."""
    try:
        numbers = [(device / part).read_text(encoding="ascii").strip()[2:] for part in ("vendor", "device")]
    except OSError:
        return None
    names = next(
        (path.read_text(encoding="utf-8", errors="replace") for path in _PCI_NAMES if path.exists()), ""
    )
    name = _named(names, *numbers)
    number = ":".join(numbers)
    return f"{name} ({number})" if name else number


def _named(names: str, vendor: str, device: str) -> str:
    """The names of vendor and device in the text of `pci.ids`; empty where it lacks one of them."""
    block = re.search(rf"^{re.escape(vendor)}  (.*)\n((?:[\t#].*\n)*)", names, re.M)
    found = re.search(rf"^\t{re.escape(device)}  (.*)$", block[2], re.M) if block else None
    return f"{block[1]} {found[1]}" if block and found else ""

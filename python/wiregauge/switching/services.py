"""Services of a device and their promises: bandwidth profile and service acceptance criteria (ITU-T Y.1564)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, to_builtins

from wiregauge.files import SMALL, read_text
from wiregauge.plan.ethernet import AROUND_FRAME
from wiregauge.plan.quantity import QuantityError, rate_bps, share, size_b, time_ns
from wiregauge.switching.errors import DeviceError

__all__ = ["FIRST_FLOW", "Service", "check_services", "read_services", "service_of"]

FIRST_FLOW: Final = 1001
"""Flow number of the first service; the others follow."""
_KEYS: Final = (
    "name", "from", "to", "frame", "priority", "cir", "eir", "ftd", "fdv", "flr", "availability",
)  # fmt: skip
_FRAMES: Final = (64, 1518)


class Service(Struct, frozen=True):
    """A service: frames from one port to another (numbers from 1); criteria that are None do not apply."""

    name: str
    source: int
    to: int
    frame: int
    cir: int
    """Committed information rate, bit/s, frames counted from destination address to FCS."""
    eir: int = 0
    """Excess information rate, bit/s."""
    priority: int | None = None
    ftd: float | None = None
    """Greatest frame transfer delay, ns."""
    fdv: float | None = None
    """Greatest frame delay variation, maximum less minimum, ns."""
    flr: float = 0.0
    """Greatest frame loss ratio."""
    availability: float | None = None
    """Least availability."""

    def as_json(self) -> dict[str, Any]:
        """The service as stored in JSON."""
        made: dict[str, Any] = to_builtins(self)
        return made


def read_services(path: Path) -> list[Service]:
    """The services of a file. Raises DeviceError."""
    try:
        held = tomllib.loads(read_text(path, SMALL))
    except (OSError, UnicodeDecodeError) as error:
        raise DeviceError(f"{path}: it cannot be read ({error}); name a file of services") from None
    except tomllib.TOMLDecodeError as error:
        raise DeviceError(f"{path}: it is no TOML: {error}") from None
    listed = held.pop("service", None)
    if held or not isinstance(listed, list) or not listed or not all(isinstance(one, dict) for one in listed):
        raise DeviceError(f"{path}: write a table [[service]] for each service, and nothing else")
    return [service_of(one, f"{path}, service {number}", number) for number, one in enumerate(listed, 1)]


def service_of(held: Mapping[str, Any], where: str, number: int = 1) -> Service:
    """A service from its keys. Raises DeviceError, which names `where`."""
    unknown = [key for key in held if key not in _KEYS]
    if unknown:
        raise DeviceError(f'{where}: there is no "{unknown[0]}"; there are {", ".join(_KEYS)}')
    if "cir" not in held:
        raise DeviceError(f'{where}: it has no cir; write its committed information rate, cir = "100Mbit/s"')
    read = _Reader(held, where)
    service = Service(
        name=str(held.get("name", f"service {number}")),
        source=read.whole("from", 1, (1, 64)) or 1,
        to=read.whole("to", 2, (1, 64)) or 2,
        frame=read.frame(),
        cir=int(read.quantity("cir", rate_bps) or 0),
        eir=int(read.quantity("eir", rate_bps) or 0),
        priority=read.whole("priority", None, (0, 7)),
        ftd=read.quantity("ftd", time_ns),
        fdv=read.quantity("fdv", time_ns),
        flr=read.share("flr") or 0.0,
        availability=read.share("availability"),
    )
    if service.source == service.to:
        raise DeviceError(f"{where}: it leads from port {service.source} to itself; write another port in to")
    return service


class _Reader(Struct, frozen=True):
    held: Mapping[str, Any]
    where: str

    def quantity(self, key: str, read: Any) -> float | None:
        if key not in self.held:
            return None
        try:
            found = read(str(self.held[key]))
        except QuantityError as error:
            raise DeviceError(f"{self.where}: {key}: {error}") from None
        return float(found)

    def share(self, key: str) -> float | None:
        found = self.quantity(key, share)
        if found is not None and found > 1:
            raise DeviceError(
                f'{self.where}: {key}: "{self.held[key]}" is more than 100%; write 100% at most'
            )
        return found

    def frame(self) -> int:
        found = int(self.quantity("frame", size_b) or 512)
        low, high = _FRAMES
        if not low <= found <= high:
            raise DeviceError(f"{self.where}: frame: {found} B; write {low}B to {high}B")
        return found

    def whole(self, key: str, default: int | None, bounds: tuple[int, int]) -> int | None:
        if key not in self.held:
            return default
        found = self.held[key]
        if isinstance(found, str) and found.isdecimal():
            found = int(found)
        low, high = bounds
        if not isinstance(found, int) or isinstance(found, bool) or not low <= found <= high:
            raise DeviceError(f'{self.where}: {key}: "{found}" is no whole number from {low} to {high}')
        return found


def check_services(services: list[Service], ports: int, link_bps: int) -> None:
    """Checks that a device has the services' ports and its links their rates. Raises DeviceError."""
    for one in services:
        for port in (one.source, one.to):
            if port > ports:
                raise DeviceError(f'service "{one.name}": there is no port {port}; the device has {ports}')
        if one.cir + one.eir > link_bps * one.frame / (one.frame + AROUND_FRAME):
            raise DeviceError(
                f'service "{one.name}": cir and eir are {one.cir + one.eir} bit/s in frames of {one.frame} B, more '
                f"than a link of {link_bps} bit/s carries with preamble and gap; write less"
            )

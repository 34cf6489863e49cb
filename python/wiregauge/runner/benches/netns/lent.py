"""Two interfaces of this host joined by a cable, each lent to an end system during a test.

The kernel would deliver a frame from one of its interfaces to another internally, without the cable. So each interface
is moved into the namespace of its end system and returned afterwards. When everything is killed, the kernel returns a
physical interface by itself; other interfaces are removed with their namespace.

An interface with addresses is refused: it is in use, perhaps by the user's own connection.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from wiregauge.plan import Campaign
from wiregauge.runner.bench import BenchError

__all__ = ["HostInterface", "home", "lend", "with_addresses"]

_HOME: Final = "WIREGAUGE_HOME_NETNS"
"""Environment variable with the open file of the host's network namespace, for processes of the enclosure."""
_SEEN: Final = "WIREGAUGE_LENT"
"""Environment variable with the interfaces as seen before the enclosure, where they are no longer visible."""


class HostInterface(Struct, frozen=True):
    """An interface of the host. `rate_bps` is None where the driver does not report it, or there is no cable."""

    name: str
    mac: tuple[int, ...]
    driver: str
    rate_bps: int | None
    up: bool


def lend(names: Sequence[str]) -> tuple[HostInterface, HostInterface]:
    """Reads the two interfaces while they are visible, and keeps their return path open across `enclose`.

    Call it before the enclosure and again inside, where it returns what was seen outside. Raises BenchError where
    one is unavailable, with the reason.
    """
    known = os.environ.get(_SEEN)
    if known is not None:
        first, second = (_of_text(text) for text in known.split(";"))
        return first, second
    if os.geteuid() != 0:
        raise BenchError("interfaces of the host can be lent by root only; run as root")
    if len(names) != 2 or names[0] == names[1]:
        raise BenchError(
            f"{','.join(names)}: name two different interfaces with a comma between, as in eth1,eth2"
        )
    first, second = (_look_at(name) for name in names)
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    os.set_inheritable(home, True)
    os.environ[_HOME] = str(home)
    os.environ[_SEEN] = ";".join(_as_text(one) for one in (first, second))
    return first, second


def _look_at(name: str) -> HostInterface:
    from pyroute2 import IPRoute

    with IPRoute() as kernel:
        there = {link.get_attr("IFLA_IFNAME"): link for link in kernel.get_links()}
        if name not in there:
            raise BenchError(f'there is no interface "{name}" here; there are {", ".join(sorted(there))}')
        link = there[name]
        mac = link.get_attr("IFLA_ADDRESS")
        if link["ifi_type"] != 1 or not mac:  # ARPHRD_ETHER
            raise BenchError(f"{name} is no Ethernet interface; choose another")
        if link.get_attr("IFLA_MASTER"):
            raise BenchError(f"{name} belongs to a bridge or a bond; take it out first, or choose another")
        used = [a.get_attr("IFA_ADDRESS") for a in kernel.get_addr(index=link["index"]) if a["scope"] < 253]
        if used:
            raise BenchError(
                f"{name} has the address {used[0]}: connections over it would be cut; "
                "choose a free interface, or remove its addresses"
            )
        info = link.get_attr("IFLA_LINKINFO")
        kind = info.get_attr("IFLA_INFO_KIND") if info else None
    place = Path("/sys/class/net") / name
    module = place / "device" / "driver"
    driver = module.resolve().name if module.exists() else str(kind or "unknown")
    return HostInterface(
        name, tuple(int(part, 16) for part in mac.split(":")), driver, _speed(place), bool(link["flags"] & 1)
    )


def _speed(place: Path) -> int | None:
    try:
        megabits = int((place / "speed").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return megabits * 10**6 if megabits > 0 else None


def _as_text(one: HostInterface) -> str:
    return ",".join((one.name, bytes(one.mac).hex(), one.driver, str(one.rate_bps or 0), str(int(one.up))))


def _of_text(text: str) -> HostInterface:
    name, mac, driver, rate, up = text.split(",")
    return HostInterface(name, tuple(bytes.fromhex(mac)), driver, int(rate) or None, up == "1")


def home() -> int:
    """The open file of the host's network namespace, in a process of the enclosure."""
    return int(os.environ[_HOME])


def with_addresses(campaign: Campaign, interfaces: tuple[HostInterface, HostInterface]) -> Campaign:
    """The campaign with the addresses of the interfaces, which stay as they are.

    Raises BenchError unless it has two end systems.
    """
    network = campaign.network
    if len(network.nodes) != 2:
        raise BenchError(f"two interfaces carry two end systems, the test has {len(network.nodes)} nodes")
    nodes = tuple(replace(node, mac=one.mac) for node, one in zip(network.nodes, interfaces, strict=True))
    return replace(campaign, network=replace(network, nodes=nodes))

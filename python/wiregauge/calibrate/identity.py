"""The identity that a calibration belongs to: host, kernel, driver and link. A change of any is another instrument.

Two identities are compared key by key, and each key that differs is a reason not to use a calibration. The host is
identified by a hash of its machine number, so that a calibration can be passed on without revealing its origin.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from pathlib import Path

from wiregauge._version import __version__
from wiregauge.plan import Network

Identity = dict[str, str]


def here(*, driver: str, link: str, realtime: bool | None = None) -> Identity:
    """The identity of this machine with a driver and a link; `realtime` None where scheduling does not matter."""
    found = {
        "host": _host(),
        "kernel": f"{platform.system()} {platform.release()} {platform.version()}",
        "processor": _processor(),
        "clock source": _read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "program": f"wiregauge {__version__}",
        "driver": driver,
        "link": link,
    }
    if realtime is not None:
        found["scheduling"] = "real-time" if realtime else "ordinary"
    return found


def link_of(network: Network, swept_bps: int | None = None) -> str:
    """The links of a network as text: their rates, the lowest first, or the one that a sweep sets for all."""
    rates = {swept_bps} if swept_bps else {link.rate_bps for link in network.links}
    return ", ".join(rate_name(rate) for rate in sorted(rates))


def differences(made: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """A sentence for each key in which the two differ; empty for the same instrument."""
    found = []
    for key in dict.fromkeys((*made, *now)):
        was, is_now = made.get(key, "not known"), now.get(key, "not known")
        if was != is_now:
            found.append(f"another {key}: its {key} is {was}, here it is {is_now}")
    return found


def _host() -> str:
    number = _read("/etc/machine-id") or _read("/var/lib/dbus/machine-id")
    hashed = hashlib.sha256(f"wiregauge {number or platform.node()}".encode()).hexdigest()[:12]
    return f"{platform.node() or 'unnamed'} ({hashed})"


def _processor() -> str:
    for line in _read("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model"):
            return value.strip()
    return platform.machine()


def rate_name(bps: int) -> str:
    """A rate as text in identities."""
    for size, unit in ((10**9, "Gbit/s"), (10**6, "Mbit/s"), (10**3, "kbit/s")):
        if bps >= size:
            return f"{bps / size:g} {unit}"
    return f"{bps} bit/s"


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""

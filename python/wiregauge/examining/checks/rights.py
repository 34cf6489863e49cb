"""Checks of the host's grants to the agent: real time, memory, sockets, disk space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wiregauge.examining.checks.base import Check, Verdict, degrades, fine, prevents
from wiregauge.examining.facts import Look

__all__ = ["CHECKS"]

_BUFFER_BYTES: Final = 8 << 20
"""Buffer size that the agent requests for sockets, B."""
_LEAST_FILES: Final = 1_024
_LITTLE_BYTES, _TOO_LITTLE_BYTES = 2 << 30, 100 << 20
_SETCAP: Final = (
    'setcap cap_sys_nice,cap_ipc_lock,cap_net_raw,cap_net_admin+ep "$(command -v wiregauge-agent)"'
)


def _grant(name: str, cure: str, *, needed: bool = False) -> Callable[[Look], Verdict]:
    """A judge of a tried grant; if `needed`, there is no measurement without it."""

    def judge(look: Look) -> Verdict:
        if look.truth(name):
            return fine("granted")
        seen = f"refused: {look.note(name)}"
        return prevents(seen, cure) if needed else degrades(seen, cure)

    return judge


def namespaces(look: Look) -> Verdict:
    """Whether namespaces are available, one way or another."""
    ways = ("network-namespaces", "user-namespaces")
    granted = [way for way in ways if look.truth(way)]
    if granted:
        return fine(", ".join(granted))
    return degrades(f"refused: {look.note(ways[0])}", "sysctl -w kernel.unprivileged_userns_clone=1")


def socket_buffers(look: Look) -> Verdict:
    """Whether sockets get the buffers that the agent requests, without privileges too."""
    sizes = {name: look.number(f"{name.replace('_', '-')}-bytes") for name in ("rmem_max", "wmem_max")}
    seen = ", ".join(f"{name} {size} B" for name, size in sizes.items())
    small = [name for name, size in sizes.items() if size < _BUFFER_BYTES]
    if not small:
        return fine(seen)
    return degrades(seen, "sysctl -w " + " ".join(f"net.core.{name}={_BUFFER_BYTES}" for name in small))


def process_limits(look: Look) -> Verdict:
    """Limits of processes (ulimit) that apply without privileges; -1 is no limit."""
    files, memory = look.number("limit-open-files"), look.number("limit-locked-memory-bytes")
    priority = look.number("limit-real-time-priority")
    shown = ["unlimited" if one < 0 else str(one) for one in (files, memory, priority)]
    seen = f"open files {shown[0]}, locked memory {shown[1]} B, real-time priority {shown[2]}"
    if 0 <= files < _LEAST_FILES:
        return degrades(seen, f"ulimit -n {4 * _LEAST_FILES}")
    if memory >= 0 and not look.truth("mlockall"):
        return degrades(seen, "ulimit -l unlimited")
    if priority == 0 and not look.truth("sched-fifo"):
        return degrades(seen, "ulimit -r 99")
    return fine(seen)


def spool_room(look: Look) -> Verdict:
    """Whether the disk has room for records."""
    free = look.number("spool-free-bytes")
    seen = f"{free / (1 << 30):.1f} GiB free"
    cure = "wiregauge agent serve --spool DIR  # on a disk with room"
    if free < _TOO_LITTLE_BYTES:
        return prevents(seen, cure)
    return fine(seen) if free >= _LITTLE_BYTES else degrades(seen, cure)


def firewall(look: Look) -> Verdict:
    """Whether packet filters that see frames from or to this host could drop measured ones."""
    chains, tables = look.texts("firewall-chains"), look.texts("firewall-tables")
    passed = [one for one in chains if ": filter at forward" not in one and ": filter at" in one]
    shut = [one for one in passed if " drop: " in one and one.endswith(" 0 rules")]
    filtering = [one for one in passed if " drop: " in one or not one.endswith(" 0 rules")]
    if shut:
        return prevents("; ".join(shut), _accept(shut[0]))
    filled = [one for one in tables if not one.endswith(": 0 rules")]
    if filtering:
        return degrades("; ".join([*filtering, *filled]), _accept(filtering[0]))
    if filled:
        return degrades("; ".join(filled), "iptables -I INPUT -i INTERFACE -j ACCEPT")
    return fine("no rules that frames of this host pass")


def _accept(chain: str) -> str:
    """The command for a rule that accepts frames of the interface under test first."""
    words = chain.split(": ", maxsplit=1)[0].rsplit(" ", 1)[0]
    outgoing = any(f" at {hook}" in chain for hook in ("output", "postrouting", "egress"))
    return f"nft insert rule {words} {'oifname' if outgoing else 'iifname'} INTERFACE accept"


CHECKS: Final = (
    Check(
        "sched-fifo",
        "rights",
        "servicing threads are preempted, and sends come late",
        _grant("sched-fifo", _SETCAP),
    ),
    Check(
        "mlockall",
        "rights",
        "a page that is fetched while a message is sent or received makes it late",
        _grant("mlockall", _SETCAP),
    ),
    Check(
        "cpu-dma-latency",
        "rights",
        "processors sleep between messages, and wake late",
        _grant("cpu-dma-latency", "chmod a+rw /dev/cpu_dma_latency"),
    ),
    Check(
        "kernel-timestamps",
        "rights",
        "there are no timestamps of frames: nothing can be measured",
        _grant("timestamps", "apt install linux-image-amd64", needed=True),
    ),
    Check(
        "packet-sockets",
        "rights",
        "raw flows, captures and the backend packet cannot be used",
        _grant("packet-sockets", _SETCAP),
    ),
    Check("namespaces", "rights", "--bench netns does not work here", namespaces),
    Check(
        "socket-buffers",
        "rights",
        "without CAP_NET_ADMIN sockets get smaller buffers, and frames of a burst are dropped",
        socket_buffers,
        fix="socket-buffers",
    ),
    Check(
        "process-limits",
        "rights",
        "an agent without rights cannot open its sockets, lock its memory or run in real time",
        process_limits,
    ),
    Check("spool-room", "rights", "a disk that fills ends the run", spool_room),
    Check("firewall", "rights", "frames that a filter drops are reported as lost by the network", firewall),
)

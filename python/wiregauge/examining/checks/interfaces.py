"""Checks of an interface: its treatment of frames, and when it reports them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wiregauge.examining.checks.base import Check, Verdict, cpus_of, degrades, fine, prevents
from wiregauge.examining.facts import Look

__all__ = ["CHECKS"]

_ETHERNET_MTU: Final = 1_500
_UP: Final = ("up", "unknown")
"""States of a working interface; drivers without carrier detection report `unknown`."""
_STRICT: Final = 1


def link(look: Look) -> Verdict:
    """Whether the interface is up and its cable connected."""
    state = look.text("state")
    return fine(state) if state in _UP else prevents(state, f"ip link set dev {look.interface} up")


def address(look: Look) -> Verdict:
    """Whether it has an address for tests."""
    own = look.texts("ipv4")
    if own:
        return fine(", ".join(own))
    return prevents("no IPv4 address", f"ip addr add 198.18.0.1/24 dev {look.interface}")


def mtu(look: Look) -> Verdict:
    """Whether frames of the usual size pass."""
    size = look.number("mtu-bytes")
    seen = f"{size} B"
    if size >= _ETHERNET_MTU:
        return fine(seen)
    return degrades(seen, f"ip link set dev {look.interface} mtu {_ETHERNET_MTU}")


def timestamps(look: Look) -> Verdict:
    """Where frames are timestamped, in both directions."""
    ways = look.text("timestamps-transmit"), look.text("timestamps-receive")
    filters = look.texts("timestamp-filters")
    seen = f"transmit {ways[0]}, receive {ways[1]}" + (f"; filters {', '.join(filters)}" if filters else "")
    if "none" in ways:
        return prevents(
            seen, f"ethtool -T {look.interface}  # then choose an interface that timestamps both ways"
        )
    if ways == ("hardware", "hardware"):
        return fine(f"{seen}; {look.text('timestamp-clock')}")
    return degrades(
        seen, f"ethtool -T {look.interface}  # then choose an interface with a clock, for every frame"
    )


def _offload(name: str, switch: str) -> Callable[[Look], Verdict]:
    def judge(look: Look) -> Verdict:
        if not look.truth(name):
            return fine("off")
        fixed = look.note(name)
        seen = f"on ({fixed})" if fixed else "on"
        cure = "none: choose another interface" if fixed else f"ethtool -K {look.interface} {switch} off"
        return degrades(seen, cure, fixable=not fixed)

    return judge


def vlan_filter(look: Look) -> Verdict:
    """Whether interface or bridge drops frames of unconfigured VLANs."""
    if look.truth("bridge-vlan-filter"):
        return degrades("its bridge filters", f"bridge vlan add dev {look.interface} vid 1-4094")
    if look.truth("vlan-filter"):
        return degrades("the interface filters", f"ethtool -K {look.interface} rx-vlan-filter off")
    return fine("off")


def coalescing(look: Look) -> Verdict:
    """Whether the interface coalesces interrupts."""
    receive_us, transmit_us = look.number("coalescing-receive-us"), look.number("coalescing-transmit-us")
    adaptive = look.truth("coalescing-adaptive")
    seen = f"receive {receive_us} us or {look.number('coalescing-receive-frames')} frames, transmit {transmit_us} us"
    if not adaptive and receive_us == 0 and transmit_us == 0:
        return fine(seen)
    cure = f"ethtool -C {look.interface} adaptive-rx off adaptive-tx off rx-usecs 0 tx-usecs 0"
    return degrades(f"{seen}, adaptive" if adaptive else seen, cure)


def deferral(look: Look) -> Verdict:
    """Whether the kernel defers interrupts until a timer expires, or a program polls."""
    deferred, timeout_ns = look.number("deferred-interrupts"), look.number("flush-timeout-ns")
    if deferred == 0 and timeout_ns == 0:
        return fine("off")
    cure = "".join(
        f"echo 0 > /sys/class/net/{look.interface}/{name}{end}"
        for name, end in (("napi_defer_hard_irqs", " && "), ("gro_flush_timeout", ""))
    )
    return degrades(f"{deferred} interrupts put off, flushed after {timeout_ns} ns", cure)


def polling_threads(look: Look) -> Verdict:
    """Whether frames are read from the interface by threads that others may delay."""
    if not look.truth("polled-by-threads"):
        return fine("off: they are taken when the interface interrupts")
    return degrades("on", f"echo 0 > /sys/class/net/{look.interface}/threaded")


def receive_queues(look: Look) -> Verdict:
    """Whether frames of all flows arrive by one queue, in order."""
    queues = look.number("receive-queues")
    if queues <= 1:
        return fine(f"{queues}")
    return degrades(f"{queues}", f"ethtool -L {look.interface} combined 1")


def xdp(look: Look) -> Verdict:
    """Whether XDP programs run in the driver, and sockets share its memory."""
    if look.truth("xdp-by-driver"):
        return fine(
            f"in the driver, {'zero copy' if look.truth('xdp-zero-copy') else 'every frame copied once'}"
        )
    return degrades("not in the driver: every frame is copied", "none: choose another interface")


def eee(look: Look) -> Verdict:
    """Whether the link uses Energy-Efficient Ethernet, sleeping between frames."""
    if not look.truth("eee"):
        return fine("off")
    return degrades("on", f"ethtool --set-eee {look.interface} eee off")


def pause(look: Look) -> Verdict:
    """Whether pause frames are sent or obeyed."""
    receive, transmit = look.truth("pause-receive"), look.truth("pause-transmit")
    if not receive and not transmit:
        return fine("off")
    ways = [name for name, on in (("receive", receive), ("transmit", transmit)) if on]
    return degrades(" and ".join(ways), f"ethtool -A {look.interface} autoneg off rx off tx off")


def reverse_path_filter(look: Look) -> Verdict:
    """Whether frames are dropped if their sender is reached over another interface."""
    number = look.number("reverse-path-filter")
    if number == _STRICT:
        return degrades("strict", f"sysctl -w net.ipv4.conf.{look.interface}.rp_filter=2")
    return fine("off" if number == 0 else "loose: only senders that no route leads to are dropped")


def interrupts(look: Look) -> Verdict:
    """Whether the interface interrupts the last processor, that of the servicing thread."""
    cpus, told = look.number("cores"), look.texts("interrupt-cpus")
    last = cpus - 1
    hit = [one for one in told if last in cpus_of(one.partition(": ")[2])]
    if not hit:
        return fine("; ".join(told))
    first = hit[0].partition(":")[0]
    if last == 0:
        return degrades(
            "; ".join(told), "nproc  # a host with more processors keeps interrupts off that of the agent"
        )
    everywhere = f"0-{last - 1}" if last > 1 else "0"
    return degrades("; ".join(hit), f"echo {everywhere} > /proc/irq/{first}/smp_affinity_list")


_MERGED: Final = "received frames are merged and handed over together, later and with one timestamp"
_SPLIT: Final = "other traffic of this host leaves in bursts of up to 64 KiB, which messages wait behind"

CHECKS: Final = (
    Check("link", "interfaces", "nothing can be sent or received", link, of_interface=True),
    Check("address", "interfaces", "no end system can be on it in a lab", address, of_interface=True),
    Check("mtu", "interfaces", "messages whose frames are longer are refused", mtu, of_interface=True),
    Check(
        "interface-timestamps",
        "interfaces",
        "latencies carry the delays of kernel and driver, or cannot be taken at the interface at all",
        timestamps,
        of_interface=True,
    ),
    *(
        Check(name, "interfaces", effect, _offload(name, switch), of_interface=True, fix="offloads")
        for name, switch, effect in (
            ("offload-gro", "gro", _MERGED),
            ("offload-gro-hardware", "rx-gro-hw", _MERGED),
            ("offload-lro", "lro", _MERGED),
            ("offload-tso", "tso", _SPLIT),
            ("offload-gso", "gso", _SPLIT),
        )
    ),
    Check(
        "vlan-filter",
        "interfaces",
        "tagged frames of a VLAN that was not set up are dropped, and counted as lost",
        vlan_filter,
        of_interface=True,
    ),
    Check(
        "coalescing",
        "interfaces",
        "frames wait in the interface, and software timestamps of several are alike",
        coalescing,
        of_interface=True,
        fix="coalescing",
    ),
    Check(
        "interrupt-deferral",
        "interfaces",
        "frames wait in the interface until a timer or a program that polls takes them",
        deferral,
        of_interface=True,
    ),
    Check(
        "polling-threads",
        "interfaces",
        "frames wait for a thread of the kernel, which has no real-time priority unless it was given one",
        polling_threads,
        of_interface=True,
    ),
    Check(
        "receive-queues",
        "interfaces",
        "flows are taken by several processors, of which one may be the servicing thread's; a played network and "
        "captures see them in another order",
        receive_queues,
        of_interface=True,
    ),
    Check(
        "xdp",
        "interfaces",
        "the backends xdp and the ports of a played network send fewer frames a second",
        xdp,
        of_interface=True,
    ),
    Check(
        "eee",
        "interfaces",
        "the first frame after a pause waits some microseconds until the link is awake",
        eee,
        of_interface=True,
        fix="eee",
    ),
    Check(
        "flow-control",
        "interfaces",
        "a switch that is full stops this host, and its sends come late",
        pause,
        of_interface=True,
        fix="pause",
    ),
    Check(
        "reverse-path-filter",
        "interfaces",
        "messages of a sender that is reached by another interface are dropped, and counted as lost",
        reverse_path_filter,
        of_interface=True,
        fix="reverse-path-filter",
    ),
    Check(
        "interrupts",
        "interfaces",
        "interrupts of the interface preempt the servicing thread, and its sends come late",
        interrupts,
        of_interface=True,
    ),
)

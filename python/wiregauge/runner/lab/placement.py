"""Hosts of a lab as their agents describe them, and which of them is which end system of a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from wiregauge.plan import Campaign
from wiregauge.runner.agents.network import Access
from wiregauge.runner.bench import BenchError

__all__ = ["Described", "LabInterface", "Neighbour", "between", "fitting", "unfit"]

_MAC: Final = 6
"""Bytes of an Ethernet address."""


class Neighbour(Struct, frozen=True):
    """The device at the other end of a cable, by its LLDP announcement (IEEE Std 802.1AB); unknown fields are empty."""

    chassis: str
    """Identifier of the device: mostly a MAC address."""
    name: str
    port: str
    port_description: str
    port_vlan: int | None
    """The VLAN of untagged frames at that port."""
    source: str
    """The daemon that received the announcement."""

    @property
    def device(self) -> str:
        """The device's name, or else its identifier."""
        return self.name or self.chassis

    @property
    def text(self) -> str:
        """The neighbour as a clause."""
        return f"at port {self.port_description or self.port} of {self.device} (LLDP)"


class LabInterface(Struct, frozen=True):
    """An interface that a host offers for tests. `rate_bps` is None where its driver does not report it."""

    name: str
    mac: tuple[int, ...]
    ipv4: tuple[str, ...]
    rate_bps: int | None
    mtu: int
    up: bool
    allowed: bool
    timestamps: str
    neighbours: tuple[Neighbour, ...] = ()
    """The neighbours that a daemon of the host has heard of; none without a daemon."""

    @property
    def neighbour(self) -> Neighbour | None:
        """The neighbour at the other end of the cable; None where unknown, or where there seem to be several."""
        return self.neighbours[0] if len(self.neighbours) == 1 else None


class Described(Struct, frozen=True):
    """A host as its agent describes it."""

    name: str
    address: str
    """The address of its agent, ADDRESS:PORT or unix:PATH."""
    access: Access | None
    interface: LabInterface | None
    """The interface that the inventory names, or that the host's address belongs to."""
    facts: Mapping[str, str]
    version: str
    in_use: str
    same_host: bool = False
    """Whether it is this machine, which reads the same clock as the testmaster."""
    end_systems: tuple[str, ...] = ()
    control_shares: bool = False
    """Whether the control connection uses the interface under test."""
    trouble: str = ""
    """The reason why nothing is known of it, or it must not be used."""
    other_macs: tuple[tuple[int, ...], ...] = ()
    """MAC addresses of its other interfaces."""
    place: str = ""
    """Its name, with the interface where several of its interfaces are under test."""
    leads_to: str = ""
    """The end system at the other end of its cable, where the host is the network between end systems."""


def unfit(host: Described) -> str | None:
    """Why no end system can be on this host, or the network cannot lead to one over it; None where one can."""
    interface = host.interface
    if host.trouble or host.in_use:
        return host.trouble or host.in_use
    if interface is None:
        return "it has no interface that the inventory names, or that its address belongs to"
    name = interface.name
    faults = (
        (not interface.allowed, f"its configuration does not allow tests on {name}"),
        (not interface.up, f"{name} is down"),
        (len(interface.mac) != _MAC, f"{name} is no Ethernet interface"),
        (not interface.ipv4 and not host.leads_to, f"{name} has no IPv4 address"),
        (
            bool(interface.ipv4 and host.leads_to),
            f"{name} has the address {', '.join(interface.ipv4)}, and its kernel would answer frames that are for the "
            "network; take it away",
        ),
    )
    return next((why for at_fault, why in faults if at_fault), None)


def between(campaign: Campaign, hosts: Sequence[Described]) -> dict[str, Described]:
    """The interface that leads to each end system, where a host is the network between them; empty where none is.

    Raises BenchError where it does not or cannot lead to all of them.
    """
    leading = {host.leads_to: host for host in hosts if host.leads_to}
    ends = [node.name for node in campaign.network.end_systems.values()]
    found = {end: leading[end] for end in ends if end in leading}
    if not found:
        return {}
    missing = [end for end in ends if end not in found]
    first = next(iter(found.values()))
    if missing:
        raise BenchError(
            f"{first.name} is the network between end systems, and no interface leads to {missing[0]}; write "
            f'leads-to = "{missing[0]}" to the one that does'
        )
    others = sorted({host.name for host in found.values()} - {first.name})
    if others:
        raise BenchError(
            f"interfaces of {first.name} and of {others[0]} lead to end systems of this test: one process is the "
            "network; have all their cables at one host"
        )
    for end, host in found.items():
        why = unfit(host)
        if why is not None:
            raise BenchError(f"{host.place} leads to {end} and cannot be used: {why}")
    return found


def fitting(campaign: Campaign, hosts: Sequence[Described]) -> dict[str, Described]:
    """The host of each end system: where the inventory names it, the others in the order of the inventory.

    Raises BenchError, with the reason of every host, where there are too few.
    """
    hosts = [host for host in hosts if not host.leads_to]
    reasons = {host.place: unfit(host) for host in hosts}
    named = {end: host for host in hosts for end in host.end_systems}
    ends = list(campaign.network.end_systems.values())
    placed: dict[str, Described] = {}
    for end in ends:
        host = named.get(end.name)
        if host is None:
            continue
        if reasons[host.place] is not None:
            raise BenchError(f"{end.name} is to be on {host.place}, which cannot be: {reasons[host.place]}")
        taken = [other for other, on in placed.items() if on.place == host.place]
        if taken:
            raise BenchError(
                f"{taken[0]} and {end.name} are both to be on {host.place}, but an interface is one end system in a "
                "test; list the host's other interfaces with [[host.interfaces]]"
            )
        placed[end.name] = host
    used = {host.place for host in placed.values()}
    free = [
        host
        for host in hosts
        if reasons[host.place] is None and host.place not in used and not host.end_systems
    ]
    for end in ends:
        if end.name in placed:
            continue
        if not free:
            raise BenchError(_too_few(end.name, len(ends), hosts, reasons, placed))
        placed[end.name] = free.pop(0)
    return {end.name: placed[end.name] for end in ends}


def _too_few(
    end: str,
    needed: int,
    hosts: Sequence[Described],
    reasons: Mapping[str, str | None],
    placed: Mapping[str, Described],
) -> str:
    on = {host.place: name for name, host in placed.items()}
    why = [f"{host.place}: {reasons[host.place] or _taken(host, on)}" for host in hosts] or [
        "the inventory has none"
    ]
    return f"there is no host for {end}; the test needs {needed}. " + "; ".join(why)


def _taken(host: Described, on: Mapping[str, str]) -> str:
    return (
        f"{on[host.place]} is on it" if host.place in on else f"it is kept for {', '.join(host.end_systems)}"
    )

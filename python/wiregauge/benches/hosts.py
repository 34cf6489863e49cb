"""Real frames between hosts of a lab: agents that were there before, a network that is the lab's own.

Every end system of the test is on a host of its own, on the interface that the inventory names. The plan takes over the
addresses that the interfaces have; what is between them is as it is, and what of it can be seen is compared with the
test. Control goes over TLS, by whatever way leads to the hosts: where that is the network under test, it says so.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from wiregauge.benches.base import Access, AgentPlace, BenchError, Fact
from wiregauge.plan import Campaign, Run

__all__ = ["Described", "HostsBench", "LabInterface", "fitting"]


_MAC: Final = 6


@dataclass(frozen=True, slots=True)
class LabInterface:
    """An interface that a host offers for tests. `rate_bps` None where its driver does not tell."""

    name: str
    mac: tuple[int, ...]
    ipv4: tuple[str, ...]
    rate_bps: int | None
    mtu: int
    up: bool
    allowed: bool
    timestamps: str


@dataclass(frozen=True, slots=True)
class Described:
    """A host as its agent describes it."""

    name: str
    address: str
    """Where its agent is, ADDRESS:PORT or unix:PATH."""
    access: Access | None
    interface: LabInterface | None
    """The one that the inventory names, or that its address belongs to."""
    facts: Mapping[str, str]
    version: str
    in_use: str
    same_host: bool = False
    """It is this machine: it reads the same clock as the testmaster."""
    end_systems: tuple[str, ...] = ()
    control_shares: bool = False
    """The control connection comes by the interface under test."""
    trouble: str = ""
    """Why nothing is known of it."""


def unfit(host: Described) -> str | None:
    """Why no end system can be on this host; None where one can."""
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
        (not interface.ipv4, f"{name} has no IPv4 address"),
    )
    return next((why for at_fault, why in faults if at_fault), None)


def fitting(campaign: Campaign, hosts: Sequence[Described]) -> dict[str, Described]:
    """By end system the host it is on: named ones where they are to be, the others in the order of the inventory.

    Raises BenchError with the reason of every host where they do not suffice.
    """
    reasons = {host.name: unfit(host) for host in hosts}
    named = {end: host for host in hosts for end in host.end_systems}
    ends = list(campaign.network.end_systems.values())
    placed: dict[str, Described] = {}
    for end in ends:
        host = named.get(end.name)
        if host is None:
            continue
        if reasons[host.name] is not None:
            raise BenchError(f"{end.name} is to be on {host.name}, which cannot be: {reasons[host.name]}")
        taken = [other for other, on in placed.items() if on.name == host.name]
        if taken:
            raise BenchError(
                f"{taken[0]} and {end.name} are both to be on {host.name}, whose agent is one end system in a test"
            )
        placed[end.name] = host
    used = {host.name for host in placed.values()}
    free = [
        host
        for host in hosts
        if reasons[host.name] is None and host.name not in used and not host.end_systems
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
    on = {host.name: name for name, host in placed.items()}
    why = [f"{host.name}: {reasons[host.name] or _taken(host, on)}" for host in hosts] or [
        "the inventory has none"
    ]
    return f"there is no host for {end}; the test needs {needed}. " + "; ".join(why)


def _taken(host: Described, on: Mapping[str, str]) -> str:
    return f"{on[host.name]} is on it" if host.name in on else f"it is kept for {', '.join(host.end_systems)}"


class HostsBench:
    """End systems on hosts, which `placed` says. With `fix` they are set for measuring while the test goes on.

    `failures` tells, by end system, why an agent that is a process of this host is gone; None while it runs.
    """

    def __init__(
        self,
        campaign: Campaign,
        placed: Mapping[str, Described],
        *,
        realtime: bool = True,
        fix: bool = False,
        failures: Mapping[str, Callable[[], str | None]] | None = None,
    ) -> None:
        self._campaign = campaign
        self._placed = placed
        self._realtime = realtime
        self._fix = fix
        self._failures = failures or {}

    @staticmethod
    def with_addresses(campaign: Campaign, placed: Mapping[str, Described]) -> Campaign:
        """The campaign with the addresses of the interfaces, which keep theirs."""

        def at(name: str) -> dict[str, tuple[int, ...]]:
            interface = placed[name].interface
            assert interface is not None
            address = ipaddress.IPv4Address(interface.ipv4[0])
            return {"mac": interface.mac, "ipv4": tuple(address.packed)}

        network = campaign.network
        nodes = tuple(
            replace(node, **at(node.name)) if node.is_end_system else node for node in network.nodes
        )
        return replace(campaign, network=replace(network, nodes=nodes))

    def open(self, spool: Path) -> Sequence[AgentPlace]:
        """The agents, which write where they are."""
        del spool
        places = []
        for number, node in self._campaign.network.end_systems.items():
            host = self._placed[node.name]
            assert host.interface is not None
            cores = int(host.facts.get("cores", "1") or 1)
            places.append(
                AgentPlace(
                    end_system=node.name,
                    node=number,
                    address=host.address,
                    interface=host.interface.name,
                    servicing_core=cores - 1 if cores > 1 else -1,
                    fifo_priority=50 if self._realtime else 0,
                    shares_run_directory=False,
                    access=host.access,
                    own_clock=not host.same_host,
                    fix=self._fix,
                )
            )
        return places

    def prepare(self, run: Run, captures: Path) -> None:
        """Captures of switches are no agent's."""
        del captures
        names = self._campaign.network.names
        beyond = [
            names[one.on] for one in run.captures if not self._campaign.network.nodes[one.on].is_end_system
        ]
        if beyond:
            raise BenchError(
                f"{beyond[0]} is the lab's own switch: no agent captures there; leave its capture out"
            )

    def end_captures(self) -> dict[str, dict[str, Any]]:
        """There are none."""
        return {}

    def first_ports(self) -> dict[str, dict[str, Any]]:
        """The lab's ports are not seen."""
        return {}

    def facts(self) -> Sequence[Fact]:
        """What a reader must know: which host each end system is on, and how what is seen differs from the test."""
        found = [
            Fact(
                "network",
                "the lab's own",
                "switches and cables of the test file are not built: they are what is there",
            )
        ]
        rates = {
            self._campaign.network.names[end.node]: link.rate_bps
            for link in self._campaign.network.links
            for end in link.ends
        }
        for name, host in self._placed.items():
            interface = host.interface
            assert interface is not None
            notes = [interface.timestamps] if interface.timestamps else []
            planned, seen = rates.get(name), interface.rate_bps
            if seen is not None and planned is not None and seen != planned:
                notes.insert(0, f"its link has {seen / 1e6:g} Mbit/s, {planned / 1e6:g} Mbit/s in the test")
            if host.control_shares:
                notes.append("control shares the interface under test")
            found.append(Fact(name, f"{host.name}, interface {interface.name}", "; ".join(notes)))
        clock = (
            Fact("clock", "one clock for all end systems", "one-way latencies carry no synchronisation error")
            if all(host.same_host for host in self._placed.values())
            else Fact(
                "clock",
                "each host's own",
                "one-way latencies carry the uncertainty of what was compared, which stands with them",
            )
        )
        shares = any(host.control_shares for host in self._placed.values())
        control = "over the network under test" if shares else "over a back-end network"
        return [
            *found,
            clock,
            Fact("control", f"TLS, {control}", "no call is made while messages are measured but to look on"),
        ]

    def inside(self, end_system: str) -> Sequence[str]:
        """Commands of this machine cannot be run on a host."""
        raise BenchError(f"no program can be started on the host of {end_system} from here")

    def agent_failure(self, end_system: str) -> str | None:
        """What is known of an agent that is a process of this host."""
        asked = self._failures.get(end_system)
        return asked() if asked is not None else None

    def give_up(self, end_system: str) -> str | None:
        """An agent on a host is left alone: its lease ends its run."""
        del end_system
        return None

    def close(self) -> None:
        """Nothing here was started for the bench."""

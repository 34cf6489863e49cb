"""Real frames between hosts of a lab, with agents that already run and the lab's own network.

Every end system of the test is on a host of its own, on the interface that the inventory names. The plan uses the
addresses of the interfaces; the network between them is taken as it is, and its visible parts are compared with the
test. Control uses TLS over any path to the hosts: where that is the network under test, the bench reports it.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from wiregauge.benches.base import SILENCE_S, Access, AgentPlace, BenchError, Fact, Reach
from wiregauge.benches.names import NETWORK_PRIORITY
from wiregauge.plan import NETWORK, NETWORK_NODE, Campaign, Flow, Run

__all__ = ["Described", "HostsBench", "LabInterface", "Neighbour", "between", "fitting"]


_MAC: Final = 6
_PATIENCE_S: Final = 30.0
"""Seconds without an answer after which a host of a lab counts as gone: a control network may be down for a while."""
_LEAST_BYTES: Final = 46
"""Least payload of an Ethernet frame, B."""
_ASK_AT_ONCE: Final = 16
_UDP_BYTES: Final = 28
"""Bytes of the headers of IPv4 and UDP."""


@dataclass(frozen=True, slots=True)
class Neighbour:
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


@dataclass(frozen=True, slots=True)
class LabInterface:
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


@dataclass(frozen=True, slots=True)
class Described:
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


class HostsBench:
    """End systems on the hosts in `placed`. With `fix` hosts are tuned for measuring during the test.

    `failures` gives, by end system, the reason why an agent process of this host is gone; None while it runs. `led` has
    the interfaces that lead to end systems, where a host is the network between them.
    """

    def __init__(
        self,
        campaign: Campaign,
        placed: Mapping[str, Described],
        *,
        realtime: bool = True,
        fix: bool = False,
        failures: Mapping[str, Callable[[], str | None]] | None = None,
        led: Mapping[str, Described] | None = None,
    ) -> None:
        self._campaign = campaign
        self._placed = placed
        self._led = led or {}
        self._realtime = realtime
        self._fix = fix
        self._failures = failures or {}
        self.hold_s: float | None = None

    @staticmethod
    def with_addresses(campaign: Campaign, placed: Mapping[str, Described]) -> Campaign:
        """The campaign with the addresses of the interfaces, which stay as they are."""

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
        """The places of the agents, which write on their own hosts."""
        del spool
        on_machine: Counter[str] = Counter()
        places = self._network_place(on_machine) if self._led else []
        for number, node in self._campaign.network.end_systems.items():
            host = self._placed[node.name]
            assert host.interface is not None
            # Hosts that are containers share one kernel, and its cores.
            machine = host.facts.get("boot-id") or host.address
            # Servicing threads of one machine get cores of their own, from the last one down.
            core = int(host.facts.get("cores", "1") or 1) - 1 - on_machine[machine]
            on_machine[machine] += 1
            places.append(
                AgentPlace(
                    end_system=node.name,
                    node=number,
                    address=host.address,
                    interface=host.interface.name,
                    servicing_core=max(core, -1) or -1,
                    fifo_priority=50 if self._realtime else 0,
                    shares_run_directory=False,
                    access=host.access,
                    own_clock=not host.same_host,
                    patience_s=SILENCE_S if host.access is None else _PATIENCE_S,
                    fix=self._fix,
                    machine=machine,
                    card=bool(self._led),
                )
            )
        return places

    def _network_place(self, on_machine: Counter[str]) -> list[AgentPlace]:
        """The place of the agent that plays the network."""
        host = next(iter(self._led.values()))
        machine = host.facts.get("boot-id") or host.address
        on_machine[machine] += 1
        return [
            AgentPlace(
                NETWORK,
                NETWORK_NODE,
                host.address,
                "",
                servicing_core=int(host.facts.get("cores", "1") or 1) - 1,
                fifo_priority=NETWORK_PRIORITY if self._realtime else 0,
                shares_run_directory=False,
                access=host.access,
                own_clock=not host.same_host,
                patience_s=_PATIENCE_S,
                machine=machine,
                network_ports=tuple(
                    (end, one.interface.name) for end, one in self._led.items() if one.interface is not None
                ),
            )
        ]

    def look(self, reach: Reach) -> Sequence[Fact]:
        """Checks that end systems that exchange frames reach one another, with frames of the test's length.

        Raises BenchError where one does not, or another host answers for its address.
        """
        names = self._campaign.network.names
        asked: list[tuple[str, list[str], int]] = []
        for number, (peers, size) in sorted(_exchanges(self._campaign).items()):
            name, host = names[number], self._placed[names[number]]
            assert host.interface is not None
            if size > host.interface.mtu:
                raise BenchError(
                    f"{name} sends frames of {size} bytes after the header; {host.interface.name} of {host.name} has "
                    f"an MTU of {host.interface.mtu}: raise it there, or send less"
                )
            asked.append((name, sorted(names[peer] for peer in peers), size))
        if self._led:
            return self._look_at_cables(asked)
        with ThreadPoolExecutor(_ASK_AT_ONCE) as pool:
            answered = pool.map(
                lambda one: reach(one[0], [self._address(other) for other in one[1]], one[2]), asked
            )
            # In the order of the network, so that the first failure in it is reported.
            for (name, others, size), macs in zip(asked, answered, strict=True):
                self._check_answers(reach, name, others, size, macs)
        return [
            Fact("reachability", "every receiver answers its senders", "asked by ARP with the longest frames")
        ]

    def _look_at_cables(self, asked: Sequence[tuple[str, Sequence[str], int]]) -> Sequence[Fact]:
        """Checks the cables; the network exists only during a run, so nobody answers before."""
        for name, others, size in asked:
            for end in (name, *others):
                for host, leads in ((self._placed[end], ""), (self._led[end], f", which leads to {end},")):
                    interface = host.interface
                    if interface is not None and size > interface.mtu:
                        raise BenchError(
                            f"{name} sends frames of {size} bytes after the header; {interface.name} of {host.name}"
                            f"{leads} has an MTU of {interface.mtu}: `ip link set dev {interface.name} mtu {size}` "
                            "there, or send less"
                        )
        return [Fact("reachability", "not asked", "the network is played while a run goes on, and only then")]

    def _check_answers(
        self,
        reach: Reach,
        name: str,
        others: Sequence[str],
        size: int,
        macs: Sequence[Sequence[tuple[int, ...]]],
    ) -> None:
        answers = dict(zip(others, macs, strict=True))
        silent = [other for other in others if not answers[other]]
        if silent:
            addresses = [self._address(one) for one in silent]
            short = dict(zip(silent, reach(name, addresses, _LEAST_BYTES), strict=True))
            raise BenchError(self._unreached(name, silent[0], size, short=bool(short[silent[0]])))
        for other in others:
            self._check_answer(name, other, answers[other])

    def _address(self, name: str) -> str:
        interface = self._placed[name].interface
        assert interface is not None
        return interface.ipv4[0]

    def _unreached(self, name: str, other: str, size: int, *, short: bool) -> str:
        """The reason why frames of one end system do not reach another."""
        to = f"{other} ({self._address(other)} on {self._placed[other].place})"
        if short:
            return (
                f"{to} answers short frames of {name}, and none of {size} bytes after the header: raise the MTU of the "
                "switches between them, or send less"
            )
        if self._placed[name].address == self._placed[other].address:
            return (
                f"{to} does not answer {name} on {self._placed[name].place}: a kernel drops what comes from its own "
                f"addresses; `sysctl net.ipv4.conf.all.accept_local=1 net.ipv4.conf.all.arp_ignore=1` on "
                f"{self._placed[name].name}"
            )
        return (
            f"{to} does not answer {name} on {self._placed[name].place}: look at cables, VLANs of switches and "
            "addresses"
        )

    def _check_answer(self, name: str, other: str, macs: Sequence[tuple[int, ...]]) -> None:
        """Raises BenchError unless the interface of `other` alone answers for its address."""
        placed = self._placed[other]
        assert placed.interface is not None
        foreign = [mac for mac in macs if mac != placed.interface.mac]
        if not foreign:
            return
        written = ":".join(f"{byte:02x}" for byte in foreign[0])
        cure = (
            f"it is another interface of {placed.name}: `sysctl net.ipv4.conf.all.arp_ignore=1` there"
            if foreign[0] in placed.other_macs
            else "give one of them another address"
        )
        raise BenchError(
            f"{name} asked for {self._address(other)}, which is {other} on {placed.place}, and {written} answers; "
            f"{cure}"
        )

    def prepare(self, run: Run, captures: Path) -> None:
        """Raises BenchError for a capture on one of the lab's own switches, where no agent could make it."""
        del captures
        if self._led:
            return
        names = self._campaign.network.names
        beyond = [
            names[one.on] for one in run.captures if not self._campaign.network.nodes[one.on].is_end_system
        ]
        if beyond:
            raise BenchError(
                f"{beyond[0]} is the lab's own switch: no agent captures there; leave its capture out"
            )

    def keep_frames(self, from_ns: int, to_ns: int) -> None:
        """Does nothing: switches of a lab have no captures."""

    def end_captures(self) -> dict[str, dict[str, Any]]:
        """No reports, since there are no captures."""
        return {}

    def first_ports(self) -> dict[str, dict[str, Any]]:
        """Empty: the lab's ports cannot be read."""
        return {}

    def facts(self) -> Sequence[Fact]:
        """The facts: the host of each end system, and differences between the visible network and the test."""
        found = [*self._network_facts()]
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
            if seen is not None and planned is not None and seen != planned and not self._led:
                notes.insert(0, f"its link has {seen / 1e6:g} Mbit/s, {planned / 1e6:g} Mbit/s in the test")
            if host.control_shares:
                notes.append("control shares the interface under test")
            if interface.neighbour is not None:
                notes.append(interface.neighbour.text)
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
        found += [Fact("cables", "differ from the test", one) for one in self._miscabled()]
        shares = any(host.control_shares for host in self._placed.values())
        control = "over the network under test" if shares else "over a back-end network"
        return [
            *found,
            clock,
            Fact("control", f"TLS, {control}", "no call is made while messages are measured but to look on"),
        ]

    def _network_facts(self) -> Iterator[Fact]:
        if not self._led:
            yield Fact(
                "network",
                "the lab's own",
                "switches and cables of the test file are not built: they are what is there",
            )
            return
        host = next(iter(self._led.values()))
        cables = ", ".join(
            f"{one.interface.name} to {end}" for end, one in self._led.items() if one.interface is not None
        )
        yield Fact(
            "network",
            "switches, links and interface cards played by the simulator's engine in real time",
            f"by the agent of {host.name}, with packet sockets on {cables}",
        )
        yield Fact(
            "line",
            "modelled at the rate of the test, behind a cable",
            "what the cable and the cards at its ends take comes on top of every latency; by how much frames left the "
            "model late is measured and stated with every run",
        )
        if not host.same_host:
            yield Fact(
                "times at switches",
                f"by the clock of {host.name}",
                "between two switches they are exact; beside those of end systems they carry the offset of its clock",
            )

    def _miscabled(self) -> list[str]:
        """Differences between the neighbours' announcements and the test; unknown neighbours are not mentioned."""
        network = self._campaign.network
        heard = {
            name: neighbour
            for name, host in self._placed.items()
            if host.interface is not None and (neighbour := host.interface.neighbour) is not None
        }
        ends = {
            (network.names[one.node], network.names[other.node])
            for link in network.links
            for one, other in (link.ends, link.ends[::-1])
        }
        switches = {name: {other for own, other in ends if own == name} for name in heard}
        found = []
        for (one, here), (other, there) in itertools.combinations(heard.items(), 2):
            planned, seen = bool(switches[one] & switches[other]), here.chassis == there.chassis
            if planned and not seen:
                at = ", ".join(sorted(switches[one] & switches[other]))
                found.append(
                    f"{one} and {other} are both at {at} in the test; {one} is {here.text}, {other} {there.text}"
                )
            elif seen and not planned:
                found.append(
                    f"{one} and {other} have no switch in common in the test; both are at {here.device} (LLDP)"
                )
            vlans = here.port_vlan, there.port_vlan
            if None not in vlans and vlans[0] != vlans[1]:
                found.append(
                    f"untagged frames of {one} are in VLAN {vlans[0]}, those of {other} in VLAN {vlans[1]} (LLDP)"
                )
        return found

    def agent_failure(self, end_system: str) -> str | None:
        """The reason why an agent process of this host is gone, if known."""
        asked = self._failures.get(end_system)
        return asked() if asked is not None else None

    def give_up(self, end_system: str) -> str | None:
        """Leaves the agent on its host alone: its lease ends its run."""
        del end_system
        return None

    def close(self) -> None:
        """Does nothing: no process was started for the bench."""


def _beside(flow: Flow) -> int:
    """Bytes between Ethernet header and FCS of a message's frame that are not payload."""
    if flow.protocol == "rc":
        # The sequence number follows the payload, unless it is a part of it.
        link = flow.virtual_link
        return _UDP_BYTES + (0 if link is not None and link.number_within else 1)
    return _UDP_BYTES if flow.protocol in ("udp", "be") else 0


def _exchanges(campaign: Campaign) -> dict[int, tuple[set[int], int]]:
    """The end systems that each one sends frames to, and the most bytes of these after the Ethernet header."""
    found: dict[int, tuple[set[int], int]] = {}

    def add(sender: int, receivers: set[int], size: int) -> None:
        peers, most = found.get(sender, (set(), _LEAST_BYTES))
        found[sender] = (peers | receivers - {sender}, max(most, size))

    for run in campaign.runs:
        flows = {flow.id: flow for flow in run.flows}
        for send in run.sends:
            flow = flows[send.flow]
            receivers = {flow.to, *flow.also_to}
            size = send.payload + _beside(flow)
            add(flow.from_, receivers, size)
            for relay in run.relays:
                if relay.flow == flow.id:
                    add(relay.on, {flow.from_}, size)
        for inject in run.injects:
            add(inject.on, {inject.to}, inject.payload + _UDP_BYTES)
    return {sender: one for sender, one in found.items() if one[0]}

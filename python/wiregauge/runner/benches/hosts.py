"""Real frames between hosts, with agents that already run and a network of the hosts' own.

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
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from wiregauge.plan import NETWORK, NETWORK_NODE, Campaign, Flow, Network, Run
from wiregauge.records import Traits
from wiregauge.runner.agents.bench import AgentBench
from wiregauge.runner.agents.network import (
    HOST_PRIORITY,
    NETWORK_PRIORITY,
    SILENCE_S,
    AgentPlace,
    Reach,
)
from wiregauge.runner.bench import BenchError, BeyondBenchError, Fact
from wiregauge.runner.benches.capabilities import beyond_hosts, beyond_played
from wiregauge.runner.lab.placement import Described, LabInterface
from wiregauge.runner.live.monitor import AlarmMonitor

__all__ = ["HostsBench"]

_PATIENCE_S: Final = 30.0
"""Seconds without an answer after which a host of a lab counts as gone: a control network may be down for a while."""
_LEAST_BYTES: Final = 46
"""Least payload of an Ethernet frame, B."""
_ASK_AT_ONCE: Final = 16
_UDP_BYTES: Final = 28
"""Bytes of the headers of IPv4 and UDP."""


class HostsBench(AgentBench):
    """End systems on the hosts that `place` finds for a test. With `fix` hosts are tuned for measuring during it.

    `failures` gives, by end system, the reason why an agent process of this host is gone; None while it runs.
    """

    name = "lab"
    traits = Traits(driver="hosts")

    def __init__(
        self,
        place: Callable[[Campaign], Mapping[str, Described]],
        *,
        realtime: bool = True,
        fix: bool = False,
        failures: Mapping[str, Callable[[], str | None]] | None = None,
        monitor: AlarmMonitor | None = None,
    ) -> None:
        super().__init__(realtime=realtime, monitor=monitor)
        self._place = place
        self._fix = fix
        self._failures = failures or {}
        self._placed: Mapping[str, Described] = {}
        self._led: Mapping[str, Described] = {}
        """The interfaces that lead to end systems, where a host is the network between them."""

    def adapt(self, campaign: Campaign) -> Campaign:
        """The campaign with the addresses of the hosts' interfaces. Raises BenchError where there are too few hosts."""
        played = self._plays(campaign)
        by_agents = beyond_played(campaign) if played else beyond_hosts(campaign)
        beyond = [*by_agents, *_beyond_lab(campaign, played=played)]
        if beyond:
            raise BeyondBenchError(beyond)
        self._placed = self._place(campaign)
        shared = _steered_together(campaign, self._placed)
        if shared:
            raise BeyondBenchError([shared])
        drivers = sorted(set(self.interfaces.values()))
        who = "model" if self._led else ""
        together = all(host.same_host for host in (*self._placed.values(), *self._led.values()))
        self.traits = Traits(one_clock=together, driver=f"hosts: {', '.join(drivers)}", switches=who)
        return self._with_addresses(campaign)

    def _plays(self, campaign: Campaign) -> bool:
        """Whether a host is the network between the others."""
        del campaign
        return False

    @property
    def interfaces(self) -> Mapping[str, str]:
        """The interface of each end system, of the campaign that was adapted last."""
        placed = {end: host.interface for end, host in self._placed.items()}
        return {end: interface.name for end, interface in placed.items() if interface is not None}

    def _with_addresses(self, campaign: Campaign) -> Campaign:
        """The campaign with the addresses of the interfaces, which stay as they are."""

        def at(name: str) -> dict[str, tuple[int, ...]]:
            interface = self._interface(name)
            address = ipaddress.IPv4Address(interface.ipv4[0])
            return {"mac": interface.mac, "ipv4": tuple(address.packed)}

        network = campaign.network
        nodes = tuple(
            replace(node, **at(node.name)) if node.is_end_system else node for node in network.nodes
        )
        return replace(campaign, network=replace(network, nodes=nodes))

    def _interface(self, end_system: str) -> LabInterface:
        interface = self._placed[end_system].interface
        assert interface is not None  # a host is chosen by it
        return interface

    def open(self, campaign: Campaign, spool: Path) -> Sequence[AgentPlace]:
        """The places of the agents, which write on their own hosts."""
        del spool
        self._campaign = campaign
        on_machine: Counter[str] = Counter()
        places = self._network_place(on_machine) if self._led else []
        for number, node in campaign.network.end_systems.items():
            host, interface = self._placed[node.name], self._interface(node.name)
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
                    interface=interface.name,
                    servicing_core=max(core, -1) or -1,
                    fifo_priority=HOST_PRIORITY if self._realtime else 0,
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
                servicing_core=int(host.facts.get("cores", "1") or 1) - 1,
                fifo_priority=NETWORK_PRIORITY if self._realtime else 0,
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
            name, interface = names[number], self._interface(names[number])
            if size > interface.mtu:
                raise BenchError(
                    f"{name} sends frames of {size} bytes after the header; {interface.name} of "
                    f"{self._placed[name].name} has an MTU of {interface.mtu}: raise it there, or send less"
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
        return self._interface(name).ipv4[0]

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
        foreign = [mac for mac in macs if mac != self._interface(other).mac]
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

    def facts(self, campaign: Campaign) -> Sequence[Fact]:
        """The facts: the host of each end system, and differences between the visible network and the test."""
        found = [*self._network_facts()]
        rates = {
            campaign.network.names[end.node]: link.rate_bps
            for link in campaign.network.links
            for end in link.ends
        }
        for name, host in self._placed.items():
            interface = self._interface(name)
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
        found += [Fact("cables", "differ from the test", one) for one in self._miscabled(campaign.network)]
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

    def _miscabled(self, network: Network) -> list[str]:
        """Differences between the neighbours' announcements and the test; unknown neighbours are not mentioned."""
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


def _steered_together(campaign: Campaign, placed: Mapping[str, Described]) -> str:
    """The reason why PTP cannot synchronise the clocks of these hosts; empty where it can."""
    plan = campaign.synchronise
    if plan is None or plan.ptp is None or not plan.ptp.steer:
        return ""
    seen: dict[str, str] = {}
    for name, host in placed.items():
        kernel = host.facts.get("boot-id", host.address)
        if kernel in seen:
            return f'PTP would steer the one clock that {seen[kernel]} and {name} share; write steer="off"'
        seen[kernel] = name
    return ""


def _beyond_lab(campaign: Campaign, *, played: bool) -> list[str]:
    """Features that the present hosts lack although agents elsewhere have them."""
    found = []
    if not played and any(run.link_rate_bps is not None for run in campaign.runs):
        found.append("the sweep sets the rate of links: cables of a lab have the rate they have")
    return found


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

"""Checks, before anything is built, what agents on hosts and namespaces of one machine cannot do.

Each line names a feature of plans, how to find it in the plan, and why real frames cannot have it. Features that are
not listed are built by the bench, or belong to the host itself, like the host model. Features beyond agents are refused
by the same sentence on all benches. Where the model plays the network between namespaces, all features of the simulator
are available except those beyond its agents or the kernel below them.
"""

from __future__ import annotations

from collections.abc import Iterator

from wiregauge.plan import (
    Campaign,
    Capacity,
    ClockStep,
    Etf,
    Hub,
    Network,
    Run,
    Switch,
    Synchronise,
)
from wiregauge.plan.ethernet import GAP
from wiregauge.plan.tsn import HostTsn
from wiregauge.runner.benches.netns.order import SWITCHES, Switches

__all__ = ["beyond_hosts", "beyond_namespaces", "beyond_played", "beyond_simulator", "needs_bridges"]

_PROTOCOLS = {
    "rc": "virtual links need an end system and a switch that know them",
    "tt": "time-triggered frames need synchronised clocks and a switch with a schedule",
}
MOST_OF_A_KIND = 250
"""The most end systems, and the most switches: each end system is a process with deadlines, on shared cores."""
_INCIDENTS = {
    "cut": "cuts a link",
    "babble": "lets a sender babble",
    "restart": "restarts a switch",
    "clock-step": "steps a clock",
}


def beyond_hosts(campaign: Campaign) -> list[str]:
    """One sentence for each feature of the plan that agents cannot provide, on any network."""
    found = [*_clocks_and_links(campaign.network)]
    found.extend(
        f'"{node.name}" has interframe-gap="{node.interframe_gap}B": interfaces that carry real frames leave 12 B '
        "themselves"
        for node in campaign.network.nodes
        if node.interframe_gap != GAP
    )
    for node in campaign.network.nodes:
        if node.tsn is not None:
            found.extend(_preemption(node.name, node.tsn))
    for run in campaign.runs:
        found.extend(_tasks(run, campaign.network))
        found.extend(
            "the test has a cluster that synchronises by AS6802: Linux hosts do not" for _ in run.clusters
        )
        found.extend(
            "the test has a <ptp-domain>, which is simulated: hosts synchronise by <ptp/>"
            for _ in run.ptp_domains
        )
    return list(dict.fromkeys(found))


def _preemption(name: str, tsn: HostTsn) -> Iterator[str]:
    """Settings of preemption that no host command provides."""
    if tsn.offload != "full" and any(one.preemptable for one in tsn.classes):
        cure = 'write offload="full", or use --bench sim'
        yield f'"{name}" has preemptable classes in <host-tsn>: only cards preempt; {cure}'
    stated = [
        ("hold-advance", tsn.hold_advance),
        ("release-advance", tsn.release_advance),
    ]
    for attribute, value in stated:
        if value is not None:
            yield f'"{name}" has {attribute} in <host-tsn>: a card has its own; remove it, or use --bench sim'


def beyond_namespaces(campaign: Campaign, switches: Switches = SWITCHES) -> list[str]:
    """One sentence for each feature of the plan that namespaces cannot provide; empty for none.

    `switches`: what plays the network between the end systems.
    """
    if switches == "model":
        return _beyond_model(campaign)
    no_tsn = "ports between namespaces have a shaper where its queue disciplines would have to be"
    found = [
        *_network(campaign.network),
        *_host_tsn(campaign.network, no_tsn),
        *_synchronise(campaign.synchronise),
        *beyond_hosts(campaign),
    ]
    for run in campaign.runs:
        found.extend(_run(run, campaign.network))
    return list(dict.fromkeys(found))


def needs_bridges(campaign: Campaign) -> bool:
    """Whether a test needs bridges: clock programs communicate by their own frames, which the model does not carry."""
    asked = campaign.synchronise
    return asked is not None and (asked.ptp is not None or bool(asked.chrony))


def beyond_played(campaign: Campaign, elsewhere: str = "use switches of metal") -> list[str]:
    """The same where the simulator's engine plays the network in real time; `elsewhere`: a bench that provides more."""
    found = beyond_simulator(campaign)
    if needs_bridges(campaign):
        found.append(
            "the test has programs keep the clocks of hosts: the model carries the frames of the test alone; "
            f"{elsewhere}"
        )
    for run in campaign.runs:
        found.extend(_on_the_cycle(run, campaign.network))
    return list(dict.fromkeys(found))


def _on_the_cycle(run: Run, network: Network) -> Iterator[str]:
    """Senders that the simulator has go by a clock that here only the interface card has."""
    if all(node.clock is None for node in network.nodes):
        return
    senders = {flow.id: network.names[flow.from_] for flow in run.flows}
    for send in run.sends:
        if send.on_cycle:
            yield (
                f'"{senders[send.flow]}" sends flow {send.flow} at one place of the network\'s cycle (cycle-offset) '
                "by a clock that is its card's: programs of real hosts go by their host's clock, which nothing of the "
                "test keeps; write offset in its place, leave out every <clock>, or use --bench sim"
            )


def _beyond_model(campaign: Campaign) -> list[str]:
    network = campaign.network
    found = [
        *beyond_played(campaign, "use --switches kernel"),
        *_too_many("end systems", len(network.end_systems)),
    ]
    for run in campaign.runs:
        found.extend(
            _launches(run, network, "the interfaces of namespaces have no hardware clock to launch by")
        )
    return list(dict.fromkeys(found))


def beyond_simulator(campaign: Campaign) -> list[str]:
    """One sentence for each feature of the plan that the simulator does not model, so that figures would flatter."""
    network = campaign.network
    found: list[str] = []
    for node in network.nodes:
        if node.tsn is None:
            continue
        for what, there in (
            ("launch times (<etf>)", any(isinstance(one.shaper, Etf) for one in node.tsn.classes)),
            (
                "priorities of the host (<classify>), give the flow a priority instead",
                bool(node.tsn.classify),
            ),
            ("rules for what arrives (<ingress>)", bool(node.tsn.ingress)),
        ):
            if there:
                found.append(
                    f'"{node.name}" has <host-tsn>: the simulator has no model of {what}; use --bench lab'
                )
    return found


def _host_tsn(network: Network, why: str) -> Iterator[str]:
    for node in network.nodes:
        if node.tsn is not None:
            yield f'"{node.name}" has <host-tsn>: {why}; leave it out, or use --bench lab'


def _clocks_and_links(network: Network) -> Iterator[str]:
    for node in network.nodes:
        # Agents write all times as the clock of their end system would show them.
        if node.clock is not None and not node.is_end_system:
            yield f'"{node.name}" has a clock of its own: only an agent can plant one'
    for number, link in enumerate(network.links):
        if link.network != "A":
            yield f'link "{network.ends_of(number)}" is on network B: an end system has one interface'


def _network(network: Network) -> Iterator[str]:
    ends = len(network.end_systems)
    yield from _too_many("end systems", ends)
    yield from _too_many("switches", len(network.nodes) - ends)
    if network.has_loops:
        yield "links close a loop: the kernel's bridges carry round it for ever what they flood"
    for node in network.nodes:
        name, kind = node.name, node.kind
        if isinstance(kind, Hub):
            yield f'"{name}" is a hub: there is no half-duplex medium between namespaces'
        if isinstance(kind, Switch):
            yield from _switch(name, kind)


def _too_many(what: str, number: int) -> Iterator[str]:
    if number > MOST_OF_A_KIND:
        yield f"the network has {number} {what}: one machine carries {MOST_OF_A_KIND} of them in time"


def _switch(name: str, switch: Switch) -> Iterator[str]:
    if switch.kind != "cots":
        yield f'switch "{name}" is of kind {switch.kind}: the kernel\'s bridge is a commercial switch'
    for field, default, why in (
        ("forwarding_mode", "store-and-forward", "the kernel's bridge stores and forwards"),
        ("learning", False, "the bench enters the ways of all flows"),
        ("address_table", None, "the table of the kernel's bridge has no limit of its own"),
        ("strict_priority", False, "a port of the bridge has one queue"),
        ("queue_buffer", None, "a port of the bridge has one queue"),
        ("shared_buffer", None, "the ports of the bridge share no buffer"),
        ("vlans", (), "the bench does not filter by VLAN"),
        ("frame_lengths", None, "the MTU of its ports says what the kernel's bridge takes"),
    ):
        if (value := getattr(switch, field)) != default:
            yield f'switch "{name}": {field.replace("_", " ")} {_said(value)}: {why}'
    if switch.tsn:
        yield f'switch "{name}" has <switch-tsn>: a port of the kernel\'s bridge has one queue and no gates'
    if switch.own_frames:
        yield f'switch "{name}" has <own-frames>: the kernel\'s bridge sends none at a stated period'
    if switch.mixed_rate_delay:
        yield f'switch "{name}": a delay between ports of different rates: the kernel\'s bridge has its own'
    if switch.port_buffer.frames is not None:
        yield f'switch "{name}": a buffer limited in frames: ports of the bridge count bytes'


def _synchronise(plan: Synchronise | None) -> Iterator[str]:
    ptp = plan.ptp if plan is not None else None
    if ptp is None:
        return
    if ptp.timestamps == "hardware":
        yield 'PTP with timestamps="hardware": links between namespaces have no clock; write timestamps="software"'
    if ptp.steer:
        yield 'PTP would steer the one clock that all namespaces share; write steer="off"'


def _run(run: Run, network: Network) -> Iterator[str]:
    for field, value in run.switches.items():
        if value != "store-and-forward":
            yield f"the sweep sets {field} {value}: the kernel's bridge has no choice of {field}"
    yield from _launches(
        run,
        network,
        "the ports between namespaces have a shaper, where the queue discipline etf would have to be, and no hardware "
        "clock",
    )


def _launches(run: Run, network: Network, why: str) -> Iterator[str]:
    launched = [f"flow {send.flow}" for send in run.sends if send.launch]
    loads = [inject.on for inject in run.injects if inject.launch]
    launched += [f"the background load of {network.names[on]}" for on in loads]
    yield from (f"{who} asks for launch times: {why}" for who in launched)


def _flows(run: Run) -> Iterator[str]:
    for flow in run.flows:
        if flow.protocol in _PROTOCOLS:
            yield f"flow {flow.id} is of protocol {flow.protocol}: {_PROTOCOLS[flow.protocol]}"
    yield from (
        f"flow {flow.id} has <frer>: the interfaces and switches of this bench neither copy frames nor remove copies"
        for flow in run.flows
        if flow.frer is not None
    )


def _tasks(run: Run, network: Network) -> Iterator[str]:
    yield from _flows(run)
    for fault in run.link_faults:
        ends = network.ends_of(fault.link)
        yield f'link "{ends}" has a fault ({fault.kind.type}): links that carry real frames have none'
    for incident in run.incidents:
        kind = incident.kind
        if isinstance(kind, ClockStep) and network.nodes[kind.node].is_end_system:
            continue  # planted like the clock
        yield f"the test {_INCIDENTS[kind.type]}: nothing befalls real hosts and links at a stated instant"


def _said(value: object) -> str:
    if value is True:
        return "on"
    return value if isinstance(value, str) else "limited" if isinstance(value, Capacity) else "given"

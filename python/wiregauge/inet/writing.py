"""A test as a simulation of INET (https://inet.omnetpp.org, 4.5 and later): a network (NED) and its settings (ini).

What INET has under another name is renamed; what it has not, or this does not carry, is refused by name. Frames have
the lengths and instants of the test: every flow is sent by `UdpSourceApp`, a raw one with so much less payload that its
frame is as long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from wiregauge.inet.values import InetError
from wiregauge.plan import Campaign, EndSystem, Flow, Network, Run, Send, Switch
from wiregauge.plan.ethernet import GAP, HEADERS, IPV4_UDP, SHORTEST, TAG
from wiregauge.plan.tsn import PortSchedule, PortTsn, settings_of

__all__ = ["inet_files"]

_FIRST_PORT: Final = 1000
_MOST_AT_ONCE: Final = 32
_PRIORITIES: Final = 8
_CUT_THROUGH: Final = "cut-through forwarding"


class _App(Struct, frozen=True):
    """A source of packets: of a flow, or of one frame of each burst of background load."""

    name: str
    source: int
    destination: int
    payload: int
    interval: str
    offset_ps: int
    priority: int | None = None
    dscp: int = 0


def inet_files(campaign: Campaign, number: int = 0) -> dict[str, str]:
    """The files of one run of a test, by their names. Raises InetError."""
    run = campaign.runs[number]
    reasons = list(dict.fromkeys([*_refused(campaign.network), *_refused_of_run(run)]))
    if reasons:
        raise InetError(reasons)
    name = _name(campaign.name)
    return {f"{name}.ned": _ned(campaign.network, run, name), "omnetpp.ini": _ini(campaign, run, name)}


# -- what is refused ------------------------------------------------------------------------------------------


def _refused(network: Network) -> Iterator[str]:
    for node in network.nodes:
        kind, where = node.kind, f'"{node.name}"'
        for is_there, what in (
            (node.clock is not None, "a clock of its own"),
            (node.line_drift_ppb, "a line that drifts"),
            (node.interframe_gap != GAP, f"an interframe gap other than {GAP} B"),
            (node.tsn is not None, "TSN settings of a host"),
            (node.events, "events of a host"),
        ):
            if is_there:
                yield f"{where} has {what}"
        if isinstance(kind, EndSystem):
            if kind.host is not None and not kind.host.takes_no_time:
                yield f'{where} has a host that takes time; write host="ideal" at <network>'
        elif isinstance(kind, Switch):
            yield from (f"{where} has {what}" for what in _of_switch(kind))
        else:
            yield f"{where} is a hub"
    if any(link.network != "A" for link in network.links):
        yield "there are two redundant networks"


def _of_switch(switch: Switch) -> Iterator[str]:
    for is_there, what in (
        (switch.kind != "cots", f"the kind {switch.kind}"),
        (switch.forwarding_mode != "store-and-forward", _CUT_THROUGH),
        (switch.drawn_delay is not None, "a processing delay that is drawn"),
        (switch.mixed_rate_delay, "a delay between ports of different rates"),
        (switch.frame_lengths is not None, "lengths of frames that it accepts"),
        (switch.own_frames, "frames of its own"),
        (switch.learning or switch.address_table is not None, "learning of addresses"),
        (switch.vlans, "VLANs of its ports"),
        (switch.raster is not None, "a raster"),
    ):
        if is_there:
            yield what
    for settings in switch.tsn:
        yield from _of_port(settings)


def _of_port(settings: PortTsn) -> Iterator[str]:
    for is_there, what in (
        (settings.guard_band is not None, "a guard band"),
        (settings.cyclic is not None, "cyclic queuing"),
        (len(settings.schedules) > 1, "gate control lists that take over"),
        (settings.filters, "stream filters (802.1Qci)"),
        (
            any(entry.mac != "unchanged" for one in settings.schedules for entry in one.entries),
            "hold and release",
        ),
        (any(one.preemptable for one in settings.classes), "frame preemption"),
        (any(one.asynchronous is not None for one in settings.classes), "asynchronous shaping"),
        (any(one.longest_frame is not None for one in settings.classes), "a longest frame of a class"),
    ):
        if is_there:
            yield what


def _refused_of_run(run: Run) -> Iterator[str]:
    for is_there, what in (
        (run.switches.forwarding_mode == "cut-through", _CUT_THROUGH),
        (run.relays, "<relay>"),
        (run.remote_logs, "<remote-log>"),
        (run.link_faults or run.incidents, "planted faults"),
        (run.clusters, "a cluster"),
        (run.ptp_domains, "a PTP domain"),
    ):
        if is_there:
            yield f"the test has {what}"
    for flow in run.flows:
        for is_so, what in (
            (flow.protocol in ("rc", "tt"), f"protocol {flow.protocol}"),
            (flow.also_to, "several receivers"),
            (flow.is_loopback, "its sender as its receiver"),
            (flow.frer is not None, "replication (802.1CB)"),
        ):
            if is_so:
                yield f"flow {flow.id} has {what}"
    for send in run.sends:
        if _kind(send.pattern) not in (None, "periodic", "exponential"):
            yield f"flow {send.flow} is sent by the pattern {_kind(send.pattern)}"
        if send.rate_limit_bps is not None or send.activity is not None or send.replay is not None:
            yield f"flow {send.flow} is sent with a limit of its rate, pauses or a replay"
        if send.before_dispatch is not None or send.on_cycle:
            yield f"flow {send.flow} is sent on a cycle"
    for load in run.injects:
        if load.burst > _MOST_AT_ONCE or load.threads is not None or load.activity is not None:
            yield f"background load has bursts above {_MOST_AT_ONCE} frames, pauses or threads"


def _kind(pattern: object) -> str | None:
    return None if pattern is None else str(getattr(pattern, "type", type(pattern).__name__.lower()))


# -- NED ------------------------------------------------------------------------------------------------------


def _name(text: str) -> str:
    """A name as NED has them: letters, digits and underscores, the first no digit."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return plain if re.match(r"[A-Za-z_]", plain) else f"_{plain}"


def _names(network: Network) -> tuple[str, ...]:
    made: list[str] = []
    for node in network.nodes:
        name = _name(node.name)
        while name in made:
            name += "_"
        made.append(name)
    return tuple(made)


def _ned(network: Network, run: Run, name: str) -> str:
    names = _names(network)
    nodes = [
        f"        {own}: {'TsnDevice' if isinstance(node.kind, EndSystem) else 'TsnSwitch'};"
        for own, node in zip(names, network.nodes, strict=True)
    ]
    links = [
        f"        {names[a]}.ethg++ <--> EthernetLink {{ datarate = {run.link_rate_bps or link.rate_bps}bps; "
        f"delay = {_time(link.delay)}; }} <--> {names[b]}.ethg++;"
        for link in network.links
        for a, b in [link.nodes]
    ]
    return "\n".join(
        [
            "// Made by wiregauge from a test; every port in the order of the links below.",
            "import inet.networks.base.TsnNetworkBase;",
            "import inet.node.ethernet.EthernetLink;",
            "import inet.node.tsn.TsnDevice;",
            "import inet.node.tsn.TsnSwitch;",
            "",
            f"network {name} extends TsnNetworkBase",
            "{",
            "    submodules:",
            *nodes,
            "    connections:",
            *links,
            "}",
            "",
        ]
    )


# -- ini ------------------------------------------------------------------------------------------------------


def _ini(campaign: Campaign, run: Run, name: str) -> str:
    network = campaign.network
    names = _names(network)
    end = run.warm_up + run.duration + run.drain
    return "\n".join(
        [
            "# Made by wiregauge from a test. Not carried: limits, and the sizes of buffers: queues of INET are",
            "# unbounded, so it loses no frame where they would be full. Raw flows and background load are UDP, in",
            "# frames as long.",
            "[General]",
            f"network = {name}",
            f'description = "{campaign.name.translate({34: 39, 92: 47})}"',
            f"sim-time-limit = {_time(end)}",
            f"warmup-period = {_time(run.warm_up)}",
            f"seed-set = {run.seed % 2**31}",
            '*.*.ipv4.arp.typename = "GlobalArp"',
            *_rates(network, run, names),
            *_switches(network, names),
            *_sources(network, run, names),
            "",
        ]
    )


def _rates(network: Network, run: Run, names: Sequence[str]) -> Iterator[str]:
    for (node, eth), port in _interfaces(network).items():
        link = next(
            link for link in network.links for end in link.ends if (end.node, end.port) == (node, port)
        )
        yield f"*.{names[node]}.eth[{eth}].bitrate = {run.link_rate_bps or link.rate_bps}bps"


def _interfaces(network: Network) -> dict[tuple[int, int], int]:
    """The port of each interface of a node, which INET counts in the order of the connections."""
    found: dict[tuple[int, int], int] = {}
    used = [0] * len(network.nodes)
    for link in network.links:
        for end in link.ends:
            found[end.node, used[end.node]] = end.port
            used[end.node] += 1
    return found


def _switches(network: Network, names: Sequence[str]) -> Iterator[str]:
    for index, node in enumerate(network.nodes):
        switch = node.kind
        if not isinstance(switch, Switch):
            continue
        yield f"# {node.name}"
        yield f'*.{names[index]}.bridging.directionReverser.delayer.typename = "PacketDelayer"'
        yield f"*.{names[index]}.bridging.directionReverser.delayer.delay = {_time(switch.processing_delay)}"
        if not switch.tsn and not switch.strict_priority:
            continue
        yield f"*.{names[index]}.hasEgressTrafficShaping = true"
        for (of, eth), port in _interfaces(network).items():
            if of == index:
                queue = f"*.{names[index]}.eth[{eth}].macLayer.queue"
                yield from _port(queue, settings_of(switch.tsn, port))


def _port(queue: str, settings: PortTsn | None) -> Iterator[str]:
    classes = settings.classes if settings is not None else ()
    class_of = {p: number for number, one in enumerate(classes) for p in one.priorities}
    count = len(classes) or _PRIORITIES
    rows = (class_of.get(priority, priority if not classes else 0) for priority in range(_PRIORITIES))
    mapping = ", ".join(f"[{', '.join([str(row)] * _PRIORITIES)}]" for row in rows)
    yield f"{queue}.numTrafficClasses = {count}"
    # A row for each priority, and in it a column for each number of classes.
    yield f"{queue}.classifier.mapping = [{mapping}]"
    for number, one in enumerate(classes):
        if one.idle_slope_bps is not None:
            algorithm = f"{queue}.transmissionSelectionAlgorithm[{number}]"
            yield f'{algorithm}.typename = "Ieee8021qCreditBasedShaper"'
            yield f"{algorithm}.idleSlope = {_while_open(one.idle_slope_bps, number, settings)}bps"
    for schedule in settings.schedules if settings is not None else ():
        for number in range(count):
            yield from _gate(f"{queue}.transmissionGate[{number}]", schedule, number)


def _while_open(slope: int, number: int, settings: PortTsn | None) -> int:
    """The slope as INET defines it, for the time that the gate is open, of one over the whole cycle."""
    for schedule in settings.schedules if settings is not None else ():
        cycle = sum(entry.length for entry in schedule.entries)
        is_open = sum(entry.length for entry in schedule.entries if number in entry.open)
        return round(slope * cycle / is_open) if is_open else slope
    return slope


def _gate(gate: str, schedule: PortSchedule, number: int) -> Iterator[str]:
    """A gate as INET has it: durations of open and closed in turn, the first of them open."""
    cycle = sum(entry.length for entry in schedule.entries)
    runs: list[tuple[bool, int, int]] = []
    at = 0
    for entry in schedule.entries:
        is_open = number in entry.open
        if runs and runs[-1][0] == is_open:
            runs[-1] = is_open, runs[-1][1], runs[-1][2] + entry.length
        else:
            runs.append((is_open, at, entry.length))
        at += entry.length
    if len(runs) == 1:
        yield f"{gate}.initiallyOpen = {str(runs[0][0]).lower()}"
        return
    if runs[0][0] == runs[-1][0]:
        # The last of a cycle goes on in the first of the next.
        first = runs.pop(0)
        runs[-1] = runs[-1][0], runs[-1][1], runs[-1][2] + first[2]
    opens = next(place for place, one in enumerate(runs) if one[0])
    turned = runs[opens:] + runs[:opens]
    yield f"{gate}.initiallyOpen = true"
    yield f"{gate}.offset = {_time(-(schedule.base_time + turned[0][1]) % cycle)}"
    yield f"{gate}.durations = [{', '.join(_time(length) for _, _, length in turned)}]"


def _sources(network: Network, run: Run, names: Sequence[str]) -> Iterator[str]:
    apps = [*_of_flows(run), *_of_loads(run)]
    for index, node in enumerate(network.nodes):
        own = [(place, app) for place, app in enumerate(apps) if app.source == index]
        sinks = [place for place, app in enumerate(apps) if app.destination == index]
        if not own and not sinks:
            continue
        yield f"# {node.name}"
        yield f"*.{names[index]}.numApps = {len(own) + len(sinks)}"
        for number, (place, app) in enumerate(own):
            yield from _source(
                f"*.{names[index]}.app[{number}]", app, names[app.destination], _FIRST_PORT + place
            )
        for number, place in enumerate(sinks, len(own)):
            yield f'*.{names[index]}.app[{number}].typename = "UdpSinkApp"'
            yield f'*.{names[index]}.app[{number}].display-name = "{apps[place].name}"'
            yield f"*.{names[index]}.app[{number}].io.localPort = {_FIRST_PORT + place}"
        tagged = [(place, app) for place, app in own if app.priority is not None]
        if tagged:
            yield f"*.{names[index]}.hasOutgoingStreams = true"
            yield f"*.{names[index]}.bridging.streamIdentifier.identifier.mapping = " + _objects(
                f'{{stream: "{app.name}", packetFilter: expr(has(udp) && udp.destPort == {_FIRST_PORT + place})}}'
                for place, app in tagged
            )
            yield f"*.{names[index]}.bridging.streamCoder.encoder.mapping = " + _objects(
                f'{{stream: "{app.name}", pcp: {app.priority}}}' for _, app in tagged
            )


def _objects(texts: Iterator[str]) -> str:
    return f"[{', '.join(texts)}]"


def _source(app: str, of: _App, destination: str, port: int) -> Iterator[str]:
    yield f'{app}.typename = "UdpSourceApp"'
    yield f'{app}.display-name = "{of.name}"'
    yield f'{app}.io.destAddress = "{destination}"'
    yield f"{app}.io.destPort = {port}"
    if of.dscp:
        yield f"{app}.io.dscp = {of.dscp}"
    yield f"{app}.source.packetLength = {of.payload}B"
    yield f"{app}.source.initialProductionOffset = {_time(of.offset_ps)}"
    yield f"{app}.source.productionInterval = {of.interval}"


def _of_flows(run: Run) -> Iterator[_App]:
    flows: Mapping[int, Flow] = {flow.id: flow for flow in run.flows}
    for send in run.sends:
        flow = flows[send.flow]
        frame = flow.frame_length(send.payload) - (TAG if flow.vlan else 0)
        payload = send.payload if flow.protocol in ("udp", "be") else max(frame - HEADERS - IPV4_UDP, 0)
        yield _App(
            f"flow {flow.id}",
            flow.from_,
            flow.to,
            payload or SHORTEST - HEADERS - IPV4_UDP,
            _interval(send),
            send.offset,
            flow.vlan.priority if flow.vlan else None,
            flow.dscp,
        )


def _interval(send: Send) -> str:
    """The time from one packet to the next, and after the last one none for longer than any run."""
    period = _time(send.period)
    if _kind(send.pattern) == "exponential":
        return f"exponential({period})"
    last = send.offset + (send.warm_up_count + send.count - 1) * send.period
    return f"simTime() < {_time(last - send.period // 2)} ? {period} : 1000000s"


def _of_loads(run: Run) -> Iterator[_App]:
    for number, load in enumerate(run.injects):
        interval = f"exponential({_time(load.interval)})" if load.exponential else _time(load.interval)
        for place in range(load.burst):
            yield _App(f"load {number}.{place}", load.on, load.to, load.payload, interval, 0)


def _time(picos: int) -> str:
    """A time in the greatest unit that has no fraction."""
    for unit, size in (("s", 10**12), ("ms", 10**9), ("us", 10**6), ("ns", 10**3)):
        if picos % size == 0:
            return f"{picos // size}{unit}"
    return f"{picos}ps"

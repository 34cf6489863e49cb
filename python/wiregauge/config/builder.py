"""A test written in Python instead of XML.

Each call adds one element of the test language and takes its attributes, with the same names (`from_` for `from`,
`_` for `-`) and the same quantities as text: `"2ms"`, `"64B"`. Nothing is checked on the way; `compile()` checks
all of it with the very checks of a file, and its messages name the element a call has made. Ranges make groups as in a
file: `.end_system("device[1-40]")`, `.flow("101-140", from_="device[1-40]", …)`.

    test = (
        Test("first", seed=1)
        .end_system("mac")
        .end_system("sensor")
        .link("mac", "sensor", rate="1Gbit/s")
        .flow(10, protocol="udp", from_="mac", to="sensor")
        .send(10, period="2ms", payload="64B", count=1000)
        .receive(10)
        .limit("lost", at_most=0)
    )
    campaign = test.compile().campaign
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

from lxml import etree

from wiregauge.config.builder_flows import Fault, FlowPath, Frer, StreamReservation, Window
from wiregauge.config.builder_nodes import Clock, Event, Host, OwnFrames, ReceiveBuffer, Stack, Timestamps
from wiregauge.config.builder_ptp import PtpClock, PtpDomain
from wiregauge.config.builder_sync import Cluster, Exchange, FaultyMaster, Ptp
from wiregauge.config.builder_tsn import TAGS, HostTsn, Part, SwitchTsn, parts_of
from wiregauge.config.diagnostics import Diagnostic, TestError, shown
from wiregauge.config.loading import Loaded, compile_tree
from wiregauge.config.schema import NAMESPACE
from wiregauge.files import write_whole

Value = str | int | None
"""An attribute; None leaves it out."""


class Test:
    """A test under construction; every method adds an element and returns the test itself."""

    __test__ = False  # the name is the field's; pytest must not take it for a test case

    def __init__(
        self,
        name: str,
        seed: int | None = None,
        *,
        bench: str | None = None,
        host: str | None = None,
        routing: str | None = None,
    ) -> None:
        """A test of this name; `host` is the host model of end systems that name none, `routing` the path of flows."""
        self._name = name
        self._file = f'Test("{shown(name)}")'
        default: Any = {None: NAMESPACE}  # the stubs know no default namespace
        self._root = etree.Element(f"{{{NAMESPACE}}}test", nsmap=default)
        self._set(self._root, {"name": name, "seed": seed, "bench": bench})
        self._sections: dict[str, etree._Element] = {}
        for required in ("network", "flows", "tasks"):
            self._section(required)
        self._set(self._section("network"), {"host": host, "routing": routing})

    def end_system(
        self,
        name: str,
        host: str | Host | None = None,
        *,
        line_drift: str | None = None,
        interframe_gap: str | None = None,
        clock: Clock | None = None,
        timestamps: Timestamps | None = None,
        events: Sequence[Event] = (),
        tsn: HostTsn | None = None,
    ) -> Self:
        """A host that sends, receives or relays; `host` names its model or replaces figures, `tsn` its interface."""
        model = host if isinstance(host, str) else None
        attributes: dict[str, Value] = {"name": name, "host": model, "line-drift": line_drift}
        attributes |= {"interframe-gap": interframe_gap}
        node = self._child(self._section("network"), "end-system", attributes)
        self._clock(node, clock)
        if timestamps is not None:
            self._child(node, "timestamps", _attributes(timestamps))
        for event in events:
            self._child(node, "event", _attributes(event))
        if isinstance(host, Host):
            self._host(self._child(node, "host", {}), host)
        if tsn is not None:
            self._tsn(node, tsn)
        return self

    def host_model(
        self, name: str, host: Host | None = None, *, like: str | None = None, file: str | None = None
    ) -> Self:
        """A host model with a name; a `file` that is not absolute begins at the working directory."""
        attributes: dict[str, Value] = {"name": name, "like": like, "file": file}
        self._host(self._child(self._section("network"), "host-model", attributes), host or Host())
        return self

    def _host(self, node: etree._Element, host: Host) -> None:
        values = _attributes(host)
        buffers, stacks = values.pop("receive-buffers", {}), values.pop("stacks", {})
        self._set(node, values)
        for kind, buffer in buffers.items():
            self._child(node, "receive-buffer", {"class": kind, **_attributes(buffer)})
        for protocol, stack in stacks.items():
            self._child(node, "stack", {"protocol": protocol, **_attributes(stack)})

    def switch(
        self,
        name: str,
        *,
        kind: str | None = None,
        delay: str | None = None,
        forwarding_mode: str | None = None,
        forwarding: str | None = None,
        address_table: int | None = None,
        learning_time: str | None = None,
        ageing_time: str | None = None,
        priorities: str | None = None,
        buffer: str | None = None,
        buffer_frames: int | None = None,
        queue_buffer: str | None = None,
        queue_frames: int | None = None,
        shared_buffer: str | None = None,
        shared_frames: int | None = None,
        policing: str | None = None,
        integration: str | None = None,
        raster: str | None = None,
        raster_others: int | None = None,
        mixed_rate_delay: str | None = None,
        line_drift: str | None = None,
        interframe_gap: str | None = None,
        shortest_frame: str | None = None,
        longest_frame: str | None = None,
        file: str | None = None,
        clock: Clock | None = None,
        timestamps: Timestamps | None = None,
        own_frames: Sequence[OwnFrames] = (),
        vlans: Mapping[int, Iterable[int]] | None = None,
        tsn: Sequence[SwitchTsn] = (),
    ) -> Self:
        """A switch; `vlans` has the ports that carry each VLAN."""
        attributes = _given(locals(), "clock", "timestamps", "own_frames", "vlans", "tsn")
        node = self._child(self._section("network"), "switch", attributes)
        self._clock(node, clock)
        if timestamps is not None:
            self._child(node, "timestamps", _attributes(timestamps))
        for frames in own_frames:
            self._child(node, "own-frames", _attributes(frames))
        for vlan, ports in (vlans or {}).items():
            self._child(node, "vlan", {"id": vlan, "ports": " ".join(map(str, ports))})
        for part in tsn:
            self._tsn(node, part)
        return self

    def hub(self, name: str, *, delay: str | None = None) -> Self:
        """A repeater with one half-duplex medium on all its links."""
        return self._add("network", "hub", {"name": name, "delay": delay})

    def link(
        self, a: str, b: str, *, rate: str, delay: str | None = None, network: str | None = None
    ) -> Self:
        """A cable; an end may name a port of a switch: `"sw1:3"`."""
        attributes: dict[str, Value] = {"between": f"{a} {b}", "rate": rate, "delay": delay}
        return self._add("network", "link", attributes | {"network": network})

    def flow(
        self,
        id: int | str,  # noqa: A002 - the attribute's name in the test language
        *,
        protocol: str,
        from_: str,
        to: str | Sequence[str],
        deadline: str | None = None,
        vlan: int | None = None,
        priority: int | None = None,
        dscp: int | None = None,
        networks: str | None = None,
        vl: int | str | None = None,
        lmax: str | None = None,
        bag: str | None = None,
        sub_links: int | None = None,
        queue: int | None = None,
        skew_max: str | None = None,
        redundancy: str | None = None,
        sequence_number: str | None = None,
        jitter: str | None = None,
        period: str | None = None,
        offset: str | None = None,
        offset_step: str | None = None,
        window: str | None = None,
        early: str | None = None,
        late: str | None = None,
        windows: Sequence[Window] = (),
        paths: Sequence[FlowPath] = (),
        frer: Frer | None = None,
        reservation: StreamReservation | None = None,
        source_mac: str | None = None,
        destination_mac: str | None = None,
        source_macs: int | None = None,
        destination_macs: int | None = None,
        source_ip: str | None = None,
        destination_ip: str | None = None,
        source_port: int | None = None,
        destination_port: int | None = None,
    ) -> Self:
        """A stream of messages from one end system to one or several others; a range, `"101-140"`, makes a group."""
        to = to if isinstance(to, str) else " ".join(to)
        attributes = _given(locals(), "windows", "paths", "frer", "reservation")
        node = self._child(self._section("flows"), "flow", attributes)
        for own in windows:
            self._child(node, "window", _attributes(own))
        for path in paths:
            self._child(node, "path", _attributes(path))
        if frer is not None:
            self._child(node, "frer", _attributes(frer))
        if reservation is not None:
            self._child(node, "stream-reservation", _attributes(reservation))
        return self

    def reservable(self, share: str) -> Self:
        """The share of each port that reserved streams may have together."""
        self._set(self._section("flows"), {"reservable": share})
        return self

    def synchronise(
        self,
        *,
        exchange: Exchange | None = None,
        ptp: Ptp | None = None,
        chrony: bool = False,
        reference: str | None = None,
        asymmetry: str | None = None,
        max_offset: str | None = None,
        on_failure: str | None = None,
        wait: str | None = None,
        clusters: Sequence[Cluster] = (),
        ptp_domains: Sequence[PtpDomain] = (),
    ) -> Self:
        """How the clocks of the end systems are kept together and compared."""
        attributes = _given(locals(), "exchange", "ptp", "chrony", "clusters", "ptp_domains")
        section = self._section("synchronise")
        self._set(section, attributes)
        for tag, part in (("exchange", exchange), ("ptp", ptp)):
            if part is not None:
                self._child(section, tag, _attributes(part))
        if chrony:
            self._child(section, "chrony", {})
        for cluster in clusters:
            given = _attributes(cluster)
            faulty = given.pop("faulty")
            node = self._child(section, "as6802", given)
            for master in faulty:
                self._child(node, "faulty-master", _attributes(master))
        for domain in ptp_domains:
            given = _attributes(domain)
            clocks = given.pop("clocks")
            node = self._child(section, "ptp-domain", given)
            for clock in clocks:
                self._child(node, "ptp-clock", _attributes(clock))
        return self

    def timing(
        self,
        *,
        warm_up: str | None = None,
        duration: str | None = None,
        drain: str | None = None,
        overload: str | None = None,
    ) -> Self:
        """Times of every run: before the measured part, the measured part, and after it.

        With `overload="on"` measured flows may take more than a link behind a switch carries.
        """
        timing: dict[str, Value] = {
            "warm-up": warm_up,
            "duration": duration,
            "drain": drain,
            "overload": overload,
        }
        self._set(self._section("tasks"), timing)
        return self

    def send(
        self,
        flow: int | str,
        *,
        period: str | None = None,
        load: str | None = None,
        payload: str | None = None,
        frame: str | None = None,
        seed: int | None = None,
        ramp_to: str | None = None,
        active: str | None = None,
        pause: str | None = None,
        pacing: str | None = None,
        backend: str | None = None,
        launch: str | None = None,
        transmit_time: str | None = None,
        fill: str | None = None,
        count: int | None = None,
        offset: str | None = None,
        offset_step: str | None = None,
        cycle_offset: str | None = None,
        distribution: str | None = None,
        burst: int | None = None,
        spacing: str | None = None,
        rate_limit: str | None = None,
        sub_link: int | None = None,
    ) -> Self:
        """The sender of a flow; either `period` or `load` says how fast, `payload` or `frame` how much it sends."""
        return self._add("tasks", "send", _given(locals()))

    def replay(
        self,
        flow: int | str,
        *,
        file: Path | str,
        interface: str | None = None,
        direction: str | None = None,
        speed: str | None = None,
        loops: int | None = None,
        loop_gap: str | None = None,
        count: int | None = None,
        offset: str | None = None,
        offset_step: str | None = None,
        pacing: str | None = None,
        backend: str | None = None,
        launch: str | None = None,
        transmit_time: str | None = None,
    ) -> Self:
        """The sender of a flow with the gaps and sizes of a capture; a path that is not absolute begins here, at the
        working directory."""
        return self._add("tasks", "replay", _given(locals()))

    def receive(self, flow: int | str, *, on: str | None = None) -> Self:
        """The receiver of a flow."""
        return self._add("tasks", "receive", {"flow": flow, "on": on})

    def relay(
        self,
        flow: int | str,
        *,
        on: str | None = None,
        vl: int | str | None = None,
        through: str | None = None,
        faults: Sequence[Fault] = (),
    ) -> Self:
        """Turns the messages of a flow round, with planted faults; `vl` numbers the virtual link back of an rc flow."""
        relay = self._child(self._section("tasks"), "relay", _given(locals(), "faults"))
        for fault in faults:
            sequence = _numbers(fault.sequence)
            self._child(relay, "fault", {"kind": fault.kind, "sequence": sequence, "to": fault.to})
        return self

    def inject(
        self,
        *,
        on: str,
        to: str,
        load: str,
        payload: str | None = None,
        burst: int | None = None,
        frame: str | None = None,
        distribution: str | None = None,
        active: str | None = None,
        pause: str | None = None,
        pacing: str | None = None,
        backend: str | None = None,
        launch: str | None = None,
        threads: int | None = None,
        send_cost: str | None = None,
        sleep_overhead: str | None = None,
    ) -> Self:
        """Background load."""
        return self._add("tasks", "inject", _given(locals()))

    def remote_log(self, *, on: str, to: str, record: str | None = None, records: int | None = None) -> Self:
        """Sends a host's records of messages to another over the network under test."""
        return self._add("tasks", "remote-log", {"on": on, "to": to, "record": record, "records": records})

    def capture(self, on: str, *, snap: str | None = None) -> Self:
        """Writes every frame at a node's ports."""
        return self._add("tasks", "capture", {"on": on, "snap": snap})

    def bit_errors(
        self,
        a: str,
        b: str,
        *,
        rate: str,
        sent_by: str | None = None,
        from_: str | None = None,
        until: str | None = None,
    ) -> Self:
        """Inverts bits of a link's frames at random."""
        attributes: dict[str, Value] = {"link": f"{a} {b}", "rate": rate}
        return self._add(
            "faults", "bit-errors", attributes | {"sent-by": sent_by, "from": from_, "until": until}
        )

    def frame_fault(
        self,
        kind: str,
        a: str,
        b: str,
        *,
        share: str | None = None,
        flow: int | None = None,
        sequence: str | Iterable[int] | None = None,
        by: str | None = None,
        sent_by: str | None = None,
        from_: str | None = None,
        until: str | None = None,
    ) -> Self:
        """A `loss`, `duplicate`, `delay` or `corrupt` (`kind`) of frames of a link: a share, or messages of a flow."""
        attributes: dict[str, Value] = {"link": f"{a} {b}", "by": by, "share": share, "flow": flow}
        attributes |= {"sequence": _numbers(sequence), "sent-by": sent_by, "from": from_, "until": until}
        return self._add("faults", kind, attributes)

    def wrong_length(
        self,
        a: str,
        b: str,
        *,
        length: str,
        share: str | None = None,
        flow: int | None = None,
        sequence: str | Iterable[int] | None = None,
        sent_by: str | None = None,
        from_: str | None = None,
        until: str | None = None,
    ) -> Self:
        """Makes runts or giants of frames of a link: a share, or messages of a flow."""
        attributes: dict[str, Value] = {"link": f"{a} {b}", "length": length, "share": share, "flow": flow}
        attributes |= {"sequence": _numbers(sequence), "sent-by": sent_by, "from": from_, "until": until}
        return self._add("faults", "wrong-length", attributes)

    def cut(self, a: str, b: str, *, from_: str, until: str | None = None) -> Self:
        """Cuts a link."""
        return self._add("faults", "cut", {"link": f"{a} {b}", "from": from_, "until": until})

    def babble(
        self,
        flow: int,
        *,
        from_: str,
        until: str,
        period: str | None = None,
        load: str | None = None,
        length: str | None = None,
    ) -> Self:
        """Sends frames of a flow past every regulator and schedule."""
        return self._add("faults", "babble", _given(locals()))

    def restart(self, switch: str, *, from_: str, until: str) -> Self:
        """Restarts a switch."""
        return self._add("faults", "restart", {"switch": switch, "from": from_, "until": until})

    def step_clock(self, on: str, *, at: str, by: str) -> Self:
        """Sets a node's clock."""
        return self._add("faults", "step-clock", {"on": on, "at": at, "by": by})

    def axis(
        self, of: str, values: Iterable[str | int], *, flow: str | Sequence[int | str] | None = None
    ) -> Self:
        """A swept parameter; the last axis added varies fastest."""
        attributes: dict[str, Value] = {"of": of, "values": " ".join(map(str, values)), "flow": _flows(flow)}
        return self._add("sweep", "axis", attributes)

    def repeat(self, times: int) -> Self:
        """Measures every point several times; add it after the axes."""
        return self._add("sweep", "repeat", {"times": times})

    def limit(
        self,
        measure: str,
        *,
        flow: int | str | Sequence[int | str] | None = None,
        at_most: str | int | None = None,
        at_least: str | int | None = None,
    ) -> Self:
        """A bound on a measure, for one flow, for several, each on its own, or for all."""
        attributes: dict[str, Value] = {"flow": _flows(flow), "measure": measure}
        return self._add("limits", "limit", attributes | {"at-most": at_most, "at-least": at_least})

    def to_xml(self) -> str:
        """The test as a file of the test language."""
        etree.indent(self._root)
        body = etree.tostring(self._root, encoding="unicode")
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'

    def write(self, path: Path | str) -> None:
        """Writes the test as a file, UTF-8."""
        write_whole(Path(path), self.to_xml())

    def compile(self) -> Loaded:
        """The campaign; raises `TestError` with every diagnostic, named by the elements the calls made."""
        xml = self.to_xml().encode()
        campaign = compile_tree(self._root, self._file, Path())
        return Loaded(campaign, xml, hashlib.sha256(xml).hexdigest(), campaign.warnings)

    def _section(self, tag: str) -> etree._Element:
        if tag not in self._sections:
            self._sections[tag] = etree.SubElement(self._root, f"{{{NAMESPACE}}}{tag}")
        return self._sections[tag]

    def _add(self, section: str, tag: str, attributes: dict[str, Value]) -> Self:
        self._child(self._section(section), tag, attributes)
        return self

    def _child(self, parent: etree._Element, tag: str, attributes: dict[str, Value]) -> etree._Element:
        node = etree.SubElement(parent, f"{{{NAMESPACE}}}{tag}")
        self._set(node, attributes)
        return node

    def _clock(self, parent: etree._Element, clock: Clock | None) -> None:
        if clock is None:
            return
        attributes = _attributes(clock)
        del attributes["temperature"]
        node = self._child(parent, "clock", attributes)
        for at, drift in clock.temperature:
            self._child(node, "temperature", {"at": at, "drift": drift})

    def _tsn(self, parent: etree._Element, part: Part) -> None:
        names, below = parts_of(part)
        attributes = {field.name: getattr(part, field.name) for field in fields(part)}
        node = self._child(parent, TAGS[type(part)], _given(attributes, *names))
        for one in below:
            self._tsn(node, one)

    def _set(self, node: etree._Element, attributes: dict[str, Value]) -> None:
        for name, value in attributes.items():
            if value is None:
                continue
            try:
                node.set(name, str(value))
            except ValueError:
                tag = f"<{etree.QName(node).localname}>"
                message = f'{name} "{shown(str(value))}" contains characters that XML does not allow'
                raise TestError([Diagnostic(self._file, 0, tag, message, "", "remove them")]) from None


def _attributes(
    part: Clock
    | Cluster
    | Event
    | Exchange
    | FaultyMaster
    | FlowPath
    | Frer
    | Host
    | OwnFrames
    | ReceiveBuffer
    | Ptp
    | PtpClock
    | PtpDomain
    | Stack
    | StreamReservation
    | Timestamps
    | Window,
) -> dict[str, Any]:
    """The fields as attributes, `-` for `_`; one at the end keeps a word of Python from being one."""
    return {one.name.rstrip("_").replace("_", "-"): getattr(part, one.name) for one in fields(part)}


def _given(arguments: Mapping[str, Any], *others: str) -> dict[str, Value]:
    """The arguments of a method as attributes of their names, but for `others`; `from_` stands for `from`."""
    return {
        name.rstrip("_").replace("_", "-"): value
        for name, value in arguments.items()
        if name not in ("self", *others)
    }


def _flows(flow: int | str | Sequence[int | str] | None) -> int | str | None:
    """Flows, or ranges of them, as the test language writes them."""
    return flow if flow is None or isinstance(flow, int | str) else " ".join(map(str, flow))


def _numbers(sequence: str | Iterable[int] | None) -> str | None:
    """Sequence numbers as the test language writes them."""
    if sequence is None or isinstance(sequence, str):
        return sequence
    return " ".join(map(str, sequence))

"""The builder makes the very test its XML says."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from capture_files import Packet, write
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from wiregauge.config import (
    Ats,
    Cbs,
    Classify,
    Clock,
    Cluster,
    CyclicQueuing,
    Etf,
    Event,
    Exchange,
    Fault,
    FaultyMaster,
    FlowPath,
    Frer,
    GateEntry,
    GateSchedule,
    Host,
    HostTsn,
    Ingress,
    OwnFrames,
    Police,
    Ptp,
    PtpClock,
    PtpDomain,
    ReceiveBuffer,
    Scheduler,
    Stack,
    StreamGate,
    StreamGateEntry,
    StreamReservation,
    SwitchTsn,
    Test,
    TestError,
    Timestamps,
    TrafficClass,
    Window,
    load,
)
from wiregauge.config.schema import NAMESPACE, declarations
from wiregauge.plan import Campaign

TIMES = st.sampled_from(["1ms", "2.5ms", "700us", "0.003s"])
SIZES = st.sampled_from(["18B", "64B", "1kB", "1.25KiB"])


def base(name: str = "built", seed: int | None = None) -> Test:
    test = Test(name, seed).switch("sw1", buffer="64KiB")
    for node in ("mac", "sensor", "other"):
        test.end_system(node).link(node, "sw1", rate="1Gbit/s", delay="50ns")
    return test


@st.composite
def built(draw: st.DrawFn) -> Test:
    test = base(seed=draw(st.none() | st.integers(0, 2**64 - 1)))
    ids = draw(st.lists(st.integers(1, 65_534), min_size=1, max_size=5, unique=True))
    test.timing(warm_up=draw(st.none() | TIMES), drain=draw(st.none() | TIMES))
    for flow in ids:
        raw = draw(st.booleans())
        test.flow(
            flow,
            protocol="raw" if raw else "udp",
            from_="mac",
            to="sensor",
            deadline=draw(st.none() | TIMES),
            vlan=draw(st.none() | st.integers(1, 4094)) if raw else None,
            priority=draw(st.none() | st.integers(0, 7)) if raw else None,
        )
        test.send(
            flow,
            period=draw(TIMES),
            payload=draw(SIZES),
            fill=draw(st.sampled_from([None, "sequential", "random"])),
            count=draw(st.integers(20, 1000)),
            offset=draw(st.none() | TIMES),
        )
        if draw(st.booleans()):
            test.receive(flow, on=draw(st.sampled_from([None, "sensor"])))
        else:
            faults = [
                Fault("loss", "1 3-4"),
                Fault("reorder", [7]),
                Fault("misdirect", range(10, 13), to="other"),
            ]
            test.relay(flow, through=draw(st.sampled_from([None, "task"])), faults=faults)
    if draw(st.booleans()):
        test.inject(
            on="other", to="sensor", load=draw(st.sampled_from(["0%", "12.5%", "900000ppm"])), burst=3
        )
    if draw(st.booleans()):
        test.axis("fill", ["sequential", "random"], flow=draw(st.none() | st.just(ids[:1])))
        test.axis("payload", ["64B", "128B"]).repeat(draw(st.integers(1, 3)))
    return test.limit("lost", at_most=0).limit("latency.mean", flow=ids[0], at_most="5ms")


def without_lines(campaign: Campaign) -> Campaign:
    return replace(campaign, limits=tuple(replace(limit, line=0) for limit in campaign.limits))


@settings(max_examples=60)
@given(built())
def test_the_file_means_what_the_builder_means(test: Test) -> None:
    compiled = test.compile()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.xml"
        test.write(path)
        loaded = load(path)
    assert loaded.xml == compiled.xml
    assert loaded.sha256 == compiled.sha256
    assert without_lines(loaded.campaign) == compiled.campaign


def rule() -> Ingress:
    entries = [StreamGateEntry("open", "900us", max_octets="8kB"), StreamGateEntry("closed", "100us")]
    gate = StreamGate(entries, base_time="1us", cycle_time="1ms")
    return Ingress(7, gate, Police("10Mbit/s", "4kB"), offload="on")


def stream_filter() -> Ingress:
    """All that the filter of a stream at a switch can have."""
    entries = [
        StreamGateEntry("open", "900us", max_octets="8kB", priority=6),
        StreamGateEntry("closed", "100us"),
    ]
    gate = StreamGate(entries, close_on_invalid="on", close_on_octets="on")
    police = Police(
        "10Mbit/s",
        "4kB",
        excess_rate="1Mbit/s",
        excess_burst="2kB",
        coupling="on",
        colour_mode="aware",
        drop_on_yellow="on",
        mark_all_red="on",
    )
    return Ingress(
        98,
        gate,
        police,
        identify="ip",
        fields="source-ip destination-ip",
        max_sdu="1000B",
        block_oversize="on",
    )


def switch_tsn() -> list[SwitchTsn]:
    """Ports of a switch with all that they can have."""
    ats = Ats([Scheduler(98, "10Mbit/s", "2KiB")], longest_residence="5ms")
    low = TrafficClass(0, "0 1 2 3", shaper=ats, longest_frame="1000B", preemptable="on")
    entries = [GateEntry("500us", "0 1", mac="release"), GateEntry("500us", "0 1", mac="hold")]
    first = GateSchedule(entries, cycle_extension="1us")
    lists = [first, GateSchedule(entries, base_time="5ms")]
    rest = [TrafficClass(0, "0 1 2 3 4 5"), TrafficClass(1, "6"), TrafficClass(2, "7")]
    return [
        SwitchTsn(
            [low, TrafficClass(1, "4 5 6 7")],
            lists,
            ports="2",
            guard_band="20us",
            shortest_fragment="128B",
            hold_advance="100us",
            release_advance="1us",
        ),
        SwitchTsn(
            rest,
            cyclic=CyclicQueuing("1 2", "500us", base_time="1us"),
            ingress=[stream_filter(), Ingress(97, gate_of=98, meter_of=98)],
        ),
    ]


def talker() -> HostTsn:
    return HostTsn(
        classes=[
            TrafficClass(0, "7", shaper=Etf(delta="200us", offload="on", deadline="off")),
            TrafficClass(1, "6", shaper=Cbs("1Mbit/s", "500B", "600B", offload="off")),
            TrafficClass(2, "0 1 2 3 4 5", queues=2),
        ],
        schedule=GateSchedule([GateEntry("300us", "0"), GateEntry("700us", "1 2")], "1us", "1ms"),
        classify=[Classify(5, 6)],
        channels=4,
    )


def preempting() -> HostTsn:
    """Holds its MAC."""
    entries = [GateEntry("300us", "0 1", mac="hold"), GateEntry("700us", "0 1", mac="release")]
    return HostTsn(
        [TrafficClass(0, "0 1 2 3", preemptable="on"), TrafficClass(1, "4 5 6 7")],
        GateSchedule(entries),
        offload="full",
        shortest_fragment="192B",
        hold_advance="50us",
        release_advance="2us",
    )


def assisted() -> HostTsn:
    """Launched by the schedule."""
    only = TrafficClass(0, "0 1 2 3 4 5 6 7", shaper=Etf())
    schedule = GateSchedule([GateEntry("1ms", "0")])
    return HostTsn([only], schedule, offload="txtime-assist", txtime_delay="500us")


def test_the_builder_can_write_every_element_and_attribute(tmp_path: Path) -> None:  # noqa: PLR0915 - all of them
    """Nothing in the schema that Python cannot say."""
    test = Test("built", 7, bench="sim", host="ideal", routing="unique")
    clock = Clock(
        offset="-5us", drift="-20ppm", wander="3ppb", granularity="8ns", temperature=[("1s", "5ppm")]
    )
    errors = {f"{where}_error": "10ns" for where in ("application", "driver", "wire")}
    timestamps = Timestamps(**errors, read_cost="0%:20ns 100%:90ns", subtract_read_cost="least")
    event = Event("1s", "1ms", "5us", offset="1s", ramp_to="9us", threads="send")
    test.end_system("mac", clock=clock, timestamps=timestamps, events=[event]).end_system("other", "tuned")
    test.end_system("p", line_drift="-40ppm", interframe_gap="11B").switch(
        "r",
        mixed_rate_delay="3us",
        line_drift="20ppm",
        interframe_gap="11B",
        shortest_frame="32B",
        longest_frame="9018B",
        timestamps=timestamps,
        own_frames=[OwnFrames("2s", "1s", "100B", 3, "1")],
    )
    test.link("p", "r", rate="1Gbit/s")
    model = tmp_path / "t1700.host.xml"
    model.write_text(f'<host-model xmlns="{NAMESPACE}" name="any" ring="9"/>')
    host = Host(
        transmit="1us",
        transmit_per_byte="1ns",
        receive="1us",
        receive_per_byte="1ns",
        interface_delay="1us",
        interface_receive_delay="1us",
        interrupt_latency="1us",
        interrupts="coalesced",
        interrupt_frames=8,
        interrupt_wait="50us",
        send_wake_up="1us",
        receive_wake_up="0%:1us 100%:2us",
        relay_wake_up="1us",
        backlog=64,
        ring=64,
        egress="64KiB",
        background="discarded",
        card_read="1us",
        card_read_per_byte="10ns",
    )
    test.end_system(
        "sensor",
        host,
        tsn=HostTsn(ingress=[rule()]),
    )
    parts = ("receive_buffers", "stacks")
    whole = {name: value for name, value in asdict(host).items() if name not in parts}
    stacks = {"raw": Stack("1us", "1ns", "2us", "2ns")}
    buffers = {"be": ReceiveBuffer(slots=59, fifo="4KiB"), "rc": ReceiveBuffer()}
    test.host_model(
        "t1700", Host(**whole, receive_buffers=buffers, stacks=stacks), like="ideal", file=str(model)
    )
    measured = tmp_path / "measured.switch.xml"
    measured.write_text(f'<switch xmlns="{NAMESPACE}" name="any" queue-frames="77"/>')
    test.switch(
        "sw1",
        file=str(measured),
        kind="mixed-criticality",
        forwarding_mode="cut-through",
        delay="1us",
        forwarding="learning",
        address_table=4096,
        learning_time="2us",
        ageing_time="60s",
        priorities="fifo",
        buffer="64KiB",
        buffer_frames=40,
        queue_buffer="32KiB",
        queue_frames=20,
        shared_buffer="128KiB",
        shared_frames=80,
        policing="frames",
        integration="shuffling",
        raster="50us",
        raster_others=2,
        clock=clock,
        vlans={5: range(1, 4), 0: [1, 2, 3]},
    )
    links = SwitchTsn([TrafficClass(0, "0 1 2 3 4 5 6 7", virtual_links="low high")])
    test.switch("sw2", kind="mixed-criticality", tsn=[links])
    test.switch("sw3", tsn=switch_tsn())
    test.end_system("e3", tsn=preempting()).end_system("f3").link("e3", "sw3", rate="1Gbit/s").link(
        "sw3", "f3", rate="1Gbit/s"
    )
    for node in ("mac", "sensor", "other"):
        test.link(node, "sw1", rate="1Gbit/s", delay="50ns")
    test.link("mac", "sw2", rate="1Gbit/s", network="B").link("sensor", "sw2", rate="1Gbit/s", network="B")
    test.end_system("h1", tsn=talker()).end_system("h2", tsn=assisted()).hub("hub", delay="500ns")
    test.link("h1", "hub", rate="10Mbit/s").link("h2", "hub", rate="10Mbit/s")
    # Two switches with two links between: a copy over each.
    test.end_system("t1").switch("f1").switch("f2").end_system("t2")
    for node in ("q1", "q2", "q3", "q4"):
        test.end_system(node)
    test.switch("bc").switch("tc")
    for ends in (("q1", "bc"), ("bc", "tc"), ("tc", "q2"), ("q3", "q4")):
        test.link(*ends, rate="1Gbit/s")
    for ends in (("t1", "f1"), ("f1", "f2"), ("f1", "f2"), ("f2", "t2")):
        test.link(*ends, rate="1Gbit/s")
    recovery: dict[str, Any] = {
        "recovery": "vector",
        "history_length": 4,
        "reset": "1s",
        "individual": "match",
    }
    recovery |= {"latent_difference": 2, "latent_period": "1s", "latent_reset": "9s"}
    frer = Frer(replicate_at="t1", eliminate_at="f2", intermediate_recovery="on", **recovery)
    copies = [FlowPath("f1:2 f2"), FlowPath("f1:3 f2")]
    test.flow(8, protocol="udp", from_="t1", to="t2", frer=frer, paths=copies).receive(8)
    test.send(8, period="5ms", payload="64B")
    test.timing(warm_up="1ms", duration="1s", drain="1ms", overload="on")
    test.flow(1, protocol="raw", from_="mac", to="sensor", deadline="1s", vlan=5, priority=6, networks="A")
    test.send(1, period="1ms", payload="64B", fill="random", count=100, offset="1ms")
    test.relay(1, on="sensor", through="task", faults=[Fault("misdirect", "5", to="other")])
    test.flow(90, protocol="rc", from_="mac", to="sensor", bag="8ms").relay(90, vl=190)
    test.send(90, period="8ms", payload="64B")
    test.flow(2, protocol="udp", from_="mac", to="sensor", priority=3, dscp=46).receive(2, on="sensor")
    test.send(2, load="1%", payload="64B", burst=10, spacing="20us", rate_limit="100Mbit/s")
    contract: dict[str, Any] = {
        "lmax": "200B",
        "bag": "1ms",
        "sub_links": 2,
        "queue": 9,
        "skew_max": "4ms",
        "vl": 77,
    }
    test.flow(
        3,
        protocol="rc",
        from_="mac",
        to="sensor",
        redundancy="off",
        sequence_number="within",
        jitter="1ms",
        priority=7,
        **contract,
    )
    test.send(3, period="5ms", payload="64B", distribution="exponential", sub_link=2).receive(3)
    schedule: dict[str, Any] = {
        "period": "10ms",
        "offset": "1ms",
        "window": "300us",
        "early": "2us",
        "late": "40us",
    }
    window = Window("sw1:2", "2ms", "200us")
    test.flow(4, protocol="tt", from_="mac", to=["sensor", "other"], windows=[window], **schedule)
    test.send(4, period="10ms", payload="64B", cycle_offset="dispatch").receive(4)
    bounds: dict[str, Any] = {"precision": "30us", "max_drift": "100ppm"}
    gate: dict[str, Any] = {"asymmetry": "1us", "max_offset": "9us", "on_failure": "refuse", "wait": "5s"}
    exchange = Exchange(period="20ms", to="sensor", protocol="raw")
    more: dict[str, Any] = {"domain": 20, "transport": "udp", "delay": "p2p"}
    ptp = Ptp(timestamps="software", steer="off", interval="125ms", kp="0.7", ki="0.3", **more)
    cluster = Cluster(
        "mac sensor other",
        "sw1",
        integrity="standard",
        cycle="1ms",
        cycles=10,
        max_delay="300us",
        faulty_masters=1,
        domain=1,
        priority=2,
        sync_threshold=2,
        stable_cycles=4,
        unstable_cycles=2,
        powered_within="1ms",
        faulty=[FaultyMaster("other", "early", by="5us")],
        **bounds,
    )
    other = Cluster("t1 t2", "f1", clients="f2", cycle="1250us", domain=3)
    domain = PtpDomain(
        "q1 q2",
        boundary_clocks="bc",
        transparent_clocks="tc",
        domain=3,
        profile="default",
        delay="p2p",
        announce_interval="1s",
        sync_interval="125ms",
        delay_interval="250ms",
        announce_timeout=4,
        servo="basic",
        priority=6,
        max_offset="2us",
        clocks=[PtpClock("q1", priority1=7, priority2=9, role="grandmaster-only")],
    )
    follower = PtpDomain(
        "q3 q4",
        domain=4,
        servo="pi",
        kp="0.1",
        ki="0.001",
        first_step_threshold="1ms",
        step_threshold="20us",
        delay_filter="average",
        delay_filter_length=5,
    )
    gate |= {"clusters": [cluster, other], "ptp_domains": [domain, follower]}
    test.synchronise(exchange=exchange, ptp=ptp, chrony=True, reference="mac", **gate)
    test.inject(on="other", to="mac", load="5%", payload="100B", burst=2).capture("sw1", snap="96B")
    test.remote_log(on="other", to="mac", record="64B", records=7)
    test.inject(on="other", to="mac", load="5%", threads=3, send_cost="40us", sleep_overhead="60us")
    shaping: dict[str, Any] = {"active": "10ms", "pause": "5ms", "pacing": "gap", "backend": "packet"}
    test.inject(
        on="other", to="sensor", load="1%", frame="200B", distribution="exponential", launch="on", **shaping
    )
    test.flow(5, protocol="udp", from_="h1", to="h2", paths=[FlowPath("hub", to="h2", network="A")]).receive(
        5
    )
    test.send(5, period="5ms", frame="100B", ramp_to="2ms", transmit_time="12B", **shaping)
    test.flow(6, protocol="udp", from_="h2", to="h1").receive(6)
    test.send(6, period="50ms", payload="64B", distribution="exponential", seed=7, launch="off")
    addresses: dict[str, Any] = {"source_mac": "02:00:00:00:00:71", "destination_mac": "02-00-00-00-00-72"}
    addresses |= {"source_ip": "10.1.1.1", "destination_ip": "10.1.1.2"}
    addresses |= {"source_port": 5000, "destination_port": 5001, "source_macs": 3, "destination_macs": 2}
    test.flow(7, protocol="udp", from_="mac", to="sensor", **addresses).receive(7)
    line = write(tmp_path / "line.pcapng", [Packet(k * 10**6, 100, sent=True) for k in range(5)])
    pace: dict[str, Any] = {"speed": "50%", "loops": 2, "loop_gap": "1ms", "count": 9, "offset": "1ms"}
    chosen: dict[str, Any] = {"interface": "eth0", "direction": "sent"}
    test.replay(
        7, file=line, pacing="gap", backend="packet", launch="on", transmit_time="12B", **chosen, **pace
    )
    test.flow(98, protocol="udp", from_="e3", to="f3").send(98, period="5ms", payload="64B").receive(98)
    shared = test.flow(97, protocol="raw", from_="e3", to="f3", vlan=9)
    shared.send(97, period="5ms", payload="64B").receive(97)
    test.end_system("g1").end_system("g2").switch("reserving")
    test.link("g1", "reserving", rate="1Gbit/s").link("g2", "reserving", rate="1Gbit/s").reservable("70%")
    reserved = StreamReservation("A", "200B", 2)
    test.flow(99, protocol="raw", from_="g1", to="g2", reservation=reserved).receive(99)
    test.send(99, period="1ms", payload="64B")
    test.flow("11-12", protocol="udp", from_="mac", to="sensor").receive("11-12")
    test.send("11-12", period="50ms", offset_step="1ms", payload="64B")
    test.flow("13-14", protocol="udp", from_="mac", to="sensor").receive("13-14")
    test.replay("13-14", file=line, offset_step="1ms", interface="eth0")
    test.flow(
        "15-16", protocol="tt", from_="sensor", to="mac", period="10ms", offset="3ms", offset_step="1ms"
    )
    test.send("15-16", period="10ms", payload="64B").receive("15-16")
    test.bit_errors("mac", "sw1", rate="1e-9", sent_by="mac", from_="1ms", until="1s")
    times: dict[str, Any] = {"from_": "1ms", "until": "1s"}
    test.frame_fault("loss", "mac", "sw1", share="1%", sent_by="mac", **times)
    test.frame_fault("loss", "mac", "sw1", flow=1, sequence=[3, 4])
    test.frame_fault("duplicate", "mac", "sw1", share="1%", sent_by="mac", **times)
    test.frame_fault("duplicate", "mac", "sw1", flow=1, sequence="5-6")
    test.frame_fault("delay", "mac", "sw1", share="1%", by="1ms", sent_by="mac", **times)
    test.frame_fault("delay", "mac", "sw1", flow=1, sequence="5-6", by="1ms")
    test.frame_fault("corrupt", "mac", "sw1", share="1%", sent_by="mac", **times)
    test.frame_fault("corrupt", "mac", "sw1", flow=1, sequence="5-6")
    test.wrong_length("mac", "sw1", length="60B", share="1%", sent_by="mac", **times)
    test.wrong_length("mac", "sw1", length="1600B", flow=1, sequence="5-6", sent_by="mac")
    test.cut("sensor", "sw1", from_="100ms", until="200ms").restart("sw2", from_="100ms", until="200ms")
    test.babble(3, from_="1ms", until="2ms", period="100us", length="64B")
    test.babble(3, from_="3ms", until="4ms", load="10%").step_clock("mac", at="5ms", by="-1us")
    test.axis("payload", ["64B"], flow=[1]).repeat(2)
    test.limit("rtt.max", flow=1, at_most="1s").limit("sent", at_least=1)
    assert test.compile().campaign.runs
    xml = test.to_xml()
    for declaration in declarations().values():
        starts = re.findall(rf"<{declaration.name}\b[^>]*>", xml)
        assert starts, declaration.name
        for attribute in declaration.attributes:
            assert any(f' {attribute}="' in start for start in starts), f"{declaration.name}/{attribute}"


def test_text_no_xml_can_hold() -> None:
    with pytest.raises(TestError, match="contains characters that XML does not allow"):
        Test("a\0b")


def test_odd_text_is_quoted_and_refused() -> None:
    test = base('<&">').flow(1, protocol="udp", from_="mac", to="sensor").receive(1)
    test.send(1, period="1ms", payload="64B", count=1)
    with pytest.raises(TestError) as caught:
        test.compile()
    said = 'Test("<&">"): <test name="<&">">: name "<&">" is not a name of a test'
    assert str(caught.value).startswith(said)

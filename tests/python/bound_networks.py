"""Random feed-forward networks as tests, for the simulator and the calculus."""

from __future__ import annotations

import random
from typing import Final

from lxml import etree
from msgspec.structs import replace

from wiregauge.config import (
    Cbs,
    Clock,
    GateEntry,
    GateSchedule,
    Host,
    HostTsn,
    SwitchTsn,
    Test,
    TrafficClass,
)
from wiregauge.config.structure import local

NAMESPACE: Final = "urn:wiregauge:test:2"
RATES = ("100Mbit/s", "1Gbit/s")
PERIODS = ("1ms", "2ms", "4ms", "8ms")


def network(seed: int, host: Host | None = None) -> Test:
    """A tree of switches, so that no flow returns to a node; with random flows, load and priorities.

    In every other one all senders start together, the worst case at the first port. Hosts take no time, or that of
    `host`.
    """
    draw = random.Random(seed)
    test = Test(f"random-{seed}", seed=seed, host="ideal")
    kind = draw.choice(("cots", "cots", "arinc664"))
    priorities = draw.choice(("fifo", "strict"))
    cut_through = kind == "cots" and draw.random() < 0.2
    switches = [f"sw{k}" for k in range(draw.randint(1, 4))]
    for name in switches:
        test.switch(
            name,
            kind=kind,
            delay=draw.choice(("0ns", "2us", "10us")) if not cut_through else "1us",
            priorities=priorities,
            forwarding_mode="cut-through" if cut_through else None,
            buffer="4MiB",
        )
    hosts = [f"es{k}" for k in range(draw.randint(3, 7))]
    for name in hosts:
        test.end_system(name, host)
    backbone = draw.choice(RATES)
    for k in range(1, len(switches)):
        test.link(
            switches[draw.randrange(k)], switches[k], rate=backbone, delay=draw.choice(("0ns", "500ns"))
        )
    edge = draw.choice(RATES)
    for name in hosts:
        test.link(name, draw.choice(switches), rate=edge)
    together = seed % 2 == 0
    for flow in range(1, draw.randint(3, 9)):
        _flow(test, draw, flow, hosts, critical=kind == "arinc664", together=together)
    if draw.random() < 0.4:
        on, to = draw.sample(hosts, 2)
        test.inject(on=on, to=to, load=draw.choice(("5%", "20%")), burst=draw.randint(1, 12), payload="700B")
    return test.timing(warm_up="0s", duration="60ms")


def late_hosts(seed: int) -> Test:
    """A random network with hosts that wake up late, by very different times, and work for each message."""
    host = Host(
        transmit="2us",
        transmit_per_byte="1ns",
        interface_delay="600ns",
        send_wake_up="0%:0ns 50%:20us 100%:300us",
        receive="1us",
        receive_wake_up="0%:1us 100%:40us",
    )
    return network(seed, host)


def _flow(
    test: Test, draw: random.Random, flow: int, hosts: list[str], *, critical: bool, together: bool
) -> None:
    source, *to = draw.sample(hosts, draw.choice((2, 2, 3)))
    period = draw.choice(PERIODS)
    payload = draw.choice((20, 64, 400, 1000, 1471))
    offset = None if together else f"{draw.randint(0, 1000)}us"
    burst = draw.choice((None, None, 2, 5))
    if critical and draw.random() < 0.7:
        test.flow(
            flow, protocol="rc", from_=source, to=to, bag=period, lmax=f"{max(64, payload + 47)}B", vl=flow
        )
        burst = None
    else:
        tagged = not critical and draw.random() < 0.5
        payload = min(payload, 1460)
        test.flow(
            flow,
            protocol=draw.choice(("raw", "be")) if tagged else "udp",
            from_=source,
            to=to[0],
            vlan=7 if tagged else None,
            priority=draw.randint(0, 7) if tagged else None,
        )
        to = to[:1]
    test.send(flow, period=period, payload=f"{payload}B", offset=offset, burst=burst)
    for receiver in to:
        test.receive(flow, on=receiver)


def classed(seed: int) -> Test:
    """A random feed-forward network whose ports have traffic classes: shaped, gated, or strict and shaped together."""
    draw = random.Random(seed + 1_000_000)
    test = Test(f"classed-{seed}", seed=seed, host="ideal")
    rule = ("shaped", "gated", "mixed")[seed % 3]
    switches = [f"sw{k}" for k in range(draw.randint(1, 3))]
    for name in switches:
        drift = draw.choice((None, None, "80ppm", "-80ppm"))
        tsn = [shaped(draw) if rule == "shaped" else mixed(draw) if rule == "mixed" else gated(draw)]
        test.switch(
            name,
            delay=draw.choice(("0ns", "3us")),
            buffer="4MiB",
            tsn=tsn,
            clock=Clock(drift=drift) if drift else None,
        )
    hosts = [f"es{k}" for k in range(draw.randint(3, 7))]
    for name in hosts:
        test.end_system(name)
    for k in range(1, len(switches)):
        test.link(switches[draw.randrange(k)], switches[k], rate="100Mbit/s")
    for name in hosts:
        test.link(name, draw.choice(switches), rate=draw.choice(RATES))
    together = draw.random() < 0.6
    for flow in range(1, draw.randint(3, 9)):
        _flow(test, draw, flow, hosts, critical=False, together=together)
    if draw.random() < 0.5:
        on, to = draw.sample(hosts, 2)
        test.inject(on=on, to=to, load="3%", burst=draw.randint(1, 8), payload="1400B")
    return test.timing(warm_up="0s", duration="60ms")


def shaped(draw: random.Random) -> SwitchTsn:
    """Three shaped classes above one that is not."""
    slopes = [f"{draw.randint(8, 24)}Mbit/s" for _ in range(3)]
    return SwitchTsn(
        classes=[
            TrafficClass(0, "0 1"),
            *(
                TrafficClass(k + 1, pair, shaper=Cbs(slopes[k]))
                for k, pair in enumerate(("2 3", "4 5", "6 7"))
            ),
        ]
    )


def mixed(draw: random.Random) -> SwitchTsn:
    """A strict class above two shaped ones, and strict ones between and below them."""
    slopes = [f"{draw.randint(12, 28)}Mbit/s" for _ in range(2)]
    return SwitchTsn(
        classes=[
            TrafficClass(0, "0 1"),
            TrafficClass(1, "2", shaper=Cbs(slopes[0])),
            TrafficClass(2, "3"),
            TrafficClass(3, "4 5 6", shaper=Cbs(slopes[1])),
            TrafficClass(4, "7"),
        ]
    )


def gated(draw: random.Random) -> SwitchTsn:
    """Gates of three classes, open alone or together."""
    sets = draw.choice((("2", "1", "0"), ("2 1", "0 1", "1"), ("2", "0 1", "0 1 2"), ("0 1 2", "2", "0 1 2")))
    entries = [GateEntry(f"{draw.randint(260, 600)}us", open=classes) for classes in sets]
    return SwitchTsn(
        classes=[TrafficClass(0, "0 1"), TrafficClass(1, "2 3 4"), TrafficClass(2, "5 6 7")],
        schedules=[GateSchedule(entries, base_time=f"{draw.randint(0, 900)}us")],
        guard_band=draw.choice((None, "130us")),
    )


def ticking(seed: int) -> str:
    """The text of a random network with coarse clocks, so that senders catch up; hosts have events."""
    draw = random.Random(seed + 2_000_000)
    root = etree.fromstring((network, classed, late_hosts)[seed % 3](seed).to_xml().encode())
    for node in root.iter("{*}end-system", "{*}switch"):
        is_host = local(node) == "end-system"
        if draw.random() < 0.7:
            clock = next(iter(node.findall("{*}clock")), None)
            if clock is None:
                clock = etree.Element(etree.QName(NAMESPACE, "clock"))
                node.insert(0, clock)
            grains = ("50us", "300us", "1ms", "3ms", "7300us") if is_host else ("1us", "20us")
            clock.set("granularity", draw.choice(grains))
            if is_host and draw.random() < 0.3:
                clock.set("drift", draw.choice(("100ppm", "-100ppm", "5000ppm")))
        if is_host and seed % 2 == 0 and draw.random() < 0.5:
            event = etree.SubElement(node, etree.QName(NAMESPACE, "event"), period="7ms")
            event.set("duration", draw.choice(("1ms", "3ms")))
            event.set("latency", draw.choice(("100us", "900us")))
            event.set("threads", draw.choice(("send", "receive")))
    text: str = etree.tostring(root, encoding="unicode")
    return text


INTEGRATIONS = ("timely-block", "shuffling", "preemption")
APART_US = 700
"""Time between the dispatches of two time-triggered flows, us: what they need over four switches, with shuffling."""


def converged(seed: int) -> str:
    """The text of a random network whose ports have windows, virtual links and traffic classes together.

    Switches do not preempt where a class is shaped, since its effect on credit is refused. Hosts have classes, too.
    """
    draw = random.Random(seed + 3_000_000)
    test = Test(f"converged-{seed}", seed=seed, host="ideal")
    rule = ("strict", "shaped", "gated", "mixed", "both")[seed % 5]
    in_fragments, takes_time = draw.random() < 0.4, draw.random() < 0.3
    cuts = rule in ("strict", "gated") and not in_fragments
    integration = draw.choice(INTEGRATIONS if cuts else INTEGRATIONS[:2])
    switches = [f"sw{k}" for k in range(draw.randint(1, 3))]
    for name in switches:
        test.switch(
            name,
            kind="mixed-criticality",
            delay=draw.choice(("0ns", "3us")),
            integration=integration,
            buffer="4MiB",
            tsn=[_taking(draw, _classes(draw, rule), in_fragments=in_fragments)],
        )
    hosts = [f"es{k}" for k in range(draw.randint(3, 6))]
    for name in hosts:
        late = Host(
            transmit="2us",
            send_wake_up="0%:0ns 100%:70us",
            interface_delay="600ns",
            receive="3us",
            receive_wake_up="0%:1us 100%:40us",
        )
        test.end_system(
            name,
            late if takes_time else None,
            tsn=_of_host(draw) if draw.random() < 0.4 else None,
        )
    for k in range(1, len(switches)):
        test.link(switches[draw.randrange(k)], switches[k], rate="100Mbit/s")
    for name in hosts:
        test.link(name, draw.choice(switches), rate=draw.choice(RATES))
    for flow in range(1, draw.randint(1, 4)):
        _scheduled(test, draw, flow, hosts)
    for flow in range(11, draw.randint(13, 18)):
        _beside(test, draw, flow, hosts)
    return test.timing(warm_up="0s", duration="60ms").to_xml()


def _classes(draw: random.Random, rule: str) -> SwitchTsn:
    if rule == "strict":
        pairs = ("0 1", "2 3", "4 5", "6 7")
        return SwitchTsn(classes=[TrafficClass(k, pair) for k, pair in enumerate(pairs)])
    return {"shaped": shaped, "gated": gated, "mixed": mixed, "both": shaped_behind_gates}[rule](draw)


def shaped_behind_gates(draw: random.Random) -> SwitchTsn:
    """Two shaped classes between two that are not; gates for all of them, or for the unshaped ones."""
    sets = draw.choice(
        (("3", "0 1 2"), ("3", "0 1 2 3"), ("1 2", "0 1 2 3"), ("0 1 2 3", "2 3", "1"), ("0 1 2", "1 2 3"))
    )
    entries = [GateEntry(f"{draw.randint(260, 600)}us", open=classes) for classes in sets]
    slopes = [f"{draw.randint(8, 18)}Mbit/s" for _ in range(2)]
    classes = [TrafficClass(0, "0 1"), TrafficClass(3, "6 7")]
    classes[1:1] = [TrafficClass(k + 1, pair, shaper=Cbs(slopes[k])) for k, pair in enumerate(("2 3", "4 5"))]
    return SwitchTsn(
        classes=classes,
        schedules=[GateSchedule(entries, base_time=f"{draw.randint(0, 900)}us")],
        guard_band=draw.choice((None, None, "130us")),
    )


def _of_host(draw: random.Random) -> HostTsn:
    """Settings of a host: as many shaped classes as its kernel supports for streams, or gates."""
    rule = draw.choice(("strict", "shaped", "gated"))
    if rule == "shaped":
        shaped_ones = [
            TrafficClass(1, "4 5", shaper=Cbs("20Mbit/s")),
            TrafficClass(2, "6 7", shaper=Cbs("15Mbit/s")),
        ]
        return HostTsn(classes=[TrafficClass(0, "0 1 2 3"), *shaped_ones])
    tsn = _classes(draw, rule)
    return HostTsn(classes=tsn.classes, schedule=next(iter(tsn.schedules), None))


def _taking(draw: random.Random, tsn: SwitchTsn, *, in_fragments: bool) -> SwitchTsn:
    """The settings, where a class may also carry virtual links, and the lowest be sent in fragments."""
    links = draw.choice((None, "low", "low high"))
    takes = draw.randrange(len(tsn.classes))
    shaped_from = next((number for number, one in enumerate(tsn.classes) if one.shaper), len(tsn.classes) - 1)
    cut = draw.randint(1, max(1, shaped_from)) if in_fragments else 0
    classes = [
        replace(
            one, virtual_links=links if number == takes else None, preemptable="on" if number < cut else None
        )
        for number, one in enumerate(tsn.classes)
    ]
    return replace(tsn, classes=classes, shortest_fragment=draw.choice((None, "128B")) if cut else None)


def _scheduled(test: Test, draw: random.Random, flow: int, hosts: list[str]) -> None:
    """Adds a time-triggered flow of 4 ms, whose application is in phase with the cycle, or elsewhere in it."""
    source, *to = draw.sample(hosts, draw.choice((2, 2, 3)))
    payload = draw.choice((20, 200, 600))
    offset = f"{APART_US * flow + draw.randint(0, 40)}us"
    test.flow(flow, protocol="tt", from_=source, to=to, period="4ms", offset=offset)
    place = draw.choice(("dispatch", "150us", "3900us", None))
    started = None if place else f"{draw.randint(0, 3999)}us"
    period = draw.choice(("4ms", "8ms") if place else ("4ms", "6ms", "5ms"))
    test.send(flow, period=period, payload=f"{payload}B", cycle_offset=place, offset=started)
    for receiver in to:
        test.receive(flow, on=receiver)


def scheduled_alone(seed: int) -> str:
    """The text of a random network of time-triggered flows alone, whose applications have fixed places in the cycle."""
    draw = random.Random(seed + 4_000_000)
    test = Test(f"scheduled-{seed}", seed=seed, host="ideal")
    switches = [f"sw{k}" for k in range(draw.randint(1, 3))]
    for name in switches:
        test.switch(
            name,
            kind="mixed-criticality",
            delay=draw.choice(("0ns", "3us")),
            forwarding_mode=draw.choice((None, "cut-through")) if len(switches) == 1 else None,
        )
    hosts = [f"es{k}" for k in range(4)]
    for name in hosts:
        host = Host(transmit="5us", send_wake_up=draw.choice((None, "8us")))
        test.end_system(name, host)
    for k in range(1, len(switches)):
        test.link(switches[draw.randrange(k)], switches[k], rate="100Mbit/s", delay="700ns")
    for name in hosts:
        test.link(name, draw.choice(switches), rate=draw.choice(RATES))
    for flow, name in enumerate(hosts[:3], 1):
        to = draw.choice([other for other in hosts if other != name])
        offset = f"{APART_US * flow + draw.randint(0, 40)}us"
        test.flow(flow, protocol="tt", from_=name, to=to, period="4ms", offset=offset, lmax="618B")
        place = draw.choice(("dispatch", f"{draw.randint(0, 3999)}us"))
        payload = f"{draw.choice((20, 200, 600))}B"
        test.send(flow, period=draw.choice(("4ms", "8ms")), payload=payload, cycle_offset=place).receive(flow)
    return test.timing(warm_up=draw.choice(("0s", "3ms")), duration="60ms").to_xml()


def _beside(test: Test, draw: random.Random, flow: int, hosts: list[str]) -> None:
    """Adds a virtual link, or a frame of some class."""
    source, *to = draw.sample(hosts, draw.choice((2, 2, 3)))
    payload = draw.choice((20, 64, 400, 1000, 1400))
    period = draw.choice(PERIODS[1:])
    priority = draw.randint(0, 7)
    if draw.random() < 0.45:
        lmax = f"{max(64, payload + 47)}B"
        test.flow(flow, protocol="rc", from_=source, to=to, bag=period, lmax=lmax, vl=flow, priority=priority)
    else:
        to = to[:1]
        test.flow(flow, protocol="be", from_=source, to=to, vlan=7, priority=priority)
    offset = draw.choice((None, f"{draw.randint(0, 4000)}us"))
    test.send(flow, period=period, payload=f"{payload}B", offset=offset)
    for receiver in to:
        test.receive(flow, on=receiver)


def phased(seed: int) -> str:
    """The text of a random network of gates, senders in phase with them, and others.

    Periods are few, so that gates and senders have a common cycle. Some clocks drift, or are ahead.
    """
    draw = random.Random(seed + 5_000_000)
    test = Test(f"phased-{seed}", seed=seed, host="ideal")
    cycle = draw.choice((500, 1000))
    exact = draw.random() < 0.6
    switches = [f"sw{k}" for k in range(draw.randint(1, 3))]
    for name in switches:
        test.switch(
            name,
            kind=draw.choice(("cots", "mixed-criticality")),
            delay=draw.choice(("0ns", "3us")),
            buffer="4MiB",
            tsn=[_cyclic_gates(draw, cycle)],
            clock=None if exact else of_clock(draw),
        )
    hosts = [f"es{k}" for k in range(draw.randint(3, 6))]
    for name in hosts:
        late = Host(transmit="2us", send_wake_up="0%:1us 100%:9us", interface_delay="600ns")
        gates = _cyclic_gates(draw, cycle)
        own = HostTsn(classes=gates.classes, schedule=gates.schedules[0]) if draw.random() < 0.2 else None
        host = late if draw.random() < 0.2 else None
        test.end_system(name, host, tsn=own, clock=None if exact else of_clock(draw))
    for k in range(1, len(switches)):
        test.link(switches[draw.randrange(k)], switches[k], rate="100Mbit/s", delay="700ns")
    for name in hosts:
        test.link(name, draw.choice(switches), rate=draw.choice(RATES))
    for flow in range(1, draw.randint(4, 10)):
        source, to = draw.sample(hosts, 2)
        test.flow(
            flow,
            protocol=draw.choice(("raw", "be")),
            from_=source,
            to=to,
            vlan=7,
            priority=draw.randint(0, 7),
        )
        period = f"{draw.choice((cycle, cycle, 2 * cycle, 1500))}us"
        offset = f"{draw.randint(0, 2 * cycle)}us"
        burst = draw.choice((None, None, None, None, 2))
        payload = f"{draw.choice((46, 100, 300, 700))}B"
        test.send(flow, period=period, payload=payload, offset=offset, burst=burst).receive(flow)
    if draw.random() < 0.3:
        on, to = draw.sample(hosts, 2)
        test.inject(on=on, to=to, load="3%", burst=draw.randint(1, 4), payload="1400B")
    return test.timing(warm_up=draw.choice(("0s", "4300us")), duration="40ms").to_xml()


def of_clock(draw: random.Random) -> Clock | None:
    return draw.choice(
        (
            None,
            Clock(drift=draw.choice(("80ppm", "-200ppm"))),
            Clock(offset=draw.choice(("3us", "20us", "3ms"))),
            Clock(granularity=draw.choice(("1us", "4us"))),
        )
    )


def _cyclic_gates(draw: random.Random, cycle: int) -> SwitchTsn:
    """Gates of three classes in a cycle, open alone or together."""
    sets = draw.choice(
        (("2", "1", "0"), ("2", "0 1"), ("2 1", "0 1", "1"), ("2", "0 1", "0 1 2"), ("0 1 2", "2", "0 1 2"))
    )
    cuts = sorted(draw.sample(range(60, cycle - 60, 20), len(sets) - 1))
    lengths = [until - start for start, until in zip([0, *cuts], [*cuts, cycle], strict=True)]
    entries = [GateEntry(f"{length}us", open=one) for length, one in zip(lengths, sets, strict=True)]
    return SwitchTsn(
        classes=[TrafficClass(0, "0 1"), TrafficClass(1, "2 3 4"), TrafficClass(2, "5 6 7")],
        schedules=[GateSchedule(entries, base_time=f"{draw.randint(0, 900)}us")],
        guard_band=draw.choice((None, None, None, "65us")),
    )

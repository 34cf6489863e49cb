"""Random networks of asynchronous shapers, of cyclic queues, and of copies over several paths."""

from __future__ import annotations

import random
from itertools import pairwise

from bound_networks import RATES, of_clock
from wiregauge.config import (
    Ats,
    CyclicQueuing,
    FlowPath,
    Frer,
    Host,
    Scheduler,
    SwitchTsn,
    Test,
    TrafficClass,
)


def asynchronous(seed: int) -> str:
    """The text of a random network of asynchronous shapers: flows within their buckets, and beyond them.

    Two classes of each switch have schedulers of some of their flows; above, between and below them is other traffic.
    """
    draw = random.Random(seed + 6_000_000)
    test = Test(f"asynchronous-{seed}", seed=seed, host="ideal")
    switches = [f"sw{k}" for k in range(draw.randint(1, 4))]
    hosts = [f"es{k}" for k in range(draw.randint(3, 6))]
    flows = range(1, draw.randint(4, 11))
    senders = {flow: _shaped_sender(draw, flow) for flow in flows}
    # Buckets that hold a burst, and in some networks too small ones.
    tight = draw.random() < 0.5
    buckets = {flow: _bucket(draw, *senders[flow][1:], tight=tight) for flow in flows}
    ends = {flow: draw.sample(hosts, 2) for flow in flows}
    at = {name: draw.randrange(len(switches)) for name in hosts}
    ways = {
        flow: range(min(places), max(places) + 1) for flow in flows if (places := [at[e] for e in ends[flow]])
    }
    for k, name in enumerate(switches):
        own = {flow: bucket for flow, bucket in buckets.items() if k in ways[flow] and draw.random() < 0.9}
        test.switch(
            name,
            delay=draw.choice(("0ns", "3us")),
            buffer="4MiB",
            tsn=[_with_schedulers(draw, own, {flow: senders[flow][0] for flow in flows})],
        )
    for name in hosts:
        late = Host(transmit="2us", send_wake_up="0%:0us 100%:30us") if draw.random() < 0.2 else None
        test.end_system(name, late)
    for one, other in pairwise(switches):
        test.link(one, other, rate="100Mbit/s")
    for name in hosts:
        test.link(name, switches[at[name]], rate=draw.choice(RATES))
    for flow, (priority, payload, period, burst) in senders.items():
        source, to = ends[flow]
        test.flow(flow, protocol="raw", from_=source, to=to, vlan=flow, priority=priority)
        test.send(flow, period=f"{period}us", payload=f"{payload}B", burst=burst).receive(flow)
    if draw.random() < 0.5:
        on, to = draw.sample(hosts, 2)
        test.inject(on=on, to=to, load="3%", burst=draw.randint(1, 6), payload="1400B")
    return test.timing(warm_up="0s", duration="40ms").to_xml()


def _shaped_sender(draw: random.Random, flow: int) -> tuple[int, int, int, int]:
    """Priority, payload, period in us and burst."""
    return (
        draw.choice((6, 6, 7, 4, 4, 5, 0)),
        draw.choice((46, 100, 400, 1000)) + flow,
        draw.choice((1000, 2000, 4000)),
        draw.choice((1, 1, 1, 2, 4)),
    )


def _bucket(draw: random.Random, payload: int, period: int, burst: int, *, tight: bool) -> tuple[int, int]:
    """Rate in bit/s and bytes of a bucket for a sender."""
    wire = payload + 42
    least = burst * wire
    held = wire * draw.randint(1, burst) if tight else least
    return -(-8 * least * 1_000_000 // period) * draw.choice((10, 10, 12, 20)) // 10 + 1000, held


def _with_schedulers(
    draw: random.Random, buckets: dict[int, tuple[int, int]], priorities: dict[int, int]
) -> SwitchTsn:
    def shaper(priority: int) -> Ats | None:
        own = [flow for flow in buckets if priorities[flow] == priority]
        schedulers = [Scheduler(flow, f"{buckets[flow][0]}bit/s", f"{buckets[flow][1]}B") for flow in own]
        return Ats(schedulers=schedulers, longest_residence="50ms") if own else None

    return SwitchTsn(
        classes=[
            TrafficClass(0, "0 1", preemptable=draw.choice((None, None, "on"))),
            TrafficClass(1, "2 3 4", shaper=shaper(4)),
            TrafficClass(2, "5"),
            TrafficClass(3, "6", shaper=shaper(6)),
            TrafficClass(4, "7"),
        ]
    )


def cyclic(seed: int) -> str:
    """The text of a random network of cyclic queues: cycles that begin with the frames of the switch before, or anyhow.

    Other classes are above and below them; some clocks drift, or are ahead.
    """
    draw = random.Random(seed + 7_000_000)
    test = Test(f"cyclic-{seed}", seed=seed, host="ideal")
    switches = [f"sw{k}" for k in range(draw.randint(1, 4))]
    hosts = [f"es{k}" for k in range(draw.randint(3, 6))]
    cycle = draw.choice((500, 1000))
    aligned, exact = draw.random() < 0.6, draw.random() < 0.6
    for k, name in enumerate(switches):
        own = cycle if draw.random() < 0.9 else 750
        base = 5 * k if aligned else draw.randint(0, own)
        classes = [
            TrafficClass(0, "0 1 2", preemptable=draw.choice((None, None, "on"))),
            TrafficClass(1, "3 4"),
            TrafficClass(2, "5 6"),
            TrafficClass(3, "7"),
        ]
        test.switch(
            name,
            delay=draw.choice(("0ns", "3us")),
            buffer="4MiB",
            tsn=[
                SwitchTsn(
                    classes=classes,
                    cyclic=CyclicQueuing("1 2", f"{own}us", base_time=f"{base}us"),
                    guard_band=draw.choice((None, None, "20us")),
                )
            ],
            clock=None if exact else of_clock(draw),
        )
    for name in hosts:
        late = Host(transmit="2us", send_wake_up="0%:0us 100%:30us") if draw.random() < 0.2 else None
        test.end_system(name, late)
    for one, other in pairwise(switches):
        test.link(one, other, rate="100Mbit/s", delay=draw.choice(("0ns", "700ns")))
    for name in hosts:
        test.link(name, draw.choice(switches), rate=draw.choice(RATES))
    for flow in range(1, draw.randint(3, 8)):
        source, to = draw.sample(hosts, 2)
        priority = draw.choice((3, 4, 5, 6, 6, 7, 0))
        test.flow(flow, protocol="raw", from_=source, to=to, vlan=7, priority=priority)
        payload, period = draw.choice((46, 100, 300, 700)), draw.choice((1000, 1500, 2000, 4000))
        test.send(flow, period=f"{period}us", payload=f"{payload}B", burst=draw.choice((None, None, 2)))
        test.receive(flow)
    if draw.random() < 0.5:
        on, to = draw.sample(hosts, 2)
        test.inject(on=on, to=to, load="3%", burst=draw.randint(1, 4), payload="1400B")
    return test.timing(warm_up=draw.choice(("0s", "3300us")), duration="40ms").to_xml()


def replicated(seed: int) -> str:
    """The text of a random network of two or three ways between two switches, on which copies of flows go."""
    draw = random.Random(seed + 8_000_000)
    test = Test(f"replicated-{seed}", seed=seed, host="ideal")
    ways = [[f"w{way}{k}" for k in range(draw.randint(1, 3))] for way in range(draw.choice((2, 2, 3)))]
    priorities = draw.choice((None, "strict"))
    for name in ("s", "t", *(name for way in ways for name in way)):
        test.switch(name, delay=draw.choice(("0ns", "3us")), buffer="4MiB", priorities=priorities)
    # Some hosts send beside the copies, over a part of a way, to one at its end.
    places = {f"es{k}": "s" if k < 2 else "t" for k in range(4)}
    places |= {f"d{way}": "t" for way in range(len(ways))}
    places |= {f"c{k}": draw.choice(("s", *draw.choice(ways))) for k in range(draw.randint(1, 3))}
    for name in places:
        late = Host(transmit="2us", send_wake_up="0%:0us 100%:30us") if draw.random() < 0.2 else None
        test.end_system(name, late)
    for name, place in places.items():
        test.link(name, place, rate=draw.choice(RATES))
    for way in ways:
        for one, other in pairwise(("s", *way, "t")):
            test.link(one, other, rate="100Mbit/s", delay=draw.choice(("0ns", "700ns")))
    for flow in range(1, draw.randint(2, 5)):
        source, to = draw.sample(("es0", "es1"), 1) + draw.sample(("es2", "es3"), 1)
        tagged = draw.random() < 0.5
        test.flow(
            flow,
            protocol="raw",
            from_=source,
            to=to,
            vlan=7 if tagged else None,
            priority=draw.randint(0, 7) if tagged else None,
            paths=[
                FlowPath(" ".join(("s", *way, "t"))) for way in draw.sample(ways, draw.randint(2, len(ways)))
            ],
            frer=Frer(
                history_length=draw.choice((8, 64)),
                replicate_at=draw.choice((None, "s")),
                eliminate_at=draw.choice((None, "t")),
            ),
        )
        payload, period = draw.choice((46, 300, 1000)), draw.choice((1000, 2000, 4000))
        test.send(flow, period=f"{period}us", payload=f"{payload}B", burst=draw.choice((None, None, 2)))
        test.receive(flow)
    for flow in range(11, draw.randint(12, 16)):
        number = draw.randrange(len(ways))
        whole = ("s", *ways[number], "t")
        source = draw.choice([name for name, place in places.items() if place in whole[:-1]])
        path = FlowPath(" ".join(whole[whole.index(places[source]) :]))
        to, priority = f"d{number}", draw.randint(0, 7)
        test.flow(flow, protocol="raw", from_=source, to=to, vlan=8, priority=priority, paths=[path])
        payload = draw.choice((100, 700, 1400))
        test.send(flow, period="2ms", payload=f"{payload}B", burst=draw.choice((None, 3))).receive(flow)
    return test.timing(warm_up="0s", duration="40ms").to_xml()

"""Random feed-forward networks as tests: what the simulator runs and the calculus bounds."""

from __future__ import annotations

import random

from wiregauge.config import Test

RATES = ("100Mbit/s", "1Gbit/s")
PERIODS = ("1ms", "2ms", "4ms", "8ms")


def network(seed: int) -> Test:
    """A tree of switches, so that no flow can come back to where it was; flows, load and priorities at random.

    In every other one all senders begin at once, which is the worst they can do to one another at the first port.
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
        test.end_system(name)
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

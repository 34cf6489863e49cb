"""Sets of periodic flows with a known schedule, made from a hidden one, and sets without any.

Nothing of `wiregauge.scheduling` is used: the hidden schedule is drawn at random and kept where its windows do not
overlap, checked on a list of all openings in a common period, by comparing intervals.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right, insort

from msgspec import Struct, field

US = 1_000
MS = 1_000 * US
"""Times here are in ns."""
SLACK = 2 * US
"""The excess of a derived window over its frame, ns."""

HARMONIC = ((1, 2, 4), (2, 4, 8), (1, 2, 4, 8), (5, 10))
OTHER = ((2, 3), (2, 3, 4, 6), (4, 5), (4, 6, 10), (3, 5))


class Net(Struct):
    """A network and its paths."""

    shape: str
    ends: list[str] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)
    links: list[tuple[str, str, int, int]] = field(default_factory=list)
    """Two nodes, rate in Mbit/s, delay in ns."""
    delay: int = 4 * US

    def way(self, sender: str, receiver: str, chance: random.Random) -> list[str]:
        """The nodes from one end to another; in a ring by either side."""
        first, last = self._home(sender), self._home(receiver)
        count = len(self.switches)
        if self.shape == "ring" and first != last:
            step = chance.choice((1, -1))
            between, at = [first], first
            while at != last:
                at = (at + step) % count
                between.append(at)
        else:
            step = 1 if last >= first else -1
            between = list(range(first, last + step, step))
        return [sender, *(self.switches[at] for at in between), receiver]

    def _home(self, end: str) -> int:
        return next(self.switches.index(b) for a, b, _, _ in self.links if a == end)

    def link(self, one: str, other: str) -> tuple[int, int]:
        return next((rate, delay) for a, b, rate, delay in self.links if {a, b} == {one, other})


def network(shape: str, switches: int, ends: int, rate: int, chance: random.Random) -> Net:
    net = Net(shape, delay=chance.choice((2, 4, 10)) * US)
    net.switches = [f"s{at}" for at in range(switches)]
    net.ends = [f"e{at}" for at in range(ends)]
    for at, end in enumerate(net.ends):
        net.links.append((end, f"s{at % switches}", rate, chance.choice((0, 50, 100))))
    for at in range(switches - 1):
        net.links.append((f"s{at}", f"s{at + 1}", rate, 100))
    if shape == "ring":
        net.links.append((f"s{switches - 1}", "s0", rate, 100))
    return net


class Made(Struct):
    """A flow of a set."""

    number: int
    way: list[str]
    period: int
    payload: int
    release: int = 0
    deadline: int | None = None

    @property
    def frame(self) -> int:
        return max(64, self.payload + 18)


class Set(Struct):
    """A set of flows on a network."""

    name: str
    net: Net
    flows: list[Made] = field(default_factory=list)

    def xml(self, duration_ms: int | None = None) -> str:
        """The set as a test, with ideal hosts and no schedule."""
        ends = "".join(f'<end-system name="{end}"/>' for end in self.net.ends)
        switches = "".join(
            f'<switch name="{switch}" kind="mixed-criticality" delay="{self.net.delay}ns"/>'
            for switch in self.net.switches
        )
        links = "".join(
            f'<link between="{a} {b}" rate="{rate}Mbit/s" delay="{delay}ns"/>'
            for a, b, rate, delay in self.net.links
        )
        flows, tasks = "", ""
        for flow in self.flows:
            deadline = "" if flow.deadline is None else f' deadline="{flow.deadline}ns"'
            path = f'<path via="{" ".join(flow.way[1:-1])}"/>' if self.net.shape == "ring" else ""
            flows += (
                f'<flow id="{flow.number}" protocol="tt" from="{flow.way[0]}" to="{flow.way[-1]}" '
                f'period="{flow.period}ns"{deadline}>{path}</flow>\n'
            )
            tasks += (
                f'<send flow="{flow.number}" period="{flow.period}ns" payload="{flow.payload}B" '
                f'offset="{flow.release}ns"/><receive flow="{flow.number}"/>\n'
            )
        cycle = math.lcm(*(flow.period for flow in self.flows)) // MS
        long = max(2 * cycle, 20) if duration_ms is None else duration_ms
        return (
            f'<test xmlns="urn:wiregauge:test:2" name="{self.name}" seed="1">\n<network '
            f'host="ideal">{ends}{switches}{links}'
            f'</network>\n<flows>\n{flows}</flows>\n<tasks duration="{long}ms">\n{tasks}</tasks>\n</test>\n'
        )


class _Port:
    """The occupied times of a port in a common period."""

    def __init__(self) -> None:
        self._taken: list[tuple[int, int]] = []

    def clear(self, opens: int, length: int, period: int, cycle: int) -> bool:
        return all(self._clear((opens + k * period) % cycle, length) for k in range(cycle // period))

    def _clear(self, opens: int, length: int) -> bool:
        at = bisect_right(self._taken, (opens, 0))
        before = at == 0 or self._taken[at - 1][1] <= opens
        after = at == len(self._taken) or self._taken[at][0] >= opens + length
        return before and after

    def take(self, opens: int, length: int, period: int, cycle: int) -> None:
        for k in range(cycle // period):
            begin = (opens + k * period) % cycle
            insort(self._taken, (begin, begin + length))

    def load(self, cycle: int) -> float:
        return sum(end - begin for begin, end in self._taken) / cycle


def solvable(seed: int) -> Set:
    """A set that has a schedule."""
    chance = random.Random(f"solvable {seed}")
    shape = ("line", "star", "ring")[seed % 3]
    switches = 1 if shape == "star" else chance.randint(3 if shape == "ring" else 2, 6)
    ends = chance.randint(max(3, switches), max(8, 2 * switches))
    net = network(shape, switches, ends, chance.choice((100, 100, 1000)), chance)
    harmonic = seed % 2 == 0
    periods = [ms * MS for ms in chance.choice(HARMONIC if harmonic else OTHER)]
    cycle = math.lcm(*periods)
    wanted = chance.choice((5, 10, 20, 40, 60))
    fullest = chance.choice((0.3, 0.5, 0.7, 0.8))
    made = Set(f"{shape}-{seed}", net)
    ports: dict[tuple[str, str], _Port] = {}
    for _ in range(20 * wanted):
        if len(made.flows) == wanted:
            break
        sender, receiver = chance.sample(net.ends, 2)
        period, payload = chance.choice(periods), chance.choice((46, 100, 250, 500, 1000, 1500))
        flow = Made(len(made.flows) + 1, net.way(sender, receiver, chance), period, payload)
        if (opens := _draw(flow, net, ports, chance, cycle)) is None:
            continue
        hops = list(zip(flow.way, flow.way[1:], strict=False))
        busy = [ports[hop].load(cycle) + _length(flow, net, hop) / period for hop in hops]
        if max(busy) > fullest:
            continue
        for hop, at in zip(hops, opens, strict=True):
            ports[hop].take(at % period, _length(flow, net, hop), period, cycle)
        if chance.random() < 0.5:
            # Messages are made slightly before the hidden dispatch, with a deadline slightly after its end.
            early = chance.randint(0, period // 4)
            flow.release = (opens[0] - early) % period
            flow.deadline = (
                early + _end(flow, net, opens) - opens[0] + 2 * US + chance.randint(0, period // 4)
            )
        made.flows.append(flow)
    return made


def _length(flow: Made, net: Net, hop: tuple[str, str]) -> int:
    rate, _ = net.link(*hop)
    return (flow.frame + 20) * 8_000 // rate + SLACK


def _end(flow: Made, net: Net, opens: list[int]) -> int:
    rate, delay = net.link(flow.way[-2], flow.way[-1])
    return opens[-1] + (flow.frame + 8) * 8_000 // rate + delay


def _draw(
    flow: Made, net: Net, ports: dict[tuple[str, str], _Port], chance: random.Random, cycle: int
) -> list[int] | None:
    """Random free openings, with and without waiting."""
    hops = list(zip(flow.way, flow.way[1:], strict=False))
    for _ in range(30):
        opens: list[int] = []
        waits = chance.random() < 0.3
        for hop in hops:
            length = _length(flow, net, hop)
            if not opens:
                at = chance.randint(0, flow.period - length)
            else:
                before = hops[len(opens) - 1]
                rate, delay = net.link(*before)
                at = opens[-1] + (flow.frame + 8) * 8_000 // rate + delay + net.delay
                at += chance.randint(0, flow.period // 8) if waits else 0
            within = at % flow.period
            port = ports.setdefault(hop, _Port())
            if within + length > flow.period or not port.clear(within, length, flow.period, cycle):
                break
            opens.append(at)
        if len(opens) == len(hops):
            return opens
    return None


def infeasible(seed: int) -> tuple[Set, set[int]]:
    """A set without a schedule, and the minimal clashing flows.

    Six causes: a port with more than all its time used; periods that meet too often for two windows; deadlines too
    short for messages of one instant; a deadline shorter than the path; three windows of which only two fit into the
    common divisor of their periods; and gaps that are long enough in total, but fit only one window each.
    """
    chance = random.Random(f"infeasible {seed}")
    kind = seed % 6
    rate = 10 if kind in (4, 5) else 100
    shape = "line" if kind in (0, 1, 3) else "star"
    net = network(shape, chance.randint(1, 4) if shape == "line" else 1, 8, rate, chance)
    made = Set(f"infeasible-{seed}", net)
    target, senders = net.ends[0], net.ends[1:]
    chance.shuffle(senders)
    numbers = chance.sample(range(1, 100), 40)

    def flow(sender: str, period: int, payload: int) -> Made:
        one = Made(numbers[len(made.flows)], net.way(sender, target, chance), period, payload)
        made.flows.append(one)
        return one

    if kind == 0:
        # 1500 B take 125.04 us with slack at 100 Mbit/s: eight of them in 1 ms are too many, seven are not.
        guilty = [flow(senders[at % len(senders)], MS, 1500) for at in range(8)]
    elif kind == 1:
        # Periods of 1 ms and 1.1 ms meet in every 100 us; two windows of 63.28 us do not fit.
        guilty = [flow(senders[0], MS, 728), flow(senders[1], 1100 * US, 728)]
    elif kind == 2:
        # Made at one instant, they leave the last port one after another; the deadline is 1 ns too short.
        count = chance.randint(2, 6)
        guilty = [flow(sender, 4 * MS, 500) for sender in senders[:count]]
        for end, _, _, delay in list(net.links):
            net.links[net.links.index((end, "s0", rate, delay))] = (end, "s0", rate, 50)
        for one in guilty:
            one.deadline = _least(one, net) + (count - 1) * _length(one, net, ("s0", target)) - 1
    elif kind == 3:
        guilty = [flow(senders[0], 2 * MS, 1000)]
        guilty[0].deadline = _least(guilty[0], net) - 1
    elif kind == 4:
        # 3, 5 and 7 ms have 1 ms in common, pairwise; two windows of 368.4 us fit into it.
        guilty = [flow(senders[at], (3, 5, 7)[at] * MS, 420) for at in range(3)]
    else:
        # A window of 1 ms of 300.8 us leaves gaps of 699.2 us, two in 2 ms: three windows of 400.8 us need one each.
        guilty = [flow(senders[0], MS, 335 + 0), *(flow(senders[at], 2 * MS, 460) for at in range(1, 4))]
    # Other flows that must not be named: they use none of those ports.
    for _ in range(chance.randint(0, 6)):
        one = flow(chance.choice(senders), chance.choice((8, 16)) * MS, 46)
        one.way = [target, *reversed(one.way[1:-1]), one.way[0]]
    return made, {one.number for one in guilty}


def _least(flow: Made, net: Net) -> int:
    """Time from dispatch to the last bit at the receiver, without waiting."""
    hops = list(zip(flow.way, flow.way[1:], strict=False))
    total = 0
    for at, hop in enumerate(hops):
        rate, delay = net.link(*hop)
        total += (flow.frame + 8) * 8_000 // rate + delay + (net.delay if at + 1 < len(hops) else 0)
    return total

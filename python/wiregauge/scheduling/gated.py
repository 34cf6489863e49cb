"""Implements a schedule with gates: the same test for a network without time-triggered switches.

Time-triggered flows become raw flows with a priority, sent at their offset (time-aware talkers), and each port on their
way gets a gate control list in which the gate of a frame's class is open for this frame alone (IEEE Std 802.1Q-2022,
8.6.8.4). A gate separates priorities, not flows, while a time-triggered switch has a buffer for each flow: flows
that could leave in one another's windows get different priorities (`isolation`). All other gates are closed while one
of these is open, and for an inter-packet gap before, so that no frame ever blocks another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from lxml import etree
from msgspec import Struct

from wiregauge.config import TestError, checked_tree, load_bytes
from wiregauge.config.groups import expanded
from wiregauge.plan import Attachment, Campaign, EndSystem, Switch
from wiregauge.plan.ethernet import GAP, PREAMBLE, SHORTEST
from wiregauge.plan.quantity import time_text
from wiregauge.scheduling.isolation import of_others, priorities_of
from wiregauge.scheduling.problem import Demand, Problem, ProblemError, common_period
from wiregauge.scheduling.searching import Opens
from wiregauge.scheduling.writing import NotKeptError

__all__ = ["Gated", "GatedEntry", "entries_of", "gated"]

_OF_SCHEDULES = ("period", "offset", "offset-step", "window", "early", "late", "vl", "lmax", "queue")
"""Attributes of a flow that only time-triggered flows have."""
_OF_CRITICAL = ("integration", "policing", "raster", "raster-others")
"""Attributes of a switch that only critical traffic uses."""
_MOST_OF_SWITCH, _MOST_OF_HOST = 1024, 28
"""Most entries of a gate control list, as in the plan."""
_SHORTEST_OF_HOST = 61


class Gated(Struct, frozen=True):
    """The test with gates, and the priority and send time of each flow."""

    text: bytes
    priorities: Mapping[int, int]
    talkers: Mapping[int, int]
    """Instant of the first message after the warm-up, ps, by flow."""


class GatedEntry(Struct, frozen=True):
    """An entry of a list: the priority whose gate is open, OTHERS or NONE, and the interval, ns."""

    opens: int
    interval: int


OTHERS, NONE = -1, -2


class _Opening(Struct, frozen=True):
    begin: int
    end: int
    priority: int


def entries_of(
    problem: Problem, opens: Opens, priorities: Mapping[int, int], port: Attachment, *, of_host: bool = False
) -> tuple[int, Sequence[GatedEntry]]:
    """The base time, ns, and the list of a port. Raises ProblemError.

    At a switch the gate of a class is open from the start of its frame to the end of the gap after it: no other frame
    of its class fits in. At a host, where talkers keep their times and Linux accepts few and no short entries, all
    scheduled frames share a class whose gate opens early enough for the line to be free.
    """
    here = problem.at_port()[port]
    cycle = common_period([demand.period for demand, _ in here])
    count = sum(cycle // demand.period for demand, _ in here)
    most = 65_536 if of_host else _MOST_OF_SWITCH
    if count > most:
        raise ProblemError(
            f"windows open {count} times in a cycle of {problem.names[port]}, and a gate control list has "
            f"{most} entries at most; choose periods that divide one another"
        )
    openings = sorted(
        (
            _Opening(
                begin * problem.grid_ps // 1000,
                -(-(begin + demand.windows[at].occupied) * problem.grid_ps // 1000),
                priorities[demand.flow],
            )
            for demand, at in here
            for begin in range(opens[demand.flow][at] % demand.period, cycle, demand.period)
        ),
        key=lambda one: one.begin,
    )
    whole = cycle * problem.grid_ps // 1000
    guard = _up_ns(GAP, problem.rates[port])
    least = guard + _up_ns(PREAMBLE + SHORTEST, problem.rates[port])
    if of_host:
        least = max(least, guard + _up_ns(_SHORTEST_OF_HOST, problem.rates[port]))
        base, entries = _of_host(openings, whole, guard, least)
    else:
        base, entries = _of_switch(openings, whole, guard, least)
    if not of_host and len(entries) > _MOST_OF_SWITCH:
        raise ProblemError(
            f"the gate control list of {problem.names[port]} has {len(entries)} entries, at most "
            f"{_MOST_OF_SWITCH}; choose periods that divide one another, or --minimise windows"
        )
    return base, entries


def _up_ns(octets: int, rate: int) -> int:
    return -(-octets * 8 * 10**9 // rate)


def _of_switch(
    openings: Sequence[_Opening], cycle: int, guard: int, least: int
) -> tuple[int, Sequence[GatedEntry]]:
    entries: list[GatedEntry] = []

    def add(opens: int, interval: int) -> None:
        if interval > 0:
            if entries and entries[-1].opens == opens:
                entries[-1] = GatedEntry(opens, entries[-1].interval + interval)
            else:
                entries.append(GatedEntry(opens, interval))

    # The list begins at the end of the previous cycle's last opening.
    begin = openings[-1].end - cycle
    at = begin
    for one in openings:
        gap = one.begin - at
        # A gap too short for any frame stays closed.
        closed = guard if gap >= least else gap
        add(OTHERS, gap - closed)
        add(NONE, closed)
        add(one.priority, one.end - one.begin)
        at = one.end
    return begin % cycle, entries


def _of_host(
    openings: Sequence[_Opening], cycle: int, guard: int, least: int
) -> tuple[int, Sequence[GatedEntry]]:
    joined: list[tuple[int, int]] = []
    for one in openings:
        if joined and one.begin - guard - joined[-1][1] < least:
            joined[-1] = joined[-1][0], one.end
        else:
            joined.append((one.begin - guard, one.end))
    while len(joined) > 1 and (
        joined[0][0] + cycle - joined[-1][1] < least or 2 * len(joined) > _MOST_OF_HOST
    ):
        wrap = joined[0][0] + cycle - joined[-1][1]
        gaps = [after[0] - before[1] for before, after in pairwise(joined)]
        if wrap <= min(gaps):
            joined = [*joined[1:-1], (joined[-1][0], joined[0][1] + cycle)]
        else:
            at = gaps.index(min(gaps))
            joined[at : at + 2] = [(joined[at][0], joined[at + 1][1])]
    if joined[0][0] + cycle - joined[-1][1] < least:
        return joined[0][0] % cycle, [GatedEntry(0, cycle)]
    entries = []
    for at, (begin, end) in enumerate(joined):
        after = joined[at + 1][0] if at + 1 < len(joined) else joined[0][0] + cycle
        entries += [GatedEntry(0, end - begin), GatedEntry(OTHERS, after - end)]
    return joined[0][0] % cycle, entries


def gated(
    data: bytes,
    path: Path,
    campaign: Campaign,
    problem: Problem,
    opens: Opens,
    settings: Sequence[str] = (),
    *,
    first: int = 7,
) -> Gated:
    """The test with its schedule as gates of switches and hosts; `problem` is one of tagged frames.

    The file is rewritten without comments and with groups expanded. Raises ProblemError where gates cannot carry the
    schedule, NotKeptError where the plan refuses it.
    """
    root = expanded(checked_tree(data, str(path)), str(path)).root
    scheduled = {demand.flow for demand in problem.demands}
    _check(campaign, scheduled)
    priorities = priorities_of(problem, opens, first=first, taken=of_others(campaign, problem))
    talkers = {demand.flow: _talker(campaign, problem, opens, demand) for demand in problem.demands}
    _rewrite_flows(root, priorities, talkers)
    for index, node in enumerate(campaign.network.nodes):
        ports = sorted(port for port in problem.names if port.node == index)
        element = next(one for one in root.iter(f"{{*}}{_tag(node.kind)}") if one.get("name") == node.name)
        if isinstance(node.kind, Switch):
            _rewrite_switch(element)
            for port in ports:
                _write_port(element, "switch-tsn", problem, opens, priorities, port)
        elif ports and _sends_more(campaign, index, scheduled):
            _write_port(element, "host-tsn", problem, opens, priorities, ports[0])
    etree.indent(root)
    text = etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)
    try:
        load_bytes(text, path, settings)
    except TestError as error:
        raise NotKeptError(str(error)) from None
    return Gated(text, priorities, talkers)


def _check(campaign: Campaign, scheduled: set[int]) -> None:
    for run in campaign.runs:
        for flow in run.flows:
            if flow.protocol == "rc":
                raise ProblemError(
                    f"flow {flow.id} is a virtual link: switches that carry virtual links have no gates; leave it out"
                )
            if flow.id in scheduled and flow.network is None:
                raise ProblemError(
                    f"flow {flow.id} travels on both networks; gates carry it on one: write networks"
                    '="A", or leave --gates out'
                )
    for node in campaign.network.nodes:
        has = node.kind.tsn if isinstance(node.kind, Switch) else node.tsn
        if has:
            raise ProblemError(
                f'"{node.name}" has TSN settings already; leave them out, and --gates writes its own'
            )


def _talker(campaign: Campaign, problem: Problem, opens: Opens, demand: Demand) -> int:
    """Offset of the sender, ps, such that messages are at its port when the first window opens."""
    run = campaign.runs[0]
    send = run.send_of.get(demand.flow)
    period, release = demand.period * problem.grid_ps, demand.release
    if (
        send is None
        or release is None
        or send.period % period
        or (run.warm_up, send) != _same(campaign, demand)
    ):
        raise ProblemError(
            f"messages of flow {demand.flow} are not made once in one or several periods of {period / 1000:g} ns, at "
            "the same instants in every run: give its <send> the period of the flow"
        )
    wanted = opens[demand.flow][0] * problem.grid_ps - release.cost * problem.grid_ps
    return send.offset + (wanted - run.warm_up - send.offset) % period


def _same(campaign: Campaign, demand: Demand) -> object:
    """Warm-up and sender of a flow, if they are the same in all runs."""
    found = {
        (run.warm_up, run.send_of[demand.flow].period, run.send_of[demand.flow].offset)
        for run in campaign.runs
    }
    first = campaign.runs[0]
    return (first.warm_up, first.send_of[demand.flow]) if len(found) == 1 else None


def _tag(kind: object) -> str:
    return "switch" if isinstance(kind, Switch) else "end-system" if isinstance(kind, EndSystem) else "hub"


def _rewrite_flows(root: etree._Element, priorities: Mapping[int, int], talkers: Mapping[int, int]) -> None:
    for node in root.iter("{*}flow"):
        number = int(node.get("id", "0"))
        if number not in priorities:
            continue
        for attribute in _OF_SCHEDULES:
            _without(node, attribute)
        for window in list(node.iterchildren("{*}window")):
            node.remove(window)
        node.set("protocol", "raw")
        node.set("priority", str(priorities[number]))
    for node in root.iter("{*}send"):
        number = int(node.get("flow", "0"))
        if number in talkers:
            _without(node, "offset-step")
            _without(node, "cycle-offset")
            node.set("offset", time_text(talkers[number]))


def _without(node: etree._Element, attribute: str) -> None:
    if attribute in node.attrib:
        del node.attrib[attribute]


def _rewrite_switch(element: etree._Element) -> None:
    if element.get("kind") == "mixed-criticality":
        for attribute in _OF_CRITICAL:
            _without(element, attribute)
        element.set("kind", "cots")
        if element.get("priorities") is None:
            element.set("priorities", "strict")


def _sends_more(campaign: Campaign, node: int, scheduled: set[int]) -> bool:
    """Whether unscheduled flows leave an end system."""
    return any(
        any(flow.from_ == node and flow.id not in scheduled for flow in run.flows)
        or any(relay.on == node for relay in run.relays)
        or any(inject.on == node for inject in run.injects)
        or any(log.on == node for log in run.remote_logs)
        for run in campaign.runs
    )


def _write_port(
    element: etree._Element,
    tag: str,
    problem: Problem,
    opens: Opens,
    priorities: Mapping[int, int],
    port: Attachment,
) -> None:
    of_host = tag == "host-tsn"
    base, entries = entries_of(problem, opens, priorities, port, of_host=of_host)
    own = sorted({priorities[demand.flow] for demand, _ in problem.at_port()[port]})
    space = f"{{{etree.QName(element).namespace}}}"
    tsn = etree.SubElement(element, space + tag)
    if not of_host:
        tsn.set("ports", str(port.port))
    classes = [[p for p in range(8) if p not in own], *([own] if of_host else [[p] for p in own])]
    number: dict[int, str | None] = {OTHERS: "0", NONE: None}
    number |= {0: "1"} if of_host else {p: str(at) for at, p in enumerate(own, 1)}
    for at, members in enumerate(classes):
        one = etree.SubElement(tsn, space + "traffic-class")
        one.set("number", str(at))
        one.set("priorities", " ".join(map(str, members)))
    schedule = etree.SubElement(tsn, space + "gate-schedule")
    schedule.set("base-time", time_text(base * 1000))
    schedule.set("cycle-time", time_text(sum(entry.interval for entry in entries) * 1000))
    for entry in entries:
        line = etree.SubElement(schedule, space + "gate-entry")
        opened = number[entry.opens]
        if opened is not None:
            line.set("open", opened)
        line.set("for", time_text(entry.interval * 1000))

"""Planted faults that contradict the assumptions of bounds and schedules: one table, read by both.

Each row is an assumption, the contradicting elements of a plan, and the consequence: refused by name, or reported with
the answer because it stays true of frames that arrive. Diverging clocks of a schedule are a parameter of schedules,
which are computed and judged with it. Effects that are not here are included in the calculation: events of hosts, costs
of reading clocks, drifting clocks and lines, wander, changes by temperature and ticks; or refused where they are read,
in `crates/bound`: those without a curve.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final, Literal, TypeVar

from msgspec import Struct

from wiregauge.plan.campaign import Campaign, Run
from wiregauge.plan.network import Clock, EndSystem, Network, Switch
from wiregauge.plan.processors import CURE, overloads
from wiregauge.plan.tasks import (
    Babble,
    BitError,
    ClockStep,
    Corrupt,
    Cut,
    Delay,
    Duplicate,
    Loss,
    Misdirect,
    Reorder,
    Restart,
    WrongLength,
)

__all__ = ["ASSUMPTIONS", "Assumption", "Contradiction", "Parting", "contradictions", "parting", "parting_of"]

Reader = Literal["bounds", "schedule"]
_Kind = TypeVar("_Kind")
_MOST_DEVIATIONS: Final = 6
"""Bound of a draw of wander, which is the sum of twelve uniform ones (`crates/sim`), in standard deviations."""


class Contradiction(Struct, frozen=True):
    """An element of a test that contradicts an assumption: the `number`-th of its tag."""

    assumption: str
    tag: str
    number: int
    sentence: str
    refused: bool
    loses: bool = False
    """Whether frames are lost by it."""
    cure: str = ""
    """The cure where it is not to leave the element out."""


Found = Iterator[tuple[str, int, str]]
"""Tag, number among elements of the tag, and its effect."""


class Assumption(Struct, frozen=True):
    """An assumption of bounds or schedules; `refusing` lists the readers that give no answer where it is
    contradicted."""

    name: str
    text: str
    planted: Callable[[Network, Run], Found]
    refusing: Collection[Reader] = ()
    cure: str = ""
    """What to change, where the cure is not to leave the element out."""


def contradictions(network: Network, run: Run, reader: Reader) -> list[Contradiction]:
    """Contradictions of a run to the assumptions of `reader`, in the order of the table."""
    return [
        Contradiction(
            row.text, tag, number, sentence, reader in row.refusing, row.name == "arrives", row.cure
        )
        for row in ASSUMPTIONS
        for tag, number, sentence in row.planted(network, run)
    ]


def _ends(network: Network, link: int) -> str:
    return " ".join(network.names[node] for node in network.links[link].nodes)


def _time(ps: float) -> str:
    return f"{ps / 1e6:.6g} us"


def _of_frames(network: Network, run: Run, *kinds: type) -> Iterator[tuple[str, int, str, object]]:
    numbers: dict[str, int] = {}
    for fault in run.link_faults:
        tag = "bit-errors" if isinstance(fault.kind, BitError) else _tag(fault.kind)
        number = numbers[tag] = numbers.get(tag, -1) + 1
        if isinstance(fault.kind, kinds):
            yield tag, number, _ends(network, fault.link), fault.kind


def _tag(kind: object) -> str:
    return str(type(kind).__struct_config__.tag)  # type: ignore[attr-defined]


def _of_relays(run: Run, *kinds: type) -> Iterator[tuple[int, str, object]]:
    number = -1
    for relay in run.relays:
        for fault in relay.faults:
            number += 1
            if isinstance(fault.kind, kinds):
                yield number, f"the relay of flow {relay.flow}", fault.kind


def _of_incidents(run: Run, kind: type[_Kind]) -> Iterator[tuple[int, int, _Kind]]:
    number = -1
    for incident in run.incidents:
        if isinstance(incident.kind, kind):
            number += 1
            yield number, incident.at, incident.kind


def _once(network: Network, run: Run) -> Found:
    for tag, number, link, _ in _of_frames(network, run, Duplicate):
        yield tag, number, f'it has frames arrive twice on the link "{link}"'
    for number, whose, _ in _of_relays(run, Duplicate):
        yield "fault", number, f"it has {whose} send messages twice"


def _in_time(network: Network, run: Run) -> Found:
    for tag, number, link, kind in _of_frames(network, run, Delay):
        assert isinstance(kind, Delay)
        yield tag, number, f'it delays frames on the link "{link}" by {_time(kind.by)}'
    for number, whose, _ in _of_relays(run, Reorder):
        yield "fault", number, f"it has {whose} keep messages until the next ones have gone"


def _of_length(network: Network, run: Run) -> Found:
    for tag, number, link, kind in _of_frames(network, run, WrongLength):
        assert isinstance(kind, WrongLength)
        yield tag, number, f'it gives frames on the link "{link}" a length of {kind.length} B'


def _by_contract(network: Network, run: Run) -> Found:
    for number, _, babble in _of_incidents(run, Babble):
        spacing = _time(babble.period)
        yield (
            "babble",
            number,
            f"it sends {babble.length} B every {spacing} as flow {babble.flow}, past every contract",
        )
    for number, whose, kind in _of_relays(run, Misdirect):
        assert isinstance(kind, Misdirect)
        yield "fault", number, f'it has {whose} send messages to "{network.names[kind.to]}"'


def _is_timed(network: Network, run: Run, node: int) -> bool:
    """Whether a node's sending or gates follow its clock."""
    kind = network.nodes[node].kind
    if isinstance(kind, EndSystem):
        by_flow = {flow.id: flow.from_ for flow in run.flows}
        senders = {by_flow.get(send.flow) for send in run.sends} | {inject.on for inject in run.injects}
        return node in senders
    gated = isinstance(kind, Switch) and bool(kind.tsn)
    windows = (window.at.node for flow in run.flows if flow.schedule for window in flow.schedule.windows)
    return gated or node in set(windows)


def _set(network: Network, run: Run, *, timed: bool) -> Found:
    for number, _, step in _of_incidents(run, ClockStep):
        if _is_timed(network, run, step.node) is timed:
            yield (
                "step-clock",
                number,
                f'it sets the clock of "{network.names[step.node]}" by {_time(step.by)}',
            )


def _clocks_kept(network: Network, run: Run) -> Found:
    yield from _set(network, run, timed=True)


def _clocks_looked_at(network: Network, run: Run) -> Found:
    yield from _set(network, run, timed=False)


def _arriving(network: Network, run: Run) -> Found:
    for tag, number, link, _ in _of_frames(network, run, Loss, BitError, Corrupt):
        what = "alters payloads of" if tag == "corrupt" else "loses"
        yield tag, number, f'it {what} frames on the link "{link}"'
    for number, at, cut in _of_incidents(run, Cut):
        yield "cut", number, f'it cuts the link "{_ends(network, cut.link)}" at {_time(at)}'
    for number, at, restart in _of_incidents(run, Restart):
        yield "restart", number, f'it restarts the switch "{network.names[restart.switch]}" at {_time(at)}'
    for number, whose, kind in _of_relays(run, Loss, Corrupt):
        what = "lose" if isinstance(kind, Loss) else "alter"
        yield "fault", number, f"it has {whose} {what} messages"


def _kept_up(network: Network, run: Run) -> Found:
    for one in overloads(network, run):
        yield "end-system", one.node, one.sentence(network)


def _together(network: Network, run: Run) -> Found:
    apart = parting(network, run, _scheduled(run))
    # Protocols that keep clocks together are refused by themselves.
    if apart is not None and not apart.kept:
        yield "clock", apart.nodes[0], apart.sentence(network)


_BOTH: Final[tuple[Reader, ...]] = ("bounds", "schedule")
_BOUNDS: Final[tuple[Reader, ...]] = ("bounds",)

ASSUMPTIONS: Final = (
    Assumption("once", "every frame arrives once", _once, _BOTH),
    Assumption("in-time", "links and relays take no longer than the test says", _in_time, _BOTH),
    Assumption("length", "frames keep the length they were sent with", _of_length, _BOTH),
    Assumption("contract", "nothing is sent but what flows and loads say", _by_contract, _BOTH),
    Assumption("keeps-up", "hosts keep up with what they send and receive", _kept_up, _BOTH, CURE),
    Assumption("clocks-kept", "a clock that senders or gates go by is never set", _clocks_kept, _BOUNDS),
    Assumption("clocks-agree", "clocks keep the schedule", _together, _BOUNDS),
    Assumption("clocks-looked-at", "clocks of receivers show the time", _clocks_looked_at),
    Assumption("arrives", "frames arrive", _arriving),
)
"""All assumptions, each with its detector and the readers that refuse; other readers report it with their answer."""


def _scheduled(run: Run) -> set[int]:
    flows = (flow for flow in run.flows if flow.schedule is not None)
    return {node for flow in flows for route in flow.routes for node in route.nodes}


class Parting(Struct, frozen=True):
    """The largest offset, ps, that the test plants between two clocks of a schedule; the worst node first."""

    apart: int
    nodes: tuple[int, int]
    kept: bool
    """Whether a cluster or a domain keeps the clocks together, within `apart`."""

    def sentence(self, network: Network) -> str:
        """How far the two clocks part in a run, as a sentence."""
        one, other = (network.names[node] for node in self.nodes)
        how = "are kept together to" if self.kept else "part by"
        return f'by it the clocks of "{one}" and "{other}" {how} {_time(self.apart)} in a run'


def parting(network: Network, run: Run, nodes: Collection[int]) -> Parting | None:
    """The two of these nodes whose clocks are furthest apart in a run; None where all are equal."""
    end = run.warm_up + run.duration + run.drain
    kept = [(set(cluster.devices), int(cluster.precision_bound)) for cluster in run.clusters]
    kept += [
        ({clock.node for clock in domain.clocks}, 2 * int(domain.max_offset)) for domain in run.ptp_domains
    ]
    found: Parting | None = None
    ordered = sorted(nodes)
    for place, one in enumerate(ordered):
        for other in ordered[place + 1 :]:
            free = _apart(network, run, (one, other), end)
            if not free:
                continue
            held = next((bound for devices, bound in kept if {one, other} <= devices), None)
            apart = free if held is None else held
            if found is None or apart > found.apart:
                worst = (one, other) if network.nodes[one].clock is not None else (other, one)
                found = Parting(apart, worst, held is not None)
    return found


def _apart(network: Network, run: Run, pair: tuple[int, int], end: int) -> int:
    """The most that two clocks differ by until `end`, without anything that keeps them together, ps, rounded up."""
    clocks = [network.nodes[node].clock or Clock() for node in pair]
    steps = [
        [(i.at, i.kind.by) for i in run.incidents if isinstance(i.kind, ClockStep) and i.kind.node == node]
        for node in pair
    ]
    if clocks[0] == clocks[1] and steps[0] == steps[1] and not clocks[0].wander_ppb:
        return 0
    bends = {0, end, *(step.at for clock in clocks for step in clock.temperature)}
    bends |= {at for own in steps for at, _ in own}
    most = 0
    for at in sorted(bend for bend in bends if 0 <= bend <= end):
        # Just before and just after a step.
        for inclusive in (False, True):
            shown = [
                _shown(clock, own, at, inclusive=inclusive) for clock, own in zip(clocks, steps, strict=True)
            ]
            most = max(most, abs(shown[0] - shown[1]))
    ticks = end // 10**12
    wandered = sum(clock.wander_ppb for clock in clocks) * _MOST_DEVIATIONS * end * (ticks + 1)
    coarse = sum(clock.granularity - 1 for clock in clocks)
    return -(-(most + wandered) // 10**9) + coarse


def _shown(clock: Clock, steps: list[tuple[int, int]], at: int, *, inclusive: bool) -> int:
    """The clock's reading minus true time, ps · 1e9."""
    error = clock.offset * 10**9 + clock.drift_ppb * at
    error += sum(step.drift_ppb * (at - step.at) for step in clock.temperature if step.at < at)
    return error + 10**9 * sum(by for when, by in steps if when < at or (inclusive and when == at))


def parting_of(campaign: Campaign, nodes: Callable[[Run], Collection[int]] = _scheduled) -> Parting | None:
    """The largest `parting` of all runs of a test; None without any."""
    found = (parting(campaign.network, run, nodes(run)) for run in campaign.runs)
    return max((one for one in found if one is not None), key=lambda one: one.apart, default=None)

"""The scheduling problem: periodic flows, the ports on their paths, and the windows they need there.

Times are multiples of a grid, by default 1 ns: gate control lists are in nanoseconds, and hardware has even coarser
steps. Lengths and distances are rounded up to it, so that a solution on the grid holds for exact times.

A window opens at least the clock precision after the planned arrival of the frame: then the frame has arrived by any
clock, and no other frame starts in the window because its own frame is late. A window may open later: after the whole
frame is received and processed, and early enough before the flow's next frame that the two never meet in the one
buffer that a switch has for a flow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from msgspec import Struct, field
from msgspec.structs import replace

from wiregauge.plan import Attachment, Campaign, Flow, Run, Send, Switch
from wiregauge.plan.ethernet import GAP, HEADERS, LONGEST, PREAMBLE, SHORTEST, TAG
from wiregauge.scheduling.host_times import receiving, sending

__all__ = [
    "Demand",
    "Problem",
    "ProblemError",
    "Release",
    "Tail",
    "Window",
    "common_period",
    "port_name",
    "problem_of",
]

DEFAULT_EARLY_PS = 1_000_000
"""Default acceptance before the instant of a frame of full length, ps; as in `crates/plan`, point/windows.rs."""


class ProblemError(ValueError):
    """The problem cannot be scheduled as it is given; the text says why, and the cure."""


class Window(Struct, frozen=True):
    """The window of a flow at one port of its path."""

    port: Attachment
    parent: int
    """Index, in the flow, of the window at the port before; -1 at the sender."""
    distance: int
    """Time from the opening of the parent window until the whole frame is here and processed, by all clocks."""
    length: int
    occupied: int
    """Time that the flow's longest frame occupies the line, preamble and gap included."""
    hold_up: int
    """The greatest delay of a start after the opening, with equal clocks, by other frames in transmission."""
    earliest: int = 0
    """Time from the opening of the parent window to the earliest arrival of the frame, with equal clocks."""

    def needed(self, precision: int) -> int:
        """The least length of the window for this clock precision."""
        return self.occupied + self.hold_up + precision


class Tail(Struct, frozen=True):
    """The end of a path."""

    receiver: int
    window: int
    """Index of the last window on the path."""
    distance: int
    """Time from its opening to the frame's last bit at the receiver."""


class Release(Struct, frozen=True):
    """When messages are made: at `phase` + k·`step`, with every such instant used in turn over the periods."""

    phase: int
    step: int
    """The greatest common divisor of the sender's and the flow's period."""
    cost: int
    """The greatest time that sending costs the host, which messages wait for as well."""
    varies: int = 0
    """How much less sending may cost."""

    def is_split(self, dispatch: int) -> bool:
        """Whether only some messages are ready for a dispatch: two then meet at a later one."""
        ready = self.phase + self.cost
        return (dispatch - ready) % self.step + self.varies >= self.step


class Demand(Struct, frozen=True):
    """A flow and its requirements."""

    flow: int
    period: int
    windows: tuple[Window, ...]
    """The windows of the flow, each after its parent."""
    tails: tuple[Tail, ...]
    release: Release | None
    """When messages are made; None: at any time."""
    deadline: int | None
    receive_cost: int = 0
    """The greatest time that receiving costs the host."""
    fixed: tuple[int, ...] | None = None
    """Openings that must not be moved, in the order of `windows`."""
    steady_wait: int | None = None
    """Time that messages wait for their dispatch, where they are made this long before it wherever it is."""

    @property
    def roots(self) -> tuple[int, ...]:
        """Indexes of the sender's windows: two where it sends on both networks."""
        return tuple(at for at, window in enumerate(self.windows) if window.parent < 0)

    def longest_wait(self, at: int, precision: int) -> int:
        """The longest that a frame may wait at a window.

        It must leave before the next frame of its flow arrives. And the window must open less than a period after its
        parent, because the test language gives the opening within a period, but not in which period.
        """
        window = self.windows[at]
        before_next = self.period - window.length - 2 * precision
        return max(min(before_next, self.period - 1 - window.distance), 0)

    def at_once(self) -> tuple[int, ...]:
        """Openings of the windows, from dispatch on, if no frame waits."""
        opens: list[int] = []
        for window in self.windows:
            opens.append(0 if window.parent < 0 else opens[window.parent] + window.distance)
        return tuple(opens)

    def network_latency(self, opens: Sequence[int]) -> int:
        """Latency from dispatch to the last bit at the last receiver, with equal clocks and no other frames."""
        return max(opens[tail.window] + tail.distance for tail in self.tails) - opens[0]

    def worst_network_latency(self, opens: Sequence[int], precision: int) -> int:
        """The same latency with the greatest clock difference and other frames in transmission."""
        ends = (opens[t.window] + t.distance + self.windows[t.window].hold_up for t in self.tails)
        return max(ends) - opens[0] + precision

    def wait(self, dispatch: int) -> int:
        """The longest that a message waits for this dispatch."""
        if self.release is None:
            return self.free_wait
        step, ready = self.release.step, self.release.phase + self.release.cost
        return self.period - step + self.release.cost + (dispatch - ready) % step

    @property
    def free_wait(self) -> int:
        """The longest that a message waits for its dispatch, at whatever time that is."""
        return self.period if self.steady_wait is None else self.steady_wait

    def slack(self, precision: int) -> int | None:
        """The greatest total waiting time, for dispatch and in switches, that keeps the deadline; None without one."""
        if self.deadline is None:
            return None
        least = self.worst_network_latency(self.at_once(), precision) + self.receive_cost
        return self.deadline - least - self._least_wait

    @property
    def _least_wait(self) -> int:
        if self.release is None:
            return self.free_wait
        return self.period - self.release.step + self.release.cost


class Problem(Struct, frozen=True):
    """A scheduling problem: flows that share ports."""

    demands: tuple[Demand, ...]
    names: Mapping[Attachment, str]
    rates: Mapping[Attachment, int]
    """Rate of each port, bit/s; the slowest of all runs."""
    grid_ps: int
    precision: int
    longest: Mapping[Attachment, int] = field(default_factory=dict)
    """Time that the longest other frame occupies each port."""

    @property
    def free(self) -> tuple[Demand, ...]:
        """The flows that are not fixed."""
        return tuple(demand for demand in self.demands if demand.fixed is None)

    def at_port(self) -> dict[Attachment, list[tuple[Demand, int]]]:
        """The flows that leave by each port, with the index of their window there."""
        found: dict[Attachment, list[tuple[Demand, int]]] = {}
        for demand in self.demands:
            for at, window in enumerate(demand.windows):
                found.setdefault(window.port, []).append((demand, at))
        return found

    def of(self, flow: int) -> Demand:
        """The flow of this number."""
        return next(demand for demand in self.demands if demand.flow == flow)

    def only(self, flows: frozenset[int] | set[int]) -> Problem:
        """The problem with these flows alone."""
        kept = tuple(demand for demand in self.demands if demand.flow in flows)
        return Problem(kept, self.names, self.rates, self.grid_ps, self.precision, self.longest)

    def nanos(self, time: int) -> float:
        """A time of the grid in ns."""
        return time * self.grid_ps / 1000


def common_period(periods: Sequence[int]) -> int:
    """The least common multiple of periods."""
    return math.lcm(*periods) if periods else 1


def port_name(campaign: Campaign, port: Attachment) -> str:
    """The name of a port in the test language."""
    return f"{campaign.network.names[port.node]}:{port.port}"


def problem_of(
    campaign: Campaign,
    *,
    fixed: frozenset[int] = frozenset(),
    lengths_written: Mapping[int, bool] | None = None,
    precision_ps: int | None = None,
    grid_ps: int = 1000,
    tagged: bool = False,
) -> Problem:
    """The time-triggered flows of a test as a problem; of a swept test such that its solution fits every run.

    `tagged`: frames carry a VLAN tag, as needed for gates, which separate priorities, and hosts use their raw stack.

    `fixed`: flows whose windows stay in place. Window lengths that the author gave, by `lengths_written`, stay; others
    are as long as `precision_ps` requires, or without it as the plan derives them for equal clocks.
    Raises ProblemError.
    """
    builder = _Builder(campaign, fixed, lengths_written or {}, precision_ps, grid_ps, tagged)
    numbers = [flow.id for flow in campaign.runs[0].flows if flow.schedule is not None]
    if not numbers:
        raise ProblemError(
            'the test has no time-triggered flow; write protocol="tt" and a period for what is to be scheduled'
        )
    demands = tuple(builder.demand(number) for number in numbers)
    ports = {window.port for demand in demands for window in demand.windows}
    return Problem(
        demands,
        {port: port_name(campaign, port) for port in ports},
        {port: builder.rate(port) for port in ports},
        grid_ps,
        builder.precision,
        {port: -(-_time(PREAMBLE + LONGEST + GAP, builder.rate(port)) // grid_ps) for port in ports},
    )


def _time(octets: int, rate: int) -> int:
    """Time of octets on the line, ps, rounded up."""
    return -(-octets * 8 * 10**12 // rate)


class _Way(Struct):
    """Windows of a flow in one run, ps."""

    ports: list[Attachment] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    distances: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    occupied: list[int] = field(default_factory=list)
    hold_ups: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    earliest: list[int] = field(default_factory=list)
    tails: dict[tuple[int, int], int] = field(default_factory=dict)


class _Builder:
    def __init__(
        self,
        campaign: Campaign,
        fixed: frozenset[int],
        written: Mapping[int, bool],
        precision_ps: int | None,
        grid_ps: int,
        tagged: bool,
    ) -> None:
        self._campaign = campaign
        self._fixed = fixed
        self._written = written
        self._precision_ps = precision_ps
        self._grid = grid_ps
        self._tagged = tagged
        self.precision = self._up(precision_ps or 0)
        self._link_at = {end: link for link in campaign.network.links for end in link.ends}

    def rate(self, port: Attachment, run: Run | None = None) -> int:
        """Rate of a port, bit/s; the slowest of all runs, or that of one."""
        own = self._link_at[port].rate_bps
        if run is not None:
            return run.link_rate_bps or own
        return min(one.link_rate_bps or own for one in self._campaign.runs)

    def demand(self, number: int) -> Demand:
        """The demand of a flow that fits every run."""
        runs = [(run, next(flow for flow in run.flows if flow.id == number)) for run in self._campaign.runs]
        ways = [self._way(run, flow) for run, flow in runs]
        first, flow = ways[0], runs[0][1]
        schedule = flow.schedule
        assert schedule is not None
        period = self._whole(schedule.period, f"the period of flow {number}")
        windows = tuple(
            Window(
                port,
                first.parents[at],
                self._up(max(way.distances[at] for way in ways))
                + (self.precision if first.parents[at] >= 0 else 0),
                self._up(max(way.lengths[at] for way in ways)),
                self._up(max(way.occupied[at] for way in ways)),
                self._up(max(way.hold_ups[at] for way in ways)),
                min(way.earliest[at] for way in ways) // self._grid,
            )
            for at, port in enumerate(first.ports)
        )
        if number not in self._fixed and not self._written.get(number, False):
            # On a coarse grid each part is rounded up separately.
            windows = tuple(
                replace(window, length=max(window.length, window.needed(self.precision)))
                for window in windows
            )
        tails = tuple(
            Tail(node, at, self._up(max(way.tails[node, at] for way in ways))) for node, at in first.tails
        )
        fixed = None
        if number in self._fixed:
            if any(way.offsets != first.offsets for way in ways):
                raise ProblemError(
                    f"flow {number} has a schedule that differs from run to run; give it windows by hand, or "
                    f"schedule it "
                    "anew with --again"
                )
            fixed = self._openings(first, schedule.period)
        receiving = max(self._receive_cost(run, flow) for run, flow in runs)
        deadline = min((flow.deadline for _, flow in runs if flow.deadline is not None), default=None)
        return Demand(
            number,
            period,
            windows,
            tails,
            self._release(runs, schedule.period),
            None if deadline is None else deadline // self._grid,
            self._up(receiving),
            fixed,
            self._steady_wait(runs),
        )

    def _up(self, time_ps: int) -> int:
        return -(-time_ps // self._grid)

    def _whole(self, time_ps: int, what: str) -> int:
        if time_ps % self._grid:
            raise ProblemError(
                f"{what}, {time_ps} ps, is no multiple of the grid, {self._grid} ps; choose a grid that divides it "
                "with --grid"
            )
        return time_ps // self._grid

    def _openings(self, way: _Way, period_ps: int) -> tuple[int, ...]:
        """Openings of a fixed schedule, rounded down; windows are lengthened to cover it."""
        opens: list[int] = []
        for parent, distance, offset in zip(way.parents, way.distances, way.offsets, strict=True):
            before = 0 if parent < 0 else opens[parent]
            at = offset if parent < 0 else before + (offset - before) % period_ps
            # Under cut-through a window set by hand may open before the whole frame is in, not a period later.
            while parent >= 0 and at + period_ps <= before + distance:
                at += period_ps
            opens.append(at)
        return tuple(at // self._grid for at in opens)

    def _way(self, run: Run, flow: Flow) -> _Way:
        schedule = flow.schedule
        assert schedule is not None
        way, place = _Way(), dict[Attachment, int]()
        planned = {window.at: window for window in schedule.windows}
        grown = 1 if flow.id in self._fixed and self._grid > 1 else 0
        frame = self._frame(run, flow)
        for route in flow.routes:
            parent, ready, late, soonest = -1, 0, 0, 0
            for hop in route.hops:
                port = Attachment(hop.from_, hop.from_port)
                rate = self.rate(port, run)
                if port not in place:
                    place[port] = len(way.ports)
                    occupied = _time(PREAMBLE + frame + GAP, rate)
                    length = planned[port].length
                    hold_up = late + self._hold_up(port, rate, occupied, run)
                    own = self._written.get(flow.id, False) or flow.id in self._fixed
                    if self._precision_ps is not None and not own:
                        length = occupied + hold_up + self._precision_ps
                    way.ports.append(port)
                    way.parents.append(parent)
                    way.distances.append(ready)
                    # The opening of a fixed window was rounded down.
                    way.lengths.append(length + grown * (planned[port].offset % self._grid))
                    way.occupied.append(occupied)
                    way.hold_ups.append(hold_up)
                    way.offsets.append(planned[port].offset)
                    way.earliest.append(soonest)
                parent = place[port]
                late = way.hold_ups[parent]
                link = self._campaign.network.links[hop.link]
                sent = _time(PREAMBLE + frame, rate)
                into = self._campaign.network.nodes[hop.to].kind
                ready = sent + link.delay
                if isinstance(into, Switch):
                    drawn = into.drawn_delay.quantiles[-1][1] if into.drawn_delay else 0
                    soonest = ready + (0 if into.drawn_delay else into.processing_delay)
                    ready += max(into.processing_delay, drawn) + into.mixed_rate_delay
                else:
                    way.tails[hop.to, parent] = ready
        return way

    def _frame(self, run: Run, flow: Flow) -> int:
        """Length of a flow's longest frame, B, from destination address to FCS."""
        assert flow.schedule is not None
        longest = max(flow.schedule.longest_frame, SHORTEST)
        if not self._tagged:
            return longest
        send = run.send_of.get(flow.id)
        return longest + TAG if send is None else max(send.payload + HEADERS + TAG, SHORTEST)

    def _hold_up(self, port: Attachment, rate: int, occupied: int, run: Run) -> int:
        """The longest delay by other frames of a frame whose window is open, by the switch's traffic integration."""
        switch = self._campaign.network.nodes[port.node].kind
        if not isinstance(switch, Switch):
            return 0
        if switch.raster is not None:
            return switch.raster.slot * switch.raster.others + occupied
        integration = run.switches.integration or switch.integration
        longest = max([LONGEST, *(own.length for own in switch.own_frames)])
        octets = {"timely-block": 0, "preemption": PREAMBLE + GAP, "shuffling": PREAMBLE + longest + GAP}
        return _time(octets[integration], rate)

    def _release(self, runs: Sequence[tuple[Run, Flow]], period_ps: int) -> Release | None:
        """When messages are made; None where they are irregular, or runs differ."""
        found: set[Release] = set()
        for run, flow in runs:
            send = run.send_of.get(flow.id)
            if send is None or not _even(send) or send.before_dispatch is not None:
                return None
            step = math.gcd(send.period, period_ps)
            if step % self._grid:
                return None
            phase = (run.warm_up + send.offset) % step
            times = sending(self._campaign.network, flow.from_, self._stack, send.payload)
            cost = self._up(times.most + phase % self._grid)
            found.add(Release(phase // self._grid, step // self._grid, cost, self._up(times.varies)))
        return found.pop() if len(found) == 1 else None

    def _steady_wait(self, runs: Sequence[tuple[Run, Flow]]) -> int | None:
        """The longest time that messages are made before their dispatch; None if some run has no fixed time."""
        sends = [run.send_of.get(flow.id) for run, flow in runs]
        before = [
            send.before_dispatch for send in sends if send is not None and send.before_dispatch is not None
        ]
        return self._up(max(before)) if before and len(before) == len(sends) else None

    def _receive_cost(self, run: Run, flow: Flow) -> int:
        size = run.send_of[flow.id].payload if flow.id in run.send_of else 1500
        return max(
            (receiving(self._campaign.network, one, self._stack, size) for one in flow.receivers), default=0
        )

    @property
    def _stack(self) -> str:
        return "raw" if self._tagged else "tt"


def _even(send: Send) -> bool:
    plain = send.pattern is None or send.pattern.type == "periodic"
    return plain and send.activity is None and send.replay is None and send.rate_limit_bps is None


def load_of(problem: Problem, port: Attachment) -> Fraction:
    """The share of time in which windows of a port are open."""
    shares = (
        Fraction(window.length, demand.period)
        for demand in problem.demands
        for window in demand.windows
        if window.port == port
    )
    return sum(shares, Fraction(0))

"""Live figures of a running run: the sums that agents or a simulation give each second, combined by flow.

They are provisional: they come from the records as these are written, before any of them is tracked, and no verdict
rests on them. Where a value is uncertain they are on the safe side: a percentile is the upper edge of its bucket, and a
message that was sent long enough ago and has not been seen counts as lost until it is.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct, field

from wiregauge.plan import Run
from wiregauge.records.live import ClockNow, FlowNow, RunNow
from wiregauge.runner.live.network import NetworkFigures, NetworkSums

__all__ = ["Figures", "bucket_end_ns"]

_LEAST_SETTLE_NS: Final = 1_000_000_000
"""How long a message may be under way before it counts as lost, ns; the drain of the test where that is longer."""
_REMEMBERED_NS: Final = 30_000_000_000
"""The most that a receiver's report may lie behind that of its sender, ns."""
_PARTS: Final = 16
_LAST_BUCKET: Final = 639
"""Last bucket, for more than two hours; it includes all longer times."""


class FlowSums(Protocol):
    """Sums of one flow: `LiveFlow` of the control protocol, or from a simulation."""

    @property
    def flow(self) -> int: ...
    @property
    def sent(self) -> int: ...
    @property
    def refused(self) -> int: ...
    @property
    def received(self) -> int: ...
    @property
    def missing(self) -> int: ...
    @property
    def repeats(self) -> int: ...
    @property
    def late_ns(self) -> int: ...
    @property
    def arrives(self) -> bool: ...
    @property
    def round_trip(self) -> bool: ...
    @property
    def measured(self) -> int: ...
    @property
    def max_ns(self) -> int: ...
    @property
    def sum_ns(self) -> int: ...
    @property
    def buckets(self) -> Iterable[int]: ...
    @property
    def counts(self) -> Iterable[int]: ...
    @property
    def worst_ns(self) -> int: ...


class Sums(Protocol):
    """Sums of flows at one moment: `LiveFigures` of the control protocol, or from a simulation."""

    @property
    def number(self) -> int: ...
    @property
    def at_ns(self) -> int: ...
    @property
    def records_dropped(self) -> int: ...
    @property
    def flows_left_out(self) -> int: ...
    @property
    def flows(self) -> Iterable[FlowSums]: ...


class _Flow(Struct):
    source: str
    destination: str
    relayed: bool
    sent: int = 0
    refused: int = 0
    history: deque[tuple[int, int]] = field(default_factory=deque)
    """Times of reports, with the number sent by then."""
    received: int = 0
    missing: int = 0
    repeats: int = 0
    heard_ns: int = 0
    """Time up to which its receiver has reported arrivals, ns."""
    known: bool = False
    late_ns: int = 0
    buckets: Counter[int] = field(default_factory=Counter)
    measured: int = 0
    sum_ns: int = 0
    max_ns: int | None = None
    worst_ns: int = 0
    before: tuple[int, int] = (0, 0)
    """The received count at the last look, and the time of that look."""

    def take(self, told: FlowSums, at_ns: int, *, missed: bool, settle_ns: int) -> None:
        """Adds an agent's sums for this flow."""
        self.known = True
        if told.round_trip or not told.arrives:
            self.sent, self.refused = told.sent, told.refused
            self.late_ns = max(self.late_ns, told.late_ns)
            self.history.append((at_ns, told.sent))
            while len(self.history) > 2 and self.history[1][0] < at_ns - 4 * settle_ns - _REMEMBERED_NS:
                self.history.popleft()
        if not told.arrives:
            return
        self.received, self.missing, self.repeats = told.received, told.missing, told.repeats
        self.heard_ns = at_ns
        if told.measured:
            for bucket, count in zip(told.buckets, told.counts, strict=True):
                self.buckets[min(bucket, _LAST_BUCKET)] += count
            self.measured += told.measured
            self.sum_ns += told.sum_ns
            self.max_ns = told.max_ns if self.max_ns is None else max(self.max_ns, told.max_ns)
        # Figures of a second that did not come through: its longest time is known all the same.
        if missed and told.worst_ns > self.worst_ns:
            self.max_ns = max(self.max_ns or 0, told.worst_ns)
        self.worst_ns = max(self.worst_ns, told.worst_ns)

    def lost(self, settle_ns: int) -> int:
        """Messages passed over, or sent so long ago that they should have come."""
        due = max((sent for at, sent in self.history if at <= self.heard_ns - settle_ns), default=0)
        return max(self.missing - self.refused, due - self.received, 0)

    def now(self, number: int, settle_ns: int) -> FlowNow:
        """The current figures of this flow; starts the next second."""
        received, until = self.before
        passed_s = (self.heard_ns - until) / 1e9
        rate = (self.received - received) / passed_s if passed_s > 0 else 0.0
        shown = FlowNow(
            number,
            self.source,
            self.destination,
            "rtt" if self.relayed else "latency",
            self.sent,
            self.received,
            self.lost(settle_ns),
            self.repeats,
            rate,
            self.measured,
            self._quantile(0.5),
            self._quantile(0.99),
            self.sum_ns / self.measured if self.measured else None,
            None if self.max_ns is None else float(self.max_ns),
            self.late_ns,
        )
        self.before = (self.received, self.heard_ns)
        self.buckets.clear()
        self.measured = self.sum_ns = self.late_ns = 0
        self.max_ns = None
        return shown

    def _quantile(self, q: float) -> float | None:
        """Nearest rank, at the upper edge of its bucket."""
        if not self.measured or self.max_ns is None:
            return None
        left = q * self.measured
        for bucket in sorted(self.buckets):
            left -= self.buckets[bucket]
            if left <= 0:
                return float(min(bucket_end_ns(bucket), self.max_ns))
        return float(self.max_ns)


class Figures:
    """Combines the reports of a run's agents. `nodes` are the names of nodes, by number."""

    def __init__(self, position: int, run: Run, nodes: Sequence[str]) -> None:
        self._position, self._index = position, run.index
        self._settle_ns = max(_LEAST_SETTLE_NS, run.drain // 1000)
        relayed = {relay.flow for relay in run.relays}
        self._flows = {
            flow.id: _Flow(
                nodes[flow.from_], nodes[flow.to], flow.id in relayed, before=(0, run.warm_up // 1000)
            )
            for flow in run.flows
            if not flow.exchange
        }
        self._network = NetworkFigures(nodes)
        self._numbers: dict[str, int] = {}
        self._told: dict[str, tuple[int, int, int]] = {}

    def take(self, agent: str, told: Sums) -> None:
        """Adds the sums of one end system's agent; a report that is not newer than the last is ignored."""
        last = self._numbers.get(agent, 0)
        if told.number <= last:
            return
        self._numbers[agent] = told.number
        self._told[agent] = (told.at_ns, told.records_dropped, told.flows_left_out)
        for one in told.flows:
            flow = self._flows.get(one.flow)
            if flow is not None:
                flow.take(one, told.at_ns, missed=told.number > last + 1, settle_ns=self._settle_ns)

    def take_network(self, told: NetworkSums) -> None:
        """Adds the sums of whoever plays the network."""
        self._network.take(told)

    def now(self, host_clocks: tuple[ClockNow, ...] = ()) -> RunNow:
        """The run at this moment, with what is known of clocks of hosts; times are of messages since the last call."""
        told: Mapping[str, tuple[int, int, int]] = self._told
        return RunNow(
            self._position,
            self._index,
            max((at for at, _, _ in told.values()), default=0) / 1e9,
            tuple(flow.now(number, self._settle_ns) for number, flow in self._flows.items() if flow.known),
            sum(1 for flow in self._flows.values() if not flow.known),
            sum(dropped for _, dropped, _ in told.values()),
            self._network.ports(),
            (*host_clocks, *self._network.clocks()),
        )


def bucket_end_ns(bucket: int) -> int:
    """The upper end of a bucket of `LiveFlow`, ns: no time in it is longer."""
    following = bucket + 1
    edge = following if following < _PARTS else (_PARTS + following % _PARTS) << (following // _PARTS - 1)
    return edge - 1

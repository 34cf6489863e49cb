"""Evidence on a run for judging its validity, and construction of checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf, isinf

from msgspec import Struct, field

from wiregauge.measures.definitions.units import count_of
from wiregauge.measures.metrics.flow_plan import LimitPlan, RunPlan
from wiregauge.measures.metrics.judgement import Check, FlowResult, Grade
from wiregauge.measures.metrics.live_network import NetworkResult
from wiregauge.measures.metrics.measured_clock import ClockResult, WatchedClock
from wiregauge.measures.validity.calibration import Citation
from wiregauge.plan import Synchronise
from wiregauge.records.reported import AccessPoint, AgentReport, ClockGate, RunEntry, TaskReport, TrackedRun


class Evidence(Struct, frozen=True):
    """The evidence on a run for judging its validity."""

    plan: RunPlan
    state: str
    reason: str | None
    agents: Mapping[str, AgentReport]
    clock_uncertainty_ns: float | None
    """The greatest between the ends of a flow; None where the clocks of no flow were compared."""
    clocks_missing: Sequence[str]
    flows: Sequence[FlowResult]
    tracked: bool
    unplanned: Mapping[str, int]
    tracking: TrackedRun | None
    """The run's entry of tracking.json; None without one."""
    records_written: int
    """Records written, as reported by the agents or the simulation."""
    contradictions: Sequence[str]
    node_names: Sequence[str] = ()
    """Node names by index in the plan."""
    virtual_time: bool = False
    """Whether it is a simulation: no host took part, so checks of hosts are reported as not applicable."""
    wrong_clocks: Mapping[str, float] = field(default_factory=dict)
    """The largest error, by node, of clocks that the test makes imperfect and that were not compared, ns."""
    clocks: Sequence[ClockResult] = ()
    clocks_uncompared: Sequence[str] = ()
    """Nodes that exchanges were planned with but none came back from."""
    synchronise: Synchronise | None = None
    watched: Sequence[WatchedClock] = ()
    clock_gate: ClockGate | None = None
    """Whether clocks were fit before the run, and the reason if not; None where no program kept them."""
    captures: Mapping[str, TaskReport] = field(default_factory=dict)
    """Capture reports by node."""
    calibrations: Sequence[Citation] | None = None
    """Calibrations that the run cites; None where they were never looked up."""
    tapped: bool = False
    """Whether the run was made from captures: events at its ends are those that taps saw."""
    entry: RunEntry = field(default_factory=RunEntry)
    """The run's entry of the manifest."""
    switches: str = ""
    """Player of the network between the end systems, as in the traits."""
    network: NetworkResult | None = None
    """Report of the agent that plays the network; None where none does, or it left no report."""
    limits: Sequence[LimitPlan] = ()
    """Limits of the test."""

    @property
    def gaps(self) -> tuple[Mapping[str, object], ...]:
        """Gaps in the records, as given to tracking."""
        return self.tracking.gaps if self.tracking is not None else ()

    @property
    def access_points(self) -> list[AccessPoint]:
        """The sockets of all agents."""
        return [point for agent in self.agents.values() for point in agent.access_points]

    def total(self, key: str) -> int:
        """Sum of a counter over the flows."""
        return sum(flow.counts.get(key, 0) for flow in self.flows)


def graded(share: float, degraded: float, invalid: float) -> Grade:
    if share > invalid:
        return Grade.INVALID
    return Grade.DEGRADED if share > degraded else Grade.OK


def share_of(part: float, whole: float | None) -> float:
    """Ratio of a part to a whole: 0 for no part, and infinite where the whole is 0, negative or unknown.

    The one place where checks divide: the reference of an error may be 0 or missing, and then no error is small.
    """
    if not part:
        return 0.0
    return part / whole if whole is not None and whole > 0 else inf


def typical_latency_ns(flows: Iterable[FlowResult]) -> float | None:
    """The least of the median latencies of flows, 0 and less included; None where no latency was measured.

    Of a flow with too few values for a median, its least value.
    """
    found = []
    for flow in flows:
        latency = flow.summaries["latency"]
        median = latency.value("p50")
        found.append(latency.minimum if median is None else median)
    return min((value for value in found if value is not None), default=None)


def check(
    name: str, title: str, limit: str, observed: str, grade: Grade, reason: str, *, nothing: str = ""
) -> Check:
    """A check in its final form; `nothing`: why there was nothing to look at, which shows nothing to be in order."""
    if nothing and grade <= Grade.OK:
        return Check(name, title, limit, f"not looked at: {nothing}", Grade.NOT_LOOKED_AT)
    return Check(name, title, limit, observed, grade, reason if grade > Grade.OK else "")


def unreported(found: Iterable[object]) -> str:
    """The reason why nothing is known of a figure that agents report; empty where at least one reports it."""
    return "" if any(one is not None for one in found) else "nobody reports it"


def untracked(found: object) -> str:
    """The reason why nothing is known of a figure of tracking.json; empty where it has it."""
    return "" if found is not None else "nothing was tracked"


def percent(share: float) -> str:
    return "more than any" if isinf(share) else f"{100 * share:.3g} %"


def few(texts: Iterable[str]) -> str:
    """The first three texts, and the number of the others."""
    each = list(texts)
    return "; ".join(each[:3]) + (f"; and {len(each) - 3} more" if len(each) > 3 else "")


LOST_INSIDE = "0; invalid when messages are lost too"
"""The limit of whatever the instrument itself loses."""


def lost_inside(run: Evidence, count: int) -> Grade:
    """The grade of a number of losses inside the instrument, to which missing messages may then be due.

    Where tracking knew of them, only certain losses are called lost, and limits take both cases.
    """
    if count == 0:
        return Grade.OK
    if run.gaps:
        return Grade.DEGRADED
    return Grade.INVALID if run.total("lost") else Grade.DEGRADED


def own_fault(run: Evidence) -> str:
    """A clause that missing messages may be the instrument's own fault; empty where none are missing."""
    unknown, lost = run.total("unknown"), run.total("lost")
    if run.gaps:
        return f", and {count_of(unknown, 'message')} may have arrived unseen" if unknown else ""
    return f", and {count_of(lost, 'message')} counted as lost may be its own fault" if lost else ""

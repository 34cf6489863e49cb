"""Results of judging a run directory. Plain data: figures and report read it and compute nothing.

Every time is in nanoseconds and signed; None means "not determined", and the reason is at hand in `excluded` or in
the checks. Nothing here is rounded; rounding is for the eye and happens where text is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeVar

import numpy as np
from msgspec import Meta, Struct, field
from numpy.typing import NDArray

from wiregauge.files.typed_json import HIDDEN, Count, Figure, Interval, Key, Positive, Share
from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.definitions.definition import Unit
from wiregauge.measures.definitions.units import count_of
from wiregauge.measures.metrics.flow_plan import CampaignPlan, FlowPlan, RunPlan
from wiregauge.measures.metrics.live_network import NetworkResult
from wiregauge.measures.metrics.measured_clock import ClockResult
from wiregauge.measures.metrics.pooling import ADDED, ALL, FIRST, MOST, SUM
from wiregauge.measures.metrics.sampling import Sampled
from wiregauge.measures.metrics.summary import Summary
from wiregauge.records import Traits, traits_of
from wiregauge.records.modelled import ClusterReport, CreditReport, PtpDomainReport
from wiregauge.records.reported import AgentReport
from wiregauge.stats.sketch import Sketch
from wiregauge.terminal import exits

Floats = NDArray[np.float64]
T_co = TypeVar("T_co", covariant=True)


class Grade(IntEnum):
    """Outcome of a validity check, in the order of gravity. A note never spoils a run.

    A check that had nothing to look at shows nothing: it is not OK, and adds nothing to a run either way.
    """

    NOT_LOOKED_AT = -1
    OK = 0
    NOTE = 1
    DEGRADED = 2
    INVALID = 3

    @property
    def word(self) -> str:
        """The word for reports: VALID, DEGRADED or INVALID."""
        return "VALID" if self <= Grade.NOTE else self.name

    @property
    def label(self) -> str:
        """The word for a single check: ok, note, degraded, invalid or not looked at."""
        return self.name.lower().replace("_", " ")


_Label = Annotated[
    str, Meta(extra_json_schema={"enum": ["ok", "note", "degraded", "invalid", "not looked at"]})
]
INDEPENDENT = "if losses are independent"
"""Assumption of a bound on none (or all) of n: with loss bursts of ten on average the bound is ten times as high."""


class Loss(Struct, frozen=True):
    """Share of messages lost with its 95 % bounds (one-sided when none or all were lost)."""

    ratio: Share | None
    low: Share
    high: Share
    one_sided: bool

    @property
    def assumption(self) -> Annotated[str, Key(after="one_sided", nullable=True)]:
        """The assumption behind the bounds; empty where the losses themselves show how they cluster."""
        return INDEPENDENT if self.one_sided else ""


class Series(Struct, frozen=True):
    """Values of one measure in measured order, ns, and when each message was sent, seconds after the run's epoch."""

    t: Floats
    value: Floats


class LineTime(Struct, frozen=True):
    """The fastest message of a flow compared with the time that links alone take (`line_time.line_time`)."""

    too_fast: bool
    """Whether it was faster than that: then the links of the bench do not have the rate of the plan."""
    text: str
    """Both times as text for people."""
    shown_by: str = ""
    """Name of another flow on the same links, whose times these are; empty: its own."""


class FiguresOfFlow(Protocol[T_co]):
    """The figures of a flow that one of `flow_measures` is about; of a flow without them they are `none`."""

    @property
    def name(self) -> str:
        """The name under which the figures are stored."""
        ...

    @property
    def none(self) -> T_co:
        """The value that stands for a flow without such figures."""
        ...


class FlowResult(Struct, frozen=True):
    """One flow at one receiver in one run, or in all repeats of a point pooled (`repeats` > 1)."""

    plan: Annotated[FlowPlan, FIRST]
    counts: Annotated[Mapping[str, int], ADDED]
    outcomes: Annotated[Mapping[str, int], ADDED]
    planned: Annotated[int, SUM]
    warm_up: Annotated[int, SUM]
    last_seen: Annotated[Mapping[str, int], ADDED]
    drop_reasons: Annotated[Mapping[str, int], ADDED]
    missing_send_records: Annotated[int, SUM]
    reorder_extent: Annotated[int, MOST]
    late_sends: Annotated[int, SUM]
    loss: Loss
    summaries: Mapping[str, Summary]
    series: Mapping[str, Series]
    figures: Mapping[str, Any] = field(default_factory=dict)
    """Further figures by name of `flow_measures`; `flow[GATES]` is that of one, with its type."""
    repeats: Annotated[int, SUM] = 1
    redundant_discarded: Annotated[int, SUM] = 0
    """Copies that the receiver removed because the copy of the other network came first."""
    unseen: Annotated[tuple[str, ...], FIRST] = ()
    """End systems of the flow without a tap: sends and losses there are unknown, whatever the counts show."""
    uncompared: str = ""
    """The reason why values between the clocks of its two ends are not determined; empty where they are."""
    clock_offset: tuple[float | None, float | None] | None = None
    """Range of receiver clock minus sender clock for such a flow, ns: least and most, as far as known."""
    lost_copies: Annotated[Mapping[str, int], ADDED] = field(default_factory=dict)
    """Copies that one of two networks did not deliver, by network."""
    clock_varies: Annotated[float, MOST] = 0.0
    """The most that the error of its clocks may differ between messages, ns; it enters differences of one-way times."""
    clock_wanders: Annotated[float, MOST] = 0.0
    """The most that this error may have drifted within the run, ns; it enters differences of times far apart."""
    lost_at_least: int = 0
    """Number of messages that are certainly lost, though frames of equal content may hide which."""
    came_at_least: int = 0
    """Number of messages that certainly arrived, likewise."""
    holes: str = ""
    """The reason why more messages may have been sent, and lost, than were seen; empty without one."""
    unsent_in_silences: Annotated[bool, ALL] = False
    """Whether sends that were due and never made are in the open silences of its arrivals (`silences.unsent`)."""
    settling: Annotated[int, SUM] = 0
    """Values at the beginning of the measured part that differ from the rest (`Settling`), added over repeats."""
    line_time: LineTime | None = None
    """None where it cannot be determined, and for pooled repeats."""
    in_time: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Ranges of figures with limits, by name, without the lateness of a played network; absent for figures without
    its lateness, and for other networks."""
    sampled: Sampled | None = None
    """The sample behind the series of a flow too large to be held in memory. None where they hold every message."""
    sketches: Mapping[str, Sketch] = field(default_factory=dict)
    """Distributions of the measures of such a flow, clocks corrected, ns: its summaries rest on them."""
    marks: Mapping[tuple[str, float], tuple[int, int]] = field(default_factory=dict)
    """For such a flow, by measure and value, ns: exact number of values below it, and at or below it."""

    def __getitem__(self, of: FiguresOfFlow[T_co]) -> T_co:
        """The figures of one of `flow_measures`."""
        found: T_co = self.figures.get(of.name, of.none)
        return found

    @property
    def lost(self) -> int:
        """Number of messages that are certainly lost, identified or not."""
        return max(self.counts["lost"], self.lost_at_least)

    @property
    def open_ended(self) -> int:
        """Number of further messages that may have been lost."""
        return max(self.counts["unknown"] - (self.lost - self.counts["lost"]), 0)

    @property
    def spread(self) -> Summary:
        """The distribution behind ranges and variations: the latency, or its excess over the minimum."""
        return self.summaries["delay_variation" if self.uncompared else "latency"]


class Load(Struct, frozen=True):
    """Background load of one end system, as shares of its link; `offered` None where its agent did not report."""

    on: str
    to: str
    intended: Positive
    offered: Figure
    arrived: Figure = None
    """The part of it that arrived at `to`; None where it was not counted."""
    sent_frames: Count | None = None
    arrived_frames: Count | None = None
    never_came: Annotated[
        Count | None, Meta(description="frames that reached neither their end nor a queue without room")
    ] = None
    dropped: Annotated[
        Mapping[str, Count] | None,
        Meta(
            description="frames that did not arrive, and copies that went astray, by how; null: nobody saw it"
        ),
    ] = None


class Check(Struct, frozen=True):
    """One validity check: the limit, the observation, and a sentence for the reader when it did not hold."""

    name: str
    title: Annotated[str, HIDDEN]
    limit: str
    observed: str
    grade: Annotated[Grade, Key(kind=_Label, read="grade.label")]
    reason: str = ""


class LimitResult(Struct, frozen=True, kw_only=True):
    """One limit of the test on one flow at one receiver in one run; figures in `unit`.

    The observed figure decides: a count or an extreme is what happened, and a percentile or mean is the figure of this
    run, whose 95 % interval (`low`, `high`; None where it has none, or on an open side) shows how far another run may
    lie off. `reason` explains an undecided result or a missing figure.
    """

    flow: int | None
    to: str | None
    """The receiver; None for a limit on the run as a whole."""
    subject: Annotated[str, HIDDEN]
    """The judged flow in words, of a multicast flow with its receiver, or the run."""
    measure: str
    bound: Annotated[str, Meta(extra_json_schema={"enum": ["at-most", "at-least"]})]
    written: str
    value: float
    observed: Figure = None
    line: Annotated[int, HIDDEN]
    unit: Unit
    result: Literal["pass", "fail", "undecided"]
    n: Count = 0
    of: Annotated[str, Key(nullable=True)] = ""
    """Plural noun for the events that could have shown the figure; empty for values."""
    among: Count = 0
    """Number of these events."""
    low: Annotated[float | None, HIDDEN] = None
    high: Annotated[float | None, HIDDEN] = None
    instrument: Annotated[tuple[float, float] | None, Key(kind=Interval | None, read=_closed)] = None
    """The range of the figure within the errors of clocks, timestamps and a late played network, infinite where nothing
    bounds it; None where they leave nothing open."""
    missing: Count = 0
    """Values that are not in the figure because the instrument did not see them."""
    reason: str = ""

    @property
    def interval(self) -> Annotated[Interval | None, Key(after="among")]:
        """The 95 % interval; None where the figure has none."""
        return [self.low, self.high] if (self.low, self.high) != (None, None) else None

    @property
    def holds(self) -> Annotated[bool, Key(after="missing")]:
        """Whether the limit certainly holds."""
        return self.result == "pass"

    @property
    def counted(self) -> str:
        """`of 1000 messages sent`: the basis of the figure; empty where it is values."""
        return f"of {self.among} {self.of}" if self.of else ""

    @property
    def margin(self) -> Annotated[Figure, Key(after="result")]:
        """The margin to the bound; negative where it is exceeded. None without a figure."""
        if self.observed is None:
            return None
        return self.value - self.observed if self.bound == "at-most" else self.observed - self.value

    @property
    def counts_losses(self) -> bool:
        """Whether every lost message counts against it."""
        found = DEFINITIONS.get(self.measure.partition(".")[0])
        if found is None or found.losses != "counted":
            return False
        return self.bound == ("at-least" if found.better == "higher" else "at-most")

    @property
    def straddled(self) -> bool:
        """Whether the bound lies within the interval of the figure: another run may well decide otherwise."""
        return self.low is not None and self.high is not None and self.low <= self.value <= self.high


def _closed(limit: LimitResult) -> list[float | None] | None:
    """The range that the instrument leaves, with None for an infinite end."""
    if limit.instrument is None:
        return None
    return [end if isfinite(end) else None for end in limit.instrument]


class RunResult(Struct, frozen=True):
    """One run: validity first, then limits."""

    plan: RunPlan
    state: str
    reason: str | None
    checks: tuple[Check, ...]
    flows: tuple[FlowResult, ...]
    limits: tuple[LimitResult, ...]
    unplanned: Mapping[str, int]
    agents: Mapping[str, AgentReport]
    started: str | None
    finished: str | None
    loads: tuple[Load, ...] = ()
    clocks: tuple[ClockResult, ...] = ()
    """Clocks that exchanges compared with the reference."""
    clusters: tuple[ClusterReport, ...] = ()
    """Devices that synchronise by AS6802."""
    ptp_domains: tuple[PtpDomainReport, ...] = ()
    """Clocks that synchronise by PTP in the simulator."""
    credits: tuple[CreditReport, ...] = ()
    """Credits of shaped queues in the simulator."""
    network: NetworkResult | None = None
    """The agent that is the network between the end systems, where one is."""

    @property
    def validity(self) -> Grade:
        """The gravest check."""
        return max((check.grade for check in self.checks), default=Grade.OK)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reasons why the run is not simply valid, gravest first."""
        bad = [check for check in self.checks if check.grade >= Grade.DEGRADED]
        return tuple(check.reason for check in sorted(bad, key=lambda check: -check.grade))

    @property
    def unlimited_losers(self) -> tuple[FlowResult, ...]:
        """Flows that lost messages, or may have, while no limit of the test counts that; none without limits."""
        if not self.limits:
            return ()
        limited = {(limit.flow, limit.to) for limit in self.limits if limit.counts_losses}
        return tuple(
            flow
            for flow in self.flows
            if not flow.unseen
            and flow.counts["lost"] + flow.counts["unknown"]
            and (flow.plan.id, flow.plan.destination) not in limited
        )

    @property
    def caveat(self) -> str:
        """A sentence on losses that no limit covers; empty where there are none."""
        return _caveat((self,))

    @property
    def verdict(self) -> str:
        """PASS, FAIL, NONE (no limits) or UNDECIDED: a limit could not be judged, as none can of an INVALID run."""
        return verdict_of(limit.result for limit in self.limits)


def verdict_of(results: Iterable[str]) -> str:
    """The verdict from the results of limits: NONE without any."""
    found = set(results)
    if not found:
        return "NONE"
    return "FAIL" if "fail" in found else "UNDECIDED" if "undecided" in found else "PASS"


def _caveat(runs: Sequence[RunResult]) -> str:
    """Losses of flows on which no limit counts them."""
    flows = [flow for run in runs for flow in run.unlimited_losers]
    if not flows:
        return ""
    sent, lost = sum(flow.counts["sent"] for flow in flows), sum(flow.lost for flow in flows)
    unknown = sum(flow.open_ended for flow in flows)
    names = tuple(dict.fromkeys(flow.plan.name for flow in flows))
    few = f"flow {names[0]}" if len(names) == 1 else f"{len(names)} flows"
    text = f"{lost} of {count_of(sent, 'message')} of {few} lost"
    if unknown:
        text += f", of {unknown} nobody can tell"
    return f"{text}, and no limit on lost"


class PointResult(Struct, frozen=True):
    """All repeats of one point of the sweep taken together."""

    point: Mapping[str, str]
    runs: tuple[int, ...]
    flows: tuple[FlowResult, ...]
    validity: Grade


class Judgement(Struct, frozen=True):
    """The complete result of judging a run directory."""

    directory: Path
    manifest: Mapping[str, object]
    plan: CampaignPlan
    state: str
    reason: str | None
    checks: tuple[Check, ...]
    runs: tuple[RunResult, ...]
    points: tuple[PointResult, ...]

    @property
    def traits(self) -> Traits:
        """The traits of the bench."""
        return traits_of(self.manifest)

    @property
    def seed(self) -> int | None:
        """The seed of the campaign, from its manifest."""
        seed = self.manifest.get("seed")
        return seed if isinstance(seed, int) else None

    @property
    def settings(self) -> tuple[str, ...]:
        """Attributes that were set outside the test's file, as they were written."""
        test = self.manifest.get("test")
        found = test.get("settings") if isinstance(test, dict) else None
        return tuple(map(str, found)) if isinstance(found, list) else ()

    @property
    def started(self) -> str | None:
        """The start time of the campaign, from its manifest."""
        started = self.manifest.get("started")
        return started if isinstance(started, str) else None

    @property
    def validity(self) -> Grade:
        """The worst of the campaign's own checks and of its runs."""
        own = max((check.grade for check in self.checks), default=Grade.OK)
        return max((own, *(run.validity for run in self.runs)))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Each distinct reason once, with the number of runs it holds for, gravest first."""
        found: dict[str, tuple[Grade, int, str]] = {}
        for check in self.checks:
            if check.grade >= Grade.DEGRADED:
                found[check.name] = (check.grade, 0, check.reason)
        total = len(self.runs)
        for run in self.runs:
            for check in run.checks:
                if check.grade < Grade.DEGRADED:
                    continue
                grade, count, reason = found.get(check.name, (Grade.OK, 0, ""))
                worse = check.grade > grade
                found[check.name] = (max(grade, check.grade), count + 1, check.reason if worse else reason)
        ordered = sorted(found.values(), key=lambda entry: (-entry[0], -entry[1]))
        return tuple(
            reason if count == 0 or total == 1 else f"{reason} ({count} of {total} runs)"
            for _, count, reason in ordered
        )

    @property
    def complete(self) -> bool:
        """Whether every planned run was run to its end."""
        return (
            self.state == "complete"
            and len(self.runs) == len(self.plan.runs)
            and all(run.state == "complete" for run in self.runs)
        )

    @property
    def answered(self) -> bool:
        """Whether all that was to be measured was, and is fit to judge; else there is no answer, whatever failed."""
        return self.complete and self.validity != Grade.INVALID

    @property
    def caveat(self) -> str:
        """The caveats of its runs."""
        return _caveat(self.runs)

    @property
    def verdict(self) -> str:
        """UNDECIDED where there is no answer or a limit could not be judged; else FAIL, PASS or NONE (no limits)."""
        if not self.plan.limits:
            return "NONE"
        verdicts = {run.verdict for run in self.runs}
        if not self.answered:
            return "UNDECIDED"
        return "FAIL" if "FAIL" in verdicts else "PASS" if verdicts == {"PASS"} else "UNDECIDED"

    @property
    def exit_code(self) -> int:
        """The exit code of a command that judged; INVALID is no answer, with limits or without."""
        return exits.exit_code(
            answered=self.answered,
            failed=self.verdict == "FAIL",
            undecided=self.verdict == "UNDECIDED",
        )

"""What comparing yields. Plain data, unrounded: times in ns, shares of 1; figures and pages compute nothing of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from wiregauge.measures.comparing.thresholds import Threshold
from wiregauge.measures.results import FlowResult, Judgement, PointResult
from wiregauge.stats import Estimate
from wiregauge.terminal import exits

Verdict = Literal["better", "same", "worse", "undecided"]
Basis = Literal["identical", "equivalent", "no-difference", "significant", "beyond-threshold", "open"]


@dataclass(frozen=True, slots=True)
class Shift:
    """How far one figure moved from base to new.

    `base` and `new` carry 95 % intervals from sampling. `shift` is new - base with its 95 % interval, `joint` the same
    at the level at which all judged figures hold together; both include `instrument`, the bound of clock and stamp
    errors of the two sides. `verdict` is None for a figure that is shown and not judged.
    """

    statistic: str
    base: Estimate
    new: Estimate
    shift: Estimate
    joint: Estimate
    instrument: float
    tolerance: float | None = None
    written: str | None = None
    verdict: Verdict | None = None
    basis: Basis | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """What one side has of a measure: values, what they are worth for the median, and the extremes."""

    n: int
    n_effective: float
    minimum: float
    maximum: float


@dataclass(frozen=True, slots=True)
class MeasureShift:
    """One measure of a flow on both sides: mean, deviation, shift function. `identical`: the very same values."""

    measure: str
    base: Side
    new: Side
    identical: bool
    mean: Shift
    sd: Shift
    quantiles: tuple[Shift, ...]

    @property
    def shifts(self) -> tuple[Shift, ...]:
        """The mean, the standard deviation and every quantile."""
        return (self.mean, self.sd, *self.quantiles)

    def shift(self, statistic: str) -> Shift | None:
        """The shift of one statistic; None where n does not support it on both sides."""
        return next((shift for shift in self.shifts if shift.statistic == statistic), None)


@dataclass(frozen=True, slots=True)
class ShareShift:
    """What happened to a share of the sent messages. `clustered`: messages per independent event."""

    counter: str
    base_count: int
    base_n: int
    new_count: int
    new_n: int
    clustered: float
    shift: Shift


@dataclass(frozen=True, slots=True)
class FlowComparison:
    """One flow beside its partner. `said` is what differs between the two besides the figures."""

    base: FlowResult
    new: FlowResult
    matched_by: str
    said: tuple[str, ...]
    measures: Mapping[str, MeasureShift]
    shares: Mapping[str, ShareShift]
    only_base: tuple[str, ...]
    only_new: tuple[str, ...]
    verdict: Verdict
    reason: str

    @property
    def label(self) -> str:
        """The flow by its number on the base side, and on the new one where it differs."""
        own, other = self.base.plan.name, self.new.plan.name
        return own if own == other else f"{own} → {other}"

    @property
    def rates(self) -> dict[str, tuple[float | None, float | None]]:
        """Goodput and effective bandwidth of either side, bit/s; they carry no interval and are not judged."""
        return {
            "throughput": (self.base.goodput, self.new.goodput),
            "effective_bandwidth": (self.base.effective_bandwidth, self.new.effective_bandwidth),
        }

    @property
    def judged(self) -> tuple[tuple[str, Shift], ...]:
        """Every judged figure with its name, as in latency.p99."""
        found = [
            (f"{measure.measure}.{shift.statistic}", shift)
            for measure in self.measures.values()
            for shift in measure.shifts
        ]
        found += [(share.counter, share.shift) for share in self.shares.values()]
        return tuple((name, shift) for name, shift in found if shift.verdict is not None)


@dataclass(frozen=True, slots=True)
class PointComparison:
    """Two points beside each other; `axes` is what they have in common."""

    base: PointResult
    new: PointResult
    axes: Mapping[str, str]
    flows: tuple[FlowComparison, ...]
    only_base: tuple[FlowResult, ...]
    only_new: tuple[FlowResult, ...]

    @property
    def title(self) -> str:
        """The common axes as text."""
        return ", ".join(f"{name} {value}" for name, value in self.axes.items())


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two run directories side by side."""

    base: Judgement
    new: Judgement
    names: tuple[str, str]
    base_at: Mapping[str, str]
    new_at: Mapping[str, str]
    points: tuple[PointComparison, ...]
    only_base: tuple[PointResult, ...]
    only_new: tuple[PointResult, ...]
    said: tuple[str, ...]
    unfit: tuple[str, ...]
    thresholds: tuple[Threshold, ...]
    equivalence: bool
    judged: int
    level: float
    joint_level: float

    @property
    def flows(self) -> tuple[FlowComparison, ...]:
        """Every compared flow of every point."""
        return tuple(flow for point in self.points for flow in point.flows)

    @property
    def besides(self) -> tuple[str, ...]:
        """All that differs besides figures: of the campaigns, then of the paired flows, alike ones in one sentence."""
        found: dict[str, list[str]] = {}
        for flow in self.flows:
            for line in flow.said:
                found.setdefault(line, []).append(flow.label)
        return (
            *self.said,
            *(
                f"flow {', '.join(dict.fromkeys(labels))}: {line}"
                + (f" (at {len(labels)} points)" if len(labels) > len(set(labels)) else "")
                for line, labels in found.items()
            ),
        )

    @property
    def verdict(self) -> Verdict:
        """The verdicts of all flows as one; undecided when a side is not fit to compare."""
        return "undecided" if self.unfit else combined([flow.verdict for flow in self.flows])

    @property
    def exit_code(self) -> int:
        """No answer where a side is unfit; what a threshold names, or an equivalence, can be undecided."""
        named = [shift for flow in self.flows for _, shift in flow.judged if shift.tolerance is not None]
        return exits.exit_code(
            answered=not self.unfit,
            failed=self.verdict == "worse" or (self.equivalence and self.verdict == "better"),
            undecided=any(shift.verdict == "undecided" for shift in named)
            or (self.equivalence and self.verdict == "undecided"),
        )


def combined(verdicts: list[Verdict]) -> Verdict:
    """One verdict of several: anything worse makes it worse, else anything undecided, else anything better."""
    for verdict in ("worse", "undecided", "better"):
        if verdict in verdicts:
            return verdict
    return "same" if verdicts else "undecided"

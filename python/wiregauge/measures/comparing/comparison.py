"""Results of a comparison. Plain data, unrounded: times in ns, shares of 1; figures and pages compute nothing of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from wiregauge.files.typed_json import HIDDEN, Count, Figure, Key, Positive, Share
from wiregauge.measures.comparing.thresholds import TAIL, Threshold
from wiregauge.measures.definitions import SINGLES
from wiregauge.measures.metrics.judgement import FlowResult, Judgement, PointResult
from wiregauge.measures.quantities import figure_of
from wiregauge.stats import Estimate
from wiregauge.terminal import exits

Verdict = Literal["better", "same", "worse", "undecided"]
Basis = Literal[
    "identical",
    "equivalent",
    "no-difference",
    "significant",
    "beyond-threshold",
    "open",
    "few-events",
    "out-of-reach",
    "sweep",
    "unfit",
]


_PERCENTILES = Meta(extra_json_schema={"propertyNames": {"pattern": "^p[0-9.]+$"}})


class Shift(Struct, frozen=True):
    """The shift of one figure from base to new.

    `base` and `new` carry 95 % intervals from sampling. `shift` is new - base with its 95 % interval, `joint` the same
    at the level at which all judged figures hold together; both include `instrument`, the bound of clock and timestamp
    errors of the two sides. `verdict` is None for a figure that is shown and not judged.

    Without a threshold a judged figure has the `chance` of so great a change when nothing changed, and, where none was
    found, the change that would have been: `detectable`, with a probability of `stats.POWER`, were it the only one.
    `beyond` is the basis for a quantile or the maximum: a value, and the messages beyond it on either side. For the
    maximum `detectable` is the share of messages that would have been found beyond all of the other side.
    """

    statistic: Annotated[str, HIDDEN]
    base: Estimate
    new: Estimate
    shift: Estimate
    joint: Estimate
    instrument: Positive
    tolerance: Annotated[Figure, Key("threshold")] = None
    written: Annotated[str | None, HIDDEN] = None
    verdict: Verdict | None = None
    basis: Basis | None = None
    chance: Annotated[Figure, Key("p")] = None
    detectable: Figure = None
    beyond: Beyond | None = None

    @property
    def of_share(self) -> bool:
        """Whether `detectable` is a share of the messages rather than a time."""
        return self.statistic in ("share", TAIL)

    @property
    def relative(self) -> float:
        """The absolute shift relative to the base value."""
        return abs(self.shift.value) / max(abs(self.base.value), 1e-12)

    @property
    def weight(self) -> tuple[bool, float]:
        """Sort key of figures by relative shift; the maximum, which scatters most, comes last."""
        return self.statistic != TAIL, self.relative

    @property
    def shown(self) -> Estimate:
        """The interval that goes with the verdict: the joint one where a threshold is held against it, else its own."""
        return self.joint if self.tolerance is not None else self.shift


class Beyond(Struct, frozen=True):
    """Messages above `value` (or at it, too: `within`) on either side; `clustered`: messages per independent event."""

    value: float
    within: Annotated[bool, Key("inclusive")]
    base_count: Count
    base_n: Count
    new_count: Count
    new_n: Count
    clustered: Annotated[float, Meta(ge=1)]


class Dropped(Struct, frozen=True):
    """A figure that belongs to the question but could not be compared; `asked`: a threshold names it."""

    text: str
    asked: bool


class SweepShift(Struct, frozen=True):
    """A figure of a flow over all points of its sweep together, which changed; `decided`: at how many points alone."""

    flow: str
    figure: str
    points: Annotated[int, Meta(ge=2)]
    decided: Count
    chance: Annotated[Share, Key("p")]
    verdict: Verdict


class Side(Struct, frozen=True):
    """A measure on one side: number of values, effective number for the median, and the extremes."""

    n: Count
    n_effective: float
    minimum: Annotated[float, Key("min")]
    maximum: Annotated[float, Key("max")]


class MeasureShift(Struct, frozen=True):
    """One measure of a flow on both sides: mean, deviation, shift function. `identical`: identical values."""

    measure: Annotated[str, Key("unit", kind=Literal["ns"], read=lambda _: "ns")]
    identical: bool
    base: Side
    new: Side
    mean: Shift
    sd: Shift
    greatest: Annotated[Shift, Key("max")]
    quantiles: Annotated[tuple[Shift, ...], HIDDEN]

    @property
    def by_name(self) -> Annotated[dict[str, Shift], _PERCENTILES, Key("quantiles", after="max")]:
        """The quantiles by their names."""
        return {shift.statistic: shift for shift in self.quantiles}

    @property
    def shifts(self) -> tuple[Shift, ...]:
        """The mean, the standard deviation, the greatest value and every quantile."""
        return (self.mean, self.sd, self.greatest, *self.quantiles)

    def shift(self, statistic: str) -> Shift | None:
        """The shift of one statistic; None where n does not support it on both sides."""
        return next((shift for shift in self.shifts if shift.statistic == statistic), None)


class ShareShift(Struct, frozen=True):
    """The change of a share of the sent messages. `clustered`: messages per independent event."""

    counter: Annotated[str, Key("unit", kind=Literal["share"], read=lambda _: "share")]
    base_count: Count
    base_n: Count
    new_count: Count
    new_n: Count
    clustered: Annotated[float, Meta(ge=1)]
    shift: Annotated[Shift, Key(flat=True)]

    @property
    def counted(self) -> str:
        """The counts of both sides, and the number of independent events where messages were affected together."""
        text = f"{self.base_count} of {self.base_n} → {self.new_count} of {self.new_n}"
        together = self.base_count + self.new_count
        events = max(1, round(together / self.clustered))
        if events == together:
            return text
        return f"{text}, worth {events} event{'s' if events > 1 else ''}"


class FlowComparison(Struct, frozen=True):
    """A pair of flows compared. `said` lists their differences besides the figures.

    Where it is not shown `in_full`, `measures` are only the judged ones, with the judged figures.
    """

    base: FlowResult
    new: FlowResult
    matched_by: str
    said: tuple[str, ...]
    measures: Mapping[str, MeasureShift]
    shares: Mapping[str, ShareShift]
    only_base: tuple[str, ...]
    only_new: tuple[str, ...]
    dropped: tuple[Dropped, ...]
    verdict: Verdict
    reason: str
    in_full: bool = True

    @property
    def deciding(self) -> tuple[str, Shift] | None:
        """The largest shift among the figures that have the flow's verdict; None where all are "same"."""
        found = [(name, shift) for name, shift in self.judged if shift.verdict == self.verdict != "same"]
        return max(found, key=lambda entry: entry[1].weight, default=None)

    @property
    def detectable(self) -> tuple[str, float] | None:
        """The time figure in which the greatest change could have gone unseen, and how great, ns; None without one."""
        found = [
            (name, shift.detectable)
            for name, shift in self.judged
            if not shift.of_share and shift.basis == "no-difference" and shift.detectable is not None
        ]
        return max(found, key=lambda entry: entry[1], default=None)

    @property
    def unseen_tail(self) -> float | None:
        """The share of the messages that could lie beyond all of the other side undetected; None where none was
        judged."""
        found = [
            shift.detectable
            for _, shift in self.judged
            if shift.statistic == TAIL and shift.basis == "no-difference" and shift.detectable is not None
        ]
        return max(found, default=None)

    @property
    def label(self) -> str:
        """The flow by its number on the base side, and on the new one where it differs."""
        own, other = self.base.plan.name, self.new.plan.name
        return own if own == other else f"{own} → {other}"

    @property
    def rates(self) -> dict[str, tuple[float | None, float | None]]:
        """Goodput and the single figures of either side, in their units; they are not judged."""
        singles = {
            name: (figure_of(self.base, name).value, figure_of(self.new, name).value) for name in SINGLES
        }
        return {
            "goodput": (figure_of(self.base, "goodput").value, figure_of(self.new, "goodput").value),
            **singles,
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


class PointComparison(Struct, frozen=True):
    """A pair of points compared; `axes` are the values that both share."""

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


class Comparison(Struct, frozen=True):
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
    rate: float
    sweeps: tuple[SweepShift, ...]
    alone: tuple[Dropped, ...]

    @property
    def flows(self) -> tuple[FlowComparison, ...]:
        """Every compared flow of every point."""
        return tuple(flow for point in self.points for flow in point.flows)

    @property
    def in_full(self) -> Comparison:
        """The comparison with only the flows that are shown in full: all, unless there are very many. Verdicts
        remain those of all."""
        if all(flow.in_full for flow in self.flows):
            return self
        points = [
            replace(point, flows=tuple(flow for flow in point.flows if flow.in_full)) for point in self.points
        ]
        return replace(self, points=tuple(points))

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
                f"flow {_listed(list(dict.fromkeys(labels)))}: {line}"
                + (f" (at {len(labels)} points)" if len(labels) > len(set(labels)) else "")
                for line, labels in found.items()
            ),
        )

    @property
    def benches(self) -> str:
        """The two benches where they differ, as in `sim against netns`; else empty."""
        one, other = (str(side.manifest.get("bench", "?")) for side in (self.base, self.new))
        return f"{one} against {other}" if one != other else ""

    @property
    def verdict(self) -> Verdict:
        """The verdicts of flows and sweeps as one; undecided when a side is unfit, or lacks something of the other."""
        if self.unfit:
            return "undecided"
        words = [flow.verdict for flow in self.flows] + [sweep.verdict for sweep in self.sweeps]
        return combined(words + ["undecided"] * bool(self.alone))

    @property
    def open(self) -> bool:
        """Whether a figure that every comparison or a threshold needs is undecided."""
        shifts = [shift for flow in self.flows for _, shift in flow.judged]
        dropped = [part for flow in self.flows for part in flow.dropped]
        return (
            any(unanswered(shift.statistic, shift.verdict, shift.basis, shift.tolerance) for shift in shifts)
            or any(not flow.judged and not flow.dropped for flow in self.flows)
            or any(part.asked for part in (*dropped, *self.alone))
        )

    @property
    def exit_code(self) -> int:
        """The exit code: no answer where a side is unfit, or a required figure is undecided."""
        return exits.exit_code(
            answered=not self.unfit,
            failed=self.verdict == "worse" or (self.equivalence and self.verdict == "better"),
            undecided=self.open or (self.equivalence and self.verdict == "undecided"),
        )


def unanswered(statistic: str, verdict: Verdict | None, basis: Basis | None, tolerance: float | None) -> bool:
    """Whether an undecided figure leaves the comparison without an answer.

    A figure named by a threshold does; so do a mean over too few values, and messages affected in too few events. An
    undecided highest percentile leaves those below it.
    """
    if verdict != "undecided":
        return False
    untold = basis in ("open", "out-of-reach") and statistic == "mean"
    return tolerance is not None or basis == "few-events" or untold


_MOST_LABELS = 100
"""Flows that are named in one sentence."""


def _listed(labels: Sequence[str]) -> str:
    left = len(labels) - _MOST_LABELS
    return ", ".join(labels[:_MOST_LABELS]) + (f" and {left} more" if left > 0 else "")


def combined(verdicts: Sequence[Verdict]) -> Verdict:
    """One verdict of several: anything worse makes it worse, else anything undecided, else anything better."""
    order: tuple[Verdict, ...] = ("worse", "undecided", "better")
    return next((word for word in order if word in verdicts), "same" if verdicts else "undecided")

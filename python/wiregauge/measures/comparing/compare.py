"""Lays two judged run directories side by side: pairs points and flows, shifts every figure, judges the shifts.

Two passes, because the intervals that judge are as wide as the number of judged figures makes them: the first pairs
and counts, the second computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from wiregauge import stats
from wiregauge.measures.comparing.evidence import Evidence, instrument_bound, statistic_of, widened
from wiregauge.measures.comparing.matching import (
    FlowPair,
    MatchError,
    PointPair,
    match_flows,
    match_points,
)
from wiregauge.measures.comparing.results import (
    Basis,
    Comparison,
    FlowComparison,
    MeasureShift,
    PointComparison,
    ShareShift,
    Shift,
    Side,
    Verdict,
    combined,
)
from wiregauge.measures.comparing.said import differences, flow_differences
from wiregauge.measures.comparing.thresholds import (
    SHARES,
    SHIFT_QUANTILES,
    Threshold,
    chosen,
)
from wiregauge.measures.definitions import SERIES
from wiregauge.measures.results import FlowResult, Grade, Judgement, PointResult
from wiregauge.stats import Estimate

LEVEL = 0.95

JUDGED = ("latency", "rtt")
"""Measures judged without being asked to; the others are parts of them, or say what the sender did."""

JUDGED_STATISTICS = frozenset({"mean", "p10", "p50", "p90", "p99", "p99.9", "p99.99", "p99.999"})
"""Their statistics judged unasked: neighbouring deciles say the same, and each more would widen all others."""

LOWER_IS_BETTER = frozenset(
    {
        "latency",
        "driver_latency",
        "service_latency",
        "return_latency",
        "rtt",
        "stack_down",
        "network",
        "stack_up",
        "turnaround",
        "send_error",
        "delay_variation",
        "lateness",
        "residence",
        "skew",
        "bag_jitter",
        *SHARES,
    }
)

UNDIRECTED = frozenset({"period", "receive_period", "ipdv", "bag_spacing", "window_error"})
"""Periods, spacings and signed errors: no direction is better, so beyond its threshold a change is worse."""


@dataclass(frozen=True, slots=True)
class _Rules:
    """How shifts are judged: thresholds, whether nothing else is, and the level at which all hold together."""

    thresholds: Sequence[Threshold]
    equivalence: bool
    joint_level: float = LEVEL

    def threshold(self, pair: FlowPair, measure: str, statistic: str | None) -> Threshold | None:
        return chosen(self.thresholds, (pair.base.plan.id, pair.new.plan.id), measure, statistic)

    def judges(self, pair: FlowPair, measure: str, statistic: str | None) -> bool:
        """A threshold takes the place of the default for its whole measure; what it does not name is shown only."""
        if self.threshold(pair, measure, statistic) is not None:
            return True
        if self.equivalence or self.spoken(pair, measure):
            return False
        if statistic is None:
            # Where nothing happened on either side nothing could have been found (Tarone, Biometrics 46, 1990).
            return bool(pair.base.counts[measure] or pair.new.counts[measure])
        return measure in JUDGED and statistic in JUDGED_STATISTICS

    def spoken(self, pair: FlowPair, measure: str) -> bool:
        """Whether a threshold is about the measure at all."""
        flows = (pair.base.plan.id, pair.new.plan.id)
        return any(t.measure == measure and (t.flow is None or t.flow in flows) for t in self.thresholds)


def compare(
    base: Judgement,
    new: Judgement,
    *,
    thresholds: Sequence[Threshold] = (),
    equivalence: bool = False,
    base_at: Mapping[str, str] | None = None,
    new_at: Mapping[str, str] | None = None,
) -> Comparison:
    """Compares two judged run directories, point by point and flow by flow.

    Raises MatchError, whose text is a sentence for the user, when no point or no flow of one belongs to one of the
    other, or when a threshold names what neither has.
    """
    base_at, new_at = base_at or {}, new_at or {}
    matched = match_points(base, new, base_at, new_at)
    paired = [(pair, *match_flows(pair.base.flows, pair.new.flows)) for pair in matched.pairs]
    flow_pairs = [pair for _, pairs, _, _ in paired for pair in pairs]
    if not flow_pairs:
        raise MatchError(_nothing(base, new))
    unmet = [t for t in thresholds if not any(_meets(t, pair) for pair in flow_pairs)]
    if unmet:
        flow = f"flow {unmet[0].flow}: " if unmet[0].flow is not None else ""
        raise MatchError(
            f"{flow}no compared flow has {unmet[0].measure} on both sides, so its threshold of "
            f"{unmet[0].written} would judge nothing; leave it out"
        )
    rules = _Rules(thresholds, equivalence)
    judged = sum(_count(pair, rules) for pair in flow_pairs)
    rules = _Rules(thresholds, equivalence, stats.simultaneous(LEVEL, judged))
    sides = _Sides(Evidence(base), Evidence(new))
    points = tuple(_point(pair, flows, alone, fresh, rules, sides) for pair, flows, alone, fresh in paired)
    return Comparison(
        base=base,
        new=new,
        names=_names(base, new, base_at, new_at),
        base_at=base_at,
        new_at=new_at,
        points=points,
        only_base=matched.only_base,
        only_new=matched.only_new,
        said=(*matched.notes, *differences(base, new)),
        unfit=_unfit(base, new, points),
        thresholds=tuple(thresholds),
        equivalence=equivalence,
        judged=judged,
        level=LEVEL,
        joint_level=rules.joint_level,
    )


def _nothing(base: Judgement, new: Judgement) -> str:
    def has(judgement: Judgement) -> str:
        flows = {
            f"{f.plan.name} ({f.plan.source} to {f.plan.destination})"
            for p in judgement.points
            for f in p.flows
        }
        points = [", ".join(f"{k} {v}" for k, v in p.point.items()) for p in judgement.points]
        where = "; ".join(points[:4]) + ("; …" if len(points) > 4 else "") if any(points) else "one point"
        return f"{judgement.directory} has flow {', '.join(sorted(flows)) or 'none'} at {where}"

    return (
        f"nothing to compare: no flow was measured at the same point on both sides; {has(base)}; {has(new)}"
    )


def _names(
    base: Judgement, new: Judgement, base_at: Mapping[str, str], new_at: Mapping[str, str]
) -> tuple[str, str]:
    """Short names of the sides that tell them apart: the directories' own, else their paths, and what was chosen."""
    first, second = base.directory.resolve(), new.directory.resolve()
    short = first.name != second.name
    names = []
    for directory, at in ((first, base_at), (second, new_at)):
        chosen_text = ", ".join(f"{name} {value}" for name, value in at.items())
        text = directory.name if short or (first == second and base_at != new_at) else str(directory)
        names.append(f"{text} ({chosen_text})" if chosen_text else text)
    return names[0], names[1]


def _unfit(base: Judgement, new: Judgement, points: Sequence[PointComparison]) -> tuple[str, ...]:
    """Why a side cannot be relied on: its campaign is not whole, or a compared point is INVALID."""
    found = [
        f"{which} ({judgement.directory}) is incomplete: {judgement.reason or 'not every planned run ran to its end'}"
        for which, judgement in (("base", base), ("new", new))
        if not judgement.complete
    ]
    for which in ("base", "new"):
        sides: list[PointResult] = [getattr(point, which) for point in points]
        bad = [side for side in sides if side.validity == Grade.INVALID]
        if bad:
            judgement = base if which == "base" else new
            why = next(
                (reason for run in judgement.runs if run.plan.index in bad[0].runs for reason in run.reasons),
                "",
            )
            found.append(
                f"{which} ({judgement.directory}): {len(bad)} of {len(sides)} compared points are INVALID"
                + (f": {why}" if why else "")
            )
    return tuple(found)


def _meets(threshold: Threshold, pair: FlowPair) -> bool:
    flows = (pair.base.plan.id, pair.new.plan.id)
    if threshold.flow is not None and threshold.flow not in flows:
        return False
    return threshold.measure in SHARES or threshold.measure in _common(pair)


def _common(pair: FlowPair) -> list[str]:
    return [name for name in SERIES if _has(pair.base, name) and _has(pair.new, name)]


def _has(flow: FlowResult, measure: str) -> bool:
    return measure in flow.summaries and flow.summaries[measure].n > 0


def _supported(pair: FlowPair, measure: str) -> list[str]:
    """Quantiles that n supports on both sides, at the lower tail as at the upper."""
    n = min(pair.base.summaries[measure].n, pair.new.summaries[measure].n)
    return [name for name, q in SHIFT_QUANTILES.items() if stats.supported(n, max(q, 1 - q))]


def _count(pair: FlowPair, rules: _Rules) -> int:
    """Judged figures of a pair of flows."""
    figures: list[tuple[str, str | None]] = [
        (name, statistic) for name in _common(pair) for statistic in ("mean", "sd", *_supported(pair, name))
    ]
    if pair.base.counts["sent"] and pair.new.counts["sent"]:
        figures += [(name, None) for name in SHARES]
    return sum(rules.judges(pair, name, statistic) for name, statistic in figures)


@dataclass(frozen=True, slots=True)
class _Sides:
    """What both sides measured."""

    base: Evidence
    new: Evidence


def _point(
    pair: PointPair,
    flows: Sequence[FlowPair],
    only_base: Sequence[FlowResult],
    only_new: Sequence[FlowResult],
    rules: _Rules,
    sides: _Sides,
) -> PointComparison:
    compared = tuple(_flow(pair, flow, rules, sides) for flow in flows)
    return PointComparison(pair.base, pair.new, pair.axes, compared, tuple(only_base), tuple(only_new))


def _flow(point: PointPair, pair: FlowPair, rules: _Rules, sides: _Sides) -> FlowComparison:
    measures = {name: _measure(name, point, pair, rules, sides) for name in _common(pair)}
    shares = {}
    if pair.base.counts["sent"] and pair.new.counts["sent"]:
        shares = {name: _share(name, point, pair, rules, sides) for name in SHARES}
    shifts = [shift for measure in measures.values() for shift in measure.shifts]
    shifts += [share.shift for share in shares.values()]
    verdicts = [shift.verdict for shift in shifts if shift.verdict is not None]
    unfit = [which for which in ("base", "new") if getattr(point, which).validity == Grade.INVALID]
    verdict, reason = combined(verdicts), ""
    if unfit:
        verdict, reason = "undecided", f"the point is INVALID on the {' and the '.join(unfit)} side"
    elif not verdicts:
        reason = "no judged figure has enough values on both sides"
    return FlowComparison(
        base=pair.base,
        new=pair.new,
        matched_by=pair.by,
        said=flow_differences(pair.base, pair.new),
        measures=measures,
        shares=shares,
        only_base=tuple(n for n in SERIES if _has(pair.base, n) and not _has(pair.new, n)),
        only_new=tuple(n for n in SERIES if _has(pair.new, n) and not _has(pair.base, n)),
        verdict=verdict,
        reason=reason,
    )


def _measure(name: str, point: PointPair, pair: FlowPair, rules: _Rules, sides: _Sides) -> MeasureShift:
    series = sides.base.series(point.base, pair.base, name), sides.new.series(point.new, pair.new, name)
    samples = stats.Sample(series[0]), stats.Sample(series[1])
    identical = len(series[0]) == len(series[1]) and all(map(np.array_equal, *series))
    bound = instrument_bound(pair.base, name) + instrument_bound(pair.new, name)

    def shift(statistic: str) -> Shift:
        def estimate(side: int, level: float) -> Estimate:
            return statistic_of(samples[side], statistic, level)

        # A clock that is off by a constant moves every value and spreads none.
        instrument = bound if statistic != "sd" else 0.0
        base, new = estimate(0, LEVEL), estimate(1, LEVEL)
        plain = stats.difference(base, new)
        judged = rules.judges(pair, name, statistic)
        joint = plain
        if name in JUDGED or rules.spoken(pair, name):
            joint = stats.difference(estimate(0, rules.joint_level), estimate(1, rules.joint_level))
        return _judged(
            Shift(statistic, base, new, widened(plain, instrument), widened(joint, instrument), instrument),
            rules.threshold(pair, name, statistic),
            judged=judged,
            identical=identical,
            lower_is_better=name in LOWER_IS_BETTER,
        )

    def side(of: int) -> Side:
        ascending = samples[of].ascending
        return Side(
            samples[of].n,
            samples[of].worth(0.5),
            float(ascending[0]),
            float(ascending[-1]),
        )

    return MeasureShift(
        name,
        side(0),
        side(1),
        identical,
        shift("mean"),
        shift("sd"),
        tuple(shift(statistic) for statistic in _supported(pair, name)),
    )


def _share(name: str, point: PointPair, pair: FlowPair, rules: _Rules, sides: _Sides) -> ShareShift:
    """The difference of two shares. Where one side saw no event, its events are taken to cluster as the other's do."""
    clustered = max(
        sides.base.clustering(point.base, pair.base, name), sides.new.clustering(point.new, pair.new, name)
    )
    counts = [(flow.counts[name], flow.counts["sent"]) for flow in (pair.base, pair.new)]

    def estimates(level: float) -> list[Estimate]:
        return [stats.share(count, n, level, clustered) for count, n in counts]

    base, new = estimates(LEVEL)
    judged = rules.judges(pair, name, None)
    joint = stats.difference(*estimates(rules.joint_level))
    shift = _judged(
        Shift("share", base, new, stats.difference(base, new), joint, 0.0),
        rules.threshold(pair, name, None),
        judged=judged,
        identical=False,
        lower_is_better=True,
    )
    return ShareShift(name, *counts[0], *counts[1], clustered, shift)


def _judged(
    shift: Shift, threshold: Threshold | None, *, judged: bool, identical: bool, lower_is_better: bool
) -> Shift:
    if not judged:
        return shift
    if threshold is None and not identical and shift.joint.low is None and shift.joint.high is None:
        # Supported by n for printing, but not at the level at which all figures hold together: shown, not judged.
        return shift
    tolerance = threshold.tolerance(shift.base.value) if threshold is not None else None
    verdict: Verdict = "same"
    basis: Basis = "identical"
    if not identical:
        verdict, basis = judge_shift(shift.joint, tolerance, lower_is_better=lower_is_better)
    return replace(
        shift,
        tolerance=tolerance,
        written=threshold.written if threshold is not None else None,
        verdict=verdict,
        basis=basis,
    )


def judge_shift(
    joint: Estimate, tolerance: float | None, *, lower_is_better: bool = True
) -> tuple[Verdict, Basis]:
    """The verdict on one shift from its interval, clock and stamp errors included.

    Without a tolerance: worse or better where the interval lies wholly on one side of 0, else the same in the weak
    sense that no difference was found. With one: worse or better where the interval lies wholly beyond it, the same
    only where it lies wholly inside (two one-sided tests, Schuirmann 1987), else undecided.
    """
    far = tolerance or 0.0
    up = joint.low is not None and joint.low > far
    down = joint.high is not None and joint.high < -far
    if up or down:
        better = down and lower_is_better
        return ("better" if better else "worse"), ("significant" if tolerance is None else "beyond-threshold")
    if tolerance is None:
        return "same", "no-difference"
    if (
        joint.low is not None
        and joint.high is not None
        and -tolerance <= joint.low
        and joint.high <= tolerance
    ):
        return "same", "equivalent"
    return "undecided", "open"

"""Compares two judged run directories: pairs points and flows, computes the shift of every figure, judges the shifts.

Three passes, because the intervals that judge are as wide as the number of judged figures makes them: the first pairs
and counts, the second computes every shift, the third (`judging`) judges all of them together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.measures.comparing.comparison import (
    Beyond,
    Comparison,
    Dropped,
    FlowComparison,
    MeasureShift,
    PointComparison,
    ShareShift,
    Shift,
    Side,
)
from wiregauge.measures.comparing.differences import differences, flow_differences
from wiregauge.measures.comparing.fitness import one_measurement, undecided, unfit
from wiregauge.measures.comparing.judging import LEVEL, Figure, Test, judge_figures, row_verdict
from wiregauge.measures.comparing.matching import (
    FlowPair,
    MatchError,
    PointPair,
    match_flows,
    match_points,
)
from wiregauge.measures.comparing.measured import (
    Evidence,
    instrument_bound,
    statistic_of,
    widened,
)
from wiregauge.measures.comparing.rules import (
    Rules,
    common,
    dropped,
    every_statistic,
    has,
    judged_figures,
    wanted_statistics,
)
from wiregauge.measures.comparing.thresholds import (
    SHIFT_QUANTILES,
    TAIL,
    Threshold,
)
from wiregauge.measures.definitions import DEFINITIONS, MAIN, SERIES, SHARES
from wiregauge.measures.large import are_many
from wiregauge.measures.metrics.judgement import FlowResult, Grade, Judgement, PointResult
from wiregauge.stats import Estimate
from wiregauge.stats.memory import asked_ahead

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


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

    Raises MatchError, whose text is a sentence for the user, when no point or no flow has a counterpart, or when a
    threshold names what neither side has.
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
            f"{flow}no compared flow has {unmet[0].measure} on both sides, so the threshold of "
            f"{unmet[0].written} would judge nothing; leave it out"
        )
    rules = Rules(thresholds, equivalence)
    judged = sum(judged_figures(pair, rules) for pair in flow_pairs)
    rules = Rules(thresholds, equivalence, stats.simultaneous(LEVEL, judged))
    sides = _Sides(Evidence(base), Evidence(new), one_measurement(base, new))
    drafts = [_drafts(pair, flows, rules, sides) for pair, flows, _, _ in paired]
    every = [figure for row in drafts for draft in row for figure in draft.figures]
    shifts, sweeps, rate = judge_figures(every)
    verdicts = iter(shifts)
    points: tuple[PointComparison, ...] = tuple(
        PointComparison(
            pair.base,
            pair.new,
            pair.axes,
            _in_full(
                pair,
                [_flow(pair, draft, [next(verdicts) for _ in draft.figures]) for draft in row],
                rules,
                sides,
            ),
            tuple(only_base),
            tuple(only_new),
        )
        for (pair, _, only_base, only_new), row in zip(paired, drafts, strict=True)
    )
    why = unfit(base, new, points)
    if why:
        points, sweeps = tuple(map(undecided, points)), []
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
        unfit=why,
        thresholds=tuple(thresholds),
        equivalence=equivalence,
        judged=judged,
        level=LEVEL,
        joint_level=rules.joint_level,
        rate=rate,
        sweeps=tuple(sweeps),
        alone=_alone(points, matched.only_base, matched.only_new, thresholds),
    )


def _alone(
    points: Sequence[PointComparison],
    only_base: Sequence[PointResult],
    only_new: Sequence[PointResult],
    thresholds: Sequence[Threshold],
) -> tuple[Dropped, ...]:
    """Flows and points that one side alone has."""

    def asked(flows: Sequence[FlowResult]) -> bool:
        return any(t.flow is None or t.flow == flow.plan.id for t in thresholds for flow in flows)

    found = []
    for which, own in (("base", only_base), ("new", only_new)):
        found += [
            Dropped(f"point {_place(point)} is on the {which} side only", asked(point.flows)) for point in own
        ]
    for point in points:
        for which, flows in (("base", point.only_base), ("new", point.only_new)):
            found += [
                Dropped(
                    f"flow {flow.plan.name}{' at ' + point.title if point.title else ''} is on the {which} side only",
                    asked([flow]),
                )
                for flow in flows
            ]
    return tuple(found)


def _place(point: PointResult) -> str:
    return ", ".join(f"{name} {value}" for name, value in point.point.items()) or "of no sweep"


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
    """Distinct short names of the sides: those of the directories, else their paths, and the chosen part."""
    first, second = base.directory.resolve(), new.directory.resolve()
    short = first.name != second.name
    names = []
    for directory, at in ((first, base_at), (second, new_at)):
        chosen_text = ", ".join(f"{name} {value}" for name, value in at.items())
        text = directory.name if short or (first == second and base_at != new_at) else str(directory)
        names.append(f"{text} ({chosen_text})" if chosen_text else text)
    return names[0], names[1]


def _meets(threshold: Threshold, pair: FlowPair) -> bool:
    flows = (pair.base.plan.id, pair.new.plan.id)
    if threshold.flow is not None and threshold.flow not in flows:
        return False
    return threshold.measure in SHARES or threshold.measure in common(pair)


class _Sides(Struct, frozen=True):
    """The evidence of both sides; `again`: one run directory twice, or one test with one seed simulated twice."""

    base: Evidence
    new: Evidence
    again: bool

    def one_measurement(self, point: PointPair) -> bool:
        """Whether both sides of a point are the very same measurement."""
        return self.again and point.base.runs == point.new.runs

    def leave_open(self, pair: FlowPair, measure: str) -> bool:
        """Whether clock or timestamp errors of either side make its values uncertain."""
        return self.base.leaves_open(pair.base, measure) or self.new.leaves_open(pair.new, measure)


class _Draft(Struct, frozen=True):
    """A pair of flows with all that moved, not yet judged: measures with their figures in one order, then shares."""

    pair: FlowPair
    sides: dict[str, tuple[Side, Side, bool]]
    statistics: dict[str, tuple[str, ...]]
    counts: dict[str, tuple[int, int, int, int, float]]
    figures: tuple[Figure, ...]
    dropped: tuple[Dropped, ...]
    in_full: bool


def _drafts(point: PointPair, flows: Sequence[FlowPair], rules: Rules, sides: _Sides) -> list[_Draft]:
    in_full = not are_many(flows)
    found = []
    for begin in range(0, len(flows), _TOGETHER):
        some = flows[begin : begin + _TOGETHER]
        with asked_ahead(
            one for pair in some for one in _remembering(point, pair, rules, sides, in_full=in_full)
        ):
            found += [_draft(point, pair, rules, sides, in_full=in_full) for pair in some]
    return found


_TOGETHER = 500
"""Number of flows whose series are analysed for autocorrelation in one batch."""


def _remembering(
    point: PointPair, pair: FlowPair, rules: Rules, sides: _Sides, *, in_full: bool
) -> Iterator[Floats | Flags]:
    """The series of a pair whose autocorrelation will be needed; very long ones are not held twice."""
    for name in common(pair):
        wanted = wanted_statistics(pair, name, rules, in_full=in_full)
        series = _series(name, point, pair, sides)
        if not wanted or max(map(len, (*series[0], *series[1]))) > _LONG:
            continue
        quantiles = [SHIFT_QUANTILES[one] for one in wanted if one in SHIFT_QUANTILES]
        samples = [stats.Sample(one) for one in series]
        for sample in samples:
            yield from sample.remembering(quantiles)
        bound = instrument_bound(pair.base, name) + instrument_bound(pair.new, name)
        judged = [
            SHIFT_QUANTILES[one]
            for one in wanted
            if one in SHIFT_QUANTILES
            and rules.threshold(pair, name, one) is None
            and rules.judges(pair, name, one)
        ]
        tail = rules.judges(pair, name, TAIL)
        yield from stats.Pair(samples[0], samples[1], bound).remembering(judged, tail=tail)


_LONG = 4096
"""Number of values above which a series is analysed alone."""


def _draft(point: PointPair, pair: FlowPair, rules: Rules, sides: _Sides, *, in_full: bool) -> _Draft:
    figures: list[Figure] = []
    both, statistics, counts = {}, {}, {}
    measures = common(pair)
    for name in measures:
        wanted = wanted_statistics(pair, name, rules, in_full=in_full)
        if not wanted:
            continue
        both[name], made = _measure(name, point, pair, rules, sides, wanted)
        statistics[name] = wanted
        figures += made
    if pair.base.counts["sent"] and pair.new.counts["sent"]:
        one = _one_measurement(point, pair, measures, both, sides)
        for name in SHARES:
            counts[name], figure = _share(name, point, pair, rules, sides, one_measurement=one)
            figures.append(figure)
    return _Draft(pair, both, statistics, counts, tuple(figures), dropped(pair, rules), in_full)


MOST_OF_EACH = 20
"""Number of flows with each verdict that are shown in full where there are many."""


def _in_full(
    point: PointPair, flows: Sequence[FlowComparison], rules: Rules, sides: _Sides
) -> tuple[FlowComparison, ...]:
    """All flows; of many those whose change is greatest with all their figures."""
    by_verdict: dict[str, list[FlowComparison]] = {}
    for flow in flows:
        if not flow.in_full:
            by_verdict.setdefault(flow.verdict, []).append(flow)
    chosen = {
        id(flow)
        for some in by_verdict.values()
        for flow in sorted(some, key=_moved, reverse=True)[:MOST_OF_EACH]
    }
    return tuple(_completed(point, flow, rules, sides) if id(flow) in chosen else flow for flow in flows)


def _moved(flow: FlowComparison) -> float:
    """Relative shift of a flow: of the deciding figure, else the largest of its main measures."""
    if flow.deciding is not None:
        return flow.deciding[1].relative
    return max(
        (shift.relative for measure in flow.measures.values() for shift in measure.shifts), default=0.0
    )


def _completed(point: PointPair, flow: FlowComparison, rules: Rules, sides: _Sides) -> FlowComparison:
    """The comparison of a flow with the figures added that are shown but not judged."""
    pair = FlowPair(flow.base, flow.new, flow.matched_by)
    measures = {}
    for name in common(pair):
        wanted = every_statistic(pair, name)
        known = flow.measures.get(name)
        shifts = {shift.statistic: shift for shift in known.shifts} if known is not None else {}
        left = [one for one in wanted if one not in shifts]
        side, made = _measure(name, point, pair, rules, sides, left)
        shifts |= {figure.shift.statistic: figure.shift for figure in made}
        mean, sd, greatest, *quantiles = (shifts[one] for one in wanted)
        base, new, identical = side
        measures[name] = MeasureShift(name, identical, base, new, mean, sd, greatest, tuple(quantiles))
    return replace(flow, measures=measures, in_full=True)


def _one_measurement(
    point: PointPair,
    pair: FlowPair,
    measures: Sequence[str],
    both: Mapping[str, tuple[Side, Side, bool]],
    sides: _Sides,
) -> bool:
    """Whether both sides have the same measures, some at least, and all identical values of each."""
    if not measures or any(has(pair.base, name) != has(pair.new, name) for name in SERIES):
        return False
    return all(
        both[name][2] if name in both else _identical(*_series(name, point, pair, sides)) for name in measures
    )


def _series(name: str, point: PointPair, pair: FlowPair, sides: _Sides) -> tuple[list[Floats], list[Floats]]:
    return sides.base.series(point.base, pair.base, name), sides.new.series(point.new, pair.new, name)


def _identical(base: Sequence[Floats], new: Sequence[Floats]) -> bool:
    return len(base) == len(new) and all(map(np.array_equal, base, new))


def _flow(point: PointPair, draft: _Draft, shifts: Sequence[Shift]) -> FlowComparison:
    pair, given = draft.pair, iter(shifts)
    measures = {}
    for name, (base, new, identical) in draft.sides.items():
        mean, sd, greatest, *quantiles = (next(given) for _ in draft.statistics[name])
        measures[name] = MeasureShift(name, identical, base, new, mean, sd, greatest, tuple(quantiles))
    shares = {name: ShareShift(name, *counts, next(given)) for name, counts in draft.counts.items()}
    named = {f"{m.measure}.{shift.statistic}": shift for m in measures.values() for shift in m.shifts}
    named |= {name: share.shift for name, share in shares.items()}
    unfit = [which for which in ("base", "new") if getattr(point, which).validity == Grade.INVALID]
    counted = {name: share.counted for name, share in shares.items()}
    verdict, reason = row_verdict(named, counted, draft.dropped, unfit)
    return FlowComparison(
        base=pair.base,
        new=pair.new,
        matched_by=pair.by,
        said=flow_differences(pair.base, pair.new),
        measures=measures,
        shares=shares,
        only_base=tuple(n for n in SERIES if has(pair.base, n) and not has(pair.new, n)),
        only_new=tuple(n for n in SERIES if has(pair.new, n) and not has(pair.base, n)),
        dropped=draft.dropped,
        verdict=verdict,
        reason=reason,
        in_full=draft.in_full,
    )


def _key(pair: FlowPair, figure: str) -> tuple[str, str, str]:
    one, other = pair.base.plan.name, pair.new.plan.name
    return one if one == other else f"{one} → {other}", pair.base.plan.destination, figure


def _measure(
    name: str, point: PointPair, pair: FlowPair, rules: Rules, sides: _Sides, statistics: Sequence[str]
) -> tuple[tuple[Side, Side, bool], list[Figure]]:
    series = _series(name, point, pair, sides)
    identical = _identical(*series)
    first = stats.Sample(series[0])
    # Identical series share one sample, and so its cached results.
    samples = first, first if identical else stats.Sample(series[1])
    bound = instrument_bound(pair.base, name) + instrument_bound(pair.new, name)
    tested = stats.Pair(*samples, bound)
    # Equal values of clocks and timestamps that may be wrong are not equal times, but where both are one measurement.
    is_open = not sides.one_measurement(point) and sides.leave_open(pair, name)

    def figure(statistic: str) -> Figure:
        def estimate(side: int, level: float) -> Estimate:
            return statistic_of(samples[side], statistic, level)

        # A clock that is off by a constant moves every value and spreads none.
        instrument = bound if statistic != "sd" else 0.0
        base, new = estimate(0, LEVEL), estimate(1, LEVEL)
        plain = stats.difference(base, new)
        joint = plain
        if name in MAIN or rules.spoken(pair, name):
            joint = stats.difference(estimate(0, rules.joint_level), estimate(1, rules.joint_level))
        threshold = rules.threshold(pair, name, statistic)
        test: Test | None = None
        beyond: Beyond | None = None
        if threshold is None and rules.judges(pair, name, statistic):
            if statistic == "mean":
                test = tested.mean()
            else:
                test = cut = (
                    tested.tail() if statistic == TAIL else tested.quantile(SHIFT_QUANTILES[statistic])
                )
                value, within, found = cut.beyond
                counts = found.base.count, found.base.n, found.new.count, found.new.n
                beyond = Beyond(value, within, *counts, found.clustered)
        return Figure(
            _key(pair, f"{name}.{statistic}"),
            Shift(
                statistic,
                base,
                new,
                widened(plain, instrument),
                widened(joint, instrument),
                instrument,
                beyond=beyond,
            ),
            test,
            threshold,
            identical and not (instrument and is_open),
            DEFINITIONS[name].better == "lower",
            None if sides.one_measurement(point) else (samples[0].n, samples[1].n),
        )

    def side(of: int) -> Side:
        ascending = samples[of].ascending
        return Side(
            samples[of].n,
            samples[of].worth(0.5),
            float(ascending[0]),
            float(ascending[-1]),
        )

    made = [figure(statistic) for statistic in statistics]
    return (side(0), side(1), identical), made


def _share(
    name: str, point: PointPair, pair: FlowPair, rules: Rules, sides: _Sides, *, one_measurement: bool
) -> tuple[tuple[int, int, int, int, float], Figure]:
    """The difference of two shares; a side without events is taken to cluster as the other does.

    Events may be equal by chance, as may the messages affected by a planted fault: equal flags make two shares
    identical only where all values of the flow are identical, too (`one_measurement`).
    """
    happened = sides.base.events(point.base, pair.base, name), sides.new.events(point.new, pair.new, name)
    test = stats.ShareTest(*happened)
    clustered = test.clustered
    counts = [(flow.counts[name], flow.counts["sent"]) for flow in (pair.base, pair.new)]

    def estimates(level: float) -> list[Estimate]:
        return [stats.share(count, n, level, clustered) for count, n in counts]

    base, new = estimates(LEVEL)
    threshold = rules.threshold(pair, name, None)
    joint = stats.difference(*estimates(rules.joint_level))
    judged = rules.judges(pair, name, None)
    identical = (
        one_measurement
        and (judged or threshold is not None)
        and counts[0] == counts[1]
        and counts[0][0] > 0
        and _same_messages(name, point, pair, sides)
    )
    return (*counts[0], *counts[1], clustered), Figure(
        _key(pair, name),
        Shift("share", base, new, stats.difference(base, new), joint, 0.0),
        test if judged and threshold is None else None,
        threshold,
        identical,
        sizes=None if sides.one_measurement(point) else (counts[0][1], counts[1][1]),
    )


def _same_messages(name: str, point: PointPair, pair: FlowPair, sides: _Sides) -> bool:
    """Whether on both sides it happened to the very same messages of the very same repeats."""
    base, new = sides.base.flags(point.base, pair.base, name), sides.new.flags(point.new, pair.new, name)
    return len(base) == len(new) and all(map(np.array_equal, base, new))

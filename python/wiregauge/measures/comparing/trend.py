"""A history of run directories: each figure over the runs, where its level stepped, and whether the newest is worse.

Every run is judged against the runs before it (their median since the last step, or the first run). Where that is one
run, the verdicts are those of `compare` on the two: the same pair is never called by two words. The newest decides the
exit code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from wiregauge import stats
from wiregauge.measures.comparing.compare import compare
from wiregauge.measures.comparing.comparison import Comparison, Dropped, Shift, Verdict, combined, unanswered
from wiregauge.measures.comparing.fitness import unfit_for
from wiregauge.measures.comparing.judging import LEVEL
from wiregauge.measures.comparing.matching import MatchError, match_flows, match_points
from wiregauge.measures.comparing.measured import (
    Evidence,
    instrument_bound,
    statistic_of,
)
from wiregauge.measures.comparing.thresholds import SHIFT_QUANTILES, TAIL, Threshold, chosen
from wiregauge.measures.comparing.trend_judging import Against, Judging, TrendPoint, steps
from wiregauge.measures.definitions import MAIN, SHARES
from wiregauge.measures.metrics.judgement import FlowResult, Judgement, PointResult
from wiregauge.plan.quantity import canonical
from wiregauge.stats import Estimate
from wiregauge.terminal import exits

STATISTICS = ("mean", "p50", "p99")
"""Statistics of latency and round trip that are followed by default, besides the maximum, where no threshold is on
the measure, and `lost`."""


class TrendLimit(Struct, frozen=True):
    """A limit of the newest test on this figure, in its unit."""

    bound: Annotated[str, Meta(extra_json_schema={"enum": ["at-most", "at-least"]})]
    value: float
    written: str


class TrendSeries(Struct, frozen=True):
    """One figure of one flow over the runs that have it. `steps`: runs at which its level changed, by index."""

    axes: Mapping[str, str]
    flow: FlowResult
    measure: str
    statistic: str
    points: tuple[TrendPoint, ...]
    steps: tuple[int, ...]
    limits: tuple[TrendLimit, ...]

    @property
    def title(self) -> str:
        """Flow and point as text."""
        where = ", ".join(self.axes.values())
        return f"flow {self.flow.plan.name} {self.flow.plan.protocol}" + (f" · {where}" if where else "")

    @property
    def figure(self) -> str:
        """The figure as a threshold names it."""
        return self.measure if self.measure in SHARES else f"{self.measure}.{self.statistic}"

    def at(self, run: int) -> TrendPoint | None:
        """The point of a run; None where the run does not have the figure."""
        return next((point for point in self.points if point.run == run), None)


class Trend(Struct, frozen=True):
    """A history of runs, oldest first. `unfit` gives the reason why a run is excluded; `missing` lists what was not
    found.

    `gone`: figures of the last fit run before that the newest lacks; they are not decided. `pairs`: by run, the
    comparison with the only run that it is judged against.
    """

    runs: tuple[Judgement, ...]
    names: tuple[str, ...]
    series: tuple[TrendSeries, ...]
    unfit: Mapping[int, str]
    missing: tuple[str, ...]
    gone: tuple[Dropped, ...]
    pairs: Mapping[int, Comparison]
    against: Against
    thresholds: tuple[Threshold, ...]
    judged: int
    level: float
    joint_level: float

    @property
    def newest(self) -> int:
        """Index of the newest run."""
        return len(self.runs) - 1

    @property
    def pair(self) -> Comparison | None:
        """The comparison of the newest run with the only one it is judged against; None where these are several."""
        return self.pairs.get(self.newest)

    def verdict_of(self, run: int) -> Verdict:
        """The verdict of a run over all its figures."""
        if run in self.pairs:
            return self.pairs[run].verdict
        points = [point for series in self.series if (point := series.at(run)) is not None]
        return "undecided" if run in self.unfit else combined([p.verdict for p in points if p.verdict])

    @property
    def verdict(self) -> Verdict:
        """The verdict on the newest run; undecided where it or all runs before it are unfit, or where it lacks
        figures."""
        if not self.answered:
            return "undecided"
        own = self.verdict_of(self.newest)
        return "undecided" if self.gone and self.pair is None and own != "worse" else own

    @property
    def benches(self) -> str:
        """The benches where they differ, as in `sim, netns`; else empty."""
        found = dict.fromkeys(str(run.manifest.get("bench", "?")) for run in self.runs)
        return ", ".join(found) if len(found) > 1 else ""

    @property
    def answered(self) -> bool:
        """Whether the newest run, and any before it, is fit to compare."""
        return self.newest not in self.unfit and any(run not in self.unfit for run in range(self.newest))

    @property
    def exit_code(self) -> int:
        """The exit code for the newest run, as in `compare`."""
        if self.pair is not None:
            return self.pair.exit_code
        points = [
            (series.statistic, point)
            for series in self.series
            if (point := series.at(self.newest)) is not None
        ]
        return exits.exit_code(
            answered=self.answered,
            failed=self.verdict == "worse",
            undecided=any(unanswered(name, p.verdict, p.basis, p.tolerance) for name, p in points)
            or any(part.asked for part in self.gone),
        )


class _Found(Struct, frozen=True):
    """A flow of the newest run in one of the runs."""

    run: int
    point: PointResult
    flow: FlowResult


def trend(
    judgements: Sequence[Judgement], *, thresholds: Sequence[Threshold] = (), against: Against = "previous"
) -> Trend:
    """Arranges runs in the order in which they were started.

    Flows are those of the newest run, found in the others as `compare` finds them. Raises MatchError with fewer than
    two runs, or when no earlier run has a flow in common with the newest.
    """
    if len(judgements) < 2:
        raise MatchError("a trend needs at least two run directories; name more")
    runs = sorted(judgements, key=lambda judgement: str(judgement.manifest.get("started") or ""))
    newest = runs[-1]
    found, missing = _found(runs)
    if all(len(places) == 1 for places in found.values()):
        raise MatchError(
            f"no flow of {newest.directory}, the newest run, was measured at the same point in an earlier one"
        )
    unfit = {k: why for k, judgement in enumerate(runs) if (why := unfit_for(judgement, _compared(found, k)))}
    gone = _gone(runs, unfit, thresholds)
    pairs = _pairs(runs, unfit, thresholds, against)
    shifts = {run: _shifts(pair) for run, pair in pairs.items()}
    figures = [
        (point, flow, measure, statistic)
        for point in newest.points
        for flow in point.flows
        for measure, statistic in _figures(
            flow, thresholds, shifts.get(len(runs) - 1, {}).get(_key(point, flow))
        )
    ]
    unmet = [t for t in thresholds if not any(t.covers((f.plan.id,), m, s) for _, f, m, s in figures)]
    if unmet and len(runs) - 1 not in pairs and not any(part.asked for part in gone):
        raise MatchError(
            f"no flow of the newest run has {unmet[0].measure}, so its threshold would judge nothing"
        )
    joint_level = stats.simultaneous(LEVEL, len(figures))
    evidence = [Evidence(judgement) for judgement in runs]
    series = []
    for point, flow, measure, statistic in figures:
        places = found[_key(point, flow)]
        without = [runs[p.run].directory for p in places if not _has(p.flow, measure, statistic)]
        if without:
            missing.append(
                f"{measure}.{statistic} of flow {flow.plan.name} at {_text(point)}: too few values in "
                f"{', '.join(map(str, without))}"
            )
        places = [place for place in places if _has(place.flow, measure, statistic)]
        values = {
            place.run: [
                _value(evidence[place.run], place, measure, statistic, level)
                for level in (LEVEL, joint_level)
            ]
            for place in places
        }
        points = [
            TrendPoint(
                run=place.run,
                n=_n(place.flow, measure),
                value=values[place.run][0],
                fit=place.run not in unfit,
            )
            for place in places
        ]
        instrument = {place.run: _instrument(place.flow, measure) for place in places}
        judging = Judging(
            measure,
            chosen(thresholds, (flow.plan.id,), measure, statistic),
            joint_level,
            against,
            {run: both[1] for run, both in values.items()},
            instrument,
            {
                place.run: evidence[place.run].events(place.point, place.flow, measure)
                for place in places
                if measure in SHARES
            },
            {
                place.run: shifts[place.run].get(_key(place.point, place.flow), {}).get((measure, statistic))
                for place in places
                if place.run in shifts
            },
            {
                place.run: stats.Sample(evidence[place.run].series(place.point, place.flow, measure))
                for place in places
                if statistic == TAIL
            },
        )
        series.append(
            TrendSeries(
                axes=point.point,
                flow=flow,
                measure=measure,
                statistic=statistic,
                points=judging.judged(points),
                steps=steps(points, instrument),
                limits=_limits(newest, flow, measure, statistic),
            )
        )
    return Trend(
        runs=tuple(runs),
        names=_names(runs),
        series=tuple(series),
        unfit=unfit,
        missing=tuple(missing),
        gone=gone,
        pairs=pairs,
        against=against,
        thresholds=tuple(thresholds),
        judged=len(figures),
        level=LEVEL,
        joint_level=joint_level,
    )


def _key(point: PointResult, flow: FlowResult) -> tuple[str, int, int]:
    axes = ";".join(f"{name}={canonical(value)}" for name, value in sorted(point.point.items()))
    return axes, flow.plan.id, flow.plan.receiver


def _found(runs: Sequence[Judgement]) -> tuple[dict[tuple[str, int, int], list[_Found]], list[str]]:
    """The newest run's flows with their counterparts in every run, oldest first, and a list of those without a
    partner."""
    newest = runs[-1]
    found: dict[tuple[str, int, int], list[_Found]] = {
        _key(point, flow): [] for point in newest.points for flow in point.flows
    }
    missing = []
    for k, judgement in enumerate(runs):
        try:
            matched = match_points(judgement, newest, {}, {})
        except MatchError as error:
            missing.append(f"{judgement.directory}: {error}")
            continue
        missing += [
            f"{judgement.directory}: point {_text(alone)} is not in the newest run"
            for alone in matched.only_base
        ]
        for pair in matched.pairs:
            flows, only, _ = match_flows(pair.base.flows, pair.new.flows)
            for both in flows:
                found[_key(pair.new, both.new)].append(_Found(k, pair.base, both.base))
            missing += [
                f"{judgement.directory}: flow {flow.plan.name} is not in the newest run" for flow in only
            ]
    for point in newest.points:
        for flow in point.flows:
            have = {place.run for place in found[_key(point, flow)]}
            lacking = [str(judgement.directory) for k, judgement in enumerate(runs) if k not in have]
            if lacking:
                missing.append(f"flow {flow.plan.name} at {_text(point)}: not in {', '.join(lacking)}")
    return found, missing


def _gone(
    runs: Sequence[Judgement], unfit: Mapping[int, str], thresholds: Sequence[Threshold]
) -> tuple[Dropped, ...]:
    """Points, flows and figures that the last fit run before the newest has, and the newest has not."""
    before = [k for k in range(len(runs) - 1) if k not in unfit]
    if not before:
        return ()
    try:
        matched = match_points(runs[before[-1]], runs[-1], {}, {})
    except MatchError as error:
        return (Dropped(str(error), bool(thresholds)),)

    def asked(flow: FlowResult, measure: str = "", statistic: str = "") -> bool:
        return any(
            t.flow in (None, flow.plan.id)
            and (not measure or (t.measure == measure and t.statistic in (None, statistic)))
            for t in thresholds
        )

    found = [
        Dropped(f"point {_text(point)} is not in the newest run", any(asked(flow) for flow in point.flows))
        for point in matched.only_base
    ]
    for pair in matched.pairs:
        flows, only, _ = match_flows(pair.base.flows, pair.new.flows)
        found += [
            Dropped(f"flow {flow.plan.name} at {_text(pair.base)} is not in the newest run", asked(flow))
            for flow in only
        ]
        for both in flows:
            has = _figures(both.new, thresholds)
            found += [
                Dropped(
                    f"flow {both.new.plan.name} at {_text(pair.new)}: the newest run has too few values of "
                    f"{measure if measure in SHARES else f'{measure}.{statistic}'}",
                    asked(both.new, measure, statistic),
                )
                for measure, statistic in _figures(both.base, thresholds)
                if (measure, statistic) not in has
            ]
    return tuple(found)


def _text(point: PointResult) -> str:
    return ", ".join(f"{name} {value}" for name, value in point.point.items()) or "its one point"


def _compared(found: Mapping[tuple[str, int, int], Sequence[_Found]], run: int) -> list[PointResult]:
    """Points of a run of which some flow is in another run."""
    own = [
        place.point for places in found.values() if len(places) > 1 for place in places if place.run == run
    ]
    return list({id(point): point for point in own}.values())


def _pairs(
    runs: Sequence[Judgement], unfit: Mapping[int, str], thresholds: Sequence[Threshold], against: Against
) -> dict[int, Comparison]:
    """The comparison of each fit run that is judged against one run alone."""
    fit = [k for k in range(len(runs)) if k not in unfit]
    found = {}
    for run in fit[1:] if against == "first" else fit[1:2]:
        try:
            found[run] = compare(runs[fit[0]], runs[run], thresholds=thresholds)
        except MatchError:
            continue
    return found


_Shifts = dict[tuple[str, int, int], dict[tuple[str, str], Shift]]


def _shifts(pair: Comparison) -> _Shifts:
    """Every figure of a comparison, by flow of the new side."""
    found: _Shifts = {}
    for point in pair.points:
        for flow in point.flows:
            own = {(name, one.statistic): one for name, of in flow.measures.items() for one in of.shifts}
            own |= {(name, "share"): of.shift for name, of in flow.shares.items()}
            found[_key(point.new, flow.new)] = own
    return found


def _figures(
    flow: FlowResult,
    thresholds: Sequence[Threshold],
    judged: Mapping[tuple[str, str], Shift] | None = None,
) -> list[tuple[str, str]]:
    """The figures of a flow that are followed: the default ones, those of thresholds, those that a comparison
    `judged`."""
    usual = [(measure, statistic) for measure in MAIN for statistic in STATISTICS]
    spoken = {t.measure for t in thresholds if t.flow in (None, flow.plan.id)}
    usual += [(measure, TAIL) for measure in MAIN if measure not in spoken]
    named = [
        (t.measure, statistic)
        for t in thresholds
        if t.measure not in SHARES and (t.flow in (None, flow.plan.id))
        for statistic in ([t.statistic] if t.statistic else STATISTICS)
    ]
    shares = ["lost", *(t.measure for t in thresholds if t.measure in SHARES)]
    found = [key for key, shift in (judged or {}).items() if shift.verdict is not None]
    wanted = dict.fromkeys([*usual, *named, *((name, "share") for name in shares), *found])
    return [(measure, statistic) for measure, statistic in wanted if _has(flow, measure, statistic)]


def _has(flow: FlowResult, measure: str, statistic: str) -> bool:
    if measure in SHARES:
        return flow.counts["sent"] > 0
    summary = flow.summaries.get(measure)
    if summary is None or summary.n == 0:
        return False
    q = SHIFT_QUANTILES.get(statistic)
    return q is None or stats.supported(summary.n, max(q, 1 - q))


def _value(evidence: Evidence, place: _Found, measure: str, statistic: str, level: float) -> Estimate:
    if measure in SHARES:
        clustered = evidence.events(place.point, place.flow, measure).clustered
        return stats.share(place.flow.counts[measure], place.flow.counts["sent"], level, clustered)
    sample = stats.Sample(evidence.series(place.point, place.flow, measure))
    return statistic_of(sample, statistic, level)


def _n(flow: FlowResult, measure: str) -> int:
    return flow.counts["sent"] if measure in SHARES else flow.summaries[measure].n


def _instrument(flow: FlowResult, measure: str) -> float:
    return 0.0 if measure in SHARES or measure not in flow.summaries else instrument_bound(flow, measure)


def _limits(newest: Judgement, flow: FlowResult, measure: str, statistic: str) -> tuple[TrendLimit, ...]:
    named = {measure} if measure in SHARES else {f"{measure}.{statistic}"}
    sent = max(flow.counts["sent"], 1)
    if measure == "lost":
        named.add("loss")
    return tuple(
        TrendLimit(
            limit.bound,
            limit.value / sent if limit.measure in SHARES else limit.value,
            f"{limit.measure} {limit.bound.replace('-', ' ')} {limit.written}",
        )
        for limit in newest.plan.limits
        if limit.measure in named and limit.flow in (None, flow.plan.id)
    )


def _names(runs: Sequence[Judgement]) -> tuple[str, ...]:
    """Names of the directories; their paths where two are called the same."""
    short = [judgement.directory.resolve().name for judgement in runs]
    if len(set(short)) == len(short):
        return tuple(short)
    return tuple(str(judgement.directory) for judgement in runs)

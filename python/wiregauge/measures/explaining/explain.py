"""Explains a judged run directory: recurrence, changes, modes, and the delays of the worst messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import polars as pl

from wiregauge import stats
from wiregauge.measures.explaining.around import surroundings
from wiregauge.measures.explaining.explanation import Explanation, FlowExplained, SeriesExplained
from wiregauge.measures.explaining.sentences import course_sentences, mode_sentences, peak_sentence
from wiregauge.measures.explaining.worst import worst_messages
from wiregauge.measures.metrics.clocks import RunClocks, corrected, run_clocks
from wiregauge.measures.metrics.flow_plan import FlowPlan, RunPlan
from wiregauge.measures.metrics.judgement import FlowResult, Judgement, RunResult, Series
from wiregauge.measures.metrics.recorded import Recorded, open_recorded
from wiregauge.measures.metrics.series import Offsets, differences
from wiregauge.measures.metrics.threads import side_by_side
from wiregauge.measures.progress import reached
from wiregauge.measures.sketched.outcomes import of_receiver

WORST = 10
"""Messages of each flow that are explained by default."""
ALONE = 150_000
"""Number of values of a flow whose search needs so much memory that it runs alone."""
SEARCH = 0.6
"""Share of the search for modes and changes in the work on a flow; the rest is for its worst messages."""
TIMESTAMP_NS = 1.0
"""Resolution of timestamps, at least."""


def explain(judgement: Judgement, *, worst: int = WORST, most: int | None = None) -> Explanation:
    """Explains every flow of every run; with `most` that many at most, each flow in the run where its worst took
    longest.

    Raises RunDirectoryError for a damaged file of the run directory.
    """
    wanted = [
        (run, flow)
        for run in judgement.runs
        for flow in run.flows
        if flow.plan.main in flow.series and len(flow.series[flow.plan.main].value)
    ]
    total = len(wanted)
    if most is not None:
        wanted = _telling(wanted)[:most]
    directory = open_recorded(judgement.directory)
    found: list[FlowExplained] = []
    for run in judgement.runs:
        flows = [flow for of, flow in wanted if of is run]
        if not flows:
            continue
        clocks = run_clocks(directory, run.plan)
        estimated = clocks.offsets
        offsets = {(flow.plan.id, flow.plan.receiver): _between(estimated, flow.plan) for flow in flows}
        longest = max(len(flow.series[flow.plan.main].value) for flow in flows)
        names = directory.plan.network.names

        one = partial(_explained, directory, run.plan, offsets, clocks, names)
        reached("explaining", len(found) / len(wanted))
        if longest > ALONE:
            explained: list[tuple[SeriesExplained, ...]] = []
            for flow in flows:
                explained.append(one(flow))
                reached("explaining", (len(found) + len(explained) * SEARCH) / len(wanted))
        else:
            explained = side_by_side(one, flows, longest)
            reached("explaining", (len(found) + len(explained) * SEARCH) / len(wanted))
        medians = [stats.median(flow.series[flow.plan.main].value) for flow in flows]
        messages = worst_messages(
            directory,
            run,
            [
                (flow, series[0], median)
                for flow, series, median in zip(flows, explained, medians, strict=True)
            ],
            offsets,
            surroundings(directory, run, clocks),
            clocks,
            worst,
        )
        found += [
            FlowExplained(
                run.plan, flow.plan, median, series, messages.get((flow.plan.id, flow.plan.receiver), ())
            )
            for flow, series, median in zip(flows, explained, medians, strict=True)
        ]
    return Explanation(tuple(found), total - len(found), worst)


def whole_series(judgement: Judgement, run: RunResult, flow: FlowResult) -> Series:
    """The main measure of a flow of a run, ns by seconds; of every message even where only a sample is held.

    Raises RunDirectoryError for a damaged file of the run directory.
    """
    held = flow.series[flow.plan.main]
    if flow.sampled is None:
        return held
    directory = open_recorded(judgement.directory)
    clocks = run_clocks(directory, run.plan)
    offsets = {(flow.plan.id, flow.plan.receiver): _between(clocks.offsets, flow.plan)}
    whole = _of_all(directory, run.plan, offsets, clocks, directory.plan.network.names, flow, flow.plan.main)
    return whole if whole is not None else held


def _telling(wanted: Sequence[tuple[RunResult, FlowResult]]) -> list[tuple[RunResult, FlowResult]]:
    """Each flow at each receiver once, in the run where its greatest value is furthest above its median."""
    best: dict[tuple[int, int], tuple[float, RunResult, FlowResult]] = {}
    for run, flow in wanted:
        main = flow.plan.main
        greatest = flow.summaries[main].maximum or 0.0
        excess = greatest - stats.median(flow.series[main].value)
        key = flow.plan.id, flow.plan.receiver
        if key not in best or excess > best[key][0]:
            best[key] = excess, run, flow
    ranked = sorted(best.values(), key=lambda entry: -entry[0])
    return [(run, flow) for _, run, flow in ranked]


def _between(estimated: Mapping[str, tuple[float, float]], flow: FlowPlan) -> Offsets:
    here, there = estimated.get(flow.source, (0.0, 0.0)), estimated.get(flow.destination, (0.0, 0.0))
    return Offsets(there[0] - here[0], here[1] + there[1])


def _of_all(
    directory: Recorded,
    run: RunPlan,
    offsets: Mapping[tuple[int, int], Offsets],
    clocks: RunClocks,
    names: Sequence[str],
    flow: FlowResult,
    measure: str,
) -> Series | None:
    """A measure of all messages of a flow of which only a sample is held; None where the sample is complete.

    Rare events fall between the stretches of a sample, and recurring ones beat with them.
    """
    rows = directory.scan(run.index)
    if flow.sampled is None or rows is None:
        return None
    plan = flow.plan
    if clocks.moved(plan):
        by_clock = partial(corrected, flows=run.flows, names=names, clocks=clocks)
        rows = rows.map_batches(by_clock, streamable=True)
    expression, _, by = differences(plan, offsets[plan.id, plan.receiver].outward_ns)[measure]
    table = directory.collected(
        run.index,
        of_receiver(rows, plan)
        .select(t=pl.coalesce("tx_app", "intended").cast(pl.Float64) / 1e12, value=expression / 1000 - by)
        .drop_nulls(),
    )
    return Series(table["t"].to_numpy(), table["value"].to_numpy())


def _explained(
    directory: Recorded,
    run: RunPlan,
    offsets: Mapping[tuple[int, int], Offsets],
    clocks: RunClocks,
    names: Sequence[str],
    flow: FlowResult,
) -> tuple[SeriesExplained, ...]:
    main = flow.plan.main
    step = _resolution(directory, run, flow.plan)
    found = []
    for measure in (main, "send_error"):
        held = flow.series.get(measure)
        # An ideal sender has no wake-ups.
        if (
            held is None
            or not len(held.value)
            or (measure != main and float(np.ptp(held.value)) <= TIMESTAMP_NS)
        ):
            continue
        whole = _of_all(directory, run, offsets, clocks, names, flow, measure)
        found.append(explain_series(measure, held if whole is None else whole, step))
        del whole
    return tuple(found)


def _resolution(directory: Recorded, run: RunPlan, flow: FlowPlan) -> float:
    """The largest step of the timestamps at its ends, ns: granularity of their clocks and of taps."""
    ends = (flow.source, flow.destination)
    taps = directory.runs[run.index].timestamps or {}
    steps = [
        node.clock.granularity / 1000
        for node in directory.plan.network.nodes
        if node.clock and node.name in ends
    ]
    return max([TIMESTAMP_NS, *steps, *(tap.step_ns for tap in taps.values() if tap.step_ns is not None)])


def explain_series(measure: str, series: Series, resolution: float = TIMESTAMP_NS) -> SeriesExplained:
    """One series: modes first; changes are sought outside their bands; both are no chance when modes are counted."""
    recurrence = stats.find_modes(series.t, series.value)
    t, value = series.t[recurrence.apart], series.value[recurrence.apart]
    course = stats.level_changes(t, value)
    rest = value
    if course.slope is not None:
        rest = value - course.slope * t
    for change in course.changes:
        if change.kind == "level":
            rest = np.where(t >= change.at, rest - (change.after - change.before), rest)
    # Recurrence and steps are not random: the effective number of values follows from the residuals.
    worth = stats.worth_of(rest)
    known = int(np.isfinite(series.value).sum())
    worth *= known / max(len(rest), 1)
    shape = stats.peaks(series.value, resolution=resolution, n_effective=worth)
    said = (
        *mode_sentences(recurrence, measure),
        *course_sentences(course, measure),
        peak_sentence(shape, measure),
    )
    return SeriesExplained(measure, series, recurrence, course, shape, said)

"""HdrHistogram logs (`.hlog`) and percentile listings (`.hgrm`), values in ns.

The histograms and their compressed encoding (V2) are made by the `hdrhistogram` package. The lines around them are
written here: its log writer knows no tags and drops the fraction of the greatest value.

An HdrHistogram holds non-negative integers. Values are rounded to the nearest ns; a series with a
negative value is refused, because a histogram of the rest would look like one of all.
"""

from __future__ import annotations

import datetime
import io
import re
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from hdrh.histogram import HdrHistogram
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge.export.choice import Choice, ExportError
from wiregauge.export.tables import sketches
from wiregauge.measures import FlowResult, Judgement
from wiregauge.measures.metrics.flow_plan import FlowPlan, RunPlan
from wiregauge.measures.metrics.recorded import Recorded

Integers = NDArray[np.int64]

DIGITS = 3
INTERVAL_S = 1.0
_SUB_BUCKETS = 2048  # the least power of two that tells 2 * 10^DIGITS values apart
_MS = 1e6


class Interval(Struct, frozen=True):
    """Values of one series in an interval of time: rounded ns and counts; exact minimum and maximum, ns.

    `start_s` counts from the epoch of the run, which began at `epoch_ns` of real time.
    """

    tag: str
    epoch_ns: int
    start_s: float
    length_s: float
    cells: Integers
    counts: Integers
    least: float
    greatest: float


def of_series(judgement: Judgement, choice: Choice, *, by_second: bool) -> list[Interval]:
    """The selected series, cut into seconds of the run or in one piece.

    Without a selected measure, the main one: the round trip of relayed flows, the latency of others. For a flow too
    large for memory: its sketch, in one piece.
    """
    epochs = _epochs(judgement.manifest)
    found = []
    for run in choice.runs(judgement):
        for flow in choice.flows(run):
            for name in choice.series(flow):
                if not _wanted(name, flow.plan, choice):
                    continue
                tag = _tag(run.plan.index, flow.plan, name)
                if name in flow.sketches:
                    found.append(_whole(tag, flow, name, epochs.get(run.plan.index, 0), run.plan))
                    continue
                series = flow.series[name]
                _refuse_negative(tag, int(np.count_nonzero(np.rint(series.value) < 0)), len(series.value))
                # Without a timestamp only measures from the wire have values; they count from the start.
                second = np.floor(np.nan_to_num(series.t) / INTERVAL_S).astype(np.int64) * by_second
                for k in np.unique(second):
                    values = series.value[second == k]
                    cells, counts = _cells(values)
                    found.append(
                        Interval(
                            tag,
                            epochs.get(run.plan.index, 0),
                            float(k) * INTERVAL_S,
                            INTERVAL_S,
                            cells,
                            counts,
                            float(values.min()),
                            float(values.max()),
                        )
                    )
    return _some(found, choice)


def _whole(tag: str, flow: FlowResult, name: str, epoch_ns: int, run: RunPlan) -> Interval:
    """A flow too large for memory, in one interval: a sketch has no times."""
    sketch = flow.sketches[name]
    _refuse_negative(tag, sketch.below_zero(), sketch.n)
    cells = np.rint(sketch.middles()).astype(np.int64)
    length = (run.warm_up_ns + run.duration_ns) / 1e9
    return Interval(tag, epoch_ns, 0.0, length, cells, sketch.count, sketch.minimum, sketch.maximum)


def of_sketches(directory: Recorded, choice: Choice) -> list[Interval]:
    """The selected series from the sketches of tracking: an interval per run, whatever the number of messages.

    A cell of a sketch counts as its middle, so a value is exact to two thousandths.
    """
    epochs = _epochs(directory.manifest)
    table = sketches(directory, choice).collect()
    found = []
    for run in directory.plan.runs:
        for flow in run.flows:
            if not choice.has_flow(flow):
                continue
            mine = table.filter(
                (pl.col("run") == run.index)
                & (pl.col("flow") == flow.id)
                & ((pl.col("node") == flow.destination) | (pl.col("measure") == "residence"))
            )
            for (name,), part in mine.partition_by("measure", as_dict=True, maintain_order=True).items():
                if not _wanted(name, flow, choice):
                    continue
                tag = _tag(run.index, flow, name)
                middle = (part["low_ps"] + part["high_ps"]).to_numpy() / 2000
                counts = part["count"].cast(pl.Int64).to_numpy()
                below = int(counts[np.rint(middle) < 0].sum())
                _refuse_negative(tag, below, int(counts.sum()))
                least, greatest = part["min_ps"].to_numpy().min(), part["max_ps"].to_numpy().max()
                length = (run.warm_up_ns + run.duration_ns) / 1e9
                whole = np.rint(middle).astype(np.int64)
                epoch = epochs.get(run.index, 0)
                found.append(
                    Interval(
                        tag, epoch, 0.0, length, whole, counts, float(least) / 1000, float(greatest) / 1000
                    )
                )
    return _some(found, choice)


def log(manifest: Mapping[str, object], name: str, intervals: Sequence[Interval]) -> bytes:
    """The log: a line per interval, tagged `run-0.flow-10.latency`.

    Timestamps are seconds since the first run's epoch, the greatest value is exact, in ms.
    """
    base_ns = min(interval.epoch_ns for interval in intervals)
    highest = max(2, *(int(interval.cells.max()) for interval in intervals))
    lines = []
    for interval in intervals:
        payload = _histogram(interval, highest).encode().decode("ascii")
        start = (interval.epoch_ns - base_ns) / 1e9 + interval.start_s
        timestamps = f"{start:.3f},{interval.length_s:.3f},{interval.greatest / _MS:.9f}"
        lines.append((start, interval.tag, f"Tag={interval.tag},{timestamps},{payload}"))
    test = manifest.get("test")
    sha256 = test.get("sha256", "") if isinstance(test, dict) else ""
    begun = datetime.datetime.fromtimestamp(base_ns / 1e9, datetime.UTC).isoformat(timespec="milliseconds")
    head = [
        f"#[Test {_word(name)}, SHA-256 {sha256}, seed {manifest.get('seed')}; values in ns, Interval_Max in ms]",
        "#[Histogram log format version 1.3]",
        f"#[StartTime: {base_ns / 1e9:.3f} (seconds since epoch), {begun}]",
        f"#[BaseTime: {base_ns / 1e9:.3f} (seconds since epoch)]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]
    return ("\n".join([*head, *(line for _, _, line in sorted(lines))]) + "\n").encode()


def percentiles(intervals: Sequence[Interval]) -> bytes:
    """The percentile listing of exactly one series, values in ns."""
    if len(intervals) > 1:
        raise ExportError(
            f"hgrm holds one distribution and {len(intervals)} are chosen ({intervals[0].tag}, {intervals[1].tag}, …); "
            "choose one with --run, --flow and --measure"
        )
    (interval,) = intervals
    out = io.BytesIO()
    _histogram(interval, max(2, int(interval.cells.max()))).output_percentile_distribution(out, 1.0)
    # The package prints the upper end of its cell as the maximum.
    out.write(f"#[Exact minimum = {interval.least:.3f}, maximum = {interval.greatest:.3f}]\n".encode())
    return out.getvalue()


def histogram(values: NDArray[np.float64], highest: int) -> HdrHistogram:
    """The histogram of values in ns, none of them negative, each to within a thousandth."""
    cells, counts = _cells(values)
    return _histogram(Interval("", 0, 0.0, 0.0, cells, counts, 0.0, 0.0), highest)


def _histogram(interval: Interval, highest: int) -> HdrHistogram:
    made = HdrHistogram(1, highest, DIGITS)
    for value, count in zip(interval.cells.tolist(), interval.counts.tolist(), strict=True):
        made.record_value(value, count)
    return made


def _cells(values: NDArray[np.float64]) -> tuple[Integers, Integers]:
    """Values in one cell of the histogram, counted together: the package takes one value at a time."""
    whole = np.rint(values).astype(np.int64)
    shift = np.maximum(np.frexp(whole.astype(np.float64))[1] - _SUB_BUCKETS.bit_length() + 1, 0)
    cells, counts = np.unique((whole >> shift) << shift, return_counts=True)
    return cells, counts.astype(np.int64)


def _wanted(name: str, flow: FlowPlan, choice: Choice) -> bool:
    return name == (choice.measure or flow.main)


def _tag(run: int, flow: FlowPlan, name: str) -> str:
    receiver = f".to-{_word(flow.destination)}" if flow.multicast else ""
    return f"run-{run}.flow-{flow.id}{receiver}.{name}"


def _refuse_negative(tag: str, negative: int, n: int) -> None:
    if negative:
        raise ExportError(
            f"{tag}: {negative} of {n} values are negative, and an HdrHistogram holds none; "
            "choose another --measure or --flow, or export the series as parquet or csv"
        )


def _some(found: list[Interval], choice: Choice) -> list[Interval]:
    if not found:
        raise ExportError(
            f"nothing to export: no chosen flow has values of {choice.measure or 'its latency'}"
        )
    return found


def _epochs(manifest: Mapping[str, object]) -> dict[int, int]:
    runs = manifest.get("runs")
    return {
        run["index"]: int(run.get("epoch_realtime_ns") or 0)
        for run in (runs if isinstance(runs, list) else ())
        if isinstance(run, dict) and "index" in run
    }


def _word(text: str) -> str:
    """The text without characters that end a tag or a line."""
    return re.sub(r"[^\w.-]", "_", text)

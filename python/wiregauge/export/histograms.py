"""HdrHistogram logs (`.hlog`) and percentile listings (`.hgrm`), values in ns.

The histograms and their compressed encoding (V2) are made by the `hdrhistogram` package. The lines around them are
written here: its log writer knows no tags and drops the fraction of the greatest value.

An HdrHistogram holds whole numbers that are not negative. Values are rounded to the nearest ns; a series with a
negative value is refused, because a histogram of the rest would look like one of all.
"""

from __future__ import annotations

import datetime
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray

from wiregauge.export.choice import Choice, ExportError
from wiregauge.measures import Judgement
from wiregauge.measures.results import Series

__all__ = ["DIGITS", "INTERVAL_S", "log", "percentiles"]

DIGITS = 3
INTERVAL_S = 1.0
_SUB_BUCKETS = 2048  # the least power of two that tells 2 * 10^DIGITS values apart
_MS = 1e6


@dataclass(frozen=True, slots=True)
class _Tagged:
    """A series with its name in the log, and when its run began, ns of real time."""

    tag: str
    epoch_ns: int
    series: Series


def log(judgement: Judgement, choice: Choice) -> bytes:
    """The log: an interval histogram per second of the run and series, tagged `run-0.flow-10.latency`.

    Without a chosen measure, the one a flow is there for: the round trip of relayed flows, the latency of others.
    Stamps are seconds since the first run's epoch, the greatest value is exact, in ms.
    """
    found = list(_chosen(judgement, choice))
    base_ns = min(tagged.epoch_ns for tagged in found)
    highest = max(2, *(int(np.rint(tagged.series.value.max())) for tagged in found))
    lines: list[tuple[float, str, str]] = []
    for tagged in found:
        shift = (tagged.epoch_ns - base_ns) / 1e9
        # Without a stamp there is no value of any measure but those of the wire; they count from the start.
        second = np.floor(np.nan_to_num(tagged.series.t) / INTERVAL_S).astype(np.int64)
        for k in np.unique(second):
            values = tagged.series.value[second == k]
            payload = histogram(values, highest).encode().decode("ascii")
            start = shift + float(k) * INTERVAL_S
            top = float(values.max()) / _MS
            lines.append(
                (start, tagged.tag, f"Tag={tagged.tag},{start:.3f},{INTERVAL_S:.3f},{top:.9f},{payload}")
            )
    manifest = judgement.manifest
    test = manifest.get("test")
    sha256 = test.get("sha256", "") if isinstance(test, dict) else ""
    begun = datetime.datetime.fromtimestamp(base_ns / 1e9, datetime.UTC).isoformat(timespec="milliseconds")
    head = [
        f"#[Test {_word(judgement.plan.name)}, SHA-256 {sha256}, seed {manifest.get('seed')}; values in ns, "
        "Interval_Max in ms]",
        "#[Histogram log format version 1.3]",
        f"#[StartTime: {base_ns / 1e9:.3f} (seconds since epoch), {begun}]",
        f"#[BaseTime: {base_ns / 1e9:.3f} (seconds since epoch)]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]
    return ("\n".join([*head, *(line for _, _, line in sorted(lines))]) + "\n").encode()


def percentiles(judgement: Judgement, choice: Choice) -> bytes:
    """The percentile listing of exactly one series, values in ns."""
    found = list(_chosen(judgement, choice))
    if len(found) > 1:
        raise ExportError(
            f"hgrm holds one distribution and {len(found)} are chosen ({found[0].tag}, {found[1].tag}, …); "
            "choose one with --run, --flow and --measure"
        )
    values = found[0].series.value
    out = io.BytesIO()
    histogram(values, max(2, int(np.rint(values.max())))).output_percentile_distribution(out, 1.0)
    # What the package prints as the greatest is the upper end of its cell.
    out.write(f"#[Exact minimum = {values.min():.3f}, maximum = {values.max():.3f}]\n".encode())
    return out.getvalue()


def histogram(values: NDArray[np.float64], highest: int) -> HdrHistogram:
    """The histogram of values in ns, none of them negative, each to within a thousandth."""
    made = HdrHistogram(1, highest, DIGITS)
    whole = np.rint(values).astype(np.int64)
    # What falls into one cell is recorded at once: the package takes one value at a time.
    shift = np.maximum(np.frexp(whole.astype(np.float64))[1] - _SUB_BUCKETS.bit_length() + 1, 0)
    cells = (whole >> shift) << shift
    for value, count in zip(*np.unique(cells, return_counts=True), strict=True):
        made.record_value(int(value), int(count))
    return made


def _chosen(judgement: Judgement, choice: Choice) -> Iterator[_Tagged]:
    epochs = _epochs(judgement)
    some = False
    for run in choice.runs(judgement):
        for flow in choice.flows(run):
            main = "rtt" if flow.plan.relayed else "latency"
            for name in choice.series(flow):
                if choice.measure is None and name != main:
                    continue
                some = True
                receiver = f".to-{_word(flow.plan.destination)}" if flow.plan.multicast else ""
                tag = f"run-{run.plan.index}.flow-{flow.plan.id}{receiver}.{name}"
                values = flow.series[name].value
                negative = int(np.count_nonzero(np.rint(values) < 0))
                if negative:
                    raise ExportError(
                        f"{tag}: {negative} of {len(values)} values are negative, and an HdrHistogram holds none; "
                        "choose another --measure or --flow, or export the series as parquet or csv"
                    )
                yield _Tagged(tag, epochs.get(run.plan.index, 0), flow.series[name])
    if not some:
        raise ExportError(
            f"nothing to export: no chosen flow has values of {choice.measure or 'its latency'}"
        )


def _epochs(judgement: Judgement) -> dict[int, int]:
    runs = judgement.manifest.get("runs")
    return {
        run["index"]: int(run.get("epoch_realtime_ns") or 0)
        for run in (runs if isinstance(runs, list) else ())
        if isinstance(run, dict) and "index" in run
    }


def _word(text: str) -> str:
    """Without what ends a tag or a line."""
    return re.sub(r"[^\w.-]", "_", text)

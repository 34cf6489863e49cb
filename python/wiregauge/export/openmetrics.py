"""OpenMetrics text (1.0): counts and measures of a run, for Prometheus, Grafana and compatible tools.

Names and units follow the standard: seconds, ratios, `_total` for counts. The labels of every sample give run, flow and
point of the sweep. The exposition is written by `prometheus_client`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
    StateSetMetricFamily,
)
from prometheus_client.openmetrics.exposition import generate_latest

from wiregauge.export.choice import Choice, ExportError
from wiregauge.export.columns import axis_column
from wiregauge.measures import FlowResult, Grade, Judgement, RunResult
from wiregauge.measures.definitions import COUNTS, DEFINITIONS, QUANTILES, SERIES, SINGLES
from wiregauge.measures.metrics.judgement import Floats
from wiregauge.measures.quantities import quantity

BOUNDS_NS = (*(step * 10**decade for decade in range(2, 10) for step in (1, 2, 5)), 10**10)
"""Upper bounds of the buckets, 100 ns to 10 s: the same for every series, so that they can be added."""

_SUFFIX = {
    "ns": "seconds",
    "messages": "messages",
    "bit/s": "bits_per_second",
    "share": "ratio",
    "1/s": "per_second",
}


class _Families:
    """Metric families in the order in which they are first written to."""

    def __init__(self) -> None:
        self.made: dict[str, Metric] = {}

    def collect(self) -> Iterator[Metric]:
        """The families, as the exposition requests them."""
        return iter(self.made.values())

    def gauge(self, name: str, unit: str, text: str, labels: dict[str, str], value: float) -> None:
        """Adds a sample of a gauge."""
        keys = list(labels)
        family = self.made.setdefault(name, GaugeMetricFamily(name, text, labels=keys, unit=unit))
        assert isinstance(family, GaugeMetricFamily)
        family.add_metric(list(labels.values()), value)

    def counter(self, name: str, unit: str, text: str, labels: dict[str, str], value: float) -> None:
        """Adds a sample of a counter."""
        family = self.made.setdefault(name, CounterMetricFamily(name, text, labels=list(labels), unit=unit))
        assert isinstance(family, CounterMetricFamily)
        family.add_metric(list(labels.values()), value)


def exposition(judgement: Judgement, choice: Choice) -> bytes:
    """The exposition in UTF-8, with its `# EOF`."""
    families = _Families()
    manifest = judgement.manifest
    test = manifest.get("test")
    facts = {
        "test": judgement.plan.name,
        "sha256": str(test.get("sha256", "")) if isinstance(test, dict) else "",
        "seed": str(manifest.get("seed", "")),
        "bench": str(manifest.get("bench", "")),
    }
    info = InfoMetricFamily("wiregauge_test", "The test that was run.")
    info.add_metric([], facts)
    families.made["info"] = info
    some = False
    for run in choice.runs(judgement):
        _judged(families, run, _of_run(judgement, run))
        for flow in choice.flows(run):
            some = True
            labels = {
                **_of_run(judgement, run),
                "flow": str(flow.plan.id),
                "protocol": flow.plan.protocol,
                "source": flow.plan.source,
                "destination": flow.plan.destination,
            }
            _counted(families, flow, labels, choice)
            _measured(families, flow, labels, choice)
    if not some:
        raise ExportError("nothing to export: no chosen run has a flow with figures")
    written: bytes = generate_latest(families)  # type: ignore[no-untyped-call]
    return written


def _of_run(judgement: Judgement, run: RunResult) -> dict[str, str]:
    point = {axis_column(axis): run.plan.point.get(axis, "") for axis in judgement.plan.axes}
    return {"test": judgement.plan.name, "run": str(run.plan.index), "repeat": str(run.plan.repeat), **point}


def _judged(families: _Families, run: RunResult, labels: dict[str, str]) -> None:
    words = [grade.word for grade in (Grade.OK, Grade.DEGRADED, Grade.INVALID)]
    for name, text, states, state in (
        ("wiregauge_validity", "Whether the run can be trusted.", words, run.validity.word),
        (
            "wiregauge_verdict",
            "Whether the run kept its limits.",
            ["PASS", "FAIL", "UNDECIDED", "NONE"],
            run.verdict,
        ),
    ):
        family = families.made.setdefault(name, StateSetMetricFamily(name, text, labels=list(labels)))
        assert isinstance(family, StateSetMetricFamily)
        family.add_metric(list(labels.values()), {word: word == state for word in states})
    if run.caveat:
        name = "wiregauge_verdict_caveat"
        told = families.made.setdefault(
            name, InfoMetricFamily(name, "What the verdict does not say.", labels=list(labels))
        )
        assert isinstance(told, InfoMetricFamily)
        told.add_metric(list(labels.values()), {"caveat": run.caveat})
    for limit in run.limits:
        own = {
            **labels,
            "measure": limit.measure,
            "bound": limit.bound,
            "limit": limit.written,
            "flow": str(limit.flow or ""),
            "receiver": limit.to or "",
        }
        families.gauge(
            "wiregauge_limit_holds", "", "1 where the limit of the test holds.", own, float(limit.holds)
        )


def _counted(families: _Families, flow: FlowResult, labels: dict[str, str], choice: Choice) -> None:
    if choice.measure is not None:
        return
    for name in COUNTS:
        text = f"{DEFINITIONS[name].title}: {DEFINITIONS[name].formula}."
        families.counter(f"wiregauge_{name}", "messages", text, labels, flow.counts[name])
    if flow.loss.ratio is not None:
        text = "Lost over sent."
        families.gauge("wiregauge_loss", "ratio", text, labels, flow.loss.ratio)
        for edge, value in (("low", flow.loss.low), ("high", flow.loss.high)):
            families.gauge(
                f"wiregauge_loss_{edge}", "ratio", f"95 % bound of the loss ratio, {edge}.", labels, value
            )
    for name in ("goodput", *SINGLES):
        found = quantity(flow, name)
        if found.value is not None:
            text = f"{DEFINITIONS[name].title}: {DEFINITIONS[name].formula}."
            value = found.value / 1e9 if found.unit == "ns" else found.value
            families.gauge(f"wiregauge_{name}", _SUFFIX[found.unit], text, labels, value)


def _measured(families: _Families, flow: FlowResult, labels: dict[str, str], choice: Choice) -> None:
    for name in SERIES:
        summary = flow.summaries.get(name)
        if summary is None or not summary.n or choice.measure not in (None, name):
            continue
        what = DEFINITIONS[name].title
        family = f"wiregauge_{name}"
        series = flow.series.get(name)
        text = f"{what}: {DEFINITIONS[name].formula}."
        if name in flow.sketches:
            sketch = flow.sketches[name]
            up_to = [sketch.up_to(le) for le in BOUNDS_NS]
            total = None if sketch.minimum < 0 else sketch.mean * sketch.n / 1e9
            _histogram(families, family, text, labels, up_to, sketch.n, total)
        elif series is not None and len(values := series.value):
            total = None if values.min() < 0 else float(values.sum()) / 1e9
            _histogram(families, family, text, labels, at_or_below(values), len(values), total)
        uncertainty = summary.uncertainty.total if summary.uncertainty else None
        for statistic, value in (
            ("min", summary.minimum),
            ("mean", summary.mean),
            ("mean_uncertainty", uncertainty),
            ("sd", summary.sd),
            ("max", summary.maximum),
        ):
            if value is not None:
                text = f"{what}: {statistic.replace('_', ' ')}."
                families.gauge(f"{family}_{statistic}", "seconds", text, labels, value / 1e9)
        for quantile, q in QUANTILES.items():
            percentile = summary.percentiles.get(quantile)
            if percentile is None or percentile.value is None:
                continue
            own = {**labels, "quantile": f"{q:g}"}
            for suffix, edge in (
                ("", percentile.value),
                ("_low", percentile.low),
                ("_high", percentile.high),
            ):
                if edge is not None:
                    text = f"{what}: percentile{' (95 % interval, ' + suffix[1:] + ')' if suffix else ''}."
                    families.gauge(f"{family}_quantile{suffix}", "seconds", text, own, edge / 1e9)


def _histogram(
    families: _Families,
    name: str,
    text: str,
    labels: dict[str, str],
    up_to: Sequence[int],
    n: int,
    total: float | None,
) -> None:
    """Adds counts up to each of `BOUNDS_NS`; without a sum for negative values, which OpenMetrics forbids."""
    family = families.made.setdefault(
        name, HistogramMetricFamily(name, text, labels=list(labels), unit="seconds")
    )
    assert isinstance(family, HistogramMetricFamily)
    buckets = [(f"{le / 1e9:g}", float(count)) for le, count in zip(BOUNDS_NS, up_to, strict=True)]
    family.add_metric(list(labels.values()), [*buckets, ("+Inf", float(n))], total)


def at_or_below(values: Floats) -> list[int]:
    """The number of values (ns) at or below each of `BOUNDS_NS`."""
    counts: list[int] = np.searchsorted(np.sort(values), BOUNDS_NS, side="right").tolist()
    return counts

"""The distribution of a measure over a window: its figures, and every percentile and density for the page to draw."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import Response

from wiregauge.measures.definitions import QUANTILES
from wiregauge.measures.definitions.units import count_of
from wiregauge.measures.extremes import HopShare, hop_shares
from wiregauge.measures.metrics.summarise import summarise
from wiregauge.report.zoom import WINDOW_CURVE, WINDOW_WORDS, flow_key
from wiregauge.serve.index import Listed
from wiregauge.serve.opened import Opened
from wiregauge.serve.views import View, view_of

__all__ = ["distribution"]

MOST_VALUES: Final = 2_000_000
"""Values that an answer is computed from; more take seconds to read."""
MOST_PASSAGES: Final = 20_000_000
"""Passages of a run through switches of which those of a window are looked up."""
Floats = NDArray[np.float64]


def distribution(request: Request, _listed: Listed, opened: Opened) -> Response:
    """The distribution of one measure of a view as JSON; times in ns."""
    view = view_of(opened, request.query_params)
    return Response(msgspec.json.encode(_of_view(opened, view)), media_type="application/json")


def _of_view(opened: Opened, view: View) -> Mapping[str, Any]:
    measure, values = view.measures[0], {}
    with opened.reading:
        courses = opened.courses(view.run)
        found = {flow_key(flow): course for flow in view.flows if (course := courses.of(flow, measure))}
        windows = {key: course.columns(1, view.begin, view.end) for key, course in found.items()}
        count = sum(shape.values for shape in windows.values())
        if count > MOST_VALUES:
            note = (
                f"The window has {count_of(count, 'value')}. Percentiles are computed from at most {MOST_VALUES}: "
                "zoom in; the report has those of the whole run."
            )
            return {"measure": measure, "note": note, "flows": {}}
        values = {key: course.values(view.begin, view.end) for key, course in found.items()}
    filled = {key: of for key, of in values.items() if len(of)}
    if not filled:
        return {
            "measure": measure,
            "note": WINDOW_WORDS["nothing"],
            "flows": {},
        }
    said = WINDOW_WORDS["all"].format(values=count_of(count, "value"))
    note = said + WINDOW_WORDS["intervals"] + WINDOW_WORDS["unsupported"]
    edges = _edges(list(filled.values()))
    return {
        "measure": measure,
        "note": note,
        "edges": edges.tolist(),
        "hops": _hops(opened, view, filled),
        "flows": {
            key: {
                **_of_flow(measure, of, edges),
                "lost": int(windows[key].lost.sum()),
                "unknown": int(windows[key].unknown.sum()),
            }
            for key, of in filled.items()
        },
    }


def _hops(opened: Opened, view: View, drawn: Collection[str]) -> Mapping[str, Sequence[HopShare]]:
    """The passages of each flow through switches in the window; left out where they are too many to be read."""
    with opened.reading:
        if opened.courses(view.run).passages > MOST_PASSAGES:
            return {}
    return {
        flow_key(flow): hop_shares(opened.recorded, view.run, flow, view.begin, view.end)
        for flow in view.flows
        if flow_key(flow) in drawn
    }


def _of_flow(measure: str, values: Floats, edges: Floats) -> Mapping[str, Any]:
    summary = summarise(measure, [values], {}, clock_ns=0.0, timestamp_ns=0.0)
    half = summary.uncertainty.sampling if summary.uncertainty is not None else None
    ascending = np.sort(values)
    ranks = _ranks(len(values))
    return {
        "n": len(values),
        "least": float(ascending[0]),
        "greatest": float(ascending[-1]),
        "mean": [summary.mean, None if half is None else half],
        "percentiles": {
            name: [one.value, one.low, one.high]
            for name in QUANTILES
            if (one := summary.percentiles.get(name)) is not None and one.value is not None
        },
        "above": ((len(values) - ranks + 0.5) / len(values)).tolist(),
        "value": ascending[ranks - 1].tolist(),
        "counts": np.histogram(values, edges)[0].tolist(),
    }


def _edges(values: Sequence[Floats]) -> Floats:
    """The edges of the bins of all flows, as many as Rice's rule gives the flow with the most values."""
    least, greatest = min(float(of.min()) for of in values), max(float(of.max()) for of in values)
    bins = int(
        np.clip(2 * np.cbrt(max(map(len, values))), WINDOW_CURVE["fewest_bins"], WINDOW_CURVE["most_bins"])
    )
    return np.linspace(least, greatest if greatest > least else least + 1.0, bins + 1)


def _ranks(n: int) -> NDArray[np.int64]:
    """Ranks to draw, from 1: spaced evenly in the logarithm of how many values are above, and each of the greatest."""
    above = np.unique(np.round(np.geomspace(1, n, WINDOW_CURVE["ranks"])).astype(np.int64))
    return np.unique(
        np.concatenate([n + 1 - above, np.arange(max(1, n - WINDOW_CURVE["greatest"] + 1), n + 1), [1]])
    )

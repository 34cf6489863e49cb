"""Figures of calibrations, drawn from their stored content, so they can be drawn again at any time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wiregauge.calibrate.store import Calibration
from wiregauge.figures.model import Axis, Bars, Figure, Line, Panel, Rule, Scatter, Style, Trace
from wiregauge.figures.palette import BLUE, GREY, ORANGE, VERMILION
from wiregauge.figures.traces import US, rarities

_MOST_LOADS = 5


def pictures(calibration: Calibration) -> list[Figure]:
    """The figures of a calibration."""
    found: list[Figure] = _DRAWN[calibration.kind](calibration.results)
    return found


def _floats(values: Any) -> Any:
    return np.asarray(values, dtype=np.float64)


# -- clocks -------------------------------------------------------------------------------------------------------


def _clocks(results: Mapping[str, Any]) -> list[Figure]:
    found = []
    costs = [entry for entry in results["clocks"] if entry["cost"] is not None]
    if costs:
        ticks = [(float(k), entry["clock"].removeprefix("CLOCK_")) for k, entry in enumerate(costs)]
        traces: list[Trace] = []
        for k, entry in enumerate(costs):
            cost = entry["cost"]
            quantiles = dict(map(tuple, cost["quantiles_ns"]))
            ends = _floats([max(quantiles[0.01], 0.1), max(quantiles[0.999], 0.1)])
            traces.append(Line("p1 to p99.9", _floats([k, k]), ends, Style(BLUE, width=5), legend=k == 0))
            for name, key, style in (
                ("median", "median_ns", Style(ORANGE, marker="square")),
                ("max", "max_ns", Style(VERMILION, marker="triangle-up")),
            ):
                traces.append(
                    Scatter(name, _floats([k]), _floats([max(cost[key], 0.1)]), style, 8, legend=k == 0)
                )
        found.append(
            Figure(
                "clock-cost",
                "Cost of reading each clock",
                "Logarithmic; what is below 0.1 ns is drawn there.",
                [
                    Panel(
                        "",
                        Axis("clock", ticks=ticks, span=(-0.6, len(costs) - 0.4)),
                        Axis("cost of a reading (ns)", log=True),
                        traces,
                    )
                ],
                panel_height=320,
            )
        )
    drifting = [entry for entry in results["clocks"] if entry["drift"] is not None]
    panels = []
    for entry in drifting:
        drift = entry["drift"]
        t, away = _floats(drift["series"]["t_s"]), _floats(drift["series"]["difference_ns"])
        line = Line(entry["clock"], t, away, Style(BLUE), legend=False)
        title = f"{entry['clock']}: {round(drift['ppm'], 3) + 0.0:.3f} ppm"
        panels.append(Panel(title, Axis("time (s)"), Axis("ahead (ns)"), [line]))
    if panels:
        found.append(
            Figure(
                "clock-drift",
                f"Drift of clocks against {results['reference']}",
                "Each against the reference, from the first comparison on.",
                panels,
                2,
                share_y=False,
                panel_height=170,
            )
        )
    return found


# -- cable --------------------------------------------------------------------------------------------------------


def _cable(results: Mapping[str, Any]) -> list[Figure]:
    points = results["points"]
    x, y = (_floats([point[key] for point in points]) for key in ("length_m", "time_ns"))
    away = _floats([point["residual_ns"] for point in points])
    constant, slope = results["constant_overhead"]["value_ns"], results["per_metre"]["value_ns"]
    ends = _floats([0.0, float(x.max()) * 1.05])
    above: list[Trace] = [
        Line(f"{slope:.3f} x + {constant:.1f}", ends, constant + slope * ends, Style(GREY, "dash")),
    ]
    for point in points:
        if point["min_ns"] is not None and point["max_ns"] is not None:
            span = _floats([point["min_ns"], point["max_ns"]])
            above.append(
                Line(
                    "least to greatest",
                    _floats([point["length_m"]] * 2),
                    span,
                    Style(BLUE),
                    legend=point is points[0],
                )
            )
    above.append(Scatter("measured", x, y, Style(VERMILION), 8))
    below: list[Trace] = [
        Rule(0.0, "", Style(GREY, "dash"), vertical=False),
        Scatter("measured", x, away, Style(VERMILION), 8, legend=False),
    ]
    return [
        Figure(
            "cable",
            "Traversal time over cable length",
            "Its intercept is the constant overhead of the instrument, its slope the cable.",
            [
                Panel("", Axis("length (m)"), Axis("traversal time (ns)"), above),
                Panel("Residuals", Axis("length (m)"), Axis("measured - line (ns)"), below),
            ],
            share_y=False,
            panel_height=260,
        )
    ]


# -- loop ---------------------------------------------------------------------------------------------------------


def _loop(results: Mapping[str, Any]) -> list[Figure]:
    found = []
    for measure, word in (("latency", "application"), ("driver_latency", "driver")):
        points = [point for point in results["points"] if point["measure"] == measure]
        if not points:
            continue
        found.append(
            Figure(
                f"loop-repeats-{measure}",
                f"Back to back, {word} to {word}: every repeat",
                "Mark: mean of a repeat; bar: its least and greatest.",
                [_repeats(point) for point in points],
                min(3, len(points)),
                share_y=False,
                panel_height=220,
            )
        )
        found.append(
            Figure(
                f"loop-histograms-{measure}",
                f"Back to back, {word} to {word}: histograms of the repeats",
                "Payload, load and number of the repeat above each; drawn to p99.5 of all repeats of a point.",
                [panel for point in points[:_MOST_LOADS] for panel in _histograms(point)],
                max(len(point["repeats"]) for point in points),
                share_x=False,
                share_y=False,
                panel_height=150,
            )
        )
    return found


def _repeats(point: Mapping[str, Any]) -> Panel:
    traces: list[Trace] = [Rule(point["systematic_ns"] / US, "", Style(GREY, "dash"), vertical=False)]
    for k, repeat in enumerate(point["repeats"]):
        span = _floats([repeat["min_ns"], repeat["max_ns"]]) / US
        traces.append(Line("least to greatest", _floats([k + 1.0] * 2), span, Style(BLUE), legend=k == 0))
    means = _floats([repeat["mean_ns"] for repeat in point["repeats"]]) / US
    traces.append(
        Scatter("mean", _floats(range(1, len(means) + 1)), means, Style(VERMILION, marker="square"), 7)
    )
    count = len(means)
    return Panel(
        f"{point['payload_bytes']} B · load {point['load_percent']} %",
        Axis("repeat", ticks=[(k + 1.0, str(k + 1)) for k in range(count)], span=(0.4, count + 0.6)),
        Axis("latency (µs)"),
        traces,
    )


def _histograms(point: Mapping[str, Any]) -> list[Panel]:
    return [
        Panel(
            f"{point['payload_bytes']} B, {point['load_percent']} % · {k + 1}",
            Axis("latency (µs)"),
            Axis("messages" if k == 0 else ""),
            [_bars(repeat["histogram"], Style(BLUE))],
        )
        for k, repeat in enumerate(point["repeats"])
    ]


def _bars(shape: Mapping[str, Any], style: Style) -> Bars:
    counts = _floats(shape["counts"])
    width = shape["width_ns"] / US
    middle = shape["low_ns"] / US + (np.arange(len(counts)) + 0.5) * width
    return Bars("values", middle, counts, np.zeros(len(counts)), width, style, legend=False)


# -- generator ----------------------------------------------------------------------------------------------------


def _generator(results: Mapping[str, Any]) -> list[Figure]:
    panels: list[Panel] = []
    spread: list[Panel] = []
    for case in results["cases"]:
        name, timestamp = list(case["timestamps"].items())[-1]
        first = _floats(timestamp["first_ns"]) / US
        k = np.arange(len(first), dtype=np.float64)
        panels.append(
            Panel(
                f"{case['case']} ({name})",
                Axis("frame"),
                Axis("transmit time (µs)"),
                [
                    Line("ideal", k, k * case["gap_ns"] / US, Style(GREY, "dash"), legend=not panels),
                    Scatter("sent", k, first, Style(BLUE), 4, legend=not panels),
                ],
            )
        )
        spread.append(
            Panel(
                f"{case['case']} ({name})",
                Axis("gap - ideal gap (µs)"),
                Axis("gaps"),
                [_bars(timestamp["histogram"], Style(BLUE))],
            )
        )
    drawing: dict[str, Any] = {"share_x": False, "share_y": False, "panel_height": 280}
    return [
        Figure(
            "generator-first",
            "The first hundred frames",
            "When each was sent, against the ideal.",
            panels,
            2,
            **drawing,
        ),
        Figure(
            "generator-gaps",
            "Gaps against what was asked",
            "From p0.5 to p99.5 of the gaps.",
            spread,
            2,
            **drawing,
        ),
    ]


# -- pacing -------------------------------------------------------------------------------------------------------


def _pacing(results: Mapping[str, Any]) -> list[Figure]:
    named = [
        ("wiregauge", "sender", Style(BLUE)),
        ("timer_loop", "timer loop", Style(VERMILION, "dash", "square")),
    ]
    there = [(results[key], name, style) for key, name, style in named if results[key] is not None]
    # Most ticks are within a microsecond, a few milliseconds late; only an early sender needs a linear axis.
    log = all(min(one["series"]["value_ns"]) > 0 for one, _, _ in there)
    late = Axis("timestamp - ideal tick (µs)", log=log)
    panels = [
        Panel(
            name,
            Axis("time (s)"),
            late,
            [
                Scatter(
                    name,
                    _floats(one["series"]["t_s"]),
                    _floats(one["series"]["value_ns"]) / US,
                    style,
                    3,
                    0.7,
                )
            ],
        )
        for one, name, style in there
    ]
    tails: list[Trace] = [
        Line(name, _floats(one["tail"]["one_in"]), _floats(one["tail"]["value_ns"]) / US, style)
        for one, name, style in there
    ]
    most = max(float(max(one["tail"]["one_in"])) for one, _, _ in there) if there else 1.0
    return [
        Figure(
            "pacing",
            "Jitter against an ideal tick",
            f"Every {results['period_ns'] / 1e6:g} ms: when it was due, and how far off it came.",
            panels,
            share_x=True,
            share_y=True,
        ),
        Figure(
            "pacing-tail",
            "Lateness by rarity",
            "",
            [Panel("", Axis("percentile", log=True, ticks=rarities(most)), late, tails)],
            panel_height=320,
        ),
    ]


# -- linearity ----------------------------------------------------------------------------------------------------


def _linearity(results: Mapping[str, Any]) -> list[Figure]:
    points = results["points"]
    known = _floats([point["known_ns"] for point in points])
    off = _floats([point["measured_ns"] for point in points]) - results["zero_ns"] - (known - known[0])
    traces: list[Trace] = [Rule(0.0, "", Style(GREY, "dash"), vertical=False)]
    for x, y, point in zip(known, off, points, strict=True):
        half = point["half_width_ns"] or 0.0
        bar = _floats([y - half, y + half])
        traces.append(Line("95 %", _floats([x] * 2) / US, bar, Style(BLUE), legend=point is points[0]))
    traces.append(Scatter("mean", known / US, off, Style(VERMILION), 7))
    return [
        Figure(
            "linearity",
            "Measured less known delay",
            "From the first delay on; a straight instrument stays on the dashed line.",
            [Panel("", Axis("known delay (µs)"), Axis("measured - known (ns)"), traces)],
            panel_height=320,
        )
    ]


_DRAWN = {
    "clocks": _clocks,
    "cable": _cable,
    "loop": _loop,
    "generator": _generator,
    "pacing": _pacing,
    "linearity": _linearity,
}

"""Draws a figure for the report, as the JSON that plotly.js reads.

Plotly's Python package validates every property of every trace, which costs more than judging the campaign, so the
JSON is written directly. The script is the bundle of cartesian charts (`vendor`, decision 27).
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from math import ceil, log10

import numpy as np

from wiregauge.figures.model import (
    Axis,
    Band,
    Bars,
    Box,
    Figure,
    Floats,
    Line,
    Panel,
    Rule,
    Scatter,
    Spans,
    Style,
    Trace,
)
from wiregauge.figures.palette import INK, PALE
from wiregauge.figures.ticks import extent, linear_range, log_ticks, logarithmic

Json = dict[str, object]

FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
_GAP_X, _GAP_Y = 62, 66
_RIGHT, _TOP, _BOTTOM = 26, 66, 52
_LEAST_PANEL = 170
"""Width of a panel, px, in which anything can still be seen."""
_LETTER = 6.2
"""Width of a letter of tick labels, pixels."""
_WIDTH = 1040
_SYMBOLS = {
    "circle": "circle",
    "square": "square",
    "diamond": "diamond",
    "triangle-up": "triangle-up",
    "x": "x",
    "cross": "cross",
}


def script() -> str:
    """The text of plotly.js, included in a page once."""
    bundle = resources.files("wiregauge.figures").joinpath("vendor", "plotly-cartesian.min.js")
    return bundle.read_text(encoding="utf-8")


def height(figure: Figure, *, legend: bool = True) -> int:
    """Height of the drawn figure, px, with a legend above it or without."""
    inner = figure.rows * figure.panel_height + (figure.rows - 1) * _GAP_Y
    return inner + _top(figure, legend=legend) + _below(figure)


def _top(figure: Figure, *, legend: bool) -> int:
    titled = any(panel.title for panel in figure.panels)
    return _TOP if legend else 26 if titled else 10


def _below(figure: Figure) -> int:
    return _BOTTOM if any(panel.x.shown for panel in figure.panels) else 10


def least_width(figure: Figure) -> int:
    """Width, px, below which the texts under the axes would overlap, or long names beside them leave no room; narrower
    pages scroll."""
    texts = [[text for _, text in panel.x.ticks] for panel in figure.panels if panel.x.shown]
    widest = max((len(ticks) * (max(map(len, ticks)) * _LETTER + 8) for ticks in texts if ticks), default=0.0)
    between = (figure.columns - 1) * _GAP_X
    wanted = figure.margin_left + _RIGHT + between + ceil(figure.columns * widest)
    beside = figure.margin_left + _RIGHT + _LEAST_PANEL
    return max(min(260 * figure.columns, 760), beside, min(wanted, _WIDTH))


def draw(figure: Figure, *, legend: bool = True) -> Json:
    """`{"data": …, "layout": …, "config": …}` of the figure for `Plotly.newPlot`.

    Without `legend` the page shows its own (`figures.legend`), which wraps in narrow windows.
    """
    top_margin, bottom_margin = _top(figure, legend=legend), _below(figure)
    inner_w = _WIDTH - figure.margin_left - _RIGHT
    inner_h = height(figure, legend=legend) - top_margin - bottom_margin
    gap_x = _GAP_X if not figure.share_y else _GAP_X * 0.62
    wide = (1 - (figure.columns - 1) * gap_x / inner_w) / figure.columns
    high = figure.panel_height / inner_h
    only_points = all(isinstance(trace, Scatter) for panel in figure.panels for trace in panel.traces)
    # Small points need larger ones in the legend; lines would only get thicker.
    sizing = "constant" if only_points else "trace"
    layout: Json = {
        "height": height(figure, legend=legend),
        "margin": {"l": figure.margin_left, "r": _RIGHT, "t": top_margin, "b": bottom_margin},
        "font": {"family": FONT, "size": 12, "color": INK},
        "paper_bgcolor": "white" if legend else "rgba(0,0,0,0)",
        "plot_bgcolor": "white" if legend else "rgba(0,0,0,0)",
        "separators": ".\N{THIN SPACE}",
        "hovermode": "closest",
        "hoverlabel": {"font": {"family": FONT, "size": 12}},
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 1 + 34 / inner_h,
            "yanchor": "bottom",
            "traceorder": "normal",
            "itemsizing": sizing,
        },
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "#8A8F98", "activecolor": INK},
        "barmode": "overlay",
        "dragmode": "zoom" if figure.zoomable else False,
        "annotations": [],
        "shapes": [],
    }
    annotations: list[Json] = []
    rules: list[Json] = []
    data: list[Json] = []
    named: set[str] = set()
    count = len(figure.panels)
    for k, panel in enumerate(figure.panels):
        row, column = divmod(k, figure.columns)
        left = column * (wide + gap_x / inner_w)
        top = 1 - row * (high + _GAP_Y / inner_h)
        suffix = "" if k == 0 else str(k + 1)
        below = k + figure.columns < count
        places: tuple[Json, Json] = (
            {"domain": [left, left + wide], "anchor": f"y{suffix}"},
            {"domain": [max(top - high, 0.0), top], "anchor": f"x{suffix}"},
        )
        x, y = _axes(figure, panel, places, first=k == 0, column=column, below=below)
        layout[f"xaxis{suffix}"], layout[f"yaxis{suffix}"] = x, y
        if panel.title:
            annotations.append(
                {
                    "text": f"<b>{plain(panel.title)}</b>",
                    "x": left,
                    "y": top,
                    "xref": "paper",
                    "yref": "paper",
                    "xanchor": "left",
                    "yanchor": "bottom",
                    "yshift": 4,
                    "showarrow": False,
                    "font": {"size": 12.5},
                }
            )
        for trace in panel.traces:
            if isinstance(trace, Rule):
                rules.append(_rule(trace, suffix))
                continue
            axes = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
            data.extend(drawn | axes for drawn in _trace(trace, named))
    if not legend or not any(trace.get("showlegend") for trace in data):
        layout["showlegend"] = False
    layout["annotations"], layout["shapes"] = annotations, rules
    return {"data": data, "layout": layout, "config": {"displayModeBar": figure.zoomable}}


def plain(text: str) -> str:
    """The text without markup for plotly.js, which names from files must not use."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _axes(
    figure: Figure, panel: Panel, places: tuple[Json, Json], *, first: bool, column: int, below: bool
) -> tuple[Json, Json]:
    """The axes of a panel; `below`: there is a panel under it."""
    x = _axis(panel.x, [panel] if not figure.share_x else figure.panels, "x", figure.columns)
    y = _axis(panel.y, [panel] if not figure.share_y else figure.panels, "y", figure.columns)
    x, y = x | places[0], y | places[1]
    if not first and figure.share_x:
        x["matches"] = "x"
    if not first and figure.share_y:
        y["matches"] = "y"
    if figure.share_x and below:
        x["title"] = {"text": ""}
    if figure.share_y and column:
        y["title"] = {"text": ""}
    if not column and panel.y.shown:
        # Long tick labels push the title outwards instead of covering it.
        y["automargin"] = "left"
    if figure.range_slider:
        x["rangeslider"] = {"visible": True, "thickness": 0.09, "bgcolor": "#F6F7F9"}
    return x, y


def _axis(axis: Axis, panels: Sequence[Panel], which: str, columns: int) -> Json:
    if not axis.shown:
        hidden: Json = {"visible": False, "fixedrange": True}
        if axis.span is not None:
            hidden["range"] = list(axis.span)
        return hidden
    drawn: Json = {
        "title": {"text": plain(axis.title), "standoff": 8, "font": {"size": 12}},
        "showline": True,
        "linecolor": "#B8BEC8",
        "gridcolor": PALE,
        "zeroline": False,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": "#B8BEC8",
        "automargin": False,
        "tickfont": {"size": 11},
        "separatethousands": True,
        "exponentformat": "none",
    }
    if logarithmic(axis, panels, which):
        drawn |= {"type": "log"}
        span = axis.span or extent(panels, which, positive=True)
        if span is not None:
            low, high = span
            pad = 0 if axis.span else 0.03 * max(log10(high / low), 0.3)
            drawn["range"] = [log10(low) - pad, log10(high) + pad]
            ticks = list(axis.ticks) or log_ticks(low * 10**-pad, high * 10**pad)
            drawn |= {"tickvals": [v for v, _ in ticks], "ticktext": [text for _, text in ticks]}
        return drawn
    # By default plotly.js would choose a range per panel and then apply the last one to all matching axes.
    span = axis.span or linear_range(panels, which)
    if span is not None:
        drawn["range"] = list(span)
    if axis.ticks:
        drawn |= {
            "tickvals": [v for v, _ in axis.ticks],
            "ticktext": [plain(text) for _, text in axis.ticks],
        }
    if which == "y":
        drawn |= {"rangemode": "normal", "nticks": 6}
    else:
        # plotly.js would turn labels that do not fit, into the panel below.
        drawn |= {"nticks": 8 if columns < 3 else max(20 // columns, 2), "tickangle": 0}
    return drawn


def _numbers(values: Floats) -> list[float | None]:
    """Values with six significant digits, which a screen cannot exceed: half the size of the page."""
    known = np.isfinite(values)
    shown = _significant(np.where(known, values, 0.0), 6).tolist()
    return shown if known.all() else [v if k else None for v, k in zip(shown, known.tolist(), strict=True)]


def _exact(values: Floats) -> list[float]:
    """Values with nine significant digits, for positions close together and far from zero."""
    exact: list[float] = _significant(values, 9).tolist()
    return exact


def _significant(values: Floats, digits: int) -> Floats:
    """Values with `digits` significant digits, scaled by powers of ten so that each prints with these digits."""
    size = np.abs(values)
    place = digits - 1 - np.floor(np.log10(np.where(size > 0, size, 1.0))).astype(np.int64)
    place = np.clip(place, -22, 22)
    up, down = 10.0 ** np.maximum(place, 0), 10.0 ** np.maximum(-place, 0)
    rounded: Floats = np.round(values * up / down) / up * down
    return rounded


def _rgba(colour: str, alpha: float) -> str:
    return f"rgba({int(colour[1:3], 16)},{int(colour[3:5], 16)},{int(colour[5:7], 16)},{alpha})"


def _legend(name: str, wanted: bool, named: set[str]) -> Json:
    first = wanted and name not in named
    if first:
        named.add(name)
    text = plain(name)
    return {"name": text, "legendgroup": text, "showlegend": first}


def _stroke(style: Style, *, steps: bool = False) -> Json:
    line: Json = {"color": style.colour, "width": style.width, "dash": style.dash}
    return line | {"shape": "hv"} if steps else line


def _trace(trace: Trace, named: set[str]) -> list[Json]:
    match trace:
        case Line():
            drawn: Json = {
                "type": "scatter",
                "mode": "lines+markers" if trace.markers else "lines",
                "x": _numbers(trace.x),
                "y": _numbers(trace.y),
                "line": _stroke(trace.style, steps=trace.steps),
                "marker": {"symbol": _SYMBOLS[trace.style.marker], "size": 7},
                **_legend(trace.name, trace.legend, named),
            }
            if trace.filled:
                drawn |= {"fill": "tozeroy", "fillcolor": _rgba(trace.style.colour, 0.10)}
            return [drawn]
        case Band():
            x = np.concatenate([trace.x, trace.x[::-1]])
            y = np.concatenate([trace.high, trace.low[::-1]])
            return [
                {
                    "type": "scatter",
                    "x": _numbers(x),
                    "y": _numbers(y),
                    "fill": "toself",
                    "fillcolor": _rgba(trace.style.colour, 0.13),
                    "line": {"width": 0},
                    "mode": "lines",
                    "hoverinfo": "skip",
                    **_legend(trace.name, False, named),
                }
            ]
        case Scatter():
            marks: Json = {
                "type": "scatter",
                "mode": "markers+text" if trace.texts else "markers",
                "x": _numbers(trace.x),
                "y": _numbers(trace.y),
                "marker": {
                    "color": trace.style.colour,
                    "symbol": _SYMBOLS[trace.style.marker],
                    "size": trace.size,
                    "opacity": trace.opacity,
                },
                **_legend(trace.name, trace.legend, named),
            }
            if trace.texts:
                marks |= {
                    "text": [plain(text) for text in trace.texts],
                    "textposition": "bottom center" if trace.texts_below else "top center",
                    "textfont": {"size": 13},
                    "hoverinfo": "text",
                    "cliponaxis": False,
                }
            if trace.hints:
                marks |= {"hovertext": [plain(text) for text in trace.hints], "hoverinfo": "text"}
            return [marks]
        case Box():
            return _box(trace, named)
        case Bars():
            return [
                {
                    "type": "bar",
                    "x": _numbers(trace.x),
                    "y": _numbers(trace.height),
                    "base": _numbers(trace.base),
                    "width": trace.width,
                    "marker": {
                        "color": trace.style.colour,
                        "line": {"color": "white", "width": 0.8},
                        "pattern": {
                            "shape": trace.pattern,
                            "fillmode": "overlay",
                            "fgcolor": "#FFFFFF",
                            "fgopacity": 0.7,
                            "size": 6,
                            "solidity": 0.2,
                        },
                    },
                    **_legend(trace.name, trace.legend, named),
                }
            ]
        case Spans():
            return [
                {
                    "type": "bar",
                    "orientation": "h",
                    "x": _numbers(trace.length),
                    "y": _numbers(trace.lane),
                    "base": _exact(trace.start),
                    "width": trace.height,
                    "marker": {
                        "color": "rgba(0,0,0,0)" if trace.hollow else trace.style.colour,
                        "line": {
                            "color": trace.style.colour if trace.hollow else "white",
                            "width": 1.4 if trace.hollow else 0.3,
                        },
                    },
                    "hovertext": [plain(text) for text in trace.texts],
                    "hoverinfo": "text" if trace.texts else "skip",
                    **_legend(trace.name, trace.legend, named),
                }
            ]
        case Rule():
            return []


def _box(box: Box, named: set[str]) -> list[Json]:
    drawn: list[Json] = [
        {
            "type": "box",
            "x": [box.x],
            "q1": [box.q1],
            "median": [box.median],
            "q3": [box.q3],
            "lowerfence": [box.low],
            "upperfence": [box.high],
            "width": box.width,
            "line": {"color": box.style.colour, "width": 1.4},
            "fillcolor": _rgba(box.style.colour, 0.22),
            "boxpoints": False,
            "hoverinfo": "y",
            **_legend(box.name, box.legend, named),
        }
    ]
    if len(box.outliers):
        drawn.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [box.x] * len(box.outliers),
                "y": _numbers(box.outliers),
                "marker": {
                    "color": _rgba(box.style.colour, 0.55),
                    "symbol": f"{_SYMBOLS[box.style.marker]}-open",
                    "size": 3.5,
                },
                "hoverinfo": "y",
                **_legend(box.name, False, named),
            }
        )
    return drawn


def _rule(rule: Rule, suffix: str) -> Json:
    # The meaning is in the legend: a text next to a rule would lie on the lines that cross it.
    line = {"color": rule.style.colour, "width": rule.style.width, "dash": rule.style.dash}
    if rule.vertical:
        place: Json = {
            "x0": rule.at,
            "x1": rule.at,
            "xref": f"x{suffix}",
            "y0": 0,
            "y1": 1,
            "yref": f"y{suffix} domain",
        }
    else:
        place = {
            "y0": rule.at,
            "y1": rule.at,
            "yref": f"y{suffix}",
            "x0": 0,
            "x1": 1,
            "xref": f"x{suffix} domain",
        }
    return {"type": "line", "line": line, **place}

"""Draws a figure as PNG and SVG through Matplotlib, without a display."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from wiregauge.figures.model import (
    Axis,
    Band,
    Bars,
    Box,
    Figure,
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
from wiregauge.files import whole

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas
    from matplotlib.ticker import NullLocator

FORMATS = frozenset({"png", "svg"})
_DASHES = {"solid": "-", "dash": (0, (5, 2)), "dot": (0, (1.2, 1.6)), "dashdot": (0, (5, 1.6, 1.2, 1.6))}
_MARKERS = {"circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "x": "x", "cross": "P"}
_INCH = 100
_NOTE_POINTS = 7.5
_NOTE_LINE = 1.3 * _NOTE_POINTS / 72
"""Line height of notes, inches."""
_NOTE_CHARACTERS = 72 / (0.62 * _NOTE_POINTS)
"""Characters of notes per inch, for average text."""
_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": "#B8BEC8",
    "axes.labelcolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": PALE,
    "grid.linewidth": 0.7,
    "hatch.color": "white",
    "hatch.linewidth": 0.7,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "wiregauge",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
}


def save(figure: Figure, directory: Path, formats: Iterable[str]) -> list[Path]:
    """Writes `<id>.<format>` for each format into `directory` and returns the paths.

    A figure written by this program before is replaced, any other file is not. Raises ForeignFileError for that, and
    ValueError for a format other than png and svg.
    """
    wanted = sorted(set(formats))
    for name in wanted:
        if name not in FORMATS:
            raise ValueError(f"figures are written as png or svg, not as {name}")
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    with mpl.rc_context(_STYLE):
        for name in wanted:
            # Drawing shifts a constrained layout slightly each time: only a fresh canvas reproduces the file.
            canvas = Canvas(figsize=_size(figure), layout="constrained")
            _draw(figure, canvas)
            path = directory / f"{figure.id}.{name}"
            # A date in the file would make every export different.
            metadata = {"Date": None, "Creator": "wiregauge"} if name == "svg" else {"Software": "wiregauge"}
            with whole(path, replacing=b"wiregauge") as beside:
                canvas.savefig(beside, dpi=200, metadata=metadata)
            paths.append(path)
    return paths


def _size(figure: Figure) -> tuple[float, float]:
    height = (figure.rows * figure.panel_height * 0.78 + 130) / _INCH
    lines = _notes(figure).count("\n")
    return _width(figure), max(height, 2.4) + lines * _NOTE_LINE


def _width(figure: Figure) -> float:
    return 7.6 if figure.columns == 1 else 9.2


def _notes(figure: Figure) -> str:
    """The notes wrapped to the width of the figure, so that nothing is cut off."""
    return fill(" ".join(figure.notes), int(_width(figure) * _NOTE_CHARACTERS))


def _draw(figure: Figure, canvas: Canvas) -> None:
    grid = canvas.subplots(
        figure.rows, figure.columns, sharex=figure.share_x, sharey=figure.share_y, squeeze=False
    )
    legend: dict[str, Artist] = {}
    for k, axes in enumerate(grid.flat):
        if k >= len(figure.panels):
            axes.set_visible(False)
            continue
        panel = figure.panels[k]
        for trace in panel.traces:
            handle = _trace(axes, trace)
            if handle is not None and getattr(trace, "legend", False):
                legend.setdefault(trace.name if not isinstance(trace, Rule) else trace.text, handle)
        _finish(figure, axes, panel, k)
    if legend:
        small = all(isinstance(trace, Scatter) for panel in figure.panels for trace in panel.traces)
        # The figure's title avoids the legend's title; Matplotlib places both outside the axes.
        canvas.legend(
            list(legend.values()),
            list(legend),
            loc="outside upper left",
            ncols=min(len(legend), 6 if max(map(len, legend)) < 12 else 4),
            fontsize=8.5,
            title=figure.title,
            title_fontproperties={"weight": "bold", "size": 11.5},
            alignment="left",
            markerscale=4 if small else 1,
        )
    else:
        canvas.suptitle(figure.title, fontsize=11.5, fontweight="bold", x=0.01, ha="left")
    if figure.notes:
        canvas.supxlabel(_notes(figure), fontsize=_NOTE_POINTS, x=0.01, ha="left")


def _finish(figure: Figure, axes: Axes, panel: Panel, k: int) -> None:
    if panel.title:
        axes.set_title(panel.title, fontsize=9.5, fontweight="bold", loc="left")
    if not panel.x.shown:
        axes.set_axis_off()
    below = k + figure.columns < len(figure.panels)
    _scale(axes, panel.x, "x", figure, panel)
    _scale(axes, panel.y, "y", figure, panel)
    if not (figure.share_x and below):
        axes.set_xlabel(panel.x.title)
        axes.tick_params(labelbottom=True)
    if not (figure.share_y and k % figure.columns):
        axes.set_ylabel(panel.y.title)


def _scale(axes: Axes, axis: Axis, which: str, figure: Figure, panel: Panel) -> None:
    side = axes.xaxis if which == "x" else axes.yaxis
    limits = axes.set_xlim if which == "x" else axes.set_ylim
    ticks = list(axis.ticks)
    if logarithmic(axis, figure.panels, which):
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
        span = axis.span or extent(figure.panels, which, positive=True)
        if span is not None:
            low, high = span if axis.span else (span[0] / 1.05, span[1] * 1.05)
            limits(low, high)
            ticks = ticks or log_ticks(low, high, 6)
        side.set_minor_locator(_no_ticks())
    else:
        shared = figure.share_x if which == "x" else figure.share_y
        reach = axis.span or linear_range(figure.panels if shared else [panel], which)
        if reach is not None:
            limits(*reach)
    if ticks:
        side.set_ticks([value for value, _ in ticks], [text for _, text in ticks])


def _no_ticks() -> NullLocator:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def _stroke(style: Style) -> dict[str, object]:
    return {"color": style.colour, "linestyle": _DASHES[style.dash], "linewidth": style.width * 0.8}


def _trace(axes: Axes, trace: Trace) -> Artist | None:
    match trace:
        case Line():
            options = _stroke(trace.style)
            if trace.markers:
                options |= {"marker": _MARKERS[trace.style.marker], "markersize": 4.5}
            if trace.steps:
                options["drawstyle"] = "steps-post"
            (drawn,) = axes.plot(trace.x, trace.y, **options)  # type: ignore[arg-type]
            if trace.filled:
                axes.fill_between(trace.x, trace.y, color=trace.style.colour, alpha=0.10, linewidth=0)
            return drawn
        case Band():
            axes.fill_between(
                trace.x, trace.low, trace.high, color=trace.style.colour, alpha=0.13, linewidth=0
            )
            return None
        case Scatter():
            marks = axes.scatter(
                trace.x,
                trace.y,
                s=(trace.size * 0.6) ** 2,
                color=trace.style.colour,
                marker=_MARKERS[trace.style.marker],
                alpha=trace.opacity,
                linewidths=0,
                zorder=3,
            )
            for x, y, text in zip(trace.x, trace.y, trace.texts, strict=False):
                axes.annotate(
                    text,
                    (x, y),
                    textcoords="offset points",
                    xytext=(0, -16 if trace.texts_below else 9),
                    ha="center",
                )
            return marks
        case Bars():
            bars = axes.bar(
                trace.x,
                trace.height,
                trace.width,
                bottom=trace.base,
                color=trace.style.colour,
                hatch=trace.pattern * 2 or None,
                edgecolor="white",
                linewidth=0.6,
            )
            return bars.patches[0] if bars.patches else None
        case Spans():
            spans = axes.barh(
                trace.lane,
                trace.length,
                trace.height,
                left=trace.start,
                color="none" if trace.hollow else trace.style.colour,
                edgecolor=trace.style.colour if trace.hollow else "white",
                linewidth=1.1 if trace.hollow else 0.3,
                zorder=4 if trace.hollow else 3,
            )
            return spans.patches[0] if spans.patches else None
        case Box():
            return _box(axes, trace)
        case Rule():
            line = axes.axvline if trace.vertical else axes.axhline
            return line(trace.at, **_stroke(trace.style))  # type: ignore[arg-type]


def _box(axes: Axes, box: Box) -> Artist:
    colour = box.style.colour
    stats = {
        "med": box.median,
        "q1": box.q1,
        "q3": box.q3,
        "whislo": box.low,
        "whishi": box.high,
        "fliers": box.outliers,
    }
    drawn = axes.bxp(
        [stats],
        positions=[box.x],
        widths=[box.width],
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": colour, "alpha": 0.3, "edgecolor": colour},
        medianprops={"color": colour, "linewidth": 1.6},
        whiskerprops={"color": colour},
        capprops={"color": colour},
        flierprops={
            "marker": _MARKERS[box.style.marker],
            "markersize": 1.8,
            "markeredgecolor": colour,
            "alpha": 0.5,
        },
    )
    first: Artist = drawn["boxes"][0]
    return first

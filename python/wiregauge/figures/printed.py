"""Draws a figure as PDF, PNG and SVG through Matplotlib, without a display."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import ceil, log10
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

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
from wiregauge.figures.styles import REPORT, PrintStyle
from wiregauge.figures.ticks import extent, linear_range, log_ticks, logarithmic
from wiregauge.files import whole

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas
    from matplotlib.ticker import NullLocator

FORMATS = ("pdf", "png", "svg")
MARK = b"wiregauge"
"""Text in the head or at the end of every file of this module: a file with it may be replaced."""
_DASHES = {"solid": "-", "dash": (0, (5, 2)), "dot": (0, (1.2, 1.6)), "dashdot": (0, (5, 1.6, 1.2, 1.6))}
_MARKERS = {"circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "x": "x", "cross": "P"}
_INCH_MM = 25.4
_POINT_MM = _INCH_MM / 72
_DPI = {"png": 200, "print": 600}
_LETTER = 0.52
"""Width of an average letter, in heights."""
_AXIS = 0.8
"""The part of the width of a panel that its axis has; numbers and title have the rest."""


class TooHighError(ValueError):
    """A figure does not fit the page of its style; the text says what does."""


def save(figure: Figure, directory: Path, formats: Iterable[str]) -> list[Path]:
    """Writes `<id>.<format>` for each format into `directory`, as the report has it, and returns the paths.

    A figure written by this program before is replaced, any other file is not. Raises ForeignFileError for that, and
    ValueError for a format other than pdf, png and svg.
    """
    directory.mkdir(parents=True, exist_ok=True)
    return [write(figure, directory / f"{figure.id}.{name}") for name in _known(formats)]


def write(figure: Figure, path: Path, style: PrintStyle = REPORT, dpi: int | None = None) -> Path:
    """Writes one file in the format of its ending and returns its path; a picture has `dpi`, by default as its style.

    Raises TooHighError where the figure does not fit the style, and otherwise as `save`.
    """
    (form,) = _known([path.suffix.removeprefix(".")])
    with _settings(style), whole(path, replacing=MARK) as beside:
        # Drawing shifts a constrained layout slightly each time: only a fresh canvas reproduces the file.
        canvas = drawn(figure, style)
        # A date in the file would make every export different.
        metadata: dict[str, dict[str, Any]] = {
            "svg": {"Date": None, "Creator": "wiregauge"},
            "pdf": {"CreationDate": None, "Creator": "wiregauge", "Title": figure.title},
            "png": {"Software": "wiregauge"},
        }
        usual = _DPI["png"] if style.titled else _DPI["print"]
        canvas.savefig(beside, dpi=dpi or usual, format=form, metadata=metadata[form])
    return path


def _known(formats: Iterable[str]) -> list[str]:
    wanted = sorted(set(formats))
    for name in wanted:
        if name not in FORMATS:
            raise ValueError(
                f"figures are written as {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, not as {name}"
            )
    return wanted


def size_mm(figure: Figure, style: PrintStyle) -> tuple[float, float]:
    """Width and height of a printed figure, mm. Raises TooHighError."""
    width, height = _size(_fitted(figure, style), style)
    return width * _INCH_MM, height * _INCH_MM


def _fitted(figure: Figure, style: PrintStyle) -> Figure:
    """The figure with no more panels side by side than the style has room for."""
    return replace(figure, columns=max(min(figure.columns, style.columns), 1))


def caption(figure: Figure) -> str:
    """What stands below the figure on paper: title, what it shows, and the remarks, n among them."""
    return " ".join(filter(None, (f"{figure.title}.", figure.caption, *figure.notes)))


@contextmanager
def _settings(style: PrintStyle) -> Iterator[None]:
    """Matplotlib's settings of a style. A letter that no font has is drawn as a box, without a word on it."""
    import matplotlib as mpl

    small = {f"{axis}tick.labelsize": style.small_pt for axis in "xy"}
    thin = {
        "axes.linewidth": 0.5,
        "xtick.major.width": 0.5,
        "ytick.major.width": 0.5,
        "xtick.major.size": 2.5,
        "ytick.major.size": 2.5,
        "xtick.major.pad": 2.0,
        "ytick.major.pad": 2.0,
        "axes.labelpad": 2.0,
        "axes.edgecolor": INK,
        "hatch.linewidth": 0.5,
        "grid.linewidth": 0.4,
    }
    rules: dict[Any, Any] = {
        "font.family": list(style.fonts),
        "font.size": style.size_pt,
        "axes.labelsize": style.size_pt,
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
        # Type 42 (TrueType): journals refuse Type 3.
        "pdf.fonttype": 42,
        "ps.fonttype": 42,
        # The page of a report is read by programs; on paper each letter must look the same everywhere.
        "svg.fonttype": "none" if style.titled else "path",
        "svg.hashsalt": "wiregauge",
        "text.color": INK,
        "text.parse_math": False,
        "xtick.color": INK,
        "ytick.color": INK,
        **({} if style.titled else {**small, **thin}),
    }
    with mpl.rc_context(rules), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def drawn(figure: Figure, style: PrintStyle) -> Canvas:
    """The canvas of a figure in a style. Raises TooHighError."""
    from matplotlib.figure import Figure as Canvas
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    fitted = _fitted(figure, style)
    tight = ConstrainedLayoutEngine(w_pad=0.02, h_pad=0.02, wspace=0.02, hspace=0.03)
    canvas = Canvas(figsize=_size(fitted, style), layout="constrained" if style.titled else tight)
    _draw(fitted, canvas, style)
    return canvas


def _size(figure: Figure, style: PrintStyle) -> tuple[float, float]:
    """Width and height, inches."""
    if style.titled:
        height = (figure.rows * figure.panel_height * 0.78 + 130) / 100
        return _report_width(figure), max(height, 2.4) + _notes(figure).count("\n") * _NOTE_LINE
    names = _legend_names(figure)
    line_mm = 1.35 * style.small_pt * _POINT_MM
    legend_mm = ceil(len(names) / _legend_columns(names, style)) * line_mm if names else 0.0
    titles_mm = line_mm if any(panel.title for panel in figure.panels) else 0.0
    shown = any(panel.x.shown for panel in figure.panels)
    legend_mm += 0.6 * line_mm if names else 0.0
    axis_mm = 2.9 * style.size_pt * _POINT_MM if shown else 0.0
    between_mm = 1.5 * line_mm if shown else 0.0
    # Panels with many lanes, as of frames at ports, say how high they are.
    row_mm = style.panel_mm * max(1.0, figure.panel_height / 300)
    height = figure.rows * (row_mm + titles_mm) + (figure.rows - 1) * between_mm + axis_mm + legend_mm
    if height > style.height_mm:
        raise TooHighError(
            f"{figure.id} has {figure.rows} rows of panels, {height:.0f} mm in all, and {style.name} has "
            f"{style.height_mm:.0f} mm; choose fewer flows or points, or a wider style"
        )
    return style.width_mm / _INCH_MM, height / _INCH_MM


_NOTE_POINTS = 7.5
_NOTE_LINE = 1.3 * _NOTE_POINTS / 72
"""Line height of notes, inches."""
_NOTE_CHARACTERS = 72 / (0.62 * _NOTE_POINTS)
"""Characters of notes per inch, for average text."""


def _report_width(figure: Figure) -> float:
    return 7.6 if figure.columns == 1 else 9.2


def _notes(figure: Figure) -> str:
    """The notes wrapped to the width of the figure, so that nothing is cut off."""
    return fill(" ".join(figure.notes), int(_report_width(figure) * _NOTE_CHARACTERS))


def _legend_names(figure: Figure) -> list[str]:
    names = [
        trace.text if isinstance(trace, Rule) else trace.name
        for panel in figure.panels
        for trace in panel.traces
        if (isinstance(trace, Rule) and trace.text) or getattr(trace, "legend", False)
    ]
    return list(dict.fromkeys(filter(None, names)))


def _legend_columns(names: list[str], style: PrintStyle) -> int:
    """Entries of the legend side by side."""
    longest = max(map(len, names))
    if style.titled:
        return min(len(names), 6 if longest < 12 else 4)
    entry_mm = (longest * _LETTER + 3.2) * style.small_pt * _POINT_MM
    return max(1, min(len(names), int(style.width_mm / entry_mm)))


def _draw(figure: Figure, canvas: Canvas, style: PrintStyle) -> None:
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
            handle = _trace(axes, trace, style)
            name = (
                trace.text
                if isinstance(trace, Rule)
                else trace.name
                if getattr(trace, "legend", False)
                else ""
            )
            if handle is not None and name:
                legend.setdefault(name, handle)
        _finish(figure, axes, panel, k, style)
    if style.titled or legend:
        _legend(figure, canvas, legend, style)
    if style.titled and figure.notes:
        canvas.supxlabel(_notes(figure), fontsize=_NOTE_POINTS, x=0.01, ha="left")


def _legend(figure: Figure, canvas: Canvas, legend: dict[str, Artist], style: PrintStyle) -> None:
    if not legend:
        canvas.suptitle(figure.title, fontsize=11.5, fontweight="bold", x=0.01, ha="left")
        return
    small = all(isinstance(trace, Scatter) for panel in figure.panels for trace in panel.traces)
    # The figure's title avoids the legend's title; Matplotlib places both outside the axes.
    titled: dict[str, Any] = {
        "title": figure.title,
        "title_fontproperties": {"weight": "bold", "size": 11.5},
        "alignment": "left",
    }
    tight: dict[str, Any] = {
        "handlelength": 2.2,
        "columnspacing": 1.0,
        "handletextpad": 0.5,
        "labelspacing": 0.2,
        "borderaxespad": 0.4,
        "borderpad": 0.0,
    }
    canvas.legend(
        list(legend.values()),
        list(legend),
        loc="outside upper left" if style.titled else "outside upper center",
        ncols=_legend_columns(list(legend), style),
        fontsize=style.small_pt,
        markerscale=4 if small else 1,
        **(titled if style.titled else tight),
    )


def _finish(figure: Figure, axes: Axes, panel: Panel, k: int, style: PrintStyle) -> None:
    if panel.title:
        size, weight = (9.5, "bold") if style.titled else (style.small_pt, "normal")
        axes.set_title(
            panel.title, fontsize=size, fontweight=weight, loc="left", pad=None if style.titled else 2.5
        )
    if not panel.x.shown:
        axes.set_axis_off()
    below = k + figure.columns < len(figure.panels)
    _scale(axes, panel.x, "x", figure, panel, style)
    _scale(axes, panel.y, "y", figure, panel, style)
    if not (figure.share_x and below):
        axes.set_xlabel(panel.x.title)
        axes.tick_params(labelbottom=True)
    if not (figure.share_y and k % figure.columns):
        axes.set_ylabel(panel.y.title)


def _scale(axes: Axes, axis: Axis, which: str, figure: Figure, panel: Panel, style: PrintStyle) -> None:
    side = axes.xaxis if which == "x" else axes.yaxis
    limits = axes.set_xlim if which == "x" else axes.set_ylim
    ticks = list(axis.ticks)
    if logarithmic(axis, figure.panels, which):
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
        span = axis.span or extent(figure.panels, which, positive=True)
        if span is not None:
            low, high = span if axis.span else (span[0] / 1.05, span[1] * 1.05)
            limits(low, high)
            ticks = ticks or log_ticks(low, high, 6 if style.titled else 5)
        side.set_minor_locator(_no_ticks())
    else:
        shared = figure.share_x if which == "x" else figure.share_y
        reach = axis.span or linear_range(figure.panels if shared else [panel], which)
        if reach is not None:
            limits(*reach)
    if which == "x" and ticks and not style.titled:
        if axes.get_xscale() == "log":
            ticks = _apart(ticks, axes.get_xlim(), figure.columns, style)
        else:
            _turn(axes, [text for _, text in ticks], figure.columns, style)
    if ticks:
        side.set_ticks([value for value, _ in ticks], [text for _, text in ticks])


def _apart(
    ticks: list[tuple[float, str]], limits: tuple[float, float], columns: int, style: PrintStyle
) -> list[tuple[float, str]]:
    """The ticks of a logarithmic axis whose texts do not run into that of the one before; the last is one of them."""
    letter_mm = _LETTER * style.small_pt * _POINT_MM
    per_decade_mm = _AXIS * style.width_mm / columns / log10(limits[1] / limits[0])
    chosen: list[tuple[float, str]] = []
    for value, text in reversed(ticks):
        if chosen:
            after, beside = chosen[-1]
            room_mm = per_decade_mm * log10(after / value)
            if room_mm < letter_mm * (len(text) + len(beside) + 2) / 2:
                continue
        chosen.append((value, text))
    return chosen[::-1]


def _turn(axes: Axes, texts: list[str], columns: int, style: PrintStyle) -> None:
    """Turns the texts under an axis where they would run together."""
    longest = max((len(line) for text in texts for line in text.split("\n")), default=0)
    room_mm = _AXIS * style.width_mm / columns / len(texts)
    if (longest + 1) * _LETTER * style.small_pt * _POINT_MM > room_mm:
        axes.tick_params(axis="x", labelrotation=40)
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right")
            label.set_rotation_mode("anchor")


def _no_ticks() -> NullLocator:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def _stroke(style: Style, scale: float) -> dict[str, Any]:
    return {"color": style.colour, "linestyle": _DASHES[style.dash], "linewidth": style.width * scale}


def _trace(axes: Axes, trace: Trace, style: PrintStyle) -> Artist | None:
    match trace:
        case Line():
            options = _stroke(trace.style, style.line)
            if trace.markers:
                options |= {"marker": _MARKERS[trace.style.marker], "markersize": 7.5 * style.mark}
            if trace.steps:
                options["drawstyle"] = "steps-post"
            (line,) = axes.plot(trace.x, trace.y, **options)
            if trace.filled:
                axes.fill_between(trace.x, trace.y, color=trace.style.colour, alpha=0.10, linewidth=0)
            return line
        case Band():
            axes.fill_between(
                trace.x, trace.low, trace.high, color=trace.style.colour, alpha=0.13, linewidth=0
            )
            return None
        case Scatter():
            return _scatter(axes, trace, style)
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
            return _box(axes, trace, style)
        case Rule():
            line_at = axes.axvline if trace.vertical else axes.axhline
            return line_at(trace.at, **_stroke(trace.style, style.line))


def _scatter(axes: Axes, trace: Scatter, style: PrintStyle) -> Artist:
    marks = axes.scatter(
        trace.x,
        trace.y,
        s=(trace.size * style.mark) ** 2,
        color=trace.style.colour,
        marker=_MARKERS[trace.style.marker],
        alpha=trace.opacity,
        linewidths=0,
        zorder=3,
        # Of thousands of marks a picture at 600 dots an inch stays small; axes and letters stay lines.
        rasterized=not style.titled and len(trace.x) > _MOST_VECTORS,
    )
    for x, y, text in zip(trace.x, trace.y, trace.texts, strict=False):
        axes.annotate(
            text,
            (x, y),
            textcoords="offset points",
            xytext=(0, -16 if trace.texts_below else 9),
            ha="center",
            fontsize=None if style.titled else style.small_pt,
        )
    return marks


_MOST_VECTORS = 4_000
"""Marks of a series up to which each is drawn as lines."""


def _box(axes: Axes, box: Box, style: PrintStyle) -> Artist:
    colour = box.style.colour
    stats = {
        "med": box.median,
        "q1": box.q1,
        "q3": box.q3,
        "whislo": box.low,
        "whishi": box.high,
        "fliers": box.outliers,
    }
    width = 1.25 * style.line
    made = axes.bxp(
        [stats],
        positions=[box.x],
        widths=[box.width],
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": colour, "alpha": 0.3, "edgecolor": colour, "linewidth": width},
        medianprops={"color": colour, "linewidth": 2 * style.line},
        whiskerprops={"color": colour, "linewidth": width},
        capprops={"color": colour, "linewidth": width},
        flierprops={
            "marker": _MARKERS[box.style.marker],
            "markersize": 3 * style.mark,
            "markeredgecolor": colour,
            "markeredgewidth": width / 2,
            "alpha": 0.5,
        },
    )
    first: Artist = made["boxes"][0]
    return first

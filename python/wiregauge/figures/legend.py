"""The legend of a figure, shown by a page above the drawing, where it wraps instead of covering the panels."""

from __future__ import annotations

from msgspec import Struct

from wiregauge.figures.interactive import plain
from wiregauge.figures.model import Bars, Box, Dash, Figure, Marker, Rule, Scatter, Spans, Style, Trace

_DASHES: dict[Dash, str] = {"solid": "", "dash": "6 3", "dot": "1.5 2.5", "dashdot": "6 2 1.5 2"}
_MARKERS: dict[Marker, str] = {
    "circle": '<circle cx="13" cy="6" r="4" fill="{0}"/>',
    "square": '<rect x="9" y="2" width="8" height="8" fill="{0}"/>',
    "diamond": '<path d="M13 1l5 5-5 5-5-5z" fill="{0}"/>',
    "triangle-up": '<path d="M13 1.5l5 9h-10z" fill="{0}"/>',
    "x": '<path d="M9.5 2.5l7 7m0-7l-7 7" stroke="{0}" stroke-width="2.2"/>',
    "cross": '<path d="M13 1.5v9m-4.5-4.5h9" stroke="{0}" stroke-width="2.6"/>',
}


class LegendEntry(Struct, frozen=True):
    """One entry: its text, the group of traces it stands for (empty for rules), and its sample as SVG."""

    text: str
    group: str
    sample: str


def legend(figure: Figure) -> list[LegendEntry]:
    """Every name of the figure once, in drawing order."""
    found: dict[tuple[str, str], LegendEntry] = {}
    for panel in figure.panels:
        for trace in panel.traces:
            if isinstance(trace, Rule):
                if trace.text:
                    found.setdefault(("rule", trace.text), LegendEntry(trace.text, "", _sample(trace)))
            elif getattr(trace, "legend", False) and trace.name:
                entry = LegendEntry(trace.name, plain(trace.name), _sample(trace))
                found.setdefault(("trace", trace.name), entry)
    return list(found.values())


def _sample(trace: Trace) -> str:
    """An SVG sample of how the trace is drawn, made from styles alone without any text of a file."""
    style = trace.style
    match trace:
        case Scatter():
            inner = _MARKERS[style.marker].format(style.colour)
        case Bars():
            inner = f'<rect x="4" y="1" width="18" height="10" fill="{style.colour}"/>'
            inner += _HATCHES.get(trace.pattern, "")
        case Box():
            inner = (
                f'<rect x="6" y="1.5" width="14" height="9" fill="{style.colour}" fill-opacity=".25" '
                f'stroke="{style.colour}" stroke-width="1.4"/>'
            )
        case Spans():
            inner = f'<rect x="2" y="2" width="22" height="8" fill="{style.colour}"/>'
        case _:
            inner = _stroke(style)
            if getattr(trace, "markers", False):
                inner += _MARKERS[style.marker].format(style.colour)
    return f'<svg width="26" height="12" viewBox="0 0 26 12" aria-hidden="true">{inner}</svg>'


def _stroke(style: Style) -> str:
    return (
        f'<line x1="0" x2="26" y1="6" y2="6" stroke="{style.colour}" stroke-width="{max(style.width, 1.2):g}" '
        f'stroke-dasharray="{_DASHES[style.dash]}"/>'
    )


_HATCHES = {
    "/": '<path d="M6 11l6-10m0 10l6-10" stroke="#fff" stroke-width="1.2"/>',
    "\\": '<path d="M8 1l6 10m0-10l6 10" stroke="#fff" stroke-width="1.2"/>',
    "x": '<path d="M8 1l8 10m0-10l-8 10" stroke="#fff" stroke-width="1.2"/>',
}

"""Okabe and Ito's colours, safe for colour-blind readers, with dashes and markers to distinguish grey prints too."""

from __future__ import annotations

from wiregauge.figures.model import Dash, Marker, Style

BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
SKY, ORANGE, YELLOW, BLACK = "#56B4E9", "#E69F00", "#F0E442", "#222222"
GREY, PALE, INK = "#8A8F98", "#E6E8EC", "#2B2F36"
PALE_BLUE = "#9CCBE8"

# A darker and a lighter tone per protocol: flows of one protocol have one hue.
_COLOURS = (
    (BLUE, SKY),
    (VERMILION, ORANGE),
    (GREEN, "#7CC9B1"),
    (PURPLE, "#E7BFD5"),
    ("#6B6E75", "#B4B7BD"),
    (BLACK, GREY),
)
_DASHES: tuple[Dash, ...] = ("solid", "dash", "dot", "dashdot")
_MARKERS: tuple[Marker, ...] = ("circle", "square", "diamond", "triangle-up", "x", "cross")

# Light to dark, for an ordered quantity such as the payload; the order remains in grey.
_RAMP = (PALE_BLUE, "#6FB0DA", "#4594C7", "#2577AF", "#115A8E", "#083D66")

PROTOCOLS = ("udp", "raw", "rc", "tt", "be")

PARTS = {"stack_down": SKY, "network": BLUE, "stack_up": ORANGE, "turnaround": GREY}
PATTERNS = {"stack_down": "/", "network": "", "stack_up": "\\", "turnaround": "x"}


def protocol_order(protocol: str) -> int:
    """Rank of a protocol in legends and tables; unknown ones are last."""
    return PROTOCOLS.index(protocol) if protocol in PROTOCOLS else len(PROTOCOLS)


SHADED = 5
"""Flows from which on those of a protocol have its shades."""


def variety(protocol: str, flow_position: int, flows: int = 1) -> Style:
    """The style of a protocol (hue) and flow (tone, dash, marker): the same in every figure of a report.

    With five flows or more the tones are the six shades of the hue, so that twelve flows differ.
    """
    tones: tuple[str, ...] = _COLOURS[protocol_order(protocol)]
    if flows >= SHADED:
        tones = tuple(shade(protocol, place).colour for place in range(len(_SHADES)))
    return Style(
        tones[flow_position % len(tones)],
        _DASHES[flow_position % len(_DASHES)],
        _MARKERS[(2 * flow_position + (protocol != PROTOCOLS[0])) % len(_MARKERS)],
    )


def dash_of(position: int) -> Dash:
    """The dash of one of several lines of the same colour."""
    return _DASHES[position % len(_DASHES)]


def apart(position: int) -> Style:
    """The style of one of several flows of one protocol whose colours alone tell them apart: twelve before any comes
    again."""
    hue, tone = position % len(_COLOURS), position // len(_COLOURS) % 2
    return Style(_COLOURS[hue][tone], marker=_MARKERS[position % len(_MARKERS)])


def side(position: int) -> Style:
    """The style of one of several compared run directories; hue, dash and marker each distinguish it."""
    return Style(
        _COLOURS[position % len(_COLOURS)][0],
        _DASHES[position % len(_DASHES)],
        _MARKERS[position % len(_MARKERS)],
    )


def verdict_style(verdict: str | None) -> Style:
    """The style of a compared figure by its verdict, with different markers for prints in grey."""
    return {
        "worse": Style(VERMILION, marker="triangle-up"),
        "better": Style(GREEN, marker="diamond"),
        "same": Style("#6B6E75", marker="circle"),
        "undecided": Style(ORANGE, marker="square"),
    }.get(verdict or "", Style(GREY, marker="x"))


_SHADES = (0.0, 0.45, -0.35, 0.2, 0.65, -0.55)
"""Lightening of a tone towards white, 0 to 1, or (negative) darkening towards black."""


def shade(protocol: str, place: int) -> Style:
    """The colour of flow number `place` of a protocol whose flows are side by side: six shades of one hue."""
    base = _COLOURS[min(protocol_order(protocol), len(_COLOURS) - 1)][0]
    by = _SHADES[place % len(_SHADES)]
    parts = [int(base[k : k + 2], 16) for k in (1, 3, 5)]
    mixed = [round(part + (255 - part) * by) if by >= 0 else round(part * (1 + by)) for part in parts]
    return Style("#" + "".join(f"{part:02X}" for part in mixed))


def ordered(position: int, count: int) -> Style:
    """The style of step `position` of `count` ordered ones, light to dark."""
    at = round(position * (len(_RAMP) - 1) / max(count - 1, 1)) if count > 1 else len(_RAMP) - 2
    return Style(_RAMP[at], _DASHES[position % len(_DASHES)], _MARKERS[position % len(_MARKERS)])

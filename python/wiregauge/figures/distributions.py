"""Figures of one measure of some flows: cumulative distribution, percentiles, density, histogram, boxes, course.

Each takes the shapes and the name of the measure; None is the main one of each flow. A figure without any value is
None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from msgspec.structs import replace

from wiregauge.figures.model import Axis, Bars, Figure, Line, Panel, Scatter, Style, Trace, told
from wiregauge.figures.palette import ordered, protocol_order
from wiregauge.figures.panels import MOST_PANELS, reading_order, small_multiples, style_of, sweeps_size
from wiregauge.figures.traces import US, beyond_note, box_of, courses_note, rarities, tail_lines
from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.distribution import Distribution
from wiregauge.results.shapes import ECDF_POINTS, BoxShape, DensityShape, EcdfShape, Key, Shapes, TailShape

__all__ = ["against_time", "boxes", "cumulative", "density", "histograms", "percentiles", "seen_part"]

S = TypeVar("S")
FAR_APART = 10.0
"""Ratio of the ends of an axis of times from which it is logarithmic."""
CENTRAL = frozenset({"period", "receive_period", "bag_spacing"})
"""Measures whose values are all but equal: their density is that of the central 98 %."""
BINS = 50
"""Classes of a histogram."""
_MOST_COUNTED = 4
"""Series up to which each is named, with its number of values."""
_STRETCHED = 4.0
"""Ratio of the range of all values to that of the whiskers from which boxes are drawn once more, enlarged."""


def cumulative(shapes: Shapes, measure: str | None) -> Figure | None:
    """The share of messages that took at most so long."""
    held = shapes.values(measure)
    if not held:
        return None

    def lines(key: Key, shape: EcdfShape, style: Style) -> list[Trace]:
        # From 0 on: the curve rises at the least value.
        x = np.concatenate([shape.value[:1], shape.value]) / US
        y = 100 * np.concatenate([[0.0], shape.share])
        return [Line(key.label, x, y, style, steps=True)]

    panels, columns, notes = small_multiples(
        shapes.ecdfs(measure),
        lines,
        Axis(_axis(measure, held), log=_is_far(held)),
        Axis("at or below (%)", span=(0.0, 101.0)),
    )
    return Figure(
        _id(measure, "cdf"),
        f"{_title(measure, held)}: cumulative distribution",
        "The share of messages with at most this value.",
        panels,
        columns,
        notes=[*notes, _thinned(held), *_numbers(held)],
        measures=_measures(measure, held),
    )


def percentiles(shapes: Shapes, measure: str | None) -> Figure | None:
    """The complementary distribution against rarity on a logarithmic axis, as HdrHistogram draws it."""
    held = shapes.values(measure)
    if not held:
        return None
    tails = shapes.tails(measure)
    most = max(float(shape.one_in[-1]) for shape in tails.values())
    first, *rarer = rarities(most, 6)
    ticks = [first, *([(2.0, "50 %")] if most * 1.5 >= 2 else []), *rarer]

    def lines(key: Key, shape: TailShape, style: Style) -> list[Trace]:
        return tail_lines(shape, key.label, style, legend=False)

    panels, columns, notes = small_multiples(
        tails,
        lines,
        Axis("percentile", log=True, ticks=ticks, span=(1.0, most * 1.1)),
        Axis(_axis(measure, held), log=True),
    )
    return Figure(
        _id(measure, "percentiles"),
        f"{_title(measure, held)}: percentiles",
        told(
            (True, "How long rare messages took: the further right, the rarer."),
            (
                any(float(shape.supported_to) < float(shape.one_in[-1]) for shape in tails.values()),
                "Where the line turns into thin dots, n is too small for the percentile: these values happened, but do "
                "not predict others.",
            ),
        ),
        panels,
        columns,
        notes=[*notes, *_numbers(held)],
        measures=_measures(measure, held),
    )


def density(shapes: Shapes, measure: str | None) -> Figure | None:
    """Densities, per payload and load (as MAPS 2015, Figure 5); of periods as that paper's Figure 3."""
    if measure in CENTRAL:
        return _central_density(shapes, measure)
    held = shapes.values(measure)
    # On a logarithmic axis values that are not positive have no place.
    data = shapes.densities(measure)
    drawn = {key: shape for key, shape in data.items() if len(shape.x)}
    if not drawn:
        return None
    log = any(shape.log for shape in drawn.values())
    panels, columns, notes = small_multiples(
        drawn,
        _density_lines(drawn, per=1.0 if log else US),
        Axis(_axis(measure, held), log=log),
        _density_axis(drawn, "density (1/decade)" if log else "density (1/µs)"),
    )
    notes += [*_constant_note(drawn), *_hidden_note(data, "that are not positive")]
    return Figure(
        _id(measure, "density"),
        f"{_title(measure, held)}: density",
        "How densely the values lie.",
        panels,
        columns,
        hint="A narrow peak: they hardly vary. A second peak or a long tail: some messages took another time.",
        notes=[*notes, *_numbers(held)],
        measures=_measures(measure, held),
    )


def _central_density(shapes: Shapes, measure: str | None) -> Figure | None:
    """A panel for each flow and protocol, a line for each payload."""
    held, data = shapes.values(measure), shapes.central_densities(measure)
    if not data:
        return None
    axis = _axis(measure, held)
    labels = list(dict.fromkeys((k.label, k.rest) for k in sorted(data, key=reading_order)))
    sizes = sorted({key.size for key in data})
    panels = []
    for label, rest in labels[:MOST_PANELS]:
        mine = sorted((k for k in data if (k.label, k.rest) == (label, rest)), key=lambda k: k.size)
        own = {key: data[key] for key in mine}
        top = max(
            (float(shape.y.max()) * US for shape in own.values() if shape.constant is None), default=1.0
        )
        traces: list[Trace] = [
            _density_line(shape, key.size.text, ordered(sizes.index(key.size), len(sizes)), top, US)
            for key, shape in own.items()
        ]
        title = label + (f" · {rest}" if rest else "")
        panels.append(Panel(title, Axis(axis), _density_axis(own, "density (1/µs)"), traces))
    outside = any(shape.outside for shape in data.values())
    return Figure(
        _id(measure, "density"),
        f"{_title(measure, held)}: density",
        "How regular it is." + (" The central 98 % and what is near them are in view." if outside else ""),
        panels,
        min(2, len(panels)),
        notes=[*_constant_note(data), *_hidden_note(data, "outside the view"), *_numbers(held)],
        measures=_measures(measure, held),
    )


def _density_lines(
    data: Mapping[Key, DensityShape], per: float
) -> Callable[[Key, DensityShape, Style], list[Trace]]:
    """A drawer of densities on a shared axis, `per` times as high as in the shapes."""
    top = max((float(shape.y.max()) * per for shape in data.values() if shape.constant is None), default=1.0)

    def lines(key: Key, shape: DensityShape, style: Style) -> list[Trace]:
        return [_density_line(shape, key.label, style, top, per, filled=True)]

    return lines


def _density_line(
    shape: DensityShape, name: str, style: Style, top: float, per: float, *, filled: bool = False
) -> Line:
    """A density; equal values are a line at their value, as high as the highest density."""
    if shape.constant is not None:
        return Line(name, np.full(2, shape.constant / US), np.array([0.0, top]), style)
    seen = seen_part(shape, top / per)
    return Line(name, shape.x[seen] / US, shape.y[seen] * per, style, filled=filled)


def seen_part(shape: DensityShape, top: float) -> slice:
    """The part of a density that has messages, with one more point on either side.

    The threshold of 1e-9 of `top` is above rounding errors and below one message.
    """
    high = np.flatnonzero(shape.y > 1e-9 * top)
    return slice(max(int(high[0]) - 1, 0), int(high[-1]) + 2) if len(high) else slice(0, 0)


def _density_axis(data: Mapping[Key, DensityShape], title: str) -> Axis:
    """The axis of densities; without numbers where all series are constant."""
    known = any(shape.constant is None for shape in data.values())
    return Axis(title) if known else Axis(title, ticks=[(0.0, "0")])


def _constant_note(data: Mapping[Key, DensityShape]) -> list[str]:
    constant = any(shape.constant is not None for shape in data.values())
    return ["A plain vertical line: all values are equal, which is no density."] if constant else []


def _hidden_note(data: Mapping[Key, DensityShape], why: str) -> list[str]:
    outside = sum(shape.outside for shape in data.values())
    return [f"{outside} values {why} are not drawn."] if outside else []


def histograms(shapes: Shapes, measure: str | None, bins: int = BINS) -> Figure | None:
    """Counts of values in equal classes: a panel for each flow and point."""
    held = shapes.values(measure)
    if not held:
        return None
    data = shapes.histograms(measure, bins)
    keys = sorted(data, key=reading_order)
    panels = []
    for key in keys[:MOST_PANELS]:
        edges = data[key].edges / US
        counts = data[key].counts.astype(np.float64)
        width = float(edges[1] - edges[0])
        margin = 0.03 * float(edges[-1] - edges[0])
        span = float(edges[0]) - margin, float(edges[-1]) + margin
        middle = (edges[1:] + edges[:-1]) / 2
        bars = Bars(
            key.label, middle, counts, np.zeros(len(counts)), width, style_of(key, keys), legend=False
        )
        panels.append(
            Panel(_of_key(key, keys), Axis(_axis(measure, held), span=span), Axis("messages"), [bars])
        )
    left = len(keys) - len(panels)
    return Figure(
        _id(measure, "histogram"),
        f"{_title(measure, held)}: histogram",
        f"Messages in {bins} equal classes from the least to the greatest value.",
        panels,
        min(3, len(panels)),
        share_y=False,
        notes=[*([f"{left} more flows and points are not drawn."] if left else []), *_numbers(held)],
        measures=_measures(measure, held),
    )


def boxes(shapes: Shapes, measure: str | None) -> Figure | None:
    """Boxes over payloads or side by side (as MAPS 2015, Figure 4), enlarged where values are far beyond whiskers."""
    held, data = shapes.values(measure), shapes.boxes(measure)
    if not data:
        return None
    keys = sorted(data, key=reading_order)
    title, by_size = _axis(measure, held), sweeps_size(keys)
    groups: dict[tuple[str, str], list[Key]] = {}
    for key in keys:
        groups.setdefault((key.name if by_size else "", key.rest), []).append(key)
    panels: list[Panel] = []
    for (name, rest), chosen in list(groups.items())[: MOST_PANELS // 2]:
        x, drawn = (_by_size if by_size else _side_by_side)(chosen, data, keys)
        label = " · ".join(part for part in (f"flow {name}" if name else "", rest) if part)
        near = _whiskers(chosen, data)
        stretched = _extent(chosen, data) > _STRETCHED * (near[1] - near[0])
        if not stretched:
            panels.append(Panel(label, x, Axis(title), drawn))
            continue
        panels.append(Panel(": ".join(filter(None, (label, "all"))), x, Axis(title), drawn))
        enlarged = ": ".join(filter(None, (label, "enlarged to the whiskers")))
        panels.append(Panel(enlarged, x, Axis(title, span=near), drawn))
    hidden = sum(shape.outside - len(shape.outliers) for shape in data.values())
    outside = sum(shape.outside for shape in data.values())
    return Figure(
        _id(measure, "box"),
        f"{_title(measure, held)}: boxes",
        told(
            (True, "Median, the middle half of the values, and whiskers from p1 to p99."),
            (bool(outside), "Marks: values beyond the whiskers."),
            (any("enlarged" in panel.title for panel in panels), "Where these are far, once more enlarged."),
        ),
        panels,
        2 if len(panels) > 1 else 1,
        share_x=False,
        share_y=False,
        notes=[
            *([f"Of the values beyond whiskers, {beyond_note(outside, outside - hidden)}"] if hidden else []),
            *_numbers(held),
        ],
        measures=_measures(measure, held),
        panel_height=260,
    )


def _by_size(
    chosen: Sequence[Key], data: Mapping[Key, BoxShape], keys: Sequence[Key]
) -> tuple[Axis, list[Trace]]:
    """Boxes over the payloads, those of protocols and run directories next to each other."""
    sizes = sorted({key.size for key in keys})
    kinds = list(dict.fromkeys((key.side, key.protocol) for key in chosen))
    width = 0.7 / len(kinds)
    traces: list[Trace] = [
        box_of(
            data[key],
            " ".join(filter(None, (key.side, key.protocol))),
            sizes.index(key.size) + (kinds.index((key.side, key.protocol)) - (len(kinds) - 1) / 2) * width,
            width * 0.8,
            style_of(key, [one for one in keys if one.name == key.name]),
        )
        for key in chosen
    ]
    return Axis("payload (B)", ticks=[(float(k), size.tick) for k, size in enumerate(sizes)]), traces


def _side_by_side(
    chosen: Sequence[Key], data: Mapping[Key, BoxShape], keys: Sequence[Key]
) -> tuple[Axis, list[Trace]]:
    """A box for each flow, protocol and run directory."""
    ordered_keys = sorted(chosen, key=lambda key: (key.flow, key.name, protocol_order(key.protocol)))
    traces: list[Trace] = [
        # The texts under the axis name them.
        replace(box_of(data[key], key.label, float(k), 0.5, style_of(key, keys)), legend=False)
        for k, key in enumerate(ordered_keys)
    ]
    ticks = [(float(k), _short(key, keys)) for k, key in enumerate(ordered_keys)]
    return Axis("", ticks=ticks, span=(-0.6, len(ordered_keys) - 0.4)), traces


def _whiskers(chosen: Sequence[Key], data: Mapping[Key, BoxShape]) -> tuple[float, float]:
    """The range from the lowest to the highest whisker with a margin, µs."""
    low = min(data[key].low_whisker for key in chosen) / US
    high = max(data[key].high_whisker for key in chosen) / US
    margin = 0.06 * (high - low) or 0.001
    return low - margin, high + margin


def _extent(chosen: Sequence[Key], data: Mapping[Key, BoxShape]) -> float:
    """The range of all values, µs."""
    ends = [
        end
        for key in chosen
        for end in (data[key].low_whisker, data[key].high_whisker, *data[key].outliers.tolist())
    ]
    return float(max(ends) - min(ends)) / US


def against_time(shapes: Shapes, measure: str | None) -> Figure | None:
    """The measure against send time: a panel for each run."""
    data = shapes.courses(measure)
    if not data:
        return None
    keys = list(data)
    titles = shapes.run_titles()
    panels = []
    least = min(float(np.nanmin(shape.least)) for shape in data.values())
    greatest = max(float(np.nanmax(shape.greatest)) for shape in data.values())
    y = Axis(_axis(measure, data), log=least > 0 and greatest > FAR_APART * least)
    mixed = measure is None and len({key.main for key in keys}) > 1
    groups = list(dict.fromkeys((key.side, key.run) for key in keys))
    # A name that is the title of its panel says nothing more in a legend.
    named = any(key.label not in titles[key.side, key.run] for key in keys)
    for side, run in groups:
        traces: list[Trace] = []
        for key in (k for k in keys if (k.side, k.run) == (side, run)):
            t, value = data[key].marks()
            what = (": round trip" if key.relayed else ": one-way") if mixed else ""
            traces.append(
                Scatter(f"{key.label}{what}", t, value / US, style_of(key, keys), 3, 0.7, legend=named)
            )
        panels.append(Panel(titles[side, run], Axis("time in the run (s)"), y, traces))
    return Figure(
        _id(measure, "time"),
        f"{_title(measure, data)} against time",
        "Each value at the instant of sending.",
        panels,
        min(3, len(panels)),
        notes=[courses_note(list(data.values()), "messages")],
        measures=_measures(measure, data),
        hint="Drag to zoom, double-click to return.",
        range_slider=len(panels) == 1,
        panel_height=360 if len(panels) == 1 else 210,
    )


def _main_of(measure: str | None, keys: Mapping[Key, object]) -> list[str]:
    """The measures that a figure has: the one it is of, or the main ones of its flows."""
    return [measure] if measure is not None else sorted({key.main for key in keys})


def _measures(measure: str | None, keys: Mapping[Key, object]) -> list[str]:
    return [name for name in _main_of(measure, keys) if name in DEFINITIONS]


def _id(measure: str | None, kind: str) -> str:
    """The name of a figure, and of its file: `rtt-percentiles`; that of main measures has the latency's."""
    return f"{measure or 'latency'}-{kind}"


def _title(measure: str | None, keys: Mapping[Key, object]) -> str:
    names = _main_of(measure, keys)
    if len(names) == 1:
        return DEFINITIONS[names[0]].title
    relayed = list(dict.fromkeys(key.name for key in keys if key.relayed))
    flows = "flow" if len(relayed) == 1 else "flows"
    named = f"{flows} {', '.join(relayed)}" if len(relayed) <= _MOST_COUNTED else "relayed flows"
    return f"One-way latency, and round trip of {named}"


def _axis(measure: str | None, keys: Mapping[Key, object]) -> str:
    names = _main_of(measure, keys)
    title = DEFINITIONS[names[0]].title if len(names) == 1 else "time"
    return f"{title[:1].lower()}{title[1:]} (µs)"


def _is_far(held: Mapping[Key, Distribution]) -> bool:
    """Whether an axis of all values must be logarithmic for most of them to be told apart."""
    least = min(float(one.values.min()) for one in held.values())
    return least > 0 and max(float(one.values.max()) for one in held.values()) > FAR_APART * least


def _thinned(held: Mapping[Key, Distribution]) -> str:
    most = max(one.n for one in held.values())
    return (
        "Each value is a step."
        if most <= ECDF_POINTS
        else f"A curve has {ECDF_POINTS} steps, evenly by rank, with the least and the greatest value."
    )


def _numbers(held: Mapping[Key, Distribution]) -> list[str]:
    """How many values there are, and where they are not all single ones."""
    counts = {key: one.n for key, one in held.items()}
    least, most = min(counts.values()), max(counts.values())
    if least == most:
        said = [f"n = {most}{' each' if len(counts) > 1 else ''}."]
    elif len(counts) <= _MOST_COUNTED and len({key.label for key in counts}) == len(counts):
        said = ["n = " + ", ".join(f"{n} ({key.label})" for key, n in counts.items()) + "."]
    else:
        said = [f"n = {least} to {most} each."]
    parts = [one.sample for one in held.values() if one.sample is not None]
    if parts:
        said.append(
            f"Of {len(parts)} of {len(held)} series a sample is drawn, in whole stretches of messages."
        )
    if any(one.counts is not None for one in held.values()):
        said.append("Large flows: all messages, counted in fine buckets; least and greatest are exact.")
    return said


def _short(key: Key, keys: Sequence[Key]) -> str:
    """What tells a box from those beside it."""
    several = {part: len({getattr(one, part) for one in keys}) > 1 for part in ("side", "name", "protocol")}
    found = [str(getattr(key, part)) for part, differs in several.items() if differs]
    return "\n".join(found) or f"flow {key.name}"


def _of_key(key: Key, keys: Sequence[Key]) -> str:
    """The title of the panel of one series."""
    size = key.size.text if sweeps_size(keys) else ""
    return " · ".join(filter(None, (key.label, size, key.rest)))

"""A comparison for people at a terminal, and the one sentence that heads its page."""

from __future__ import annotations

from collections import Counter

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from wiregauge.measures.comparing.results import Comparison, FlowComparison, ShareShift, Shift
from wiregauge.measures.units import count_of, duration, share

COLOURS = {"better": "green", "same": "dim", "worse": "red", "undecided": "yellow"}
BASES = {
    "identical": "the very same values",
    "equivalent": "shown to lie within the threshold",
    "no-difference": "no difference found",
    "significant": "beyond chance and instrument",
    "beyond-threshold": "beyond the threshold",
    "open": "the interval reaches beyond the threshold",
}
MOST_LINES = 10


def signed(ns: float | None) -> str:
    """A shift in ns with its sign and a unit that fits."""
    if ns is None:
        return "open"
    return ("+" if ns > 0 else "") + duration(ns, 3).replace("-", "\N{MINUS SIGN}", 1)


def points_of(value: float | None) -> str:
    """A difference of shares, in percentage points, with its sign."""
    if value is None:
        return "open"
    if value == 0:
        return "0"
    return ("+" if value > 0 else "\N{MINUS SIGN}") + share(abs(value), 2)


def shift_text(name: str, shift: Shift) -> str:
    """`latency.p99 +12.1 µs [+11.8 µs, +12.4 µs]`, at the level at which all judged figures hold together."""
    text = points_of if shift.statistic == "share" else signed
    ends = shift.joint if shift.verdict is not None else shift.shift
    return f"{name} {text(ends.value)} [{text(ends.low)}, {text(ends.high)}]"


def compare_headline(comparison: Comparison) -> str:
    """What got worse, what better, what is the same: one sentence."""
    tally = Counter(flow.verdict for flow in comparison.flows)
    flows = count_of(len(comparison.flows), "flow")
    if comparison.unfit:
        return "A side is not fit to compare, so nothing is decided."
    parts = [f"{tally[word]} {word}" for word in ("worse", "better", "undecided") if tally[word]]
    if not parts:
        said = _sameness(comparison)
        return (
            f"All {flows} compared the same: {said}." if len(comparison.flows) > 1 else f"The same: {said}."
        )
    same = f", {tally['same']} the same" if tally["same"] else ""
    worst = greatest(comparison, "worse") or greatest(comparison, "better")
    example = f"; the greatest change is {worst}" if worst else ""
    return f"Of {flows} compared, {', '.join(parts)}{same}{example}."


def _sameness(comparison: Comparison) -> str:
    """In which sense all is the same."""
    bases = {shift.basis for flow in comparison.flows for _, shift in flow.judged}
    twins = sum(all(m.identical for m in flow.measures.values()) for flow in comparison.flows)
    if twins == len(comparison.flows):
        return "the very same values"
    found = "shown to lie within the thresholds" if "no-difference" not in bases else "no difference found"
    return f"{found} ({twins} of them with the very same values)" if twins else found


def greatest(comparison: Comparison, verdict: str) -> str:
    """The change of a latency or share with this verdict that is greatest against its base, as text."""
    found = [
        (abs(shift.shift.value) / max(abs(shift.base.value), 1e-12), point.title, flow, name, shift)
        for point in comparison.points
        for flow in point.flows
        for name, shift in flow.judged
        if shift.verdict == verdict
    ]
    if not found:
        return ""
    times = [entry for entry in found if entry[4].statistic != "share"]
    _, title, flow, name, shift = max(times or found, key=lambda entry: entry[0])
    where = f" at {title}" if title else ""
    return f"{shift_text(name, shift)} of flow {flow.label}{where}"


def compare_text(comparison: Comparison, console: Console) -> None:
    """Prints verdict, what differs besides, what changed, and a row per point and flow. Nothing is cut off unsaid."""
    colour = COLOURS[comparison.verdict]
    console.print(
        f"[bold]{escape(comparison.names[0])}[/] (base) against [bold]{escape(comparison.names[1])}[/] (new)  "
        f"verdict [bold {colour}]{comparison.verdict.upper()}[/]",
        soft_wrap=True,
    )
    console.print(escape(compare_headline(comparison)), soft_wrap=True)
    for reason in comparison.unfit:
        console.print(f"  [red]-[/] {escape(reason)}", soft_wrap=True)
    _list(console, "differs besides", comparison.besides)
    for word in ("worse", "better", "undecided"):
        _list(
            console,
            word,
            [
                f"flow {flow.label}{' at ' + point.title if point.title else ''}: {shift_text(name, shift)}"
                for point in comparison.points
                for flow in point.flows
                for name, shift in _telling(flow, word)
            ],
        )
    _list(
        console,
        "undecided",
        [
            f"flow {flow.label}{' at ' + point.title if point.title else ''}: {flow.reason}"
            for point in comparison.points
            for flow in point.flows
            if flow.reason and not comparison.unfit
        ],
    )
    missing = [
        f"only in {comparison.names[side]}: {text}"
        for side, texts in enumerate(unmatched(comparison))
        for text in texts
    ]
    _list(console, "not compared", missing)
    wide = _table(comparison, wide=True)
    fits = console.measure(wide, options=console.options.update(width=10_000)).maximum <= console.width
    console.print(wide if fits else _table(comparison, wide=False))
    console.print(
        f"intervals: 95 % for all {count_of(comparison.judged, 'judged figure')} together "
        f"({100 * comparison.joint_level:.4g} % each), clock and stamp errors included",
        soft_wrap=True,
        highlight=False,
    )


def _telling(flow: FlowComparison, word: str) -> list[tuple[str, Shift]]:
    """Of all figures with a verdict the few that tell it: mean, median and tails, and every share."""
    found = [(name, shift) for name, shift in flow.judged if shift.verdict == word]
    few = [
        (name, s) for name, s in found if s.statistic in ("mean", "p50", "p99", "p99.9", "p99.99", "share")
    ]
    return few or found[:2]


def unmatched(comparison: Comparison) -> tuple[list[str], list[str]]:
    """Points, flows and measures that found no partner, as text, for either side."""
    sides: tuple[list[str], list[str]] = ([], [])
    for texts, points in zip(sides, (comparison.only_base, comparison.only_new), strict=True):
        texts += [
            ", ".join(f"{k} {v}" for k, v in point.point.items()) or "its one point" for point in points
        ]
    for point in comparison.points:
        for texts, flows in zip(sides, (point.only_base, point.only_new), strict=True):
            where = f" at {point.title}" if point.title else ""
            texts += [
                f"flow {flow.plan.name} ({flow.plan.protocol}, {flow.plan.source} to {flow.plan.destination}){where}"
                for flow in flows
            ]
    for texts, own in zip(sides, ("only_base", "only_new"), strict=True):
        alone: Counter[str] = Counter(", ".join(getattr(flow, own)) for flow in comparison.flows)
        texts += [f"{names} (of {count_of(count, 'flow')})" for names, count in alone.items() if names]
    return sides


def _list(console: Console, title: str, lines: list[str] | tuple[str, ...]) -> None:
    for line in lines[:MOST_LINES]:
        console.print(f"  {escape(title)}: {escape(line)}", soft_wrap=True, highlight=False)
    if len(lines) > MOST_LINES:
        console.print(
            f"  {escape(title)}: … and {len(lines) - MOST_LINES} more; --json has all", soft_wrap=True
        )


def _table(comparison: Comparison, *, wide: bool) -> Table:
    """A row per point, flow and main measure; a narrow terminal gets medians only, never cut figures."""
    shown: tuple[str, ...] = ("mean", "p50", "p99", "p99.9") if wide else ("p50",)
    if wide and not any(m.shift("p99.9") for flow in comparison.flows for m in flow.measures.values()):
        shown = shown[:-1]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for title in ("point", "flow", "", *(["n"] if wide else [])):
        table.add_column(title)
    for title in shown:
        table.add_column(f"{title}: base → new, shift", no_wrap=wide)
    table.add_column("lost", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for point in comparison.points:
        for flow in point.flows:
            names = [name for name in ("latency", "rtt") if name in flow.measures]
            for place, name in enumerate(names or ["latency"]):
                measure = flow.measures.get(name)
                first = place == 0
                where, who = escape(", ".join(point.axes.values())), escape(_who(flow))
                cells: list[str] = [where, who] if first else ["", ""]
                cells.append("one way" if name == "latency" else "round trip")
                if wide:
                    cells.append(f"{measure.base.n}, {measure.new.n}" if measure else "-")
                cells += [_cell(measure.shift(statistic)) if measure else "-" for statistic in shown]
                cells += [
                    _lost(flow.shares.get("lost")) if first else "",
                    f"[{COLOURS[flow.verdict]}]{flow.verdict}[/]" if first else "",
                ]
                table.add_row(*cells)
    table.caption = "±: the wider half of the interval"
    if not wide:
        table.caption += "; a terminal of 160 columns shows more, --out FILE.html all"
    table.caption_justify = "left"
    return table


def _who(flow: FlowComparison) -> str:
    one, other = flow.base.plan.protocol, flow.new.plan.protocol
    return f"{flow.label} {one if one == other else f'{one} → {other}'}"


def _cell(shift: Shift | None) -> str:
    if shift is None:
        return "-"
    ends = shift.joint if shift.verdict else shift.shift
    half = max((abs(end - ends.value) for end in (ends.low, ends.high) if end is not None), default=None)
    text = f"{duration(shift.base.value, 3)} → {duration(shift.new.value, 3)}, {signed(ends.value)}"
    text += f" ± {duration(half, 2)}" if half is not None else ""
    colour = COLOURS[shift.verdict] if shift.verdict in ("better", "worse") else ""
    return f"[{colour}]{text}[/]" if colour else text


def _lost(found: ShareShift | None) -> str:
    return "-" if found is None else f"{found.base_count} → {found.new_count}"

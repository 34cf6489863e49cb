"""The page of a comparison: the verdict first, then the changes in figures and tables, and the criteria."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from wiregauge.figures.compare import compare_figures
from wiregauge.measures import DEFINITIONS, Judgement
from wiregauge.measures.comparing import Comparison, FlowComparison, MeasureShift, ShareShift, Shift
from wiregauge.measures.definitions import MAIN, SINGLES
from wiregauge.measures.definitions.units import count_of, duration, in_unit, p_text, share
from wiregauge.report.tables import NONE, Cell, Head, Section, Table, micro, text_heads
from wiregauge.report.write import render, store
from wiregauge.results import headline
from wiregauge.results.comparing import compare_headline
from wiregauge.results.comparing.shapes import pair_shapes
from wiregauge.results.comparing.text import (
    basis_text,
    beyond_text,
    decided_text,
    error_rates,
    greatest,
    in_full_text,
    points_of,
    signed,
    sweep_text,
    unmatched,
    verdict_text,
    verdict_word,
)

_ALWAYS = {"lost", "loss", "goodput"}
_STATISTICS = ("mean", "p50", "p99", "p99.9")


def write_compare(comparison: Comparison, path: Path) -> Path:
    """Writes the page of a comparison as one file; returns its path. Raises RunDirectoryError when it cannot."""
    store(path, rendered_compare(comparison, path.parent))
    return path


def rendered_compare(comparison: Comparison, folder: Path | None = None) -> str:
    """The text of the page of a comparison; in a file of a folder it leads to the reports of both sides."""
    told = comparison.in_full
    shapes = pair_shapes(told)
    missing = unmatched(comparison)
    used = {measure for flow in comparison.flows for measure in flow.measures}
    return render(
        "compare.html.j2",
        compare_figures(comparison, shapes),
        comparison=comparison,
        headline=compare_headline(comparison),
        answers=_answers(comparison),
        sides=[
            _side(judgement, name, role, folder)
            for judgement, name, role in zip(
                (comparison.base, comparison.new), comparison.names, ("base", "new"), strict=True
            )
        ],
        missing=[(name, texts) for name, texts in zip(comparison.names, missing, strict=True) if texts],
        in_full=in_full_text(comparison),
        tables=[table for name in MAIN if (table := main_table(told, name)).size],
        shares=share_table(comparison),
        quantiles=quantile_table(told),
        others=other_table(told),
        rates=rate_table(told),
        rules=_rules(comparison),
        sweeps=[(sweep.verdict, sweep_text(sweep)) for sweep in comparison.sweeps],
        error_rate=error_rates(comparison),
        definitions=[d for d in DEFINITIONS.values() if d.name in {*used, *_ALWAYS, *SINGLES}],
    )


def _side(judgement: Judgement, name: str, role: str, folder: Path | None) -> dict[str, object]:
    own = judgement.directory / "report.html"
    manifest = judgement.manifest
    program = manifest.get("program")
    facts = manifest.get("bench_facts")
    return {
        "name": name,
        "role": role,
        "verdict": judgement.verdict,
        "caveat": judgement.caveat,
        "validity": judgement.validity.word,
        "headline": headline(judgement),
        "reasons": judgement.reasons,
        "report": quote(os.path.relpath(own, folder)) if folder is not None and own.exists() else "",
        "facts": [
            ("bench", str(manifest.get("bench", "?"))),
            ("test", judgement.plan.name),
            *([("set beside the file", ", ".join(judgement.settings))] if judgement.settings else []),
            ("program", str(program.get("version", "?")) if isinstance(program, dict) else "?"),
            ("started", str(manifest.get("started") or "?")),
            *(
                (str(fact.get("name", "")), str(fact.get("value", "")))
                for fact in (facts if isinstance(facts, list) else [])
                if isinstance(fact, dict)
            ),
        ],
    }


def _answers(comparison: Comparison) -> list[dict[str, str]]:
    flows = comparison.flows
    tally = Counter(flow.verdict for flow in flows)
    counted = ", ".join(
        f"{tally[word]} {word}" for word in ("worse", "better", "same", "undecided") if tally[word]
    )
    change = greatest(comparison, "worse") or greatest(comparison, "better")
    name, _, rest = change.partition(" ")
    sides, _, size = rest.partition(", ")
    size, _, where = size.partition(" of flow ")
    counts = [f.shares["lost"] for f in flows if "lost" in f.shares]
    lost = [sum(s.base_count for s in counts), sum(s.new_count for s in counts)]
    sent = [sum(s.base_n for s in counts), sum(s.new_n for s in counts)]
    validity = [comparison.base.validity.word, comparison.new.validity.word]
    return [
        {
            "question": "Did it get worse?",
            "figure": "not fit to compare" if comparison.unfit else comparison.verdict,
            "detail": f"{count_of(len(flows), 'flow')}: {counted}",
        },
        {
            "question": "By how much?",
            "figure": size.partition(" [")[0] if change else "no change found",
            "detail": f"{name} of flow {where}, {sides}: the greatest" if change else _resolution(flows),
        },
        {
            "question": "What was lost?",
            "figure": f"{lost[0]} → {lost[1]}",
            "detail": f"of {sent[0]} and of {sent[1]} messages",
        },
        {
            "question": "Can I trust it?",
            "figure": validity[0] if validity[0] == validity[1] else " / ".join(validity),
            "detail": f"differs besides: {count_of(len(comparison.besides), 'thing')}",
        },
    ]


def _resolution(flows: Sequence[FlowComparison]) -> str:
    """The resolution of the comparison: the greatest change that could have been missed."""
    reaches = [found for flow in flows if (found := flow.detectable) is not None]
    if not reaches:
        return "no judged figure has a detectable change"
    name, reach = max(reaches, key=lambda entry: entry[1])
    return (
        f"a shift of {duration(reach, 2)} in {name} would have been detected for every flow"
        if reach
        else "any would have been detected"
    )


def _rules(comparison: Comparison) -> list[tuple[str, str]]:
    thresholds = "; ".join(
        (f"flow {t.flow} " if t.flow is not None else "")
        + f"{t.measure}{'.' + t.statistic if t.statistic else ''} within {t.written}"
        for t in comparison.thresholds
    )
    return [
        (
            "Thresholds",
            thresholds or "none: a change counts if neither chance nor clock and timestamp errors explain it",
        ),
        (
            "Question",
            "equivalence: the same only if every interval lies within its threshold"
            if comparison.equivalence
            else "did anything get worse?",
        ),
        ("Error rate", error_rates(comparison)),
    ]


def _where(comparison: Comparison) -> list[tuple[str, FlowComparison]]:
    return [(point.title, flow) for point in comparison.points for flow in point.flows]


def _who(flow: FlowComparison) -> Cell:
    one, other = flow.base.plan, flow.new.plan
    protocol = one.protocol if one.protocol == other.protocol else f"{one.protocol} → {other.protocol}"
    hint = "; ".join([f"matched by {flow.matched_by}", *flow.said])
    return Cell(f"{flow.label} {protocol}" + (" *" if flow.said else ""), hint, "text short")


def _verdict(shift: Shift) -> Cell:
    """The verdict on one figure, and its evidence."""
    if shift.verdict is None:
        return Cell("shown only", kind="faint text short")
    below = ""
    if shift.basis == "no-difference" and shift.detectable is not None:
        reach = share(shift.detectable, 2) if shift.of_share else duration(shift.detectable, 2)
        below = f"detectable from {reach} on" if shift.detectable else "any would have been detected"
    return Cell(shift.verdict, basis_text(shift), f"verdict {shift.verdict} text short", below)


def _row_verdict(flow: FlowComparison) -> Cell:
    """The verdict of a flow, with the deciding figure or the detectable change below it."""
    below = verdict_text(flow).partition(": ")[2]
    hint = decided_text(*flow.deciding) if flow.deciding is not None else ""
    return Cell(verdict_word(flow), hint, f"verdict {flow.verdict} text", below)


def _shift_cells(shift: Shift | None) -> list[Cell]:
    """Base, new, shift with its interval, in µs."""
    if shift is None:
        return [Cell(NONE, "n does not support it on both sides", "first faint"), Cell(""), Cell("")]
    ends = shift.shown
    low, high = (NONE if end is None else _fine(end) for end in (ends.low, ends.high))
    plus = "+" if ends.value > 0 else ""
    text = f"{plus}{_fine(ends.value)} [{low}, {high}]".replace("-", "\N{MINUS SIGN}")
    own = shift.shift
    hint = f"95 % on its own: {signed(own.low)} to {signed(own.high)}; instrument ± {duration(shift.instrument, 2)}"
    hint += f"; threshold ± {duration(shift.tolerance, 3)}" if shift.tolerance is not None else ""
    hint += f"; {shift.verdict}: {basis_text(shift)}" if shift.verdict and shift.basis else ""
    beyond = beyond_text(shift)
    hint += f"; {beyond}" if beyond else f"; {p_text(shift.chance)}" if shift.chance is not None else ""
    return [
        Cell(micro(shift.base.value), _range(shift, new=False), "first"),
        Cell(micro(shift.new.value), _range(shift, new=True)),
        Cell(text, hint, f"verdict {shift.verdict}" if shift.verdict in ("better", "worse") else ""),
    ]


def _fine(ns: float) -> str:
    """A shift in µs, with a third decimal if it is small, and without decimals for zero."""
    return micro(ns) if abs(ns) >= 100 else f"{round(ns / 1e3, 3) + 0.0:.3f}".rstrip("0").rstrip(".")


def _range(shift: Shift, *, new: bool) -> str:
    side = shift.new if new else shift.base
    low, high = (("open" if end is None else duration(end)) for end in (side.low, side.high))
    return f"95 % {low} to {high}"


def main_table(comparison: Comparison, name: str) -> Table:
    """A row per point and flow that has the measure on both sides: the basis of the verdicts."""
    rows_of = [
        (title, flow, flow.measures[name]) for title, flow in _where(comparison) if name in flow.measures
    ]
    shown = [s for s in _STATISTICS if any(measure.shift(s) for _, _, measure in rows_of)]
    rows = [
        [
            Cell(title or "the test", kind="text short"),
            _who(flow),
            _row_verdict(flow),
            _n(measure),
            *(cell for s in shown for cell in _shift_cells(measure.shift(s))),
        ]
        for title, flow, measure in rows_of
    ]
    heads = [
        *text_heads("point", "flow", "verdict of the flow"),
        Head("n"),
    ]
    for _ in shown:
        heads += [
            Head("base", name, unit="µs"),
            Head("new", name, unit="µs"),
            Head("new - base [interval]", unit="µs"),
        ]
    groups = [Head(s, span=3) for s in shown]
    return Table(DEFINITIONS[name].title, heads, [Section("", rows)], groups, lead=4)


def _n(measure: MeasureShift) -> Cell:
    worth = f"effective n of the median {measure.base.n_effective:.0f} and {measure.new.n_effective:.0f}"
    same = "; identical values" if measure.identical else ""
    worth += f"; greatest {duration(measure.base.maximum)} and {duration(measure.new.maximum)}"
    text = str(measure.base.n) if measure.base.n == measure.new.n else f"{measure.base.n}, {measure.new.n}"
    return Cell(text, worth + same)


def share_table(comparison: Comparison) -> Table:
    """Message outcomes on both sides; events that occurred nowhere share one sentence."""
    found = [(title, flow, s) for title, flow in _where(comparison) for s in flow.shares.values()]
    met = [entry for entry in found if entry[2].base_count or entry[2].new_count]
    rows = [
        [
            Cell(title or "the test", kind="text short"),
            _who(flow),
            Cell(s.counter, kind="text short"),
            Cell(
                f"{s.base_count} of {s.base_n}",
                f"95 % {share(s.shift.base.low)} to {share(s.shift.base.high)}",
            ),
            Cell(
                f"{s.new_count} of {s.new_n}", f"95 % {share(s.shift.new.low)} to {share(s.shift.new.high)}"
            ),
            _points(s),
            Cell(f"{s.clustered:.1f}"),
            _verdict(s.shift),
        ]
        for title, flow, s in met
    ]
    absent = [
        name
        for name in dict.fromkeys(s.counter for _, _, s in found)
        if not any(e[2].counter == name for e in met)
    ]
    notes = []
    if absent:
        ends = [
            e
            for _, _, s in found
            if s.counter in absent
            for e in (s.shift.joint.low, s.shift.joint.high)
            if e is not None
        ]
        most = f"; a difference of up to {share(max(map(abs, ends)), 2)} cannot be excluded" if ends else ""
        notes.append(f"No message of any compared flow was {', '.join(absent)} on either side{most}.")
    heads = [
        *text_heads("point", "flow", "what"),
        Head("base"),
        Head("new"),
        Head("new - base [interval]", unit="of the sent"),
        Head("messages per event"),
        Head("verdict", kind="text"),
    ]
    return Table("What became of the messages", heads, [Section("", rows)], lead=3, notes=notes)


def _points(found: ShareShift) -> Cell:
    ends = found.shift.shown
    text = f"{points_of(ends.value)} [{points_of(ends.low)}, {points_of(ends.high)}]"
    verdict = found.shift.verdict
    return Cell(text, kind=f"verdict {verdict}" if verdict in ("better", "worse") else "")


def quantile_table(comparison: Comparison) -> Table:
    """Every statistic of the main measures, with its verdict."""
    rows = [
        _shift_row(title, flow, measure, shift)
        for title, flow in _where(comparison)
        for measure in flow.measures.values()
        if measure.measure in MAIN or any(s.verdict for s in measure.shifts)
        for shift in measure.shifts
    ]
    return Table("Every judged measure, every percentile", _statistic_heads(), [Section("", rows)], lead=4)


def other_table(comparison: Comparison) -> Table:
    """Measures that were compared without a verdict: medians and tails."""
    rows = [
        _shift_row(title, flow, measure, shift)
        for title, flow in _where(comparison)
        for measure in flow.measures.values()
        if measure.measure not in MAIN and not any(s.verdict for s in measure.shifts)
        for shift in measure.shifts
        if shift.statistic in ("p50", "p99")
    ]
    return Table("Further measures, shown and not judged", _statistic_heads(), [Section("", rows)], lead=4)


def _shift_row(title: str, flow: FlowComparison, measure: MeasureShift, shift: Shift) -> list[Cell]:
    return [
        Cell(title or "the test", kind="text short"),
        _who(flow),
        Cell(measure.measure, kind="text short"),
        Cell(shift.statistic),
        *_shift_cells(shift),
        _verdict(shift),
    ]


def rate_table(comparison: Comparison) -> Table:
    """Goodput, and measures that are a single figure."""
    rows = [
        [
            Cell(title or "the test", kind="text short"),
            _who(flow),
            *(
                cell
                for name, (base, new) in flow.rates.items()
                for cell in (
                    Cell(_figure(name, base), kind="first"),
                    Cell(_figure(name, new)),
                    Cell(_change(base, new)),
                )
            ),
        ]
        for title, flow in _where(comparison)
    ]
    heads = text_heads("point", "flow")
    groups = [Head(name.replace("_", " "), name, 3) for name in ("goodput", *SINGLES)]
    heads += [Head("base"), Head("new"), Head("change")] * len(groups)
    return Table("Rates, shown and not judged", heads, [Section("", rows)], groups, lead=2)


def _figure(name: str, value: float | None) -> str:
    return in_unit(value, DEFINITIONS[name].unit) if value is not None else "-"


def _change(base: float | None, new: float | None) -> str:
    return (
        f"{round(100 * (new / base - 1), 2) + 0.0:+.2f} %".replace("-", "\N{MINUS SIGN}")
        if base and new
        else NONE
    )


def _statistic_heads() -> list[Head]:
    return [
        *text_heads("point", "flow", "measure"),
        Head("statistic"),
        Head("base", unit="µs"),
        Head("new", unit="µs"),
        Head("new - base [interval]", unit="µs"),
        Head("verdict", kind="text"),
    ]

"""The judgement for people at a terminal, and the one sentence that heads every report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from math import inf

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from wiregauge.measures.definitions import MAIN, quantile_named
from wiregauge.measures.definitions.units import BEYOND, count_of, duration, in_unit, interval_text, share
from wiregauge.measures.large import narrowed
from wiregauge.measures.metrics.judgement import (
    INDEPENDENT,
    FlowResult,
    Grade,
    Judgement,
    LimitResult,
    RunResult,
)
from wiregauge.measures.metrics.summary import Summary
from wiregauge.measures.validity.network_error import foreign_text, network_error_text
from wiregauge.terminal import print_table

_COLOURS = {"VALID": "green", "DEGRADED": "yellow", "INVALID": "red"}
_VERDICTS = {"PASS": "green", "FAIL": "red", "UNDECIDED": "yellow", "NONE": "dim"}


def headline(judgement: Judgement) -> str:
    """One sentence on speed, steadiness, losses and validity, from the pooled points."""
    flows = [flow for point in judgement.points for flow in point.flows]
    speeds = [(flow, flow.summaries["latency"]) for flow in flows if flow.summaries["latency"].n]
    seen = [flow for flow in flows if not flow.unseen]
    sent, lost = sum(flow.counts["sent"] for flow in seen), sum(flow.lost for flow in seen)
    open_ended = sum(flow.open_ended for flow in seen)
    unseen = sorted({name for flow in flows for name in flow.unseen})
    trust = {
        Grade.INVALID: "and the campaign is INVALID: do not rely on it",
        Grade.DEGRADED: "with reservations (DEGRADED)",
    }.get(judgement.validity, _valid(judgement))
    if sent == 0 and not unseen:
        return f"No message was sent, {trust}."
    least = "at least " if any(flow.lost > flow.counts["lost"] for flow in seen) else ""
    messages = _messages(judgement)
    of_all = count_of(sent, "message") if messages == sent else f"{sent} deliveries to receivers"
    fate = f"{least}{lost} of {of_all} lost{_losers(seen)}" if lost else f"none of {messages} messages lost"
    if open_ended:
        fate += f", of {open_ended}{' more' if least else ''} nobody can tell"
    if unseen:
        blind = (
            "what was lost before the tap is not known"
            if unseen == [BEYOND]
            else f"what was lost is not known without a tap at {' and '.join(unseen)}"
        )
        fate = f"{fate}, but of the other flows {blind}" if seen else blind
    if not speeds:
        apart = [flow for flow in flows if flow.uncompared]
        came = unseen or any(flow.came_at_least for flow in flows)
        told = _uncompared(apart) if apart else "No latency was measured" if came else "Nothing arrived"
        return f"{told}: {fate}, {trust}."
    medians = _reach(speeds, lambda summary: summary.value("p50"))
    tails = _reach(speeds, lambda summary: summary.value("p99"))
    slowest, summary = max(speeds, key=lambda one: one[1].maximum or -inf)
    several = len({flow.plan.name for flow in flows}) > 1
    at_most = duration(summary.maximum) + (f" (flow {slowest.plan.name})" if several else "")
    typical = f"median one-way latency {medians}, " if medians else ""
    steady = f"p99 {tails}, " if tails else ""
    return _sentence(f"{typical}{steady}at most {at_most}; {fate}, {trust}.")


def _messages(judgement: Judgement) -> int:
    """Messages sent of the flows whose losses are known, each once, however many receivers it has."""
    most: dict[tuple[int, int], int] = {}
    for number, point in enumerate(judgement.points):
        for flow in point.flows:
            if not flow.unseen:
                key = number, flow.plan.id
                most[key] = max(most.get(key, 0), flow.counts["sent"])
    return sum(most.values())


def _valid(judgement: Judgement) -> str:
    """A sentence that the run is valid, worded so that it is not read as a PASS under another verdict or with
    losses."""
    if judgement.verdict in ("FAIL", "UNDECIDED"):
        limits = [limit for run in judgement.runs for limit in run.limits]
        told = [
            f"{count_of(number, 'limit')} {said}"
            for word, said in (("fail", "failed"), ("undecided", "undecided"))
            if (number := sum(limit.result == word for limit in limits))
        ]
        return f"in a measurement that is VALID: {', '.join(told) or 'it has no answer'}"
    if judgement.caveat:
        return "which no limit is on, in a measurement that is VALID"
    return "and no check failed (VALID)"


_MOST_NAMED = 3


def _uncompared(flows: Sequence[FlowResult]) -> str:
    """The reason why latency is unknown, and its largest variation."""
    spans = [(span, flow) for flow in flows if (span := flow.spread.span()) is not None]
    text = "One-way latency is not known, as the clocks were not compared"
    if not spans:
        return text
    widest, flow = max(spans, key=lambda one: one[0])
    several = f" (flow {flow.plan.name})" if len({one.plan.name for one in flows}) > 1 else ""
    return f"{text}; it varies by {duration(widest)}{several}"


def _reach(speeds: Sequence[tuple[FlowResult, Summary]], figure: Callable[[Summary], float | None]) -> str:
    """Least and greatest value over all flows, each with its flow where they differ."""
    found = [(value, flow.plan.name) for flow, summary in speeds if (value := figure(summary)) is not None]
    if not found:
        return ""
    (low, first), (high, last) = min(found), max(found)
    if first == last or interval_text(low, low) == interval_text(high, high):
        return interval_text(low, high)
    return f"{duration(low, 3)} (flow {first}) to {duration(high, 3)} (flow {last})"


def _losers(flows: Sequence[FlowResult]) -> str:
    """The flows that lost messages, most first, in brackets; empty for a single flow."""
    lost: dict[str, int] = {}
    for flow in flows:
        lost[flow.plan.name] = lost.get(flow.plan.name, 0) + flow.lost
    if len(lost) < 2:
        return ""
    ordered = sorted((name for name, count in lost.items() if count), key=lambda name: -lost[name])
    named = [f"{lost[name]} of flow {name}" for name in ordered[:_MOST_NAMED]]
    left = len(ordered) - _MOST_NAMED
    return f" ({', '.join(named)}{f', the rest of {left} more' if left > 0 else ''})"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def print_head(judgement: Judgement, console: Console) -> None:
    """Prints verdict and validity in a line, and the sentence that heads every report."""
    validity, verdict = judgement.validity.word, judgement.verdict
    why = judgement.caveat or ("the test has no limits" if verdict == "NONE" else "")
    beside = f" [yellow]({escape(why)})[/]" if why else ""
    console.print(
        f"[bold]{escape(judgement.plan.name)}[/]  verdict [bold {_VERDICTS[verdict]}]{verdict}[/]{beside}  "
        f"validity [bold {_COLOURS[validity]}]{validity}[/]",
        soft_wrap=True,
    )
    console.print(escape(headline(judgement)), soft_wrap=True)


def show_text(judgement: Judgement, console: Console) -> None:
    """Prints verdict and validity, then one row per run and flow. Times carry their unit; nothing is cut off."""
    print_head(judgement, console)
    for reason in judgement.reasons:
        console.print(f"  [yellow]-[/] {escape(reason)}", soft_wrap=True)
    sampled = [check.reason for run in judgement.runs for check in run.checks if check.name == "held-whole"]
    for reason in dict.fromkeys(reason for reason in sampled if reason):
        console.print(f"  [dim]-[/] {escape(reason)}", soft_wrap=True)
    for line in _own_errors(judgement):
        console.print(f"  [dim]-[/] {escape(line)}", soft_wrap=True)
    _limits(judgement, console)
    judgement, chosen = narrowed(judgement, _MOST_FLOWS, _MOST_OF_EACH)
    # A narrow terminal gets fewer columns, then no intervals, then columns below one another, but never a cut figure.
    for columns, intervals in ((_WIDE, True), (_NARROW, True), (_NARROW, False)):
        table = _table(judgement, _with_asked(judgement, columns), intervals=intervals)
        if console.measure(table, options=console.options.update(width=10_000)).maximum <= console.width:
            console.print(table)
            break
    else:
        _print_narrow(judgement, console)
    if chosen:
        console.print(
            f"Shown are {chosen}. Others: `wiregauge show {escape(str(judgement.directory))} --flow N`, all: "
            "measures.json, `wiregauge report`.",
            soft_wrap=True,
        )


def _own_errors(judgement: Judgement) -> list[str]:
    """Lines on the error of the network that an agent plays; for several runs those of the latest."""
    found = [(run.network, run) for run in judgement.runs if run.network is not None]
    if not found:
        return []
    network, run = max(found, key=lambda one: one[0].error_ns)
    where = f" (latest in run {run.plan.index} of {len(found)})" if len(found) > 1 else ""
    told = [f"the network's own error{where}: {network_error_text(network)}"]
    # Foreign frames are those of the run in which they took most line time.
    foreign = max((one for one, _ in found), key=lambda one: sum(row.line_ns for row in one.foreign or ()))
    if foreign.foreign:
        told.append(f"frames on the network that are not of the test: {foreign_text(foreign)}")
    return told


_MOST_FLOWS = 200
"""Number of flows of a run up to which all are shown."""
_MOST_OF_EACH = 5
"""Number of flows per reason that are shown in larger runs."""
_MOST_LIMITS = 20
_RESULTS = {"fail": "red", "undecided": "yellow", "pass": "green"}


def _limits(judgement: Judgement, console: Console) -> None:
    """Prints every failed limit; for the others one line per limit and cause, where it was closest."""
    found = [(run, limit) for run in judgement.runs for limit in run.limits]
    failed = [[one] for one in found if one[1].result == "fail"]
    for result, lines in (
        ("fail", failed),
        ("undecided", _alike(found, "undecided")),
        ("pass", _alike(found, "pass")),
    ):
        for members in lines[:_MOST_LIMITS]:
            run, limit = min(members, key=lambda one: one[1].margin if one[1].margin is not None else inf)
            console.print(limit_line(judgement, run, limit, of=len(members)), soft_wrap=True)
        if len(lines) > _MOST_LIMITS:
            more = sum(map(len, lines[_MOST_LIMITS:]))
            console.print(f"  … and {more} more limits: {result}")


def _alike(
    found: Iterable[tuple[RunResult, LimitResult]], result: str
) -> list[list[tuple[RunResult, LimitResult]]]:
    """Limits with a result, those together that are one line of the test, and undecided by one cause."""
    together: dict[tuple[object, ...], list[tuple[RunResult, LimitResult]]] = {}
    for run, limit in found:
        if limit.result == result:
            # Behind the first of these a reason has figures of its flow.
            cause = re.split(r"[(:\d]", limit.reason)[0]
            together.setdefault((limit.line, limit.measure, limit.bound, cause), []).append((run, limit))
    return list(together.values())


def limit_line(judgement: Judgement, run: RunResult, limit: LimitResult, of: int = 1) -> str:
    """A limit with its result, in rich's mark-up; `of` is the number of limits that it stands for."""
    where = f"run {run.plan.index}, " if len(judgement.plan.runs) > 1 else ""
    alike = (
        "" if of == 1 else f" (closest of {of})" if limit.result == "pass" else f" (and {of - 1} more alike)"
    )
    return f"  [{_RESULTS[limit.result]}]{limit.result}[/] {where}{escape(limit_text(limit))}{alike}"


def limit_text(limit: LimitResult) -> str:
    """A limit with the observed figure, its margin, and the reason where it is undecided."""
    text = f"{limit.subject}: {limit.measure} {limit.bound.replace('-', ' ')} {limit.written}: "
    if limit.observed is None or limit.margin is None:
        return text + limit.reason + (f" ({limit.counted})" if limit.counted and limit.holds else "")
    text += in_unit(limit.observed, limit.unit) + (f" ({limit.counted})" if limit.counted else "")
    if limit.result != "undecided":
        beyond = "margin" if limit.margin >= 0 else "exceeded by" if limit.bound == "at-most" else "short by"
        text += f", {beyond} {in_unit(abs(limit.margin), limit.unit)}"
    if limit.straddled and limit.low is not None and limit.high is not None:
        ends = f"{in_unit(limit.low, limit.unit)} to {in_unit(limit.high, limit.unit)}"
        text += f"; the bound lies within its 95 % interval, {ends}"
    return text + (f"; {limit.reason}" if limit.reason else "")


_WIDE = (
    "sent",
    "lost",
    "loss ≤",
    "other",
    "mean ± u",
    "sd",
    "p50",
    "p90",
    "p99",
    "p99.9",
    "max",
    "validity",
)
_NARROW = ("sent", "lost", "p50", "p99", "max")
_BESIDE = {_WIDE: ("p50", "p99"), _NARROW: ("p50",)}
"""Percentiles of the other main measures that a flow may have besides its latency."""


def _with_asked(judgement: Judgement, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The columns with every percentile of the main measures that a limit names, in ascending order."""
    usual = [column for column in columns if quantile_named(column) is not None]
    first, beyond = columns.index(usual[0]), columns.index("max") + 1
    beside = [
        f"{measure} {name}"
        for measure in _others()
        for name in judgement.plan.named(measure, _BESIDE[columns])
    ]
    percentiles = judgement.plan.named("latency", usual)
    return (*columns[:first], *percentiles, "max", *beside, *columns[beyond:])


def _others() -> list[str]:
    """The main measures but for the latency, which has the first columns."""
    return [name for name in MAIN if name != "latency"]


def _print_narrow(judgement: Judgement, console: Console) -> None:
    """Prints the figures in several tables, for a terminal too narrow for one."""
    columns = _with_asked(judgement, _NARROW)
    named = ("run", "point", "flow") if any(run.plan.point for run in judgement.runs) else ("run", "flow")
    rows = []
    for run in judgement.runs:
        of_run = {"run": str(run.plan.index), "point": ", ".join(run.plan.point.values())}
        if not run.flows:
            rows.append([of_run.get(title, "-") for title in (*named, *columns)])
        for flow in run.flows:
            cells = {**of_run, "flow": _flow_name(flow), **_cells(flow, intervals=False)}
            rows.append([cells[title] for title in (*named, *columns)])
    print_table((*named, *columns), rows, console, leading=len(named))
    console.print(_caption(judgement, columns, intervals=False))


def _flow_name(flow: FlowResult) -> str:
    name = f"{flow.plan.id} {flow.plan.protocol}"
    return f"{name} to {flow.plan.destination}" if flow.plan.multicast else name


def _table(judgement: Judgement, columns: Sequence[str], *, intervals: bool) -> Table:
    """One row per run and flow with these columns, with or without the intervals of percentiles."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for title in ("run", "point", "flow"):
        table.add_column(title)
    for title in columns:
        table.add_column(title, justify="left" if title == "validity" else "right", no_wrap=True)
    shown = False
    for run in judgement.runs:
        point = escape(", ".join(run.plan.point.values()))
        mark = f"[{_COLOURS[run.validity.word]}]{run.validity.word}[/]"
        if not run.flows:
            cells = {"validity": mark}
            table.add_row(str(run.plan.index), point, "-", *(cells.get(title, "") for title in columns))
        for flow in run.flows:
            turned = flow.plan.relayed and "mean ± u" in columns  # a narrow table tells by its round trip
            name = escape(_flow_name(flow)) + (" relay" if turned else "")
            cells = {**_cells(flow, intervals=intervals), "validity": mark}
            shown = shown or any("\n" in cells[title] for title in columns)
            table.add_row(str(run.plan.index), point, name, *(_shown(cells[title]) for title in columns))
    table.caption = _caption(judgement, columns, intervals=shown)
    table.caption_justify = "left"
    return table


def _shown(cell: str) -> str | Text:
    """A figure with its interval in the line below; of a text the console would show the line feed and not obey it."""
    return Text.from_markup(cell) if "\n" in cell else cell


def _caption(judgement: Judgement, columns: Sequence[str], *, intervals: bool) -> str:
    """The caption that explains the figures of the table."""
    below = (
        ", 95 % intervals below percentiles (an end that n does not support is left open)"
        if intervals
        else ""
    )
    relayed = all(flow.plan.relayed for run in judgement.runs for flow in run.flows)
    where = "between taps" if judgement.traits.tapped else "at the application"
    none = "n does not support it" if relayed else "n does not support it, or there is no round trip"
    text = f"one-way latency {where}{below}; -: {none}"
    if any(flow.unseen for run in judgement.runs for flow in run.flows):
        text += ", or no tap saw it"
    if any(flow.uncompared for run in judgement.runs for flow in run.flows):
        text += ", or the clocks of its two ends were not compared"
    if any(flow.counts["unknown"] for run in judgement.runs for flow in run.flows):
        text += "; + n?: of n more it is unknown whether they were lost"
    if "mean ± u" in columns:
        text += f"; loss ≤: upper 95 % bound, of none lost {INDEPENDENT}; ± u: 95 % half-width of the mean"
    else:
        text += "; a wider terminal shows more, the report shows all"
    return text


def _cells(flow: FlowResult, *, intervals: bool) -> dict[str, str]:
    latency = flow.summaries["latency"]
    beside = {name: flow.summaries.get(name, Summary(name, 0, {}, 0)) for name in _others()}
    other = sum(flow.outcomes[name] for name in ("duplicated", "reordered", "late"))
    spread = duration(latency.uncertainty.total if latency.uncertainty else None)
    return {
        "sent": str(flow.counts["sent"]) if not flow.unseen else "-",
        "lost": _lost(flow) if not flow.unseen else "-",
        "loss ≤": share(flow.loss.high),
        "other": str(other),
        "mean ± u": f"{duration(latency.mean)} ± {spread}" if latency.n else "-",
        "sd": duration(latency.sd),
        "max": duration(latency.maximum),
        **{name: _percentile(latency, name, intervals=intervals) for name in flow.plan.quantiles},
        **{
            f"{measure} {name}": _percentile(found, name, intervals=intervals)
            for measure, found in beside.items()
            for name in flow.plan.quantiles
        },
    }


def _lost(flow: FlowResult) -> str:
    """The number of lost messages, and of those that may be lost."""
    least = "≥ " if flow.lost > flow.counts["lost"] else ""
    return f"{least}{flow.lost}" + (f" + {flow.open_ended}?" if flow.open_ended else "")


def _percentile(summary: Summary, name: str, *, intervals: bool) -> str:
    """A percentile with its 95 % interval below it, open where it is; alone where all three print alike."""
    percentile = summary.percentiles.get(name)
    if percentile is None or percentile.value is None:
        return "-"
    value = duration(percentile.value)
    ends = [duration(end) if end is not None else "" for end in (percentile.low, percentile.high)]
    if not intervals or ends in ([value, value], ["", ""]):
        return value
    number, _, unit = ends[0].partition(" ")
    low = number if unit and ends[1].endswith(f" {unit}") else ends[0]
    return f"{value}\n[dim]{low}…{ends[1]}[/]"

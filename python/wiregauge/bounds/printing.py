"""Prints bounds as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console

from wiregauge.bounds.analysing import Answer, Judged, ServerBound, TargetBound
from wiregauge.terminal import print_table

__all__ = [
    "BY_WHAT_ARRIVES",
    "Ranked",
    "furthest",
    "judged_text",
    "left_out",
    "longest_hop",
    "method_text",
    "ranked",
    "show_text",
    "show_time",
    "slowest_port",
    "verdict",
]

BY_WHAT_ARRIVES: Final = " by the frames that arrive, which are not all"


def show_time(value: float | None, unit: str) -> str:
    """A delay with its unit; `none` where there is no bound."""
    if value is None:
        return "none"
    return f"{value * 1e6:.3f} µs" if unit == "s" else f"{value:.6g}"


def show_text(answer: Answer, console: Console) -> None:
    """Prints verdict, worst flow and worst port, a line for each flow and each class of a port, then the conditions."""

    def say(text: str, style: str = "") -> None:
        console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    say(f"{answer.name or 'network'}: {verdict(answer)}", "" if answer.kept else "bold")
    for text in _worst(answer):
        say(text)
    tally = Counter(method_text(target, answer) for flow in answer.flows for target in flow.targets)
    won = ", ".join(f"{method} for {count}" for method, count in tally.most_common() if method)
    by = f"{answer.method} ({won} of {tally.total()} targets)" if won else answer.method
    say(f"By {by}, {answer.multiplexing} multiplexing, grouping {answer.grouping}, {answer.arithmetic}.")
    for text in left_out(answer):
        say(text)
    say("")
    _show_flows(answer, console)
    say("")
    _show_servers(answer, console)
    say("")
    say("These bounds hold if:")
    for text in (
        *(f"- {assumption}" for assumption in answer.assumptions),
        *(f"Note: {note}" for note in dict.fromkeys(answer.notes)),
    ):
        console.print(text, markup=False, highlight=False)


def _worst(answer: Answer) -> Iterator[str]:
    """The flow that comes nearest to its limit or takes longest, and the port with the longest delay."""
    unit = answer.time_unit
    if rows := ranked(answer):
        flow, target, own = rows[0]
        limit = "" if own is None else f" of {own.written}"
        slowest = ""
        if (longest := longest_hop(target)) is not None:
            slowest = f", {show_time(longest[0], unit)} of it at {longest[1]}"
        yield f"Worst flow: {flow} to {target.target}, {show_time(target.delay, unit)}{limit}{slowest}"
    if (worst := slowest_port(answer)) is not None:
        said = f"{show_time(worst.delay, unit)}, {_bits(worst.backlog_bits)}, load {worst.load:.4f}"
        yield f"Worst port: {worst.server}, {said}"


Ranked = tuple[str, TargetBound, Judged | None]
"""A flow, its bound at a target, and the limit that it exceeds most or is nearest to."""


def ranked(answer: Answer) -> list[Ranked]:
    """Every flow at every target, the one furthest beyond its limit or with the longest bound first."""
    limits = _limits(answer)

    def late(row: Ranked) -> tuple[bool, bool, float, float]:
        _, target, own = row
        beyond = _beyond(own) if own is not None else (False, target.delay is None, 0.0)
        return *beyond, target.delay or 0.0

    rows = [
        (flow.flow, target, limits.get((flow.flow, target.target)))
        for flow in answer.flows
        for target in flow.targets
    ]
    return sorted(rows, key=late, reverse=True)


def longest_hop(target: TargetBound) -> tuple[float, str] | None:
    """The longest bounded delay at a server of a path, and its name; None where hops are not told apart."""
    return max(zip(target.hops, target.path, strict=False)) if target.hops else None


def slowest_port(answer: Answer) -> ServerBound | None:
    """The port with the longest delay."""
    return max(answer.servers, key=lambda one: (one.delay is None, one.delay or 0.0), default=None)


def method_text(target: TargetBound, answer: Answer) -> str:
    """What gave a bound, without the options that the whole answer has; empty where one method was asked."""
    own = target.method or ""
    return own.replace(f" {answer.multiplexing}", "").replace(f", grouping {answer.grouping}", "")


def left_out(answer: Answer) -> Iterator[str]:
    """A sentence for each reason why methods gave no answer."""
    reasons: dict[str, list[str]] = {}
    for one in answer.left_out:
        reasons.setdefault(one.reason, []).append(one.method)
    for reason, methods in reasons.items():
        yield f"Not by {'; '.join(methods)}: {reason}"


def _limits(answer: Answer) -> dict[tuple[str, str], Judged]:
    """The limit of each flow and target that is exceeded most, or is nearest."""
    found: dict[tuple[str, str], Judged] = {}
    for limit in answer.limits:
        key = limit.flow, limit.target
        found[key] = max(found.get(key, limit), limit, key=_beyond)
    return found


def _show_flows(answer: Answer, console: Console) -> None:
    """A line for each flow; several where its targets differ in more than their names."""
    unit, limits = answer.time_unit, _limits(answer)
    knows_least = any(target.least is not None for flow in answer.flows for target in flow.targets)
    tells_method = any(target.method for flow in answer.flows for target in flow.targets)
    lines: dict[tuple[str, ...], list[str]] = {}
    for flow in answer.flows:
        for target in flow.targets:
            limit = limits.get((flow.flow, target.target))
            least = ("-" if target.least is None else show_time(target.least, unit),) if knows_least else ()
            judged = ("-", "") if limit is None else (limit.written, judged_text(limit, loses=answer.loses))
            by = (method_text(target, answer),) if tells_method else ()
            row = flow.flow, show_time(target.delay, unit), *by, *least, *(judged if limits else ())
            lines.setdefault(row, []).append(target.target)
    heads = (
        "flow",
        "target",
        "at most",
        *(("by",) if tells_method else ()),
        *(("at least",) if knows_least else ()),
    )
    heads += ("limit", "") if limits else ()
    rows = [(row[0], _together(names), *row[1:]) for row, names in lines.items()]
    print_table(heads, rows, console, leading=2)


def _together(targets: Sequence[str]) -> str:
    """Names of targets; of the copies on both networks the receiver once: `es16 A, B`."""
    parts: list[str] = []
    for target in targets:
        if target.endswith(" B") and parts and parts[-1] == f"{target[:-2]} A":
            parts[-1] += ", B"
        else:
            parts.append(target)
    return ", ".join(parts)


def _show_servers(answer: Answer, console: Console) -> None:
    several = any(len(server.classes) > 1 for server in answer.servers)
    rows = []
    for server in answer.servers:
        load = f"{server.load:.4f}"
        classes = server.classes if several else ()
        of_classes = [(one.name, one.delay, one.backlog_bits) for one in classes]
        for name, delay, backlog in of_classes or [("", server.delay, server.backlog_bits)]:
            own = (name,) if several else ()
            rows.append((server.server, *own, show_time(delay, answer.time_unit), _bits(backlog), load))
            # The load is that of the port.
            load = ""
    heads = ("server", *(("class",) if several else ()), "delay at most", "backlog at most", "load")
    print_table(heads, rows, console)


def _bits(value: float | None) -> str:
    return "none" if value is None else f"{value:.0f} bit"


def verdict(answer: Answer) -> str:
    """One line with the number of targets that are bounded, and the limits that are not kept."""
    targets = [target for flow in answer.flows for target in flow.targets]
    bounded = sum(target.delay is not None for target in targets)
    said = f"{bounded} of {len(targets)} targets bounded"
    if answer.overloaded:
        said += f"; OVERLOADED: {', '.join(server.server for server in answer.overloaded)}"
    if not answer.limits:
        return f"{said}; no limit to keep"
    broken = [limit for limit in answer.limits if not limit.kept]
    if not broken:
        kept = "the limit" if len(answer.limits) == 1 else f"all {len(answer.limits)} limits"
        return f"{said}; {kept} kept{BY_WHAT_ARRIVES if answer.loses else ''}"
    worst = max(broken, key=_beyond)
    named = (
        f"flow {worst.flow} to {worst.target}, {show_time(worst.delay, answer.time_unit)} of {worst.written}"
    )
    return f"{said}; {len(broken)} of {len(answer.limits)} limits NOT KEPT, furthest {named}"


def _beyond(limit: Judged) -> tuple[bool, bool, float]:
    return not limit.kept, limit.delay is None, (limit.delay or 0.0) / (limit.at_most or 1.0)


def furthest(answer: Answer) -> tuple[bool, bool, float]:
    """A sort key for distance from the limits: greater is further; without limits the longest bound."""
    if answer.limits:
        return max(map(_beyond, answer.limits))
    delays = [target.delay for flow in answer.flows for target in flow.targets]
    return False, None in delays, max((delay or 0.0 for delay in delays), default=0.0)


def judged_text(limit: Judged, *, loses: bool) -> str:
    """Whether a bound keeps a limit, in a word or two; `loses`: the test plants losses."""
    if limit.kept:
        return "kept by what arrives" if loses else "kept"
    within = limit.delay is not None and limit.delay <= limit.at_most
    return "NOT KEPT: frames may be lost" if within else "EXCEEDED"

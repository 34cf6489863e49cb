"""Prints bounds as text."""

from __future__ import annotations

from typing import Final

from rich.console import Console

from wiregauge.bounds.analysing import Answer, Judged
from wiregauge.terminal import print_table

__all__ = ["BY_WHAT_ARRIVES", "furthest", "show_text", "show_time", "verdict"]

BY_WHAT_ARRIVES: Final = " by the frames that arrive, which are not all"


def show_time(value: float | None, unit: str) -> str:
    """A delay with its unit; `none` where there is no bound."""
    if value is None:
        return "none"
    return f"{value * 1e6:.3f} µs" if unit == "s" else f"{value:.6g}"


def show_text(answer: Answer, console: Console) -> None:
    """Prints the bounds of flows and servers, limits, and assumptions."""
    title = f"{answer.method}, {answer.multiplexing} multiplexing, grouping {answer.grouping}, {answer.arithmetic}"
    console.print(f"{answer.name or 'network'}: {title}", markup=False, highlight=False)
    console.print(
        verdict(answer),
        style="bold" if not answer.kept else "",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    console.print()
    rows = [
        (flow.flow, target.target, show_time(target.delay, answer.time_unit), str(len(target.path)))
        for flow in answer.flows
        for target in flow.targets
    ]
    print_table(("flow", "target", "delay at most", "servers"), rows, console, leading=2)
    console.print()
    servers = [
        (
            server.server,
            show_time(server.delay, answer.time_unit),
            "none" if server.backlog_bits is None else f"{server.backlog_bits:.0f} bit",
            f"{server.load:.4f}",
        )
        for server in answer.servers
    ]
    print_table(("server", "delay at most", "backlog at most", "load"), servers, console)
    if answer.limits:
        console.print()
        limits = [
            (
                limit.flow,
                limit.target,
                limit.written,
                show_time(limit.delay, answer.time_unit),
                _verdict(limit, loses=answer.loses),
            )
            for limit in answer.limits
        ]
        print_table(("flow", "target", "limit", "bound", ""), limits, console, leading=2)
    console.print()
    console.print("These bounds hold if:", highlight=False)
    for assumption in answer.assumptions:
        console.print(f"- {assumption}", markup=False, highlight=False)
    for note in answer.notes:
        console.print(f"Note: {note}", markup=False, highlight=False)


def verdict(answer: Answer) -> str:
    """One line with the number of targets that are bounded, and the limits that are not kept."""
    targets = [target for flow in answer.flows for target in flow.targets]
    bounded = sum(target.delay is not None for target in targets)
    said = f"{bounded} of {len(targets)} targets bounded"
    if not answer.limits:
        return f"{said}; no limit to keep"
    broken = [limit for limit in answer.limits if not limit.kept]
    if not broken:
        return f"{said}; all {len(answer.limits)} limits kept{BY_WHAT_ARRIVES if answer.loses else ''}"
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


def _verdict(limit: Judged, *, loses: bool) -> str:
    if limit.kept:
        return "kept by what arrives" if loses else "kept"
    within = limit.delay is not None and limit.delay <= limit.at_most
    return "NOT KEPT: frames may be lost" if within else "EXCEEDED"

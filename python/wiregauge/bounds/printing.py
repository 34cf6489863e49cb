"""An answer as text."""

from __future__ import annotations

from rich.console import Console

from wiregauge.bounds.analysing import Answer, Judged
from wiregauge.terminal import print_table

__all__ = ["show_text"]


def _time(value: float | None, unit: str) -> str:
    if value is None:
        return "none"
    return f"{value * 1e6:.3f} us" if unit == "s" else f"{value:.6g}"


def show_text(answer: Answer, console: Console) -> None:
    """Bounds of flows and servers, limits, and what they rest on."""
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
        (flow.flow, target.target, _time(target.delay, answer.time_unit), str(len(target.path)))
        for flow in answer.flows
        for target in flow.targets
    ]
    print_table(("flow", "target", "delay at most", "servers"), rows, console, leading=2)
    console.print()
    servers = [
        (
            server.server,
            _time(server.delay, answer.time_unit),
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
                _time(limit.delay, answer.time_unit),
                _verdict(limit),
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
    """What came of it, in one line: how many are bounded, and which limits are not kept."""
    targets = [target for flow in answer.flows for target in flow.targets]
    bounded = sum(target.delay is not None for target in targets)
    said = f"{bounded} of {len(targets)} targets bounded"
    if not answer.limits:
        return f"{said}; no limit to keep"
    broken = [limit for limit in answer.limits if not limit.kept]
    if not broken:
        return f"{said}; all {len(answer.limits)} limits kept"
    worst = max(
        broken, key=lambda limit: (limit.delay is None, (limit.delay or 0.0) / (limit.at_most or 1.0))
    )
    named = f"flow {worst.flow} to {worst.target}, {_time(worst.delay, answer.time_unit)} of {worst.written}"
    return f"{said}; {len(broken)} of {len(answer.limits)} limits NOT KEPT, furthest {named}"


def _verdict(limit: Judged) -> str:
    if limit.kept:
        return "kept"
    within = limit.delay is not None and limit.delay <= limit.at_most
    return "NOT KEPT: frames may be lost" if within else "EXCEEDED"

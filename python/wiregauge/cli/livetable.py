"""Live figures of a run, as a table below the line that moves and as a few words in a log."""

from __future__ import annotations

from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from wiregauge.records.live import FlowNow, RunNow
from wiregauge.runner.live.alarms import duration_text

__all__ = ["MOST_ROWS", "live_table", "live_text"]

MOST_ROWS: Final = 8
_PROVISIONAL: Final = "Live figures are provisional; the report's count."


def _gravest(now: RunNow) -> list[FlowNow]:
    return sorted(now.flows, key=lambda flow: (-flow.lost, -(flow.max_ns or 0.0), flow.flow))


def _time(ns: float | None) -> str:
    return "-" if ns is None else duration_text(ns)


def live_table(now: RunNow) -> RenderableType:
    """A row for each flow, as far as they fit, those with losses and long latencies first."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("flow", no_wrap=True)
    for head in ("messages/s", "lost", "p50", "p99", "max of the last second"):
        table.add_column(head, justify="right", no_wrap=True)
    rows = _gravest(now)
    for flow in rows[:MOST_ROWS]:
        times = (flow.p50_ns, flow.p99_ns, flow.max_ns)
        label = (
            f"{flow.flow}  {flow.source} → {flow.destination}{' and back' if flow.measure == 'rtt' else ''}"
        )
        table.add_row(Text(label), f"{flow.rate:.0f}", str(flow.lost), *(_time(value) for value in times))
    notes = [_PROVISIONAL]
    hidden = len(rows) - MOST_ROWS
    if hidden > 0:
        notes.insert(0, f"{hidden} more flows, none worse.")
    if now.left_out:
        notes.insert(0, f"{now.left_out} flows have no live figures.")
    if now.dropped:
        notes.insert(0, f"The instrument lost {now.dropped} records.")
    return Group(table, Text(" ".join(notes), style="dim"))


def live_text(now: RunNow) -> str:
    """What a line in a log adds."""
    if not now.flows:
        return ""
    longest = max(now.flows, key=lambda flow: flow.max_ns or 0.0)
    said = f", {sum(flow.lost for flow in now.flows)} lost so far"
    if longest.max_ns is not None:
        said += f", {longest.measure} up to {duration_text(longest.max_ns)} (provisional)"
    return said

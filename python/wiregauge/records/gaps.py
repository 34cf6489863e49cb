"""Gaps in the records of a run: where, when and why the instrument may have lost some.

A message that did not arrive is lost only where its arrival would have been recorded. Full rings, full disks, torn
segments, full socket buffers and agents that were killed leave gaps; messages that fell into one are unknown and not
lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wiregauge.plan import Run
from wiregauge.records.counters import known, sum_known
from wiregauge.records.directory import BESIDE, RunDirectory
from wiregauge.records.reported import AgentReport, RunEntry

__all__ = ["gaps_of"]

Gap = dict[str, Any]
"""JSON form of `wg_record::tracking::Gap`."""


def gaps_of(directory: RunDirectory, index: int, damaged: Sequence[Mapping[str, Any]]) -> list[Gap]:
    """The gaps of a run from its entry in the manifest, its noise and the damage of its segments; `[]` without any."""
    # A cluster task's run is tracked before its entry is in the manifest: its end is not known yet.
    entry = directory.entries().get(index, RunEntry(index=index, state="running"))
    run, nodes = directory.plan.runs[index], directory.plan.network.names
    found = list(_torn(damaged, nodes))
    for name, report in entry.agents.items():
        if name in nodes and report is not None:
            found += _reported(directory, run, nodes.index(name), report)
    if entry.network is not None:
        found += _carried(entry.network, nodes)
    # Gaps of captures, and of frames of two captures that were matched by their content.
    found += [*(entry.gaps or ()), *((entry.passive or {}).get("gaps") or [])]
    if entry.state == "partial" and not directory.traits.virtual_time:
        found += _silent(directory, run, entry)
    return found


def _torn(damaged: Iterable[Mapping[str, Any]], nodes: Sequence[str]) -> Iterator[Gap]:
    """Segments are in a directory of the name of their end system; those of the simulator are of all."""
    for damage in damaged:
        file = Path(str(damage.get("file", "")))
        # Damage of other tables leaves no gap in the records.
        if file.suffix != ".arrows" or file.name in BESIDE.values():
            continue
        node = nodes.index(file.parent.name) if file.parent.name in nodes else None
        yield {
            "node": node,
            "from_ps": damage.get("after_ps"),
            "to_ps": damage.get("until_ps"),
            "cause": "a damaged record file",
        }


def _reported(directory: RunDirectory, run: Run, node: int, report: AgentReport) -> Iterator[Gap]:
    """Gaps from records that an agent reports as dropped."""
    dropped = known(report.records_dropped)
    name = directory.plan.network.names[node]
    if dropped:
        stretches = _overflows(directory, run.index, name, dropped) or [(None, None)]
        for begin, end in stretches:
            yield {
                "node": node,
                "from_ps": begin,
                "to_ps": end,
                "cause": f"{dropped} records lost by its agent",
            }
        for flow, sent in _handed_over(run, report):
            yield {
                "node": node,
                "flows": [flow],
                "handed_over": sent,
                "cause": f"{dropped} records lost by its agent",
            }
    for access in report.access_points:
        frames = sum_known((access.socket_drops, access.inbox_drops))
        if frames:
            yield {
                "node": node,
                "frames": True,
                "cause": f"{frames} frames lost in full buffers of its agent",
            }


def _handed_over(run: Run, report: AgentReport) -> Iterator[tuple[int, int]]:
    """Flow number and count of measured messages that an agent reports as sent, for each flow."""
    for task in report.tasks_of("send"):
        flow = known(task.flow)
        send = run.send_of.get(flow)
        measured = known(task.done) - (send.warm_up_count if send else 0)
        if measured > 0:
            yield flow, measured


def _overflows(
    directory: RunDirectory, index: int, name: str, dropped: int
) -> list[tuple[int | None, int | None]] | None:
    """Stretches of time in which rings ran over, ps; None where they do not account for all that was lost."""
    import polars as pl  # heavy, and not needed while frames travel

    path = directory.noise(index)
    if not path.exists():
        return None
    table = (
        pl.read_parquet(path, glob=False)
        .filter((pl.col("node") == name) & (pl.col("counter") == "ring_drops"))
        .sort("time")
        .select("time", "value")
    )
    found: list[tuple[int | None, int | None]] = []
    before: int | None = None
    seen = 0
    for time, value in table.iter_rows():
        if value > seen:
            found.append((before, time))
            seen = value
        before = time
    return found if seen == dropped else None


def _silent(directory: RunDirectory, run: Run, entry: RunEntry) -> Iterator[Gap]:
    """Gaps of agents that sent no report, or report an early end: nothing is known after their last record.

    If the agent was the network, whose last record is of a switch, the gap covers all end systems.
    """
    import polars as pl  # heavy, and not needed while frames travel

    nodes = directory.plan.network.names
    ends = {end for flow in run.flows for end in flow.ends}
    gone = sorted(
        node for node in ends if (report := entry.agents.get(nodes[node])) is None or report.complete is False
    )
    without_network = directory.traits.switches == "model" and not (
        entry.network is not None and entry.network.complete
    )
    if not gone and not without_network:
        return
    files = [str(path) for path in directory.record_files(run.index)]
    latest: dict[int, int] = {}
    if files:
        rows = pl.scan_parquet(files, glob=False).filter(pl.col("point").cast(pl.String) != "intended-send")
        latest = dict(rows.group_by("node").agg(pl.col("time").max()).collect(engine="streaming").iter_rows())
    for node in gone:
        yield {"node": node, "frames": True, "from_ps": latest.get(node), "cause": "its agent ended early"}
    if without_network:
        systems = directory.plan.network.end_systems
        last = max((at for node, at in latest.items() if node not in systems), default=None)
        yield {"node": None, "frames": True, "from_ps": last, "cause": "the network ended early"}


def _carried(network: AgentReport, nodes: Sequence[str]) -> Iterator[Gap]:
    """Gaps from frames that a network's agent lost on their way into it or out of it, outside of any switch."""
    lost = network.intake.lost if network.intake is not None else 0
    if lost:
        yield {
            "node": None,
            "frames": True,
            "cause": f"{lost} frames did not get into the network: no room, or not taken before its end",
        }
    for port in network.releases:
        undelivered, name = port.undelivered, port.end_system
        if undelivered and name in nodes:
            cause = f"{undelivered} frames of the network to {name} were refused by the kernel"
            yield {"node": nodes.index(name), "frames": True, "cause": cause}

"""What the instrument may have lost of a run: where, when, and why.

A message that did not arrive is lost only where its arrival would have been recorded. Full rings, full disks, torn
segments, full socket buffers and agents that were killed leave gaps; what fell into one is unknown and not lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wiregauge.plan import Run
from wiregauge.records.directory import BESIDE, RunDirectory

__all__ = ["gaps_of"]

Gap = dict[str, Any]
"""JSON form of `wg_record::tracking::Gap`."""


def gaps_of(directory: RunDirectory, index: int, damaged: Sequence[Mapping[str, Any]]) -> list[Gap]:
    """The gaps of a run from its entry in the manifest, its noise and the damage of its segments; `[]` without any."""
    entry: Mapping[str, Any] = next((run for run in directory.runs if run["index"] == index), {})
    run, nodes = directory.plan.runs[index], directory.plan.network.names
    agents: Mapping[str, Mapping[str, Any]] = entry.get("agents") or {}
    found = list(_torn(damaged, nodes))
    for name, report in agents.items():
        if name in nodes:
            found += _reported(directory, run, nodes.index(name), report)
    found += _carried(entry.get("network") or {}, nodes)
    # Of captures, and of frames of two that were matched by their content.
    found += [*(entry.get("gaps") or []), *((entry.get("passive") or {}).get("gaps") or [])]
    if entry.get("state") == "partial" and not directory.traits.virtual_time:
        found += _silent(directory, run, agents, entry.get("network") or {})
    return found


def _torn(damaged: Iterable[Mapping[str, Any]], nodes: Sequence[str]) -> Iterator[Gap]:
    """Segments are in a directory of the name of their end system; those of the simulator are of all."""
    for damage in damaged:
        file = Path(str(damage.get("file", "")))
        # Tables beside the records of a run say nothing of them.
        if file.suffix != ".arrows" or file.name in BESIDE.values():
            continue
        node = nodes.index(file.parent.name) if file.parent.name in nodes else None
        yield {
            "node": node,
            "from_ps": damage.get("after_ps"),
            "to_ps": damage.get("until_ps"),
            "cause": "a damaged record file",
        }


def _reported(directory: RunDirectory, run: Run, node: int, report: Mapping[str, Any]) -> Iterator[Gap]:
    """What an agent says that it lost."""
    dropped = _number(report, "records_dropped")
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
    for access in report.get("access_points") or []:
        frames = _number(access, "socket_drops") + _number(access, "inbox_drops")
        if frames:
            yield {
                "node": node,
                "frames": True,
                "cause": f"{frames} frames lost in full buffers of its agent",
            }


def _handed_over(run: Run, report: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """By flow: messages of the measured part that an agent says to have sent."""
    for task in report.get("tasks") or []:
        flow, done = _number(task, "flow"), _number(task, "done")
        send = run.send_of.get(flow)
        measured = done - (send.warm_up_count if send else 0)
        if task.get("kind") == "send" and measured > 0:
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


def _silent(
    directory: RunDirectory,
    run: Run,
    agents: Mapping[str, Mapping[str, Any]],
    network: Mapping[str, Any],
) -> Iterator[Gap]:
    """Agents that sent no report, or say themselves that they ended early: nothing is known after their last record.

    Of an agent that was the network, whose last record is of a switch, nothing is known of anybody's messages.
    """
    import polars as pl  # heavy, and not needed while frames travel

    nodes = directory.plan.network.names
    ends = {end for flow in run.flows for end in flow.ends}
    gone = sorted(
        node for node in ends if not agents.get(nodes[node]) or agents[nodes[node]].get("complete") is False
    )
    without_network = directory.traits.switches == "model" and not network.get("complete")
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


def _carried(network: Mapping[str, Any], nodes: Sequence[str]) -> Iterator[Gap]:
    """Frames that an agent that was the network lost on their way into it or out of it, which no switch did."""
    lost = _number(network.get("intake") or {}, "lost")
    if lost:
        yield {
            "node": None,
            "frames": True,
            "cause": f"{lost} frames found no room where the network takes them",
        }
    for port in network.get("releases") or []:
        undelivered, name = _number(port, "undelivered"), port.get("end_system")
        if undelivered and name in nodes:
            cause = f"{undelivered} frames of the network to {name} were refused by the kernel"
            yield {"node": nodes.index(name), "frames": True, "cause": cause}


def _number(report: Mapping[str, Any], key: str) -> int:
    value = report.get(key, 0)
    return int(value) if isinstance(value, int | float) else 0

"""The table of AS6802 clusters."""

from __future__ import annotations

from wiregauge.measures.definitions.units import duration
from wiregauge.measures.metrics.judgement import Judgement
from wiregauge.records.modelled import ClusterReport, SynchroniserReport
from wiregauge.report.tables import Cell, Head, Section, Table, place_cell

__all__ = ["cluster_table"]


def cluster_table(judgement: Judgement) -> Table:
    """Every device of every cluster, by run."""
    heads = [
        Head("point", kind="text"),
        Head("device", kind="text"),
        Head("part", kind="text"),
        Head("state at the end", kind="text"),
        Head("synchronised at"),
        Head("losses", "sync_losses"),
        Head("cliques: sync, async, relative", "sync_cliques", kind="text"),
        Head("membership", kind="text"),
    ]
    sections = [
        Section(_title(cluster), [[place_cell(run.plan.point), *_row(device)] for device in cluster.devices])
        for run in judgement.runs
        for cluster in run.clusters
    ]
    return Table("Synchronisation", heads, sections)


def _title(cluster: ClusterReport) -> str:
    def against(value: float | None, bound: float) -> str:
        return f"{'never' if value is None else duration(value)} (bound {duration(bound)})"

    return (
        f"domain {cluster.domain}, priority {cluster.priority}: "
        f"precision {against(cluster.precision_ns, cluster.precision_bound_ns)}, "
        f"synchronised after {against(cluster.startup_ns, cluster.startup_bound_ns)}"
    )


def _row(device: SynchroniserReport) -> list[Cell]:
    part = device.part.replace("-", " ") + (", faulty" if device.faulty else "")
    return [
        Cell(device.node, kind="text short"),
        Cell(part, kind="text short"),
        Cell(device.state, kind="text short"),
        Cell(duration(device.synchronised_at_ns)),
        Cell(str(device.losses)),
        Cell(", ".join(str(n) for n in device.cliques), kind="text short"),
        Cell(f"{device.membership:#x}", kind="text short"),
    ]

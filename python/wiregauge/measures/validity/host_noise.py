"""Host activity during a run, from the time series that agents wrote.

Counters are cumulative; their difference between two samples tells that something happened, but not when within.
Counters that should not move at all on a quiet host (stolen time, drops, preemptions) give an event for every change;
others (interrupts, switches) where there is much more of it than usual.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
import polars as pl
from msgspec import Struct

from wiregauge import stats
from wiregauge.measures.definitions.units import count_of, duration
from wiregauge.measures.metrics.flow_plan import RunPlan
from wiregauge.measures.metrics.hops import read_columns
from wiregauge.measures.metrics.judgement import Floats, FlowResult, RunResult
from wiregauge.measures.metrics.recorded import Recorded
from wiregauge.records.counters import sum_known
from wiregauge.records.reported import AgentReport

__all__ = ["HostEvent", "NoiseRow", "NoiseView", "ReportedRun", "noise_events", "noise_view"]

MOST_ROWS = 2_000_000
"""Rows of the series that are read."""
MUCH = 5.0
"""Factor over the median of a busy counter from which its change is an event."""
LEAST = 20
"""Least change of a busy counter that is an event."""
MOST_DRAWN = 1_000
"""Marks of a line."""
WORST = 20

_NEVER: Mapping[str, str] = {
    "steal_ns": "the hypervisor took {time} of {key}",
    "preempted": "{count} of {key}",
    "rx_drops": "{key} dropped {n} received frames",
    "tx_drops": "{key} dropped {n} frames to be sent",
    "rx_errors": "{key} received {n} frames with errors",
    "tx_errors": "{key} failed to send {n} frames",
    "socket_drops": "{n} datagrams dropped for want of socket buffer ({key})",
    "backlog_drops": "the backlog of {key} dropped {n} frames",
    "backlog_squeezed": "the kernel broke off polling on {key} {n} times",
    "ring_drops": "{n} {key} lost in a full ring",
}
_BUSY: Mapping[str, str] = {
    "interrupts": "{n} interrupts of line {key}, usually {usual}",
    "switches": "{n} context switches on {key}, usually {usual}",
}


class ReportedRun(Protocol):
    """A run with the reports of its agents: all that the surroundings of a message need of it, judged or not."""

    @property
    def plan(self) -> RunPlan:
        """The run as it was planned."""
        ...

    @property
    def agents(self) -> Mapping[str, AgentReport]:
        """Reports by end system."""
        ...


class HostEvent(Struct, frozen=True):
    """An event on a host between two samples of its counters; times in s."""

    since: float
    at: float
    node: str
    text: str


class NoiseRow(Struct, frozen=True):
    """One quantity of one host over time: `value` of the interval that begins at `t` (s) and ends at the next."""

    node: str
    t: Floats
    value: Floats


class NoiseView(Struct, frozen=True):
    """The noise of a run with its worst messages; by panel title a line per host, and the unit."""

    worst: Sequence[tuple[str, Floats, Floats]]
    """Flow, when sent (s), how long it took (ns)."""
    panels: Sequence[tuple[str, str, tuple[NoiseRow, ...]]]
    """Title, unit, rows."""
    interval_s: float


def noise_events(directory: Recorded, run: ReportedRun) -> Iterator[HostEvent]:
    """Host events beyond the usual, in order of time."""
    table, looks = _differences(directory, run)
    many = dict(looks.group_by("node").len().iter_rows())
    found = []
    for (counter, key, node), part in table.partition_by("counter", "key", "node", as_dict=True).items():
        changes = part["change"].cast(pl.Float64).to_numpy()
        if counter in _NEVER:
            limit, text, usual = 0.0, _NEVER[str(counter)], 0.0
        elif counter in _BUSY:
            # Samples without a change are not in the table, and count as usual.
            still = max(int(many.get(str(node), 0)) - len(changes), 0)
            usual = stats.median(np.concatenate([changes, np.zeros(still)]))
            limit, text = max(MUCH * usual, LEAST), _BUSY[str(counter)]
        else:
            continue
        for at, since, change in (
            part.filter(pl.col("change") > limit).select("time", "since", "change").rows()
        ):
            words = {
                "n": str(change),
                "key": str(key),
                "time": duration(change),
                "count": count_of(change, "preemption"),
                "usual": f"{usual:.0f}",
            }
            said = f"{text.format(**words)} within {duration((at - since) / 1e3)}"
            found.append(HostEvent(since / 1e12, at / 1e12, str(node), said))
    yield from sorted(found, key=lambda event: (event.at, event.node, event.text))


def noise_view(directory: Recorded, run: RunResult) -> NoiseView | None:
    """The data of the host noise figure; None for a run whose hosts left none."""
    table, looks = _differences(directory, run)
    if table.is_empty():
        return None
    groups = (
        ("Stolen time", "ms per interval", ("steal_ns",), 1e-6),
        (
            "Context switches of the whole host"
            if (table.filter(pl.col("counter") == "switches")["key"] == "host").all()
            else "Context switches on the servicing core",
            "per interval",
            ("switches",),
            1.0,
        ),
        ("Interrupts on the servicing core", "per interval", ("interrupts",), 1.0),
        ("Preemptions of servicing threads", "per interval", ("preempted",), 1.0),
        (
            "Drops: interface, backlog, sockets, rings",
            "frames per interval",
            ("rx_drops", "tx_drops", "backlog_drops", "socket_drops", "ring_drops"),
            1.0,
        ),
    )
    panels = []
    for title, unit, counters, scale in groups:
        rows = tuple(_rows(table.filter(pl.col("counter").is_in(counters)), looks, scale))
        if any(row.value.any() for row in rows):
            panels.append((title, unit, rows))
    width = table.select((pl.col("time") - pl.col("since")).median()).item()
    return NoiseView(
        [(f"flow {flow.plan.name}", *_worst(flow)) for flow in run.flows],
        panels,
        float(width or 0) / 1e12,
    )


def _worst(flow: FlowResult) -> tuple[Floats, Floats]:
    series = flow.series["rtt" if flow.plan.relayed and "rtt" in flow.series else "latency"]
    most = np.sort(np.argsort(series.value)[-WORST:])
    return series.t[most], series.value[most]


def _rows(table: pl.DataFrame, looks: pl.DataFrame, scale: float) -> Iterator[NoiseRow]:
    for (node,), part in sorted(table.partition_by("node", as_dict=True).items()):
        every = looks.filter(pl.col("node") == node).select("time", "since")
        sums = part.group_by("time").agg(pl.col("change").sum())
        sums = every.join(sums, on="time", how="left").fill_null(0).sort("time")
        t, value = sums["since"].cast(pl.Float64).to_numpy() / 1e12, sums["change"].to_numpy() * scale
        if len(t) > MOST_DRAWN:
            # The maximum of each interval: outliers must not be thinned out.
            edges = np.linspace(0, len(t), MOST_DRAWN + 1).astype(int)[:-1]
            t, value = t[edges], np.maximum.reduceat(value, edges)
        yield NoiseRow(str(node), t, value.astype(np.float64))


def _swallowing(run: ReportedRun) -> list[str]:
    """Hosts whose counter of full socket buffers shows no loss.

    A packet ring or AF_XDP takes background load and flows of other addresses in; a socket that nobody reads receives
    the host's own copies, and overflows by design. The kernel has one counter for both kinds of sockets; the measuring
    ones count their own overflows.
    """
    return [
        node
        for node, agent in run.agents.items()
        if (
            any(part.kind == "absorb" for part in agent.streams)
            or any(part.protocol == "udp-frames" for part in agent.access_points)
        )
        and not sum_known(part.socket_drops for part in agent.access_points)
    ]


def _differences(directory: Recorded, run: ReportedRun) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Counter changes by counter, key and node between samples (`since`, `time`), ps; and all sample times by node.

    Agents write changes only: a counter that is absent from a sample is unchanged.
    """
    empty = {"time": pl.Int64, "since": pl.Int64, "node": pl.String, "counter": pl.String, "key": pl.String}
    path = directory.noise(run.plan.index)
    if path is None:
        return pl.DataFrame(schema={**empty, "change": pl.Int64}), pl.DataFrame(schema=empty)
    columns = ("time", "node", "counter", "key", "value")
    wanted = pl.col("counter").is_in([*_NEVER, *_BUSY])
    table = read_columns(path, columns, wanted, most=MOST_ROWS)
    looks = table.select("node", "time").unique().sort("node", "time")
    looks = looks.with_columns(since=pl.col("time").shift(1).over("node"))
    own = ("node", "counter", "key")
    # After the looks: one at which nothing else changed is still one.
    by_design = (pl.col("key") == "RcvbufErrors") & pl.col("node").is_in(_swallowing(run))
    table = table.filter(~((pl.col("counter") == "socket_drops") & by_design))
    table = table.sort("time").with_columns(change=pl.col("value") - pl.col("value").shift(1).over(own))
    looks = looks.drop_nulls("since")
    return table.drop_nulls("change").join(looks, on=("node", "time")).drop("value"), looks

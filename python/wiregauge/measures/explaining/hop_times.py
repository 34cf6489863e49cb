"""The hop-by-hop times of messages, from the records of their way.

A flow's way is known from the plan: which points of which nodes see a message, in which order. Records are put in that
order and their differences are the steps. Where copies of a message meet, in a host on two networks or where frames are
eliminated, the way whose copy came first goes on. Files may be far larger than memory: all queries are for intervals of
time, which a Parquet file in the order of time answers from few row groups, and never for more than `MOST_RECORDS` rows
at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from msgspec import Struct

from wiregauge.measures.explaining.explanation import Step
from wiregauge.measures.metrics import sampling
from wiregauge.measures.metrics.clocks import RunClocks
from wiregauge.measures.metrics.flow_plan import CampaignPlan, FlowPlan
from wiregauge.measures.metrics.hops import read_columns

MOST_RECORDS = 4_000_000
"""Records that are held at once."""
MOST_SAMPLED = 1_000
"""Messages of a flow from which the usual time of a step is taken, at most about."""
SAMPLED_RECORDS = 500_000
"""Records that are read for the usual times, at most; of a larger file from stretches of time evenly over the run."""
_NEAR_HALF = 0.1
"""A share of sampled messages at the median of all that is further from half is not one of chance."""
_ROUNDED_PS = 500
_STRETCHES = 24
_GOLDEN = 0.6180339887498949
"""Golden ratio: its multiples modulo 1 are spread evenly and never repeat, so sampled intervals follow no period."""
_AT_ONCE = 24
"""Number of intervals read in one pass over the file."""
COLUMNS = ("flow", "sequence", "returning", "warm_up", "node", "port", "length", "point", "reason", "time")

Span = tuple[int, int]


class Rung(Struct, frozen=True):
    """A point of a route: node and kind of record, its ports (None: any), on the way out or back."""

    node: int
    point: str
    ports: tuple[int, ...] | None
    returning: bool


class Way(Struct, frozen=True):
    """The points a flow passes to one receiver, in order."""

    number: int
    flow: FlowPlan
    rungs: tuple[Rung, ...]


def ways_of(campaign: CampaignPlan, flows: Iterable[FlowPlan]) -> list[Way]:
    """Every route of these flows, out and, for relayed ones, back."""
    ports: dict[tuple[int, int], list[int]] = {}
    for link in campaign.network.links:
        for here, there in (link.ends, link.ends[::-1]):
            ports.setdefault((here.node, there.node), []).append(here.port)
    found: list[Way] = []
    for flow in flows:
        for nodes in flow.ways:
            rungs = _rungs(nodes, ports, returning=False)
            if flow.relayed:
                rungs += _rungs(nodes[::-1], ports, returning=True)
            found.append(Way(len(found), flow, tuple(rungs)))
    return found


def _rungs(
    nodes: Sequence[int], ports: Mapping[tuple[int, int], list[int]], *, returning: bool
) -> list[Rung]:
    def towards(here: int, there: int) -> tuple[int, ...]:
        return tuple(ports.get((here, there), ()))

    source, destination = nodes[0], nodes[-1]
    found = [Rung(source, point, None, returning) for point in ("application-send", "driver-send")]
    if len(nodes) > 1:
        found.append(Rung(source, "wire-send", towards(source, nodes[1]), returning))
    for before, here, after in zip(nodes[:-2], nodes[1:-1], nodes[2:], strict=True):
        found.append(Rung(here, "switch-in", towards(here, before), returning))
        found.append(Rung(here, "switch-out", towards(here, after), returning))
    if len(nodes) > 1:
        found.append(Rung(destination, "wire-receive", towards(destination, nodes[-2]), returning))
    found += [
        Rung(destination, point, None, returning) for point in ("driver-receive", "application-receive")
    ]
    return found


def read_spans(path: Path, spans: Sequence[Span], only: pl.Expr) -> pl.DataFrame:
    """Records in these intervals (ps) for which `only` holds, in the order of time; at most `MOST_RECORDS`."""
    parts = []
    merged = _merged(spans)
    left = MOST_RECORDS
    for begin in range(0, len(merged), _AT_ONCE):
        some = merged[begin : begin + _AT_ONCE]
        inside = pl.any_horizontal(pl.col("time").is_between(low, high) for low, high in some)
        # The envelope prunes row groups by their least and greatest time, whatever becomes of the rest.
        envelope = pl.col("time").is_between(some[0][0], some[-1][1])
        parts.append(read_columns(path, COLUMNS, envelope & inside & only, most=left))
        left -= parts[-1].height
        if left <= 0:
            break
    return pl.concat(parts) if parts else read_columns(path, COLUMNS, pl.lit(False))


def read_in_parts(path: Path, span: Span, only: pl.Expr) -> Iterator[pl.DataFrame]:
    """All records of a stretch of time (ps) for which `only` holds, in the order of time, `MOST_RECORDS` at a time."""
    low, high = span
    while low <= high:
        part = read_columns(path, COLUMNS, pl.col("time").is_between(low, high) & only, most=MOST_RECORDS)
        if part.height < MOST_RECORDS:
            yield part
            return
        last = int(part["time"][-1])
        # Records of the last instant may continue in the next part, so that begins with all of them.
        whole = part.filter(pl.col("time") < last)
        if whole.is_empty():
            yield part
            low = last + 1
        else:
            yield whole
            low = last


def _merged(spans: Sequence[Span]) -> list[Span]:
    found: list[Span] = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return found


def _meetings(ways: Sequence[Way]) -> pl.DataFrame:
    """The places of ways behind which they share a rung with another way that came to it from elsewhere."""
    reached: dict[tuple[int, int, Rung], list[tuple[Way, int]]] = {}
    for way in ways:
        for place, behind in enumerate(way.rungs[1:]):
            reached.setdefault((way.flow.id, way.flow.receiver, behind), []).append((way, place))
    rows = [
        (way.number, place, number)
        for number, met in enumerate(reached.values())
        if len({way.rungs[place] for way, place in met}) > 1
        for way, place in met
    ]
    schema = {"way": pl.Int64, "place": pl.Int64, "meeting": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def ladders(records: pl.DataFrame, ways: Sequence[Way]) -> pl.DataFrame:
    """The steps of each route and message: columns way, sequence, from, to (places of rungs), start and took (ps).

    `second` are steps that another copy made: the first one where the two meet that was not dropped there went on.
    """
    keys = pl.DataFrame(
        [
            (way.number, way.flow.id, rung.node, rung.point, port, rung.returning, place)
            for way in ways
            for place, rung in enumerate(way.rungs)
            for port in (rung.ports if rung.ports is not None else (None,))
        ],
        schema={
            "way": pl.Int64,
            "flow": pl.UInt16,
            "node": pl.UInt16,
            "point": pl.String,
            "at_port": pl.UInt16,
            "returning": pl.Boolean,
            "place": pl.Int64,
        },
        orient="row",
    )
    seen = _first_seen(
        records.filter(~pl.col("warm_up"))
        .join(keys, on=["flow", "node", "point", "returning"], how="inner")
        .filter(pl.col("at_port").is_null() | (pl.col("at_port") == pl.col("port"))),
        len(keys),
    )
    own = ["way", "sequence"]
    steps = _between(seen)
    met = _meetings(ways)
    if met.is_empty():
        return steps.with_columns(second=False)
    across = (pl.col("from") <= pl.col("place")) & (pl.col("place") < pl.col("to"))
    dropped = (
        records.filter(pl.col("point") == "drop")
        .join(keys, on=["flow", "node", "returning"], how="inner")
        .filter(pl.col("at_port") == pl.col("port"))
        .select("way", "sequence", "place")
        .unique()
    )
    second = (
        steps.join(_seconds(seen, dropped, met), on=own)
        .filter(across)
        .select(*own, "from", second=True)
        .unique()
    )
    return steps.join(second, on=[*own, "from"], how="left", maintain_order="left").with_columns(
        pl.col("second").fill_null(value=False)
    )


def _first_seen(rows: pl.DataFrame, places: int) -> pl.DataFrame:
    """The earliest record of each way, message and place, in that order; every place is below `places`."""
    way, sequence, place, time = (
        rows[name].cast(pl.Int64).to_numpy() for name in ("way", "sequence", "place", "time")
    )
    # One number to sort by instead of three.
    key = (way * (int(sequence.max(initial=0)) + 1) + sequence) * places + place
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
    first = order[begins]
    earliest = np.minimum.reduceat(time[order], begins) if len(begins) else time
    return rows[first].select("way", "sequence", "place", time=pl.Series(earliest, dtype=pl.Int64))


def _between(seen: pl.DataFrame) -> pl.DataFrame:
    """The steps between neighbours of `_first_seen`."""
    before, after = seen[:-1], seen[1:]
    alike = (before["way"] == after["way"]) & (before["sequence"] == after["sequence"])
    return pl.DataFrame(
        {
            "way": after["way"],
            "sequence": after["sequence"],
            "from": before["place"],
            "to": after["place"],
            "start": before["time"],
            "took": after["time"] - before["time"],
        }
    ).filter(alike)


def _seconds(seen: pl.DataFrame, dropped: pl.DataFrame, meetings: pl.DataFrame) -> pl.DataFrame:
    """The meetings from which a copy on another way went on: columns way, sequence, place, as in `dropped`."""
    met = meetings.join(seen.select("way", "sequence").unique(), on="way")
    place = ["way", "sequence", "place"]
    came = met.join(seen.join(dropped, on=place, how="anti"), on=place, how="left")
    first = pl.col("time").min().over("meeting", "sequence")
    return came.filter(pl.col("time").fill_null(2**63 - 1) > first).select("way", "sequence", "place")


def usual_steps(
    path: Path,
    ways: Sequence[Way],
    counts: Mapping[int, int],
    one_clock: Callable[[pl.DataFrame], pl.DataFrame],
    medians: Mapping[tuple[int, int], float],
) -> dict[tuple[int, int, int], tuple[float, int]]:
    """Median time, ns, and number of messages behind it, of each step: by way and the places it joins.

    `medians` are of the times that all messages of a flow took to a receiver, ns. Where the messages that are looked at
    have theirs at another share than half, as those of few different times do, steps are taken at that share, too: what
    a message took more than usual is then the same of the whole and of its steps.

    `counts` are the messages of each flow in the run: of more than `MOST_SAMPLED` one in k is looked at, or all of them
    in some stretches of time, and of flows that send in none of these again one in k. `one_clock` puts the times of
    records of all nodes on one clock.
    """
    flows = sorted({way.flow.id for way in ways})
    if not flows:
        return {}
    steps = pl.DataFrame(
        {"flow": flows, "step": [max(counts.get(flow, 1) // MOST_SAMPLED, 1) for flow in flows]},
        schema={"flow": pl.UInt16, "step": pl.UInt32},
    )
    # Regular numbers would beat with bursts: the first of each is no usual message.
    every = sampling.mixed(pl.col("sequence")) % pl.col("flow").replace_strict(
        steps["flow"], steps["step"], default=1, return_dtype=pl.UInt32
    )
    mine = pl.col("flow").is_in(flows) & ~pl.col("warm_up")
    size = int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
    if size <= SAMPLED_RECORDS:
        records = read_columns(path, COLUMNS, mine & (every == 0), most=SAMPLED_RECORDS)
    else:
        first, last = (
            pl.scan_parquet(path, glob=False)
            .select(pl.col("time").min(), pl.col("time").max().alias("last"))
            .collect()
            .row(0)
        )
        length = (last - first) * SAMPLED_RECORDS // size // _STRETCHES
        cell = (last - first) // _STRETCHES
        starts = [
            first + k * cell + int((k * _GOLDEN % 1) * max(cell - length, 0)) for k in range(_STRETCHES)
        ]
        records = read_spans(path, [(start, start + length) for start in starts], mine)
        unseen = [flow for flow in flows if flow not in set(records["flow"].unique().to_list())]
        if unseen:
            only = pl.col("flow").is_in(unseen) & ~pl.col("warm_up") & (every == 0)
            records = pl.concat([records, read_columns(path, COLUMNS, only, most=SAMPLED_RECORDS)])
    table = ladders(one_clock(records), ways).filter(~pl.col("second"))
    return {
        (way.number, int(start), int(end)): (float(took), int(n))
        for way in ways
        for start, end, took, n in _usual_of(
            table.filter(pl.col("way") == way.number),
            medians.get((way.flow.id, way.flow.receiver)) if len(way.flow.ways) == 1 else None,
        ).iter_rows()
    }


def _usual_of(table: pl.DataFrame, median: float | None) -> pl.DataFrame:
    """From, to, usual time and number of each step of one way."""
    share = 0.5
    if median is not None and table.height:
        whole = table.group_by("sequence").agg(pl.col("took").sum())["took"].to_numpy()
        below = float((whole <= 1000 * median + _ROUNDED_PS).mean())
        share = below if abs(below - 0.5) < _NEAR_HALF else share
    took = pl.col("took").cast(pl.Float64).quantile(share, "lower") / 1000
    return table.group_by("from", "to").agg(took, pl.len().alias("n"))


def steps_of(
    rows: pl.DataFrame,
    ways: Sequence[Way],
    campaign: CampaignPlan,
    usual: Mapping[tuple[int, int, int], tuple[float, int]],
    clocks: RunClocks,
) -> tuple[tuple[Step, ...], float]:
    """The steps of one message from its rows of `ladders`, on the way whose copy came first.

    And how much longer that way usually is than the shortest, ns: what the message lost because the other copy
    was missing.
    """
    candidates = []
    for way in ways:
        mine = rows.filter(pl.col("way") == way.number)
        if mine.height:
            own = mine.filter(~pl.col("second"))
            candidates.append((mine.height - own.height, -max(mine["to"].to_list()), way.number, own, way))
    if not candidates:
        return (), 0.0
    _, _, _, mine, way = min(candidates, key=lambda entry: entry[:3])
    found = []
    for start, end, begun, took in mine.select("from", "to", "start", "took").iter_rows():
        kind, title, node, port = _named(way.rungs[start], way.rungs[end], campaign)
        normal, n = usual.get((way.number, start, end), (None, 0))
        ends = (campaign.network.nodes[way.rungs[place].node].name for place in (start, end))
        found.append(
            Step(kind, title, node, port, begun / 1e3, took / 1e3, normal, n, clocks.apart_ns(*ends))
        )
    usually = _total(way, usual)
    if usually is None:
        return tuple(found), 0.0
    totals = [total for other in ways if (total := _total(other, usual)) is not None]
    # Ways of which usual times end sooner, as those whose copy never came first, are not shorter.
    return tuple(found), usually[1] - min(time for left, time in totals if left <= usually[0])


def _total(way: Way, usual: Mapping[tuple[int, int, int], tuple[float, int]]) -> tuple[int, float] | None:
    """The usual sum of the steps of a route, ns, on the path of most messages, after the number of rungs that it
    does not reach; None if none is known."""
    onward: dict[int, tuple[int, int, float]] = {}
    for (number, start, end), (median, n) in usual.items():
        if number == way.number and (start not in onward or n > onward[start][0]):
            onward[start] = n, end, median
    if not onward:
        return None
    total, place = 0.0, min(onward)
    while place in onward:
        _, place, median = onward[place]
        total += median
    return len(way.rungs) - 1 - place, total


def _named(start: Rung, end: Rung, campaign: CampaignPlan) -> tuple[str, str, int, int | None]:
    here, there = campaign.network.nodes[start.node].name, campaign.network.nodes[end.node].name
    port = end.ports[0] if end.ports else None
    if start.returning != end.returning:
        return "relay", f"relay {there}", end.node, None
    if end.point in ("switch-out", "wire-send"):
        return "port", f"{there}, out of port {port}", end.node, port
    if start.node == end.node:
        if end.point == "driver-send":
            return "stack", f"stack of {here}, down", end.node, None
        return (
            "stack",
            f"stack of {here}, up" if start.point != "wire-receive" else f"interface of {here}",
            end.node,
            None,
        )
    if start.point in ("wire-send", "switch-out") and end.point in ("switch-in", "wire-receive"):
        return "link", f"link {here} to {there}", end.node, None
    return "network", f"{here} to {there}", end.node, None

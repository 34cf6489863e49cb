"""All flows of a very large run in one table for a browser: a page of rows at a time, sortable and searchable.

The rows are deflated data, and become cells only when they are shown: 65 000 rows are some three megabytes here and
would be a hundred as cells.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from wiregauge.measures.large import is_large
from wiregauge.measures.metrics.judgement import FlowResult, Judgement
from wiregauge.report.tables import US

__all__ = ["AllFlows", "all_flows"]

_TIMES = ("min", "mean", "p50", "p99", "max")


class AllFlows(Struct, frozen=True):
    """The table: its heads with units, the number of rows, and the rows as deflated JSON in base 64."""

    heads: tuple[tuple[str, str], ...]
    size: int
    packed: str


def all_flows(judgement: Judgement) -> AllFlows | None:
    """One row per flow, receiver and point of a large run; None where the other tables show every flow."""
    if not is_large(judgement):
        return None
    several = len(judgement.points) > 1
    relayed = any(flow.plan.relayed for point in judgement.points for flow in point.flows)
    heads = [
        *([("point", "")] if several else []),
        *((name, "") for name in ("flow", "protocol", "from", "to", "sent", "lost", "unknown", "other")),
        *((name, "µs") for name in _TIMES),
        *([("round trip p50", "µs"), ("round trip max", "µs")] if relayed else []),
    ]
    rows = list(_rows(judgement, several=several, relayed=relayed))
    text = msgspec.json.encode(rows)
    return AllFlows(tuple(heads), len(rows), b64encode(zlib.compress(text, 6)).decode("ascii"))


def _rows(judgement: Judgement, *, several: bool, relayed: bool) -> Iterator[list[object]]:
    for point in judgement.points:
        where: list[object] = [", ".join(point.point.values())] if several else []
        for flow in point.flows:
            latency = flow.summaries["latency"]
            yield [*where, *_counts(flow), *(_micro(latency.value(name)) for name in _TIMES)] + (
                _round_trip(flow) if relayed else []
            )


def _counts(flow: FlowResult) -> list[object]:
    plan, counts = flow.plan, flow.counts
    # Without a tap the losses are unknown.
    lost = [counts["lost"], counts["unknown"]] if not flow.unseen else [None, None]
    other = sum(flow.outcomes[name] for name in ("duplicated", "reordered", "late"))
    return [plan.id, plan.protocol, plan.source, plan.destination, counts["sent"], *lost, other]


def _round_trip(flow: FlowResult) -> list[object]:
    found = flow.summaries.get("rtt")
    return [_micro(found.value(name)) if found is not None else None for name in ("p50", "max")]


def _micro(ns: float | None) -> float | None:
    """A time in µs with the digits that a table shows."""
    return None if ns is None else round(ns / US, 2)

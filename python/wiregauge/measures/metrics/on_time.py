"""Messages as they would have come from a network that an agent plays, had it been in time.

Of every frame is stored when the model wanted it at its end system and when it left, and by how much later than it came
the model took it in. Both are taken out of the times that hosts saw. What switches and lines decided stays: that was
decided at the instants of the model.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from wiregauge.measures.metrics.clocks import late_anew
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.releases import Errors

__all__ = ["on_time"]

_AT_RECEIVER = ("rx_drv", "rx_app", "back_tx_app", "back_tx_drv")
"""Times that move with the arrival at the receiver; a relay answers as soon as it has the message."""
_BACK = ("back_rx_drv", "back_rx_app")
_MESSAGE = ("node", "flow", "sequence", "warm_up", "returning")


def on_time(
    table: pl.DataFrame, flows: Sequence[FlowPlan], errors: Errors, names: Sequence[str]
) -> pl.DataFrame:
    """The message table of `flows` with the lateness of the network taken out; `names` of nodes, by index."""
    if errors.rows is None or table.is_empty():
        return table
    ends = _ends(flows, names)
    several = [flow.id for flow in flows if flow.multicast]
    number = pl.col("flow").cast(pl.Int64)
    receiver = {flow.id: flow.receiver for flow in flows}
    single = number.replace_strict(receiver, default=-1, return_dtype=pl.Int64)
    keys = table.select(
        number,
        pl.when(number.is_in(several)).then(pl.col("to").cast(pl.Int64)).otherwise(single).alias("receiver"),
        pl.col("sequence").cast(pl.Int64),
        "warm_up",
    ).join(ends, on=["flow", "receiver"], how="left", maintain_order="left")
    left, moved = _by_message(errors.rows), _by_message(errors.moved)
    out = _late(keys, left, "receiver", "flow") + _late(keys, moved, "source", "flow")
    back = _late(keys, left, "source", "answers") + _late(keys, moved, "receiver", "answers")
    earlier = [*((name, out) for name in _AT_RECEIVER), *((name, out + back) for name in _BACK)]
    found = table.with_columns(
        (table[name].cast(pl.Int64) - by).alias(name) for name, by in earlier if name in table.columns
    )
    return late_anew(found, flows)


def _ends(flows: Sequence[FlowPlan], names: Sequence[str]) -> pl.DataFrame:
    """Sender of each flow and receiver, and the number that its answers have; -1 where nothing answers."""
    place = {name: number for number, name in enumerate(names)}
    rows = [
        (
            flow.id,
            flow.receiver,
            place.get(flow.source, -1),
            (flow.id if flow.answers_as is None else flow.answers_as) if flow.relayed else -1,
        )
        for flow in flows
    ]
    columns = ("flow", "receiver", "source", "answers")
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.Int64), orient="row")


def _by_message(rows: pl.DataFrame | None) -> pl.DataFrame:
    """The lateness of each message at each end system, ps; of several frames of one the greatest."""
    if rows is None:
        kinds = {"warm_up": pl.Boolean, "returning": pl.Boolean}
        return pl.DataFrame(schema={name: kinds.get(name, pl.Int64) for name in (*_MESSAGE, "late")})
    whole = rows.select(pl.col("node", "flow", "sequence", "late").cast(pl.Int64), "warm_up", "returning")
    return whole.group_by(_MESSAGE).agg(pl.col("late").max())


def _late(keys: pl.DataFrame, rows: pl.DataFrame, node: str, flow: str) -> pl.Series:
    """For each row of `keys`, the lateness of its message at the end system in column `node`, ps; 0 without a frame
    of it."""
    own = rows.filter(pl.col("returning") == (flow == "answers"))
    on = [node, flow, "sequence", "warm_up"]
    found = keys.join(
        own, left_on=on, right_on=["node", "flow", "sequence", "warm_up"], how="left", maintain_order="left"
    )
    return found["late"].fill_null(0)

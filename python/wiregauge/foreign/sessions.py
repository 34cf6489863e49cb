"""Reads what `probe --protocol stamp` and `twamp-light` have stored: sessions with reflectors of other makers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from wiregauge.foreign.exchanges import Exchange, ForeignError, Measurement, Series
from wiregauge.reflectors import EXCHANGES, Measured, SessionError, opened

__all__ = ["read"]


def read(place: Path) -> Measurement:
    """The session in a directory. Raises ForeignError."""
    path = place / EXCHANGES
    try:
        measured = opened(place)
        rows = pl.read_parquet(path, glob=False)
        made = list(_exchanges(rows))
    except SessionError as error:
        raise ForeignError(str(error)) from None
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ForeignError(f"{path}: cannot be read ({error}); run the session again") from None
    if not made:
        raise ForeignError(f"{place}: no packet left, so there is nothing to compare")
    order = measured.order
    series = Series(f"{order.protocol} {order.target}", made, order.payload, 1.0)
    remarks = [("session", reason) for reason in measured.reasons]
    return Measurement(measured.program, [series], remarks, _agreement(measured))


def _agreement(measured: Measured) -> float | None:
    """How far both clocks may differ, ns, as their hosts state; None: not known."""
    latency = measured.series.get("latency")
    return None if latency is None or latency.reason else latency.uncertainty_ns


def _exchanges(rows: pl.DataFrame) -> list[Exchange]:
    # Times of PTP are TAI; the file does not say how far that is ahead, so they are none to compare by.
    rows = rows.with_columns(
        usable=~pl.col("is_ptp")
        & (pl.col("sent_ns") >= pl.col("received_ns"))
        & (
            pl.col("sent_ns") - pl.col("received_ns")
            <= pl.col("arrived_ns") - pl.col("left_ns").fill_null(pl.col("written_ns"))
        )
    )

    def times(name: str) -> list[int | None]:
        return rows.select(pl.when("usable").then(name)).to_series().to_list()

    left = rows["left_ns"].fill_null(rows["written_ns"]).to_list()
    columns: list[list[Any]] = [rows["asked"].to_list(), left, rows["arrived_ns"].to_list()]
    columns += [times("received_ns"), times("sent_ns")]
    return [Exchange(*row) for row in zip(*columns, strict=True)]

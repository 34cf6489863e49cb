"""A session with a reflector: measured, graded, judged, stored.

The result is a directory with `session.json` and `exchanges.parquet`, which has a row for each packet and each of its
answers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec
import numpy as np
import polars as pl

from wiregauge.files import ForeignFileError, read_regular, write_whole
from wiregauge.records import RunDirectory, RunDirectoryError, holds_instead
from wiregauge.reflectors.directions import directions
from wiregauge.reflectors.exchange import (
    Collected,
    SessionError,
    classes_of,
    clock_told,
    exchange,
    hops_of,
    late_of,
    own_times,
)
from wiregauge.reflectors.grading import Evidence, graded
from wiregauge.reflectors.limits import Limit
from wiregauge.reflectors.measured import Counts, Measured, Order
from wiregauge.reflectors.times import times

__all__ = ["EXCHANGES", "is_of_session", "json_text", "judged", "measure", "opened", "rows_of", "stored"]

SESSION: Final = "session.json"
EXCHANGES: Final = "exchanges.parquet"


def measure(order: Order, key: Path | None, limits: Sequence[Limit], out: Path | None) -> Measured:
    """Runs a session and judges it, and stores it in `out` if that is given. Raises SessionError."""
    if out is not None:
        try:
            RunDirectory.check_free(out)
        except RunDirectoryError as error:
            raise SessionError(str(error), is_input=True) from error
    collected = exchange(order, key)
    found = judged(order, collected, limits)
    if out is not None:
        stored(found, collected, out)
    return found


def judged(order: Order, collected: Collected, limits: Sequence[Limit]) -> Measured:
    """What was collected, as figures, graded and judged."""
    told, answers, packets = times(collected), collected.answers, collected.packets
    counts, numbering = _counts(collected, told.unusable)
    seen = Evidence(
        counts=counts,
        numbering=numbering,
        series=told.series,
        steps=told.steps,
        step_ns=told.step_ns,
        epoch_ns=int(packets["written_ns"][0]) if counts.sent else 0,
        clock=clock_told(answers),
        hops=hops_of(answers),
        classes=classes_of(answers),
        own_times=own_times(collected),
        all_times=len(packets) + len(answers),
        late_ns=late_of(packets),
        summary=collected.summary,
    )
    return graded(order, seen, limits, complete=bool(collected.summary.get("complete")))


def _counts(
    collected: Collected, unusable: int
) -> tuple[Counts, Literal["own", "as-sent", "restarted"] | None]:
    asked = collected.answers["asked"].to_numpy().astype(np.int64)
    sent = len(collected.packets)
    answered = len(np.unique(asked))
    told = directions(sent, asked, collected.answers["sequence"].to_numpy().astype(np.int64))
    first = collected.answers.unique("asked", keep="first", maintain_order=True)["asked"]
    counts = Counts(
        sent=sent,
        answered=answered,
        lost=sent - answered,
        lost_forward=told.lost[0],
        lost_backward=told.lost[1],
        duplicated=len(asked) - answered,
        duplicated_forward=told.duplicated[0],
        duplicated_backward=told.duplicated[1],
        reordered=int((first < first.cum_max()).sum()),
        reordered_forward=told.reordered[0],
        reordered_backward=told.reordered[1],
        unusable=unusable,
    )
    return counts, told.numbering


def json_text(measured: Measured) -> str:
    """The content of `session.json`."""
    return json.dumps(msgspec.to_builtins(measured), indent=1)


def rows_of(collected: Collected) -> pl.DataFrame:
    """A row for each packet and each of its answers, as `exchanges.parquet` has them."""
    return collected.packets.join(collected.answers, on="asked", how="left", maintain_order="left_right")


def stored(measured: Measured, collected: Collected | None, out: Path) -> None:
    """Stores a session in a new directory; None: without its exchanges. Raises SessionError."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        if collected is not None:
            rows_of(collected).write_parquet(out / EXCHANGES)
        write_whole(out / SESSION, json_text(measured) + "\n")
    except (ForeignFileError, OSError) as error:
        raise SessionError(f"{out}: cannot be written: {error}", is_input=True) from error


def is_of_session(place: Path) -> bool:
    """Whether a directory holds a session rather than a run."""
    return holds_instead(place, SESSION)


def opened(place: Path) -> Measured:
    """The session in a directory. Raises SessionError."""
    path = place / SESSION
    try:
        return msgspec.json.decode(read_regular(path), type=Measured)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SessionError(
            f"{path}: cannot be read ({error}); run the session again", is_input=True
        ) from error

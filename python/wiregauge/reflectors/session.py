"""A session with a reflector: measured, graded, judged, stored.

The result is a directory with `session.json` and `exchanges.parquet`, which has a row for each packet and each of its
answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import numpy as np
import polars as pl

from wiregauge._version import __version__
from wiregauge.files import ForeignFileError, read_regular, write_whole
from wiregauge.measures import verdict_of
from wiregauge.measures.definitions.units import count_of, duration
from wiregauge.records import MANIFEST, RunDirectory, RunDirectoryError
from wiregauge.reflectors.directions import directions
from wiregauge.reflectors.exchange import Collected, SessionError, exchange
from wiregauge.reflectors.limits import Limit, judge
from wiregauge.reflectors.measured import Counts, Measured, Order
from wiregauge.reflectors.times import Times, times

__all__ = ["EXCHANGES", "is_of_session", "json_text", "judged", "measure", "opened", "stored"]

SESSION: Final = "session.json"
EXCHANGES: Final = "exchanges.parquet"

IGNORED: Final = {
    "not_authentic": "answers with a wrong hash: the key differs, or they are forged",
    "too_short": "answers too short for their mode: cut, or of another mode",
    "not_asked": "answers with a number, time or session that nothing sent has",
    "without_times": "answers without times",
    "foreign": "datagrams from other addresses",
}
"""Datagrams that are no answers, and what that says, by their count."""
_SET_NS: Final = 1e6
"""Movement of this host's clock beyond its steering, from which it counts as set."""
_STEERING: Final = 5e-4
_IP_TTL: Final = 255


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
    told, answers, summary = times(collected), collected.answers, collected.summary
    counts, numbering = _counts(collected, told.unusable)
    complete = bool(summary.get("complete"))
    invalid = list(_invalid(order, counts, summary))
    reasons = [
        *invalid,
        *_doubts(order, collected, told, complete=complete),
        *_doubts_of_host(order, collected),
    ]
    grade = "INVALID" if invalid else "DEGRADED" if reasons else "VALID"
    held = [judge(limit, told.series, counts, invalid[0] if invalid else "") for limit in limits]
    hops = _IP_TTL - answers["asked_ttl"].drop_nulls().to_numpy()
    classes = answers["traffic_class"].drop_nulls().unique().sort().to_list()
    return Measured(
        schema=1,
        program=f"wiregauge {__version__}",
        order=order,
        epoch_realtime_ns=int(collected.packets["written_ns"][0]) if counts.sent else 0,
        complete=complete,
        validity=grade,
        reasons=reasons,
        numbering=numbering,
        reflector_clock=_clock(answers),
        hops=sorted({int(hops.min()), int(hops.max())}) if len(hops) else [],
        classes=sorted({value >> 2 for value in classes}),
        counts=counts,
        series=told.series,
        ignored={name: int(summary.get(name, 0)) for name in IGNORED},
        verdict=verdict_of(one.result for one in held) if held else "NONE",
        limits=held,
    )


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


def _clock(answers: pl.DataFrame) -> str:
    """What the reflector states of its clock."""
    if answers.is_empty():
        return "unknown: it did not answer"
    scale = (
        "TAI (PTP)" if answers["is_ptp"].all() else "UTC (NTP)" if not answers["is_ptp"].any() else "changing"
    )
    state = "synchronised" if answers["is_synchronised"].all() else "not synchronised"
    worst: Any = answers["error_ns"].max()
    error = "no error stated" if worst is None else f"wrong by up to {duration(float(worst), 3)}"
    return f"{scale}, {state}, {error}"


def _invalid(order: Order, counts: Counts, summary: dict[str, Any]) -> Iterator[str]:
    """Why the session answers nothing."""
    if not counts.sent:
        yield "no packet left this host"
    elif not counts.answered:
        ignored = [text for name, text in IGNORED.items() if summary.get(name) and name != "foreign"]
        if ignored:
            why = "; ".join(ignored)
        elif summary.get("port_unreachable"):
            why = "nobody listens on that port there (ICMP port unreachable)"
        elif summary.get("unreachable"):
            why = "it cannot be reached (ICMP destination unreachable)"
        else:
            why = (
                "nobody reflects there, it does not know this sender or its key, or a filter drops the packets; a "
                "reflector that is there would show whether all were lost"
            )
        yield f"no answer from {order.target}: {why}"


def _doubts(order: Order, collected: Collected, told: Times, *, complete: bool) -> Iterator[str]:
    """Reasons to rely less on the figures."""
    answers, summary = collected.answers, collected.summary
    if not complete:
        yield f"stopped after {count_of(len(collected.packets), 'packet')} of {order.count}"
    if not answers.is_empty():
        for name, text in IGNORED.items():
            if summary.get(name):
                yield f"ignored: {summary[name]} {text}"
        if unreachable := summary.get("port_unreachable", 0) + summary.get("unreachable", 0):
            yield f"{unreachable} packets were answered with ICMP destination unreachable"
    if told.unusable:
        yield (
            f"{count_of(told.unusable, 'answer')} left the reflector before the packet arrived, or later than they "
            "came here: its clock was set, or its times are wrong; they count as answers, and no time is taken of them"
        )
    if told.steps:
        yield (
            f"one clock was set against the other {told.steps} times, by up to {duration(told.step_ns)}: more than the "
            "delays of packets explain"
        )


def _doubts_of_host(order: Order, collected: Collected) -> Iterator[str]:
    """The same, as far as this host is their cause."""
    packets, answers, summary = collected.packets, collected.answers, collected.summary
    moved = abs(summary.get("clock_moved_ns", 0))
    if moved > _SET_NS + _STEERING * order.count * order.period_ns:
        yield f"this host's clock was set meanwhile, by {duration(moved)}: round trips under way are wrong by as much"
    if dropped := summary.get("dropped", 0):
        yield f"this host dropped {count_of(dropped, 'answer')}; they count as lost"
    if refused := summary.get("refused", 0):
        yield f"this host refused {count_of(refused, 'packet')} for want of room; each was sent a period later"
    if no_stamp := packets["left_ns"].null_count() + int((~answers["by_kernel"]).sum()):
        yield f"{count_of(no_stamp, 'time')} of {len(packets) + len(answers)} taken by the program, not by the kernel"
    late = (packets["written_ns"] - packets["due_ns"]).max()
    if isinstance(late, int) and late > order.period_ns:
        yield f"packets left up to {duration(late)} late, more than the period of {duration(order.period_ns)}"


def json_text(measured: Measured) -> str:
    """The content of `session.json`."""
    return json.dumps(msgspec.to_builtins(measured), indent=1)


def stored(measured: Measured, collected: Collected, out: Path) -> None:
    """Stores a session in a new directory. Raises SessionError."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        rows = collected.packets.join(collected.answers, on="asked", how="left", maintain_order="left_right")
        rows.write_parquet(out / EXCHANGES)
        write_whole(out / SESSION, json_text(measured) + "\n")
    except (ForeignFileError, OSError) as error:
        raise SessionError(f"{out}: cannot be written: {error}", is_input=True) from error


def is_of_session(place: Path) -> bool:
    """Whether a directory holds a session rather than a run."""
    return (place / SESSION).is_file() and not (place / MANIFEST).exists()


def opened(place: Path) -> Measured:
    """The session in a directory. Raises SessionError."""
    path = place / SESSION
    try:
        return msgspec.json.decode(read_regular(path), type=Measured)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SessionError(
            f"{path}: cannot be read ({error}); run the session again", is_input=True
        ) from error

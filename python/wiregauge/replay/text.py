"""Prints a replay as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import to_builtins

from wiregauge.measures.definitions.units import count_of, duration
from wiregauge.replay.playing import Compared, Replay, Row

__all__ = ["replay_json", "replay_text"]

SCHEMA: Final = 1
_SHOWN: Final = 10
"""The most rows of each kind in the text."""


def replay_json(place: Path, replays: Sequence[Replay]) -> dict[str, Any]:
    """The replays as JSON."""
    runs = [
        to_builtins(one) | {"point": dict(one.point), "equal": one.equal, "missing": one.missing or None}
        for one in replays
    ]
    return {"schema": SCHEMA, "directory": str(place), "runs": runs}


def replay_text(replays: Sequence[Replay]) -> Iterator[str]:
    """The replays as text lines."""
    for number, one in enumerate(replays):
        if number:
            yield ""
        yield from _run(one)


def _run(one: Replay) -> Iterator[str]:
    at = "".join(f", {axis}={value}" for axis, value in one.point.items())
    answer = "EQUAL, the network did what its model does" if one.equal else "DIFFERS from what its model does"
    if one.equal and one.missing:
        answer = "undecided"
    yield f"run {one.index}{at}: {answer}; replayed up to {duration(one.until_ns)}"
    if one.missing:
        yield f"  incomplete: {one.missing}"
    for what, noun, compared in (
        ("decisions", "record", one.decisions),
        ("what was true", "row", one.truth),
        ("departures", "frame", one.departures),
    ):
        yield from _compared(what, noun, compared)
    for release in one.releases:
        if release.frames:
            late = ", ".join(
                f"{duration(value)} {name}{_interval(release.intervals_ns.get(name))}"
                for name, value in (
                    ("p50", release.p50_ns),
                    ("p99", release.p99_ns),
                    ("p99.9", release.p999_ns),
                    ("at most", release.max_ns),
                )
            )
            refused = f"; {release.refused} refused by its kernel" if release.refused else ""
            yield f"  handed to {release.end_system} late by: {late} (n = {release.frames}){refused}"
    handed = one.handed
    yield (
        f"  hosts: {count_of(handed.sent, 'message')} sent, {handed.entered} came; {handed.left} handed to hosts, "
        f"of {handed.unreceived} they have no record"
    )
    yield from _rows(handed.rows, handed.unreceived)
    lost = one.unentered
    if lost.frames:
        why = ", ".join(f"{count} {reason}" for reason, count in lost.reasons.items())
        yield f"  lost before the model had them: {count_of(lost.frames, 'frame')} ({why})"
        yield from _rows(lost.rows, len(lost.rows))
    other = one.otherwise
    yield (
        f"  simulation of the same run: {other.differing} of {count_of(other.messages, 'message')} "
        "end otherwise"
    )
    for row in other.rows[:_SHOWN]:
        late = "" if row["sent_late_ns"] is None else f" (sent {duration(row['sent_late_ns'])} late)"
        phase = ", warm-up" if row["warm_up"] else ""
        yield (
            f"    flow {row['flow']} to {row['to']}, message {row['sequence']}{phase}: {row['run']}{late}; "
            f"simulated: {row['simulation']}"
        )
    if other.differing > _SHOWN:
        yield f"    and {other.differing - _SHOWN} more; --json names them"


def _interval(found: tuple[float | None, float | None] | None) -> str:
    """Behind a percentile; empty where it has none."""
    low, high = (None if edge is None else duration(edge) for edge in found or (None, None))
    if low is not None and high is not None:
        return f" (95 %: {low} to {high})"
    if low is not None:
        return f" (95 %: at least {low})"
    return f" (95 %: at most {high})" if high is not None else ""


def _compared(what: str, noun: str, compared: Compared) -> Iterator[str]:
    told = "equal" if compared.run else "nothing to compare"
    if compared.differing:
        told = f"{compared.differing} DIFFER"
    yield f"  {what}: {count_of(compared.run, noun)}, {told}"
    yield from _rows(compared.rows, compared.differing)


def _rows(rows: Sequence[Row], count: int) -> Iterator[str]:
    for row in rows[:_SHOWN]:
        side = f"only in the {row['side']}: " if "side" in row else ""
        words = [duration(row["time_ns"], 9), str(row["node"])]
        words += [f"port {row['port']}"] if "port" in row else []
        words += [str(row[key]) for key in ("kind", "point", "reason") if key in row]
        if "flow" in row:
            back = " on its way back" if row["returning"] else ""
            phase = ", warm-up" if row["warm_up"] else ""
            words.append(f"flow {row['flow']} message {row['sequence']}{back}{phase}")
        yield f"    {side}{', '.join(words)}"
    if count > _SHOWN:
        yield f"    and {count - _SHOWN} more; --json names them"

"""Throughput, latency at throughput, and frame loss rate (RFC 2544, 26.1 to 26.3; RFC 8219, 7)."""

from __future__ import annotations

import numpy as np

from wiregauge.switching.results import Chart, Column, Result, Value
from wiregauge.switching.search import Found, Goal, search
from wiregauge.switching.session import Session
from wiregauge.switching.trials import Outcome, Stream, Trial, fps

__all__ = ["latency", "loss", "no_line_rate", "pair", "throughput"]

_FULL = 1_000_000
_LEAST = 8
"""Frames of a stream in the shortest trial, at least."""


def pair(session: Session, load: int, frame: int) -> tuple[Stream, ...]:
    """Streams both ways between the first two ports (RFC 2544, 14); in turn, where their senders share processors."""
    half = (
        0
        if session.sizes.virtual
        else round(5e8 / fps(session.device.rate_bps, frame) * _FULL / max(load, 1))
    )
    return Stream(0, 1, load, frame), Stream(1, 0, load, frame, offset_ns=half)


def percent(ppm: float | None) -> str:
    """A share for people."""
    return "none" if ppm is None else f"{ppm / 1e4:.4g} %"


def throughput(session: Session, known: dict[str, Result]) -> Result:
    """The highest load without loss for each frame size."""
    del known
    result = Result("throughput", "Throughput", "RFC 2544, 26.1; MLRsearch", "measured")
    result.columns = (
        Column("frame", "frame size", "B"),
        Column("lower", "relevant lower bound", "% of line rate"),
        Column("upper", "relevant upper bound", "% of line rate"),
        Column("conditional", "conditional throughput", "frames/s"),
        Column("line_rate", "line rate", "frames/s"),
        Column("trials", "trials"),
        Column("statement", "statement"),
    )
    result.chart = Chart("frame", ("lower", "upper"))
    rate = session.device.rate_bps
    for frame in session.frames:
        goal = Goal(
            session.sizes.initial_s(rate, frame),
            session.sizes.final_s(rate, frame),
            session.sizes.sum_s(rate, frame),
        )
        refused: list[str] = []

        def measure(
            load: int, seconds: float, frame: int = frame, refused: list[str] = refused
        ) -> float | None:
            outcome = session.ask(Trial(f"{frame} B at {percent(load)}", seconds, pair(session, load, frame)))
            if outcome.refused:
                refused.append(outcome.refused)
                return None
            return outcome.loss_ratio

        live, line = not session.sizes.virtual, fps(rate, frame)
        # Of slow links the least load would have no frames.
        least = max(100, round(_LEAST / (goal.initial_s * line) * 1e6)) if live else 1000
        found = search(measure, goal, least=least, rising=live)
        result.rows.append(
            {
                "frame": frame,
                "lower": _percent(found.lower),
                "upper": _percent(found.upper),
                "conditional": None if found.conditional is None else found.conditional / 1e6 * line,
                "line_rate": line,
                "trials": found.trials,
                "statement": _statement(found),
            }
        )
        result.conclusion.append(f"{frame} B: {_statement(found)}")
        result.notes += [f"{frame} B: {text}" for text in dict.fromkeys(refused)]
    result.notes.append(
        "Both ways between two ports. No loss is allowed at all, in any full-length trial of a load; bounds end "
        "within 0.5 % of each other, within 20 % where the generator is the limit."
    )
    if all(row["lower"] is None and row["upper"] is None for row in result.rows):
        result.state, result.reason = "refused", "no trial of any load counted"
    return result


def _percent(ppm: int | None) -> float | None:
    return None if ppm is None else ppm / 1e4


def _statement(found: Found) -> str:
    if found.lower is None:
        if found.upper is None:
            return "no load could be offered: the generator is not fit for this"
        return f"loss at every load down to {percent(found.upper)}"
    if found.limited:
        return f"at least {percent(found.lower)}, limited by the generator"
    if found.upper is None:
        return "line rate" if found.lower == _FULL else f"at least {percent(found.lower)}"
    return f"{percent(found.lower)} to {percent(found.upper)}"


def latency(session: Session, known: dict[str, Result]) -> Result:
    """Latency at the throughput of each frame size, and what its slope says of the device."""
    result = Result("latency", "Latency at throughput", "RFC 2544, 26.2; RFC 8219, 7.2 and 7.3.1", "measured")
    times = (
        ("min", "minimum"),
        ("p50", "p50"),
        ("p99", "p99"),
        ("max", "maximum"),
        ("pdv", "PDV (p99.9 - min)"),
    )
    result.columns = (
        Column("frame", "frame size", "B"),
        Column("load", "load", "% of line rate"),
        Column("n", "n"),
        *(Column(key, title, "us") for key, title in times),
        Column("mean", "mean", "us"),
        Column("uncertainty", "± of the mean, 95 %", "us"),
    )
    result.chart = Chart("frame", ("p50", "p99", "max"))
    least: list[tuple[int, float]] = []
    for row in known["throughput"].rows:
        frame, lower = row["frame"], row["lower"]
        assert isinstance(frame, int)
        if not isinstance(lower, float):
            result.notes.append(f"{frame} B: there is no throughput to measure latency at")
            continue
        load = round(lower * 1e4)
        seconds = session.sizes.final_s(session.device.rate_bps, frame)
        outcome = session.ask(Trial(f"{frame} B at {percent(load)}", seconds, pair(session, load, frame)))
        if outcome.refused:
            result.notes.append(f"{frame} B: {outcome.refused}")
            continue
        if outcome.lost:
            result.notes.append(f"{frame} B: {outcome.lost} frames were lost in this trial")
        result.rows.append({"frame": frame, "load": lower, **_latency_row(outcome)})
        if (floor := outcome.streams[0].latency.minimum) is not None:
            least.append((frame, floor))
    if not result.rows:
        result.state, result.reason = "refused", "no trial counted"
        return result
    result.conclusion.append(_kind(least, session.device.rate_bps))
    result.notes.append("Of the first direction, from the application of the sender to that of the receiver.")
    return result


def _latency_row(outcome: Outcome) -> dict[str, Value]:
    seen = outcome.streams[0].latency
    values = {
        "min": seen.minimum,
        "p50": seen.p50,
        "p99": seen.p99,
        "max": seen.maximum,
        "pdv": seen.pdv,
        "mean": seen.mean,
        "uncertainty": seen.uncertainty,
    }
    return {"n": seen.n, **{key: None if ns is None else ns / 1e3 for key, ns in values.items()}}


def _kind(least: list[tuple[int, float]], rate_bps: int) -> str:
    """Store-and-forward or cut-through, from how the least latency grows with the frame size.

    Latency is counted from the first bit out to the last bit in, so the wire accounts for one transmission; a
    store-and-forward device adds another.
    """
    if len(least) < 2:
        return "store-and-forward or cut-through: not told apart with one frame size"
    sizes, floors = np.array(least, dtype=np.float64).T
    slope = float(np.polyfit(sizes, floors, 1)[0]) / (8e9 / rate_bps)
    said = f"the least latency grows by {slope:.2f} transmission times per frame"
    if 1.5 < slope < 2.5:
        return f"store-and-forward: {said}"
    if 0.5 < slope < 1.5:
        return f"cut-through: {said}"
    return f"store-and-forward or cut-through: not told apart, {said}, which is neither one nor two"


def loss(session: Session, known: dict[str, Result]) -> Result:
    """The loss rate from the line rate down, in steps of 10 %, until two trials in a row have none."""
    result = Result("loss", "Frame loss rate", "RFC 2544, 26.3", "measured")
    result.columns = (
        Column("frame", "frame size", "B"),
        Column("load", "load", "% of line rate"),
        Column("sent", "sent", "frames"),
        Column("lost", "lost", "frames"),
        Column("loss", "loss rate", "%"),
    )
    result.chart = Chart("load", ("loss",), "frame")
    for frame in session.frames:
        top, limited = _highest(known["throughput"], frame)
        if not top:
            result.notes.append(f"{frame} B: no load could be offered")
            continue
        clean = 0
        begin = len(result.rows)
        for step in range(10):
            load = round(top * (10 - step) / 10)
            seconds = session.sizes.final_s(session.device.rate_bps, frame)
            outcome = session.ask(Trial(f"{frame} B at {percent(load)}", seconds, pair(session, load, frame)))
            if outcome.refused:
                result.notes.append(f"{frame} B at {percent(load)}: {outcome.refused}")
                continue
            result.rows.append(
                {
                    "frame": frame,
                    "load": load / 1e4,
                    "sent": outcome.sent,
                    "lost": outcome.lost,
                    "loss": 100 * outcome.loss_ratio,
                }
            )
            clean = clean + 1 if not outcome.lost else 0
            if clean == 2:
                break
        if limited:
            result.notes.append(f"{frame} B: from {percent(top)} down, limited by the generator")
        rows = result.rows[begin:]
        worst = max((float(row["loss"] or 0) for row in rows), default=None)
        text = "not measured" if worst is None else f"at most {worst:.4g} %"
        result.conclusion.append(f"{frame} B: {text}")
    if not result.rows:
        result.state, result.reason = "refused", "no trial counted"
    return result


def no_line_rate(known: Result, frame: int) -> str:
    """Why a port cannot be offered its line rate in frames of a size, by what the throughput says; empty: it can."""
    row = next(row for row in known.rows if row["frame"] == frame)
    statement = str(row["statement"])
    if "generator" in statement:
        return f"it needs line rate, and the generator of this bench cannot offer it ({frame} B: {statement})"
    return ""


def _highest(known: Result, frame: int) -> tuple[int, bool]:
    """The highest load worth asking for, ppm: the line rate, unless the generator cannot offer it; 0: none."""
    row = next(row for row in known.rows if row["frame"] == frame)
    if row["lower"] is None and row["upper"] is None:
        return 0, True
    if "limited" not in str(row["statement"]) or not isinstance(row["lower"], float):
        return _FULL, False
    return round(row["lower"] * 1e4), True

"""Throughput, latency at throughput, and frame loss rate (RFC 2544, 26.1 to 26.3; RFC 8219, 7)."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct, field

from wiregauge.stats import share_bound
from wiregauge.switching.evidence import Evidence, evidence_of, hidden
from wiregauge.switching.results import Chart, Column, Result, Value
from wiregauge.switching.search import Found, Goal, search
from wiregauge.switching.session import Session
from wiregauge.switching.trials import LINE_RATE_PPM, RISE, Outcome, Stream, Trial, fps

__all__ = [
    "HIDDEN",
    "Tried",
    "goal_of",
    "latency",
    "loss",
    "no_line_rate",
    "pair",
    "percent",
    "reconciled",
    "statement",
    "throughput",
    "told",
]

_SAME_WAY: Final = ("latency", "loss")
"""Tests whose trials repeat those of the throughput at other loads."""
HIDDEN: Final = Column("hidden", "what 64 KiB of buffer or burst credit would hide", "% of line rate")
_LEAST = 8
"""The fewest frames of a stream in the shortest trial."""


def pair(session: Session, load: int, frame: int) -> tuple[Stream, ...]:
    """Streams both ways between the first two ports (RFC 2544, 14); alternating where senders share processors."""
    half = (
        0
        if session.sizes.virtual
        else round(5e8 / fps(session.device.rate_bps, frame) * LINE_RATE_PPM / max(load, 1))
    )
    return Stream(0, 1, load, frame), Stream(1, 0, load, frame, offset_ns=half)


def percent(ppm: float | None) -> str:
    """A share as text, %."""
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
        Column("statement", "statement"),
        HIDDEN,
    )
    result.chart = Chart("frame", ("lower", "upper"))
    rate = session.device.rate_bps
    for frame in session.frames:
        tried = Tried()

        def measure(load: int, seconds: float, frame: int = frame, tried: Tried = tried) -> float | None:
            name = f"{frame} B at {percent(load)}"
            return tried.ask(session, load, Trial(name, seconds, pair(session, load, frame)))

        goal = goal_of(session, frame)
        live, line = not session.sizes.virtual, fps(rate, frame)
        # On slow links trials at the default least load would have no frames.
        least = max(100, round(_LEAST / (goal.initial_s * line) * 1e6)) if live else 1000
        found = search(measure, goal, least=least, rising=live)
        proof = tried.proof(found, goal)
        result.rows.append(
            {
                "frame": frame,
                "lower": _percent(found.lower),
                "upper": _percent(found.upper),
                "conditional": None if found.conditional is None else found.conditional / 1e6 * line,
                "line_rate": line,
                "statement": statement(found, proof),
                **proof.cells(),
                "hidden": 100 * hidden(proof.seconds, rate) if proof.seconds else None,
            }
        )
        result.conclusion.append(f"{frame} B: {statement(found, proof)}{told(proof, rate)}")
        result.notes += [f"{frame} B: {text}" for text in dict.fromkeys(tried.refused)]
    result.notes.append(
        "Both ways between two ports. No loss is allowed at all, in any full-length trial of a load; bounds end "
        "within 0.5 % of each other, within 20 % where the generator is the limit. Frames and the bound of their loss "
        "are those of the full-length trials at the lower bound (at the upper one where there is none), taken for "
        "independent of each other."
    )
    if all(row["lower"] is None and row["upper"] is None for row in result.rows):
        result.state, result.reason = "refused", "no trial of any load counted"
    return result


class Tried(Struct):
    """The trials of a search that count, by load, and the reasons of refused ones."""

    made: dict[int, list[tuple[Trial, Outcome]]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    def ask(self, session: Session, load: int, trial: Trial) -> float | None:
        """The loss ratio of a trial at a load; None where it was refused."""
        outcome = session.ask(trial)
        if outcome.refused:
            self.refused.append(outcome.refused)
            return None
        self.made.setdefault(load, []).append((trial, outcome))
        return outcome.loss_ratio

    def proof(self, found: Found, goal: Goal) -> Evidence:
        """The evidence of the lower bound, or where there is none, of the upper one."""
        if found.lower is not None:
            whole = goal.whole_s(found.lower)
            return evidence_of(one for one in self.made[found.lower] if one[0].seconds >= whole)
        return evidence_of(self.made.get(found.upper, ()) if found.upper is not None else ())


def goal_of(session: Session, frame: int) -> Goal:
    """The goal for the highest load without loss."""
    rate, sizes = session.device.rate_bps, session.sizes
    return Goal(
        sizes.initial_s(rate, frame),
        sizes.final_s(rate, frame),
        sizes.sum_s(rate, frame),
        confirm_s=lambda load: sizes.confirm_s(rate, frame, load),
    )


def statement(found: Found, proof: Evidence) -> str:
    """The result of a search in words, without its evidence."""
    if found.lower is None:
        if found.upper is None:
            return "no load could be offered: the generator is not fit for this"
        return f"loss at every load down to {percent(found.upper)}"
    if found.limited:
        return f"at least {percent(found.lower)}, limited by the generator"
    if found.upper is not None:
        return f"{percent(found.lower)} to {percent(found.upper)}"
    if found.lower != LINE_RATE_PPM:
        return f"at least {percent(found.lower)}"
    return "no loss at line rate" if proof.grown_ns is None else "no loss at line rate in so short a time"


def told(proof: Evidence, rate_bps: int) -> str:
    """The evidence of a search in words, with its resolution, to follow the statement."""
    if not proof.trials:
        return ""
    if not proof.lost and proof.grown_ns is not None:
        slower = proof.grown_ns / 1e9 / (RISE * proof.seconds)
        return (
            f": {proof.loss}; {proof.size}; but at its end frames took {proof.grown_ns / 1e3:.4g} µs longer than at "
            f"its beginning: if that goes on, it forwards {1e6 * slower:.3g} ppm less than comes, and a longer trial "
            "loses"
        )
    return f": {proof.loss_rests(rate_bps)}"


def _percent(ppm: int | None) -> float | None:
    return None if ppm is None else ppm / 1e4


def reconciled(session: Session, result: Result) -> None:
    """Adds to a lower bound the losses that later trials had at that load."""
    for row in result.rows:
        frame, lower = row["frame"], row["lower"]
        if not isinstance(lower, float):
            continue
        later = [
            (trial, outcome)
            for test, trial, outcome in session.log
            if test in _SAME_WAY and trial.streams[0].frame == frame
            if trial.streams[0].load_ppm <= round(lower * 1e4)
        ]
        again = evidence_of(later)
        if again.lost:
            row["statement"] = f"{row['statement']}, and lost later"
            result.conclusion.append(
                f"{frame} B: but later trials at {percent(lower * 1e4)} and below lost frames: {again.loss}; "
                f"{again.size}"
            )


def latency(session: Session, known: dict[str, Result]) -> Result:
    """Latency at the throughput of each frame size, and the forwarding mode that its slope shows."""
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
    said: list[str] = []
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
        proof = session.evidence()
        result.rows.append({"frame": frame, "load": lower, **_latency_row(outcome), **proof.cells()})
        said.append(f"{frame} B at {percent(load)}: {_latency_said(outcome, proof, session.device.rate_bps)}")
        if (floor := outcome.streams[0].latency.minimum) is not None:
            least.append((frame, floor))
    if not result.rows:
        result.state, result.reason = "refused", "no trial counted"
        return result
    result.conclusion += [_kind(least, session.device.rate_bps), *said]
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


def _latency_said(outcome: Outcome, proof: Evidence, rate_bps: int) -> str:
    """A line with the latency of a trial."""
    seen = outcome.streams[0].latency

    def us(ns: float | None) -> str:
        return "not told" if ns is None else f"{ns / 1e3:.5g} µs"

    mean = us(seen.mean) if seen.uncertainty is None else f"{us(seen.mean)} ± {us(seen.uncertainty)}"
    line = (
        f"p50 {us(seen.p50)}, p99 {us(seen.p99)}, {us(seen.minimum)} to {us(seen.maximum)}, mean {mean} (95 %), "
        f"n {seen.n}; {outcome.lost or 'none'} lost, {proof.rests(rate_bps)}"
    )
    if proof.grown_ns is None:
        return line
    return f"{line}; it grew by {proof.grown_ns / 1e3:.4g} µs meanwhile: in a longer trial it is greater"


def _kind(least: list[tuple[int, float]], rate_bps: int) -> str:
    """Store-and-forward or cut-through, from how the least latency grows with the frame size.

    Latency runs from the first bit out to the last bit in, so the wire takes one transmission time; a
    store-and-forward device adds another.
    """
    if len(least) < 2:
        return "store-and-forward or cut-through: not told apart with one frame size"
    sizes, floors = np.array(least, dtype=np.float64).T
    slope = float(np.polyfit(sizes, floors, 1)[0]) / (8e9 / rate_bps)
    said = (
        f"the least latency grows by {slope:.2f} transmission times per frame (over {len(least)} frame sizes)"
    )
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
        Column("low", "lost share at least, 95 %", "%"),
    )
    result.chart = Chart("load", ("loss",), "frame")
    for frame in session.frames:
        top, limited = _highest(known["throughput"], frame)
        if not top:
            result.notes.append(f"{frame} B: no load could be offered")
            continue
        clean = 0
        begin = len(result.rows)
        first = len(session.log)
        for step in range(10):
            load = round(top * (10 - step) / 10)
            seconds = session.sizes.final_s(session.device.rate_bps, frame)
            outcome = session.ask(Trial(f"{frame} B at {percent(load)}", seconds, pair(session, load, frame)))
            if outcome.refused:
                result.notes.append(f"{frame} B at {percent(load)}: {outcome.refused}")
                continue
            proof = session.evidence()
            low = 100 * share_bound(outcome.lost, outcome.sent).low
            result.rows.append(
                {
                    "frame": frame,
                    "load": load / 1e4,
                    "sent": outcome.sent,
                    "lost": outcome.lost,
                    "loss": 100 * outcome.loss_ratio,
                    "low": low,
                    **proof.cells(),
                }
            )
            clean = clean + 1 if not outcome.lost else 0
            if clean == 2:
                break
        if limited:
            result.notes.append(f"{frame} B: from {percent(top)} down, limited by the generator")
        made = [one[1:] for one in session.log[first:]]
        result.conclusion.append(f"{frame} B: {_worst(result.rows[begin:], made, session.device.rate_bps)}")
    if not result.rows:
        result.state, result.reason = "refused", "no trial counted"
    return result


def _worst(rows: list[dict[str, Value]], made: list[tuple[Trial, Outcome]], rate_bps: int) -> str:
    """A sentence with the greatest loss at any load, or none, and its evidence."""
    if not rows:
        return "not measured"
    counted = evidence_of(made)
    if not counted.lost:
        least = min(float(row["load"] or 0) for row in rows)
        return f"{counted.loss_rests(rate_bps)}; loads down to {least:.4g} %"
    trial, outcome = max(made, key=lambda one: one[1].loss_ratio)
    worst = evidence_of([(trial, outcome)])
    return f"most at {percent(trial.streams[0].load_ppm)}: {worst.loss}; {worst.size}"


def without(session: Session, known: dict[str, Result], result: Result, reason: str) -> Result:
    """Marks a test as without result: not carried without line rate, else refused."""
    lacks = [no_line_rate(known["throughput"], frame) for frame in session.frames]
    result.state, result.reason = ("not carried", lacks[0]) if all(lacks) else ("refused", reason)
    return result


def no_line_rate(known: Result, frame: int) -> str:
    """Why a port cannot be offered line rate at a frame size, from the throughput; empty: it can."""
    row = next(row for row in known.rows if row["frame"] == frame)
    statement = str(row["statement"])
    if "generator" in statement:
        return f"it needs line rate, and the generator of this bench cannot offer it ({frame} B: {statement})"
    return ""


def _highest(known: Result, frame: int) -> tuple[int, bool]:
    """The highest load to offer, ppm, and whether it is limited by the generator; 0: none."""
    row = next(row for row in known.rows if row["frame"] == frame)
    if row["lower"] is None and row["upper"] is None:
        return 0, True
    if "limited" not in str(row["statement"]) or not isinstance(row["lower"], float):
        return LINE_RATE_PPM, False
    return round(row["lower"] * 1e4), True

"""Overload of an output port: congestion control (RFC 2889, 5.5) and incast (RFC 8239, 4 and 6)."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from wiregauge.stats import share_bound
from wiregauge.switching.contention import blocking
from wiregauge.switching.evidence import Evidence, share_text
from wiregauge.switching.forwarding import no_line_rate, without
from wiregauge.switching.meshes import ports_of
from wiregauge.switching.results import Chart, Column, Result, Value
from wiregauge.switching.session import Session
from wiregauge.switching.trials import LINE_RATE_PPM, Outcome, Seen, Stream, Trial, fps

__all__ = ["congestion", "incast"]

_CONTROL: Final = 990_000
"""Load that the second sender offers to its own port, ppm: learning frames share it."""
_EXPECTED: Final = 100 / 3
"""Share of frames that a port offered 150 % must lose without flow control, %."""
_SHARE: Final = 0.5
"""Share of the expected loss below which a congested port is fed less: its senders are held back."""
_LONGEST: Final = 1 << 18


def congestion(session: Session, known: dict[str, Result]) -> Result:
    """One port offered 150 %, another 50 % by a sender to both: separates head-of-line blocking from back-pressure."""
    result = Result("congestion", "Congestion control", "RFC 2889, 5.5", "measured")
    result.columns = (
        Column("frame", "frame size", "B"),
        Column("offered", "least offered share of a sender", "%"),
        Column("free_loss", "loss at the uncongested port", "%"),
        Column("loss", "loss at the congested port", "%"),
        Column("expected", "expected without flow control", "%"),
        Column("free_p50", "p50 at the uncongested port", "us"),
        Column("alone_p50", "p50 there with no port full", "us"),
        Column("alone_loss", "loss there with no port full", "%"),
        Column("p50", "p50 at the congested port", "us"),
        Column("statement", "statement"),
    )
    result.notes.append("The bound is that of the loss at the uncongested port.")
    result.chart = Chart("frame", ("loss", "free_loss"))
    lacks: list[str] = []
    for frame in session.mesh_frames:
        if why := no_line_rate(known["throughput"], frame):
            lacks.append(why)
            continue
        half = LINE_RATE_PPM // 2
        streams = (Stream(0, 2, half, frame), Stream(0, 3, half, frame), Stream(1, 3, LINE_RATE_PPM, frame))
        seconds = session.sizes.final_s(session.device.rate_bps, frame)
        trial = Trial(f"{frame} B, 150 % to one port", seconds, streams, lead_s=seconds, overload=True)
        outcome = session.ask(trial)
        if not outcome.streams or (outcome.refused and not _held_back(outcome)):
            result.notes.append(f"{frame} B: {outcome.refused}")
            continue
        if outcome.refused:
            session.refusals.pop()
            result.notes.append(f"{frame} B: senders were held back, and the trial counts: {outcome.refused}")
            session.log.append(("congestion", trial, replace(outcome, refused="")))
        alone = session.ask(
            Trial(
                f"{frame} B, no port full",
                seconds,
                (*streams[:2], replace(streams[2], to=0, load_ppm=_CONTROL)),
                lead_s=seconds,
            )
        )
        if alone.refused:
            result.notes.append(f"{frame} B, no port full: {alone.refused}")
            continue
        proof = session.evidence()
        row = _row(frame, outcome, alone.streams[0], 1e9 / fps(session.device.rate_bps, frame))
        free = outcome.streams[0]
        result.rows.append(
            {
                **row,
                **proof.cells(),
                "bound": 100 * share_bound(free.lost, free.sent).high,
            }
        )
        own = Evidence(1, free.sent, free.lost, seconds)
        result.conclusion.append(
            f"{frame} B: {row['statement']}; for the uncongested port {own.rests(session.device.rate_bps)}; "
            "control: 1 trial with no port full"
        )
    result.notes += lacks
    result.notes.append(
        "Port 1 sends 50 % to port 3 and 50 % to port 4, port 2 sends 100 % to port 4, which is offered 150 %. A loss "
        "at port 3 beyond that of a control, where port 2 sends to port 1, is head-of-line blocking; no loss at port "
        "4, by senders that are held back, is back-pressure."
    )
    return result if result.rows else without(session, known, result, "no trial counted")


def _held_back(outcome: Outcome) -> bool:
    """Whether the only defect of a trial is that senders were slower than intended, with nothing lost.

    The throughput shows that the generator offers line rate at this frame size, so the device held them back.
    """
    slower = all(one.offered is not None and one.offered < 1.01 for one in outcome.streams)
    return slower and not outcome.lost and outcome.grade != "INVALID"


def _row(frame: int, outcome: Outcome, alone: Seen, frame_ns: float) -> dict[str, str | int | float | None]:
    free, *full = outcome.streams
    sent, lost = sum(one.sent for one in full), sum(one.lost for one in full)
    loss = 100 * lost / sent if sent else 0.0
    waits = free.latency.p50
    medians = [one.latency.p50 for one in full if one.latency.p50 is not None]
    offered = [one.offered for one in outcome.streams if one.offered is not None]
    return {
        "frame": frame,
        "offered": 100 * min(offered) if offered else None,
        "free_loss": 100 * free.loss_ratio,
        "loss": loss,
        "expected": _EXPECTED,
        "free_p50": None if waits is None else waits / 1e3,
        "alone_p50": None if alone.latency.p50 is None else alone.latency.p50 / 1e3,
        "alone_loss": 100 * alone.loss_ratio,
        "p50": max(medians) / 1e3 if medians else None,
        "statement": _verdict(lost, sent, blocking(free, alone, frame_ns, _half(medians, alone))),
    }


def _half(medians: list[float], alone: Seen) -> float:
    """Half of the wait of frames for the congested port, ns: frames for the free port that wait as long are blocked."""
    return (max(medians) - (alone.latency.p50 or 0.0)) / 2 if medians else 0.0


def _verdict(lost: int, sent: int, found: str) -> str:
    """The statement of a trial; `found` is what `blocking` says of the uncongested port."""
    blocked = found.replace("blocked: ", "head-of-line blocking: ", 1) if found.startswith("blocked") else ""
    untold = found.replace("not told", "head-of-line blocking not told", 1) if not blocked else ""
    loss, most = lost / sent if sent else 0.0, share_bound(lost, sent).high
    if 100 * loss < _SHARE * _EXPECTED:
        told = share_text(loss) if lost else f"none of {sent} frames, so at most {share_text(most)} (95 %),"
        pressure = f"back-pressure: the congested port lost {told} and not {_EXPECTED:.1f} %"
        return "; ".join(one for one in (pressure, blocked, untold) if one)
    rest = f"no back-pressure: the congested port lost {100 * loss:.4g} %, {_EXPECTED:.1f} % expected"
    return f"{blocked or untold or 'no head-of-line blocking'}; {rest}"


def incast(session: Session, known: dict[str, Result]) -> Result:
    """Simultaneous bursts of several senders to one port: the longest without loss, by the number of senders."""
    result = Result("incast", "Incast", "RFC 8239, 4 and 6", "measured")
    frame = session.frames[len(session.frames) // 2]
    if why := no_line_rate(known["throughput"], frame):
        result.state, result.reason = "not carried", why
        return result
    result.columns = (
        Column("senders", "senders"),
        Column("length", "longest burst of each", "frames"),
        Column("total", "of all together", "frames"),
        Column("held", "held by the port", "frames"),
        Column("bytes", "held by the port", "B"),
        Column("latency", "greatest latency", "us"),
        Column("goodput", "goodput of the burst", "Mbit/s"),
        Column("loss", "loss rate at twice the length", "%"),
    )
    result.chart = Chart("senders", ("length",))
    for senders in range(2, ports_of(session)):
        row = _longest(session, frame, senders, result)
        if row is not None:
            proof = session.evidence()
            result.rows.append({**row, **proof.cells(), "bound": None})
            word = "at least " if row["loss"] is None and row["length"] else ""
            result.conclusion.append(
                f"{senders} senders: bursts of {word}{row['length']} frames of {frame} B each, {row['bytes']} B held; "
                f"of each length one trial, {_of_longest(session, frame, row).rests(session.device.rate_bps)}"
            )
    result.notes.append(
        f"{frame} B. All senders begin at one instant, at line rate. Held = frames of all senders less those "
        "that the port sends while they come."
    )
    if not result.rows:
        result.state, result.reason = "refused", "no trial counted"
    return result


def _of_longest(session: Session, frame: int, row: dict[str, Value]) -> Evidence:
    """The evidence of the longest burst without loss: its one trial."""
    length, total = row["length"], row["total"]
    assert isinstance(length, int)
    assert isinstance(total, int)
    return Evidence(int(length > 0), total, 0, length / fps(session.device.rate_bps, frame))


def _longest(
    session: Session, frame: int, senders: int, result: Result
) -> dict[str, str | int | float | None] | None:
    rate = fps(session.device.rate_bps, frame)
    seen: dict[int, Outcome] = {}

    def loses(length: int) -> bool | None:
        streams = tuple(Stream(1 + one, 0, LINE_RATE_PPM, frame, count=length) for one in range(senders))
        trial = Trial(
            f"{senders} senders, {length} frames of {frame} B each",
            (length - 0.5) / rate,
            streams,
            warm_up=False,
            overload=True,
        )
        outcome = session.ask(trial)
        if outcome.refused:
            result.notes.append(f"{senders} senders, bursts of {length}: {outcome.refused}")
            return None
        seen[length] = outcome
        return outcome.lost > 0

    low, high, length = 0, 0, 32
    while not high or high - low > max(1, high // 500):
        lost = loses(length)
        if lost is None:
            return None
        low, high = (low, length) if lost else (length, high)
        if not high and low >= _LONGEST:
            result.notes.append(
                f"{senders} senders: no loss up to {low} frames each, no longer burst was tried"
            )
            break
        length = (low + high) // 2 if high else 2 * low
        if high == 1:
            break
    twice = loses(2 * low) if high and low else None
    best = seen.get(low)
    most = [one.latency.maximum for one in best.streams if one.latency.maximum is not None] if best else []
    # The port sends one frame for each that a sender offers; one is on the wire when the last ones arrive.
    held = max(0, (senders - 1) * low)
    spent = max(most, default=0.0) / 1e9 + (low - 1) / rate
    return {
        "senders": senders,
        "length": low,
        "total": senders * low,
        "held": held,
        "bytes": held * frame,
        "latency": max(most) / 1e3 if most else None,
        "goodput": senders * low * frame * 8 / spent / 1e6 if most else None,
        "loss": None if twice is None else 100 * seen[2 * low].loss_ratio,
    }

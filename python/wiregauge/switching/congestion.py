"""The capacity of a port beyond its rate: back-to-back frames and buffer."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from wiregauge.switching.forwarding import no_line_rate, without
from wiregauge.switching.results import Chart, Column, Result, Value
from wiregauge.switching.session import REPEATS, Session
from wiregauge.switching.trials import (
    BESIDE_FULL_PPM,
    LINE_RATE_PPM,
    WIRE_EXTRA,
    Latency,
    Load,
    Outcome,
    Stream,
    Trial,
    fps,
)

__all__ = ["back_to_back", "buffer"]

_ROUNDING: Final = 1e-6
"""Tolerance for rounding, in frames."""


def back_to_back(session: Session, known: dict[str, Result]) -> Result:
    """The longest burst at line rate without loss, and the buffer time it implies."""
    result = Result("back-to-back", "Back-to-back frames", "RFC 2544, 26.4; RFC 9004", "measured")
    result.columns = (
        Column("frame", "frame size", "B"),
        Column("length", "mean burst", "frames"),
        Column("least", "shortest", "frames"),
        Column("most", "longest", "frames"),
        Column("repeats", "repeats"),
        Column("implied", "implied buffer time", "us"),
        Column("corrected_low", "corrected by the upper bound of throughput", "us"),
        Column("corrected", "corrected buffer time", "us"),
    )
    result.chart = Chart("frame", ("corrected",))
    for row in known["throughput"].rows:
        frame, lower = row["frame"], row["lower"]
        assert isinstance(frame, int)
        why = no_line_rate(known["throughput"], frame)
        if why or not isinstance(lower, float):
            result.notes.append(why or f"{frame} B: {row['statement']}")
            continue
        most = session.sizes.longest_burst(session.device.rate_bps, frame)
        if lower == 100.0 and (whole := _whole_burst(session, frame, most, result)) is not None:
            proof = session.evidence()
            result.rows.append({"frame": frame, "least": whole, "repeats": proof.trials, **proof.cells()})
            result.conclusion.append(
                f"{frame} B: {whole} frames at least, no longer burst was tried: "
                f"{proof.loss_rests(session.device.rate_bps)}"
            )
            continue
        lengths = _bursts(session, frame, most, result)
        if not lengths:
            continue
        proof = session.evidence()
        if min(lengths) >= most:
            result.rows.append(
                {"frame": frame, "least": min(lengths), "repeats": len(lengths), **proof.cells()}
            )
            result.conclusion.append(
                f"{frame} B: {most} frames at least, no longer burst was tried; {len(lengths)} repeats; "
                f"{proof.rests(session.device.rate_bps)}"
            )
            continue
        mean = sum(lengths) / len(lengths)
        implied = mean / fps(session.device.rate_bps, frame)
        corrected = implied * (1 - lower / 100)
        upper = row["upper"]
        # Without an upper bound of the load the forwarding meanwhile cannot be deducted.
        floor = implied * (1 - upper / 100) if isinstance(upper, float) else None
        result.rows.append(
            {
                "frame": frame,
                "length": mean,
                "least": min(lengths),
                "most": max(lengths),
                "repeats": len(lengths),
                "implied": implied * 1e6,
                "corrected_low": None if floor is None else floor * 1e6,
                "corrected": None if floor is None else corrected * 1e6,
                **proof.cells(),
            }
        )
        result.conclusion.append(
            f"{frame} B: bursts of {mean:.0f} frames ({min(lengths)} to {max(lengths)} in {len(lengths)} repeats), "
            f"{_buffer_time(floor, corrected)}; {proof.size}"
        )
    if not result.conclusion:
        without(session, known, result, "no trial counted")
    return result


def _buffer_time(floor: float | None, corrected: float) -> str:
    if floor is None:
        return "buffer time not told: the throughput found no load that is too much"
    return f"buffer time {floor * 1e6:.4g} to {corrected * 1e6:.4g} µs"


def _burst(session: Session, frame: int, length: int, name: str) -> Outcome:
    """The outcome of a burst of `length` frames at line rate."""
    seconds = (length - 0.5) / fps(session.device.rate_bps, frame)
    return session.ask(Trial(name, seconds, (Stream(0, 1, LINE_RATE_PPM, frame),), warm_up=False))


def _whole_burst(session: Session, frame: int, most: int, result: Result) -> int | None:
    """The length of the longest burst that is tried; None where it lost frames, or was refused."""
    outcome = _burst(session, frame, most, f"{frame} B, burst of {most}")
    if outcome.refused:
        result.notes.append(f"{frame} B, burst of {most}: {outcome.refused}")
    return None if outcome.refused or outcome.lost else most


def _bursts(session: Session, frame: int, most: int, result: Result) -> list[int]:
    """The longest burst without loss in every repeat, up to `most` frames; empty where no trial counts."""
    found: list[int] = []
    for repeat in range(REPEATS[session.sizes.quick]):
        low, high = 0, 0
        length = 64 if not found else max(1, found[-1])
        step = 0 if not found else max(1, found[-1] // 200)
        while not high or high - low > max(1, high // 500):
            outcome = _burst(session, frame, length, f"{frame} B, repeat {repeat + 1}, burst of {length}")
            if outcome.refused:
                result.notes.append(f"{frame} B, burst of {length}: {outcome.refused}")
                return found
            if outcome.lost:
                high = length
            else:
                low = length
            if not high and low >= most:
                break
            if high:
                length = (low + high) // 2 if low or not step else max(1, high - step)
            else:
                length = min(most, low + step if step else 2 * low)
            step *= 2
            if high == 1:
                break
        found.append(low)
    return found


def buffer(session: Session, known: dict[str, Result]) -> Result:
    """Buffer of an output port: how far latency rises before loss, with more offered than the port can send."""
    result = Result("buffer", "Buffer size", "RFC 8239, 3.2, by latency inflection", "measured")
    result.columns = (
        Column("frame", "frame size", "B"),
        Column("base", "least latency", "us"),
        Column("top", "greatest latency, full", "us"),
        Column("lost", "lost of the measured", "frames"),
        Column("fewest", "buffer at least", "frames"),
        Column("frames", "buffer", "frames"),
        Column("bytes", "buffer", "B"),
    )
    result.chart = Chart("frame", ("bytes",))
    for frame in session.frames:
        if why := no_line_rate(known["throughput"], frame):
            result.notes.append(why)
            continue
        probe = (Stream(0, 1, BESIDE_FULL_PPM, frame),)
        trial, outcome, enough = _filled(session, frame, probe, result)
        if trial is None or outcome is None:
            continue
        # As long as the full trial, to see the same rare events: frames of the device itself.
        base = session.ask(replace(trial, name=f"{frame} B, empty", loads=()))
        proof = session.evidence()
        if base.refused or base.streams[0].latency.minimum is None:
            result.notes.append(f"{frame} B: {base.refused or 'the latency of the empty device is unknown'}")
            continue
        empty, full = base.streams[0], outcome.streams[0]
        row, said = _held(
            frame, 1e9 / fps(session.device.rate_bps, frame), empty.latency, full.latency, enough
        )
        result.rows.append({"frame": frame, **row, "lost": full.lost, **proof.cells()})
        result.conclusion.append(f"{frame} B: {said}; n {full.latency.n}, {proof.size}")
    result.notes.append(
        "The port is offered 110 % of its rate: 100 % of load from the third port, 10 % measured from the first. "
        "Frames in the buffer = (greatest - least latency) / time of a frame with its "
        f"{WIRE_EXTRA} B of preamble and gap; the frame that is being sent is not counted. At least: the less of what "
        "the medians and what the greatest latencies of the full and the empty device differ by."
    )
    return result if result.rows else without(session, known, result, "no trial counted")


def _held(
    frame: int, frame_ns: float, empty: Latency, full: Latency, enough: bool
) -> tuple[dict[str, Value], str]:
    """The buffer of the port, as cells of a row and in words.

    The greatest latency alone would include the latency variation of the empty device, and frames of the device itself
    queued among those of the trial; the median contains little of either.
    """
    assert empty.minimum is not None
    assert empty.maximum is not None
    assert full.maximum is not None
    rise = full.maximum - empty.minimum
    frames = int(rise / frame_ns)
    sure = [full.maximum - empty.maximum]
    sure += [full.p50 - empty.p50] if full.p50 is not None and empty.p50 is not None else [0.0]
    fewest = max(int(min(sure) / frame_ns + _ROUNDING), 0)
    sharp = frames - fewest <= 1
    row: dict[str, Value] = {
        "base": empty.minimum / 1e3,
        "top": full.maximum / 1e3,
        "fewest": fewest,
        "frames": frames if sharp else None,
        "bytes": frames * frame if sharp else None,
    }
    if sharp:
        return row, f"{'' if enough else 'at least '}{frames} frames, {frames * frame} B, to one frame"
    spread = empty.maximum - empty.minimum
    if spread > frame_ns:
        why = f"latencies of the empty device differ by {spread / 1e3:.4g} µs"
    else:
        why = "half of the frames waited for no more than that many, and what others waited for may be of the device"
    return row, f"{fewest} to {frames} frames{'' if enough else ', or more'}: {why}"


def _filled(
    session: Session, frame: int, probe: tuple[Stream, ...], result: Result
) -> tuple[Trial | None, Outcome | None, bool]:
    """The last trial that counted, and whether it filled the buffer: it lost frames, or a longer one filled no more.

    After a loss one more trial is made if half of the frames may have arrived before the buffer was full.
    """
    load = (Load(2, 1, LINE_RATE_PPM, frame),)
    one = 1 / fps(session.device.rate_bps, frame)
    trial: Trial | None = None
    last: Outcome | None = None
    enough = False
    for frames in (10_000, 80_000, 640_000):
        longer = Trial(f"{frame} B, overloaded for {frames} frames", frames * one, probe, load)
        outcome = session.ask(longer)
        top = outcome.streams[0].latency.maximum if outcome.streams else None
        if outcome.refused or top is None:
            result.notes.append(f"{frame} B, overloaded: {outcome.refused or 'no frame arrived'}")
            break
        before = last.streams[0].latency.maximum if last is not None else None
        was, middle = enough, outcome.streams[0].latency.p50
        trial, last = longer, outcome
        enough = bool(was or outcome.streams[0].lost or (before is not None and top - before < 1e9 * one))
        if was or (enough and middle is not None and top - middle < 1e9 * one):
            break
    return trial, last, enough

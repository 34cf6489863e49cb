"""Errored frames must not be forwarded (RFC 2889, 5.9)."""

from __future__ import annotations

from typing import Final

from wiregauge.switching.results import Column, Result
from wiregauge.switching.session import Session
from wiregauge.switching.trials import Stream, Trial, fps

__all__ = ["errored_frames"]

_LOAD: Final = 500_000
_FRAMES: Final = 1_000


def errored_frames(session: Session, known: dict[str, Result]) -> Result:
    """Frames with a wrong check sequence at the input, and what leaves the device of them."""
    del known
    result = Result("errored-frames", "Errored frames filtering", "RFC 2889, 5.9", "measured")
    result.columns = (
        Column("frame", "frame size", "B"),
        Column("error", "error"),
        Column("sent", "sent", "frames"),
        Column("forwarded", "forwarded", "frames"),
        Column("statement", "statement"),
    )
    for frame in session.frames:
        seconds = (_FRAMES + 1) / (fps(session.device.rate_bps, frame) * _LOAD / 1e6)
        trial = Trial(
            f"{frame} B, wrong FCS",
            round(seconds, 6),
            (Stream(0, 1, _LOAD, frame, count=_FRAMES),),
            damaged=(0,),
        )
        outcome = session.ask(trial)
        if outcome.refused:
            result.notes.append(f"{frame} B: {outcome.refused}")
            continue
        seen = outcome.streams[0]
        forwarded = max([seen.sent - seen.lost, *seen.passages.values()])
        said = "not forwarded" if not forwarded else f"forwarded: {forwarded} of {seen.sent}"
        result.rows.append(
            {
                "frame": frame,
                "error": "FCS",
                "sent": seen.sent,
                "forwarded": forwarded,
                "statement": said,
            }
        )
        result.conclusion.append(f"{frame} B with a wrong FCS: {said}")
    result.notes.append(
        f"At {_LOAD / 1e4:g} % of line rate. A cut-through device forwards a frame before its check sequence is there."
    )
    if not result.rows:
        result.state, result.reason = "refused", "no trial counted"
    return result

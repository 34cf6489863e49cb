"""Errored frames must not be forwarded (RFC 2889, 5.9)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from wiregauge.plan.ethernet import LONGEST, SHORTEST
from wiregauge.stats import share_bound
from wiregauge.switching.evidence import share_text
from wiregauge.switching.results import Column, Result
from wiregauge.switching.session import Session
from wiregauge.switching.trials import Stream, Trial, fps

__all__ = ["errored_frames"]

_LOAD: Final = 500_000
_FRAMES: Final = 1_000


class _Error(Struct, frozen=True):
    """An error of sent frames; `length` is their length with it, 0: unchanged."""

    name: str
    frame: int
    length: int = 0
    wrong_fcs: bool = True


_LENGTHS: Final = (
    _Error("undersize (runt)", SHORTEST, SHORTEST - 1, wrong_fcs=False),
    _Error("undersize and wrong FCS (fragment)", SHORTEST, SHORTEST - 1),
    _Error("oversize (giant)", LONGEST, LONGEST + 1, wrong_fcs=False),
    _Error("oversize and wrong FCS (jabber)", LONGEST, LONGEST + 1),
)


def errored_frames(session: Session, known: dict[str, Result]) -> Result:
    """Sends frames with a wrong check sequence, runts and giants, and counts those that the device forwards."""
    del known
    result = Result("errored-frames", "Errored frames filtering", "RFC 2889, 5.9", "measured")
    result.columns = (
        Column("frame", "frame size", "B"),
        Column("error", "error"),
        Column("sent", "sent", "frames"),
        Column("forwarded", "forwarded", "frames"),
        Column("most", "forwarded share at most, 95 %", "%"),
        Column("statement", "statement"),
    )
    for error in (*(_Error("wrong FCS", frame) for frame in session.frames), *_LENGTHS):
        _tried(session, error, result)
    result.notes.append(
        f"At {_LOAD / 1e4:g} % of line rate. A cut-through device forwards a frame before its end is there. A device "
        "that is set up for longer frames forwards those above 1518 B on purpose."
    )
    if not result.rows:
        result.state, result.reason = "refused", "no trial counted"
    return result


def _tried(session: Session, error: _Error, result: Result) -> None:
    length = error.length or error.frame
    seconds = (_FRAMES + 1) / (fps(session.device.rate_bps, error.frame) * _LOAD / 1e6)
    outcome = session.ask(
        Trial(
            f"{length} B, {error.name}",
            round(seconds, 6),
            (Stream(0, 1, _LOAD, error.frame, count=_FRAMES),),
            damaged=(0,) if error.wrong_fcs else (),
            wrong_length=error.length,
        )
    )
    if outcome.refused:
        result.notes.append(f"{length} B, {error.name}: {outcome.refused}")
        return
    seen = outcome.streams[0]
    forwarded = max([seen.sent - seen.lost, *seen.passages.values()])
    proof = session.evidence()
    most = share_bound(min(forwarded, seen.sent), seen.sent).high
    said = (
        f"not forwarded: none of {seen.sent}, so at most {share_text(most)} (95 %)"
        if not forwarded
        else f"forwarded: {forwarded} of {seen.sent}"
    )
    result.rows.append(
        {
            "frame": length,
            "error": error.name,
            "sent": seen.sent,
            "forwarded": forwarded,
            "most": 100 * most,
            "statement": said,
            **proof.cells(),
            "bound": None,
        }
    )
    result.conclusion.append(f"{length} B, {error.name}: {said}; {proof.size}")

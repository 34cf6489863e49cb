"""What a statement of the data sheet rests on: trials, frames, how long, and what so much can tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from wiregauge.stats import share_bound
from wiregauge.switching.results import Column, Value
from wiregauge.switching.trials import Outcome, Trial

__all__ = ["CREDIT_BITS", "EVIDENCE", "Evidence", "evidence_of", "hidden", "share_text", "span"]

CREDIT_BITS: Final = 8 * 64 * 1024
"""Buffer, or burst credit of a policer, that the last trials of a search are long enough to see behind."""
_RARE: Final = 3.0
"""None in n: fewer than 3/n, 95 %."""

EVIDENCE: Final = (
    Column("trials", "trials"),
    Column("frames_sent", "frames sent in them"),
    Column("seconds", "longest trial", "s"),
    Column("bound", "lost share at most, 95 %", "%"),
)
"""Columns that every test ends with."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Trials that count, taken together."""

    trials: int
    sent: int
    lost: int
    seconds: float
    """Of the longest one."""
    grown_ns: float | None = None
    """How much longer frames took at the end of the longest one than at its beginning, at least; None: not told."""

    @property
    def most(self) -> float:
        """Greatest share of frames that may be lost, 95 % (Clopper and Pearson; of none lost 1 - 0.05^(1/n))."""
        return share_bound(self.lost, self.sent).high

    def cells(self) -> dict[str, Value]:
        """Those of `EVIDENCE`."""
        return {
            "trials": self.trials,
            "frames_sent": self.sent,
            "seconds": self.seconds,
            "bound": 100 * self.most if self.sent else None,
        }

    @property
    def loss(self) -> str:
        """`none of 80000 frames lost, so at most 0.0037 % (95 %)`."""
        lost = f"{self.lost} of {self.sent}" if self.lost else f"none of {self.sent}"
        share = f", {share_text(self.lost / self.sent)}" if self.lost else ""
        return f"{lost} frames lost{share}, so at most {share_text(self.most)} (95 %)"

    @property
    def size(self) -> str:
        """`1 trial of 27 ms, 80000 frames`."""
        if self.trials == 1:
            return f"1 trial of {span(self.seconds)}, {self.sent} frames"
        return f"{self.trials} trials of up to {span(self.seconds)}, {self.sent} frames"

    def rests(self, rate_bps: int) -> str:
        """`size`, and where nothing was lost at most how much is, and what so much cannot tell.

        Every sentence of no loss ends with this, or is `loss_rests`.
        """
        if self.lost or not self.trials:
            return self.size
        return (
            f"{self.size}, of which at most {share_text(self.most)} are lost (95 %); {self._hides(rate_bps)}"
        )

    def loss_rests(self, rate_bps: int) -> str:
        """`loss` and `size`, and where nothing was lost what so much cannot tell."""
        told = f"{self.loss}; {self.size}"
        return told if self.lost or not self.trials else f"{told}; {self._hides(rate_bps)}"

    def _hides(self, rate_bps: int) -> str:
        return (
            f"{share_text(hidden(self.seconds, rate_bps))} of line rate would hide in 64 KiB of buffer or burst credit "
            f"for so long, and what comes less often than every {span(self.seconds / _RARE)} need not have shown"
        )


def hidden(seconds: float, rate_bps: int) -> float:
    """Share of a link's rate that a device may be offered beyond what it forwards, with the rest in `CREDIT_BITS`."""
    return CREDIT_BITS / (seconds * rate_bps)


def evidence_of(made: Iterable[tuple[Trial, Outcome]]) -> Evidence:
    """Of trials with their outcomes; refused ones count for nothing."""
    counted = [(trial, outcome) for trial, outcome in made if not outcome.refused]
    if not counted:
        return Evidence(0, 0, 0, 0.0)
    longest, last = max(counted, key=lambda one: one[0].seconds)
    grown = [one.grown for one in last.streams if one.grown is not None]
    return Evidence(
        len(counted),
        sum(outcome.sent for _, outcome in counted),
        # A frame of a wrong length that comes damaged is counted as both.
        sum(min(outcome.lost, outcome.sent) for _, outcome in counted),
        longest.seconds,
        max(grown, default=None),
    )


def span(seconds: float) -> str:
    """A duration for people."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def share_text(share: float) -> str:
    """A share for people, never rounded to none."""
    return f"{100 * share:.2g} %"

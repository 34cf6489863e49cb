"""The evidence behind a statement of the data sheet: trials, frames, durations, and their resolution."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from wiregauge.stats import share_bound
from wiregauge.switching.results import Column, Value
from wiregauge.switching.trials import Outcome, Trial

__all__ = ["CREDIT_BITS", "EVIDENCE", "Evidence", "evidence_of", "hidden", "share_text", "span"]

CREDIT_BITS: Final = 8 * 64 * 1024
"""Buffer, or burst credit of a policer, bits, that the last trials of a search are long enough to exhaust."""
_RARE: Final = 3.0
"""The rule of three: none in n means at most 3/n, 95 %."""

EVIDENCE: Final = (
    Column("trials", "trials"),
    Column("frames_sent", "frames sent in them"),
    Column("seconds", "longest trial", "s"),
    Column("bound", "lost share at most, 95 %", "%"),
)
"""Columns at the end of every test's table."""


class Evidence(Struct, frozen=True):
    """Trials that count, pooled."""

    trials: int
    sent: int
    lost: int
    seconds: float
    """The length of the longest trial, s."""
    grown_ns: float | None = None
    """The least latency growth over the longest trial, ns; None: none is established."""

    @property
    def most(self) -> float:
        """Upper 95 % bound of the share of lost frames (Clopper and Pearson; with none lost 1 - 0.05^(1/n))."""
        return share_bound(self.lost, self.sent).high

    def cells(self) -> dict[str, Value]:
        """The cells of `EVIDENCE`."""
        return {
            "trials": self.trials,
            "frames_sent": self.sent,
            "seconds": self.seconds,
            "bound": 100 * self.most if self.sent else None,
        }

    @property
    def loss(self) -> str:
        """The loss as text: `none of 80000 frames lost, so at most 0.0037 % (95 %)`."""
        lost = f"{self.lost} of {self.sent}" if self.lost else f"none of {self.sent}"
        share = f", {share_text(self.lost / self.sent)}" if self.lost else ""
        return f"{lost} frames lost{share}, so at most {share_text(self.most)} (95 %)"

    @property
    def size(self) -> str:
        """The extent as text: `1 trial of 27 ms, 80000 frames`."""
        if self.trials == 1:
            return f"1 trial of {span(self.seconds)}, {self.sent} frames"
        return f"{self.trials} trials of up to {span(self.seconds)}, {self.sent} frames"

    def rests(self, rate_bps: int) -> str:
        """`size`, and where nothing was lost the upper bound of loss, and the overload that so little would not reveal.

        Every statement of no loss ends with this or `loss_rests`.
        """
        if self.lost or not self.trials:
            return self.size
        return (
            f"{self.size}, of which at most {share_text(self.most)} are lost (95 %); {self._hides(rate_bps)}"
        )

    def loss_rests(self, rate_bps: int) -> str:
        """`loss` and `size`, and where nothing was lost the overload that so little would not reveal."""
        told = f"{self.loss}; {self.size}"
        return told if self.lost or not self.trials else f"{told}; {self._hides(rate_bps)}"

    def _hides(self, rate_bps: int) -> str:
        return (
            f"{share_text(hidden(self.seconds, rate_bps))} of line rate would hide in 64 KiB of buffer or burst credit "
            f"for so long, and what comes less often than every {span(self.seconds / _RARE)} need not have shown"
        )


def hidden(seconds: float, rate_bps: int) -> float:
    """The share of a link's rate offered beyond what the device forwards that `CREDIT_BITS` of buffer would hide."""
    return CREDIT_BITS / (seconds * rate_bps)


def evidence_of(made: Iterable[tuple[Trial, Outcome]]) -> Evidence:
    """The evidence of trials with their outcomes; refused ones do not count."""
    counted = [(trial, outcome) for trial, outcome in made if not outcome.refused]
    if not counted:
        return Evidence(0, 0, 0, 0.0)
    longest, last = max(counted, key=lambda one: one[0].seconds)
    grown = [one.grown for one in last.streams if one.grown is not None]
    return Evidence(
        len(counted),
        sum(outcome.sent for _, outcome in counted),
        # A frame of a wrong length that arrives damaged is counted as both.
        sum(min(outcome.lost, outcome.sent) for _, outcome in counted),
        longest.seconds,
        max(grown, default=None),
    )


def span(seconds: float) -> str:
    """A duration as text."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def share_text(share: float) -> str:
    """A share as text, never rounded to zero."""
    return f"{100 * share:.2g} %"

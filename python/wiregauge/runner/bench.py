"""What a bench is: a way from a plan to records.

A new one is a class like `Simulated`, in a file of its own, and a line in the registry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from wiregauge.benches import BenchError, Fact, Findings
from wiregauge.master import Observer
from wiregauge.plan import Campaign
from wiregauge.records import RunDirectory, Traits

__all__ = ["Bench", "BeyondBenchError"]


class BeyondBenchError(BenchError):
    """The plan asks for what the bench cannot do: a sentence for everything."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = tuple(reasons)


class Bench(ABC):
    """Keyword arguments of its `__init__` are the options that users may give it. One trial follows another."""

    name: ClassVar[str]
    traits: Traits

    @classmethod
    def here(cls, found: Findings) -> tuple[bool, str, str]:
        """Whether it works on the machine that `doctor` looked at, in which words, and the cure where it does not."""
        del found
        return True, "", ""

    def carried(self, campaign: Campaign) -> Campaign:
        """The campaign as this bench carries it. Raises BeyondBenchError for one that it cannot."""
        return campaign

    def enter(self) -> None:  # noqa: B027 - most can be opened anywhere
        """Goes where the bench can be opened; for commands, before any work: it may begin the process anew."""

    def facts(self, campaign: Campaign) -> Sequence[Fact]:
        """What a reader of figures must know of the bench."""
        del campaign
        return ()

    @abstractmethod
    def run(self, directory: RunDirectory, observer: Observer) -> None:
        """Makes every run of the plan of a new run directory: enters each, and tracks it once it is over.

        A run that does not come to its end is entered with its reason, and may be the last. Raises Interrupted when it
        is asked to stop, BenchError when it cannot go on, and RunDirectoryError when the disk cannot.
        """

    def close(self) -> None:  # noqa: B027 - most leave nothing between trials
        """Ends what is left of it; never raises."""

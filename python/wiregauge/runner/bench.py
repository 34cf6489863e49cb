"""The interface of benches, which make records from a plan.

A new bench is a class like `SimulatorBench`, in a file of its own, and a line in the registry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from msgspec import Struct

from wiregauge.plan import Campaign
from wiregauge.records import RunDirectory, Traits
from wiregauge.runner.observer import Observer

__all__ = ["Bench", "BenchError", "BeyondBenchError", "Fact", "Findings"]

Findings = dict[str, Any]
"""The content of `wiregauge-agent doctor --json`: `host`, `findings`, `interfaces` and `facts`."""


class BenchError(Exception):
    """This machine cannot run the bench; the text says what is missing and the cure."""


class Fact(Struct, frozen=True):
    """A fact about the bench that a reader of the results must know."""

    name: str
    value: str
    note: str = ""


class BeyondBenchError(BenchError):
    """The plan needs features that the bench lacks: a sentence for each."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = tuple(reasons)


class Bench(ABC):
    """A bench. The keyword arguments of `__init__` are its user options. Trials run one after another."""

    name: ClassVar[str]
    traits: Traits

    @classmethod
    def availability(cls, found: Findings) -> tuple[bool, str, str]:
        """Whether it works on the machine that `doctor` examined, the wording, and the cure where it does not."""
        del found
        return True, "", ""

    def adapt(self, campaign: Campaign) -> Campaign:
        """The campaign adapted to this bench. Raises BeyondBenchError for one that it cannot run."""
        return campaign

    def enter(self) -> None:  # noqa: B027 - most can be opened anywhere
        """Enters the bench's environment; for commands, before any work: it may restart the process."""

    def facts(self, campaign: Campaign) -> Sequence[Fact]:
        """Facts about the bench that a reader of figures must know."""
        del campaign
        return ()

    @abstractmethod
    def run(self, directory: RunDirectory, observer: Observer) -> None:
        """Makes every run of the plan of a new run directory: records its entry, and tracks it once it is over.

        An incomplete run is recorded with its reason, and may be the last. Raises Interrupted on a stop request,
        BenchError when the bench fails, and RunDirectoryError when the disk does.
        """

    def close(self) -> None:  # noqa: B027 - most leave nothing between trials
        """Releases what is left of the bench; never raises."""

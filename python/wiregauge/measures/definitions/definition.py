"""The definition of a measure in one object: its names, its formula, and all properties that other code needs.

Formulas use the columns of `messages/run-NNNN.parquet` (see docs/reference/run-directory.md). A message with
several copies counts by its first intact one. Warm-up messages are excluded from every measure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Literal

from msgspec import Struct

Unit = Literal["ns", "messages", "bit/s", "bit", "share", "1/s", "events"]
Kind = Literal["series", "pairs", "count", "single", "figure"]
Needs = Literal[
    "",
    "relay",
    "deadline",
    "switch",
    "two networks",
    "virtual link",
    "schedule",
    "frer",
    "stream filter",
    "gates",
    "credit-based shaper",
    "run",
]


MAPS = "MAPS 2015, Test scenarios and evaluation criteria"
SENT = "messages sent"
ARRIVED = "messages that arrived"
"""Messages that arrived at the destination; for a relayed flow, back at the sender."""
SEEN = "messages of which a copy arrived anywhere"
PASSED_ELIMINATION = "frames where copies meet"
ENTERED_FILTERS = "frames that came to the filters"


class Definition(Struct, frozen=True):
    """A measure. `formula` is text in the columns of the message table; `source` names standard and clause."""

    name: str
    title: str
    formula: str
    unit: Unit
    source: str
    note: str = ""
    kind: Kind = "figure"
    """A distribution of one value per message (or pair of messages), one per pair of points, a counter, a single figure
    of a flow, or figures that stand with others.
    """
    statistics: tuple[str, ...] = ("",)
    """Names of its statistics; "" is a single figure without a name of its own."""
    better: Literal["lower", "higher", ""] = ""
    """The better direction; "" where there is none, as with periods and signed errors."""
    signed: bool = False
    """Whether values lie before an instant as well as after it, and so may be negative."""
    clocks: Literal["", "out", "back", "one-way"] = ""
    """Whether it is the difference of the two ends' clocks: on the way out, on the way back, or of one-way flows."""
    links: Literal["", "more", "less", "either"] = ""
    """Direction in which it would change on the links of the plan, where those of the bench are faster: there each
    frame takes its time, waits behind others, finds queues full, and is altered or put out of order on the way. ""
    where no link is in it."""
    needs: Needs = ""
    """A property that a flow must have to have the measure; unplanned frames are counted per run."""
    every_message: bool = False
    """Whether it covers all messages sent, and so is undetermined where an end of the flow has no tap."""
    of: str = ""
    """Plural noun for the events that can show it: without any it has no figure. Empty: values of messages."""
    least: int = 1
    """Fewest of these events for a figure, however few were sent: one arrival alone is in order."""
    losses: Literal["", "counted", "missing"] = ""
    """Whether every lost message counts against it, or has no value in it, as a latency."""
    judges_lateness: bool = False
    """Whether it rests on which messages arrived after the deadline of the flow, and so on the clocks of both ends."""
    rests_on: str = ""
    """The measure whose missing timestamps it would have needed, where that is another."""
    main: bool = False
    """Whether it is a main measure: first in tables, judged by default in comparisons, tested for stationarity."""
    table: Literal["", "steadiness", "deadlines", "critical"] = ""
    """The table of the report that has its percentiles, besides those of the main measures, or its single figure."""
    word: str = ""
    """Its heading in that table."""
    usual: tuple[str, ...] = ()
    """Percentiles that are always given; those named by limits are added."""
    after: str = ""
    """The measure that it follows in lists; "": the one defined with it just before, or the last."""

    @property
    def key(self) -> str:
        """The measure's key in `show --json`: the name with the unit at its end."""
        return self.name + {"ns": "_ns", "bit/s": "_bps", "1/s": "_per_s"}.get(self.unit, "")

    def least_of(self, statistic: str) -> int:
        """Fewest of `of` that can show a statistic: it takes one arrival more than those that one is to come behind."""
        return max(self.least, int(statistic) + 1 if statistic.isdecimal() else 1)

    def between_clocks(self, *, relayed: bool) -> int:
        """The factor of the clock offset (receiver minus sender) in the measure: 1, -1 on the way back, or 0."""
        if self.clocks == "one-way":
            return 0 if relayed else 1
        return {"out": 1, "back": -1}.get(self.clocks, 0)


_SPREADS = ("sd", "mad")


def least_values(statistic: str) -> int:
    """Fewest values for a statistic of them: one value alone has no spread."""
    return 2 if statistic.rpartition(".")[2] in _SPREADS else 1


QUANTILES: dict[str, float] = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999}
"""Percentiles that are always printed, nearest rank, each with its order-statistic interval."""

PAIR_QUANTILES = ("p50", "p99")
"""Pair quantiles that are always printed."""

_PERCENTILE = re.compile(r"p((?:0|[1-9][0-9]?)(?:\.[0-9]{0,6}[1-9])?)")


def quantile_named(statistic: str) -> float | None:
    """The quantile that `p95`, `p99.999` or the like names; None for any other statistic. Each has one name."""
    found = _PERCENTILE.fullmatch(statistic)
    return float(Fraction(found[1]) / 100) if found and found[1] != "0" else None


def ascending(names: Iterable[str]) -> tuple[str, ...]:
    """Names of percentiles in ascending order of their quantiles."""
    return tuple(sorted(names, key=lambda name: quantile_named(name) or 0.0))

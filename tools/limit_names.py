"""Writes the names of limits, from the definitions of the measures, into the table that the plan is compiled with.

`make language` runs it, and then writes them into the schema for editors and the reference page. A test makes the table
again and compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from wiregauge.measures.definitions import DEFINITIONS, PAIR_QUANTILES, Definition
from wiregauge.measures.metrics.pairs import OUTWARD, RETURN
from wiregauge.measures.quantities import STATISTICS

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "crates" / "plan" / "src" / "measures.txt"

_NEEDS = ("relay", "deadline", "run")
"""Requirements on a flow that the test compiler can check; others are reported by the judgement."""
_DIMENSIONS = {
    "ns": "time",
    "messages": "count",
    "bit/s": "rate",
    "share": "share",
    "1/s": "frequency",
    "events": "count",
    "bit": "bits",
}
_WRITTEN = {
    "time": "a time",
    "signed-time": "a time, also negative",
    "count": "a whole number",
    "number": "a number",
    "share": "%, ppm or ppb",
    "rate": "bit/s",
    "frequency": "/s",
    "bits": "bit, kbit or Mbit, also negative",
}


class Name(Struct, frozen=True):
    """A name with the unit of its bound and the requirements on a flow."""

    measure: str
    statistic: str
    dimension: str
    needs: str
    losses: str
    """How a lost message counts: `counted`, `missing`, or `-` where it does neither."""

    def __str__(self) -> str:
        return f"{self.measure}.{self.statistic}" if self.statistic else self.measure

    @property
    def meaning(self) -> str:
        """The text that an editor shows with the name; the same for all statistics of one form."""
        title = DEFINITIONS[self.measure].title
        if self.measure == "pair_latency":
            title += f", {self.statistic.rpartition('.')[0].replace('-', ' to ')}"
        return f"{title}; {_WRITTEN[self.dimension]}"


def names() -> Iterator[Name]:
    """All names, in the order of the definitions."""
    for measure, definition in DEFINITIONS.items():
        for statistic in _statistics(definition):
            dimension = _DIMENSIONS[definition.unit]
            last = statistic.rpartition(".")[2]
            if dimension == "time" and definition.signed and last not in ("sd", "mad"):
                dimension = "signed-time"
            if dimension == "count" and last == "mean":
                dimension = "number"
            needs = "relay" if statistic.startswith("back_") else definition.needs
            yield Name(
                measure, statistic, dimension, needs if needs in _NEEDS else "-", definition.losses or "-"
            )


def _statistics(definition: Definition) -> Iterator[str]:
    if definition.kind == "series":
        yield from STATISTICS
    elif definition.kind == "pairs":
        for points in (OUTWARD, RETURN):
            for start, end in combinations(points, 2):
                yield from (f"{start}-{end}.{of}" for of in ("min", "mean", *PAIR_QUANTILES, "max"))
    else:
        yield from definition.statistics


def percentiles() -> Iterator[Name]:
    """Names that end in `p*`, for any percentile of a measure: one for each measure with a median."""
    for name in names():
        if name.statistic.endswith("p50"):
            yield replace(name, statistic=name.statistic.removesuffix("50") + "*")


def table() -> str:
    """The table for the plan."""
    head = (
        "# Made by tools/limit_names.py: name, what its bound is written in, what its flow must have, what a lost "
        "message is to it; p*: any percentile.\n"
    )
    return head + "".join(
        f"{name} {name.dimension} {name.needs} {name.losses}\n" for name in (*names(), *percentiles())
    )


def pattern() -> str:
    """The pattern, in XML Schema, of names of any percentile."""
    any_of = "|".join(str(name).removesuffix(".p*").replace(".", r"\.") for name in percentiles())
    return f"({any_of})\\.p(0\\.[0-9]{{0,6}}[1-9]|[1-9][0-9]?(\\.[0-9]{{0,6}}[1-9])?)"


def main() -> None:
    """Writes the table."""
    TABLE.write_text(table(), encoding="utf-8")


if __name__ == "__main__":
    main()

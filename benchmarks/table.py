"""The table at the end of `make bench`: figure, peer, ratio, bar.

Each benchmark adds its rows, one JSON object a line, to the file that `WIREGAUGE_BENCH_ROWS` names;
`python -m benchmarks.table FILE` prints them all.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

ROWS = "WIREGAUGE_BENCH_ROWS"
HEAD = ("what", "figure", "peer", "its figure", "ratio", "bar", "")


def add(
    what: str, figure: str, *, peer: str = "", theirs: str = "", ratio: float | None = None,
    bar: str = "", reached: bool | None = None,
) -> None:  # fmt: skip
    """Adds a row, if a table is being made. `reached`: whether the bar was; None without one."""
    if place := os.environ.get(ROWS):
        row = {"what": what, "figure": figure, "peer": peer, "theirs": theirs, "ratio": ratio, "bar": bar}
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row | {"reached": reached}) + "\n")


def rendered(lines: Sequence[str]) -> str:
    """The rows as aligned text, or a remark that there are none."""
    cells = [HEAD]
    for row in map(json.loads, lines):
        verdict = {None: "", True: "reached", False: "MISSED"}[row["reached"]]
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
        cells.append((row["what"], row["figure"], row["peer"], row["theirs"], ratio, row["bar"], verdict))
    if len(cells) == 1:
        return "no benchmark gave a figure"
    widths = [max(len(row[column]) for row in cells) for column in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in cells
    )


def main() -> int:
    """Prints the table of the file named on the command line."""
    file = Path(sys.argv[1])
    print(rendered(file.read_text(encoding="utf-8").splitlines() if file.exists() else []))
    return 0


if __name__ == "__main__":
    sys.exit(main())

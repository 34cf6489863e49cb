"""A table of figures for a paper: LaTeX that needs no package, Markdown, or CSV.

Every cell that is a figure has its value in the unit of its column, and its 95 % interval where it has one. What is not
determined is a dash, with the reason in the caption.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Callable, Sequence
from statistics import median

from msgspec import Struct

from wiregauge.export.choice import Choice, ExportError
from wiregauge.export.columns import Place, axis_column, cell, check_column, flow_rows
from wiregauge.files import printable
from wiregauge.measures import FlowResult, Judgement
from wiregauge.measures.definitions.units import significant
from wiregauge.measures.metrics.quantity import Quantity

__all__ = ["FORMATS", "PaperTable", "escaped", "paper_table"]

_SCALES: dict[str, tuple[tuple[float, str], ...]] = {
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")),
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "share": ((0.01, "%"),),
    "messages": ((1.0, ""),),
    "events": ((1.0, ""),),
}
_MOST_REASONS = 3
_DASH = "\N{EN DASH}"


class Cell(Struct, frozen=True):
    """A cell as text: its value, and its 95 % interval or nothing."""

    value: str
    interval: str = ""


class PaperTable(Struct, frozen=True):
    """Heads with their units, rows of cells, and the caption; `numbers` says which columns are figures."""

    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numbers: Sequence[bool]
    caption: str
    raw: Sequence[Sequence[object]]
    """The cells unrounded, for programs."""
    columns: Sequence[str]

    def latex(self) -> str:
        """A `tabular` for `\\input`; its rules are those of booktabs where a document has that package."""
        sides = "".join("r" if number else "l" for number in self.numbers)
        lines = [
            "% Table by wiregauge. Caption:",
            f"% {printable(self.caption)}",
            r"\providecommand{\toprule}{\hline}\providecommand{\midrule}{\hline}\providecommand{\bottomrule}{\hline}%",
            rf"\begin{{tabular}}{{{sides}}}",
            r"\toprule",
            " & ".join(map(escaped, self.heads)) + r" \\",
            r"\midrule",
            *(" & ".join(escaped(_joined(one)) for one in row) + r" \\" for row in self.rows),
            r"\bottomrule",
            r"\end{tabular}",
        ]
        return "\n".join(lines) + "\n"

    def markdown(self) -> str:
        """A table of GitHub's Markdown with its caption below."""
        sides = ["---:" if number else "---" for number in self.numbers]
        rows = [[_in_markdown(_joined(one)) for one in row] for row in self.rows]
        lines = [[_in_markdown(head) for head in self.heads], sides, *rows]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"<!-- Table by wiregauge. -->\n\n{table}\n\n{_in_markdown(self.caption)}\n"

    def csv(self) -> str:
        """RFC 4180: each figure unrounded with unit, interval and n in columns of their own; empty: not determined."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\r\n")
        figures = [any(isinstance(row[k], Quantity) for row in self.raw) for k in range(len(self.columns))]
        heads: list[str] = []
        for name, figure in zip(self.columns, figures, strict=True):
            heads += (
                [name, *(f"{name} {part}" for part in ("unit", "low", "high", "n"))] if figure else [name]
            )
        writer.writerow(heads)
        for row in self.raw:
            cells: list[object] = []
            for value, figure in zip(row, figures, strict=True):
                if isinstance(value, Quantity):
                    cells += [value.value, value.unit, value.low, value.high, value.n]
                else:
                    cells += [value, *([None] * 4 if figure else [])]
            writer.writerow(cells)
        return out.getvalue()


FORMATS: dict[str, Callable[[PaperTable], str]] = {
    "latex": PaperTable.latex,
    "markdown": PaperTable.markdown,
    "csv": PaperTable.csv,
}


def paper_table(
    sides: Sequence[tuple[str, Judgement]], columns: Sequence[str] = (), choice: Choice | None = None
) -> PaperTable:
    """A row for each flow and point of some run directories, repeats pooled; without columns the usual ones.

    Raises ExportError for an unknown column, and where no flow is chosen.
    """
    part = choice or Choice()
    for _, judgement in sides:
        part.check(judgement.plan, frozenset(run.plan.index for run in judgement.runs))
    placed = [
        one
        for label, judgement in sides
        for one in flow_rows(judgement, part, label=label, pooled_alone=True)
    ]
    if not placed:
        raise ExportError("there is no flow to make a table of")
    axes = list(dict.fromkeys(axis for _, judgement in sides for axis in judgement.plan.axes))
    flows = [flow for _, flow in placed]
    names = list(columns) or _usual(len(sides) > 1, axes, flows)
    for name in names:
        check_column(name, axes, flows)
    raw = [[cell(name, at, flow) for name in names] for at, flow in placed]
    made = [_column(name, [row[k] for row in raw]) for k, name in enumerate(names)]
    return PaperTable(
        heads=[head for head, _ in made],
        rows=list(zip(*(cells for _, cells in made), strict=True)),
        numbers=[all(_is_number(row[k]) for row in raw) for k in range(len(names))],
        caption=_caption(raw, [judgement for _, judgement in sides], placed),
        raw=raw,
        columns=names,
    )


def _usual(several: bool, axes: Sequence[str], flows: Sequence[FlowResult]) -> list[str]:
    main = "rtt" if all(flow.plan.relayed for flow in flows) else "latency"
    label = ["label"] if several else []
    return [
        *label,
        *map(axis_column, axes),
        "flow",
        "to",
        "sent",
        "loss",
        *(f"{main}.{one}" for one in ("p50", "p99", "max")),
    ]


def _is_number(value: object) -> bool:
    return value is None or isinstance(value, Quantity | int | float)


def _column(name: str, values: Sequence[object]) -> tuple[str, list[Cell]]:
    """The head of a column, with the unit that fits most of its figures, and its cells."""
    found = [value for value in values if isinstance(value, Quantity)]
    if not found:
        return name.replace("_", " "), [Cell(_text(value)) for value in values]
    unit = found[0].unit
    known = [abs(one.value) for one in found if one.value]
    scales = _SCALES.get(unit, ((1.0, unit),))
    middle = median(known) if known else 0.0
    size, word = next((one for one in scales if middle >= one[0]), scales[-1])
    whole = unit in ("messages", "events")

    def number(value: float) -> str:
        return f"{value:g}" if whole and value == int(value) else significant(value / size)

    def shown(value: object) -> Cell:
        if not isinstance(value, Quantity) or value.value is None:
            return Cell(_DASH)
        low, high = (number(end) if end is not None else "" for end in (value.low, value.high))
        return Cell(number(value.value), f"[{low}, {high}]" if value.interval else "")

    head = name.replace(".", " ", 1).replace("_", " ")
    return f"{head} ({word})" if word and known else head, [shown(value) for value in values]


def _text(value: object) -> str:
    return _DASH if value is None else ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _joined(one: Cell) -> str:
    return f"{one.value} {one.interval}" if one.interval else one.value


def _caption(
    raw: Sequence[Sequence[object]],
    judgements: Sequence[Judgement],
    placed: Sequence[tuple[Place, FlowResult]],
) -> str:
    """The sentences below a table: n, what brackets are, why something is missing, and whether to rely on it."""
    figures = [value for row in raw for value in row if isinstance(value, Quantity)]
    counts = [one.n for one in figures if one.value is not None]
    said = []
    if counts:
        least, most = min(counts), max(counts)
        said.append(f"n = {most}." if least == most else f"n = {least} to {most}.")
    if any(one.interval for one in figures):
        said.append("Brackets: 95 % intervals; an end that n does not support is left open.")
    if any(at.runs > 1 for at, _ in placed):
        said.append("Repeats are pooled.")
    reasons = list(
        dict.fromkeys(one.reason or "nothing was measured" for one in figures if one.value is None)
    )
    if reasons:
        more = f"; and {len(reasons) - _MOST_REASONS} more reasons" if len(reasons) > _MOST_REASONS else ""
        said.append(f"{_DASH}: not determined ({'; '.join(reasons[:_MOST_REASONS])}{more}).")
    words = {judgement.validity.word for judgement in judgements} - {"VALID"}
    said += [f"A measurement is {word}." for word in sorted(words)]
    return " ".join(said)


_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # Within braces none of these joins its neighbour, or is taken for an option of the row above.
    **{one: f"{{{one}}}" for one in "[]*\"'`-"},
    "\N{EN DASH}": "--",
    "\N{EM DASH}": "---",
    "µ": r"$\mu$",
    "μ": r"$\mu$",
    "·": r"$\cdot$",
    "±": r"$\pm$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "→": r"$\to$",
    "…": r"\ldots{}",
    "ß": r"\ss{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "œ": r"\oe{}",
    "Œ": r"\OE{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    "\N{LATIN SMALL LETTER DOTLESS I}": r"\i{}",
    "\N{NO-BREAK SPACE}": "~",
}
_ACCENTS = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0304": "=",
    "\u0306": "u ",
    "\u0307": ".",
    "\u0308": '"',
    "\u030a": "r ",
    "\u030b": "H ",
    "\u030c": "v ",
    "\u0327": "c ",
}


def escaped(text: str) -> str:
    """Text as plain LaTeX prints it, letter by letter; a letter that it has no font for is its code, `U+4E2D`."""
    return "".join(map(_in_latex, printable(text)))


def _in_latex(letter: str) -> str:
    if letter in _LATEX:
        return _LATEX[letter]
    if letter.isascii():
        return letter
    parts = unicodedata.normalize("NFD", letter)
    base, marks = parts[0], parts[1:]
    if len(marks) == 1 and marks in _ACCENTS and base.isascii() and base.isalpha():
        base = {"i": r"\i", "j": r"\j"}.get(base, base)
        return rf"\{_ACCENTS[marks]}{{{base}}}"
    return rf"\texttt{{U+{ord(letter):04X}}}"


_MARKDOWN = str.maketrans({one: f"\\{one}" for one in "\\`*_{}[]<>#|~"} | {"&": "&amp;"})


def _in_markdown(text: str) -> str:
    return printable(text).translate(_MARKDOWN)

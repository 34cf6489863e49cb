"""The page of streams of one place: verdict, validity, promises beside what was seen, every stream with its figures."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np

from wiregauge.figures import Figure
from wiregauge.figures.model import Axis, Panel, Scatter, Spans, Style, Trace
from wiregauge.figures.palette import BLUE, GREY
from wiregauge.files import printable
from wiregauge.measures.definitions.units import count_of, duration
from wiregauge.report.tables import NONE, ZERO, Cell, Head, Section, Table, text_heads
from wiregauge.report.write import REPORT, render, store
from wiregauge.streams import (
    PS_PER_NS,
    Observed,
    PromiseResult,
    StreamTable,
    lines,
    stream_name,
    stream_tables,
)

__all__ = ["rendered_streams", "write_streams"]

_COMPLETE: Final = "streams.json"
_DRAWN: Final = 30
_LONGEST: Final = 46
"""Letters of a name beside an axis."""
_PS_PER_US: Final = 1e6
_ORDER: Final = {"fail": 0, "undecided": 1, "pass": 2}
_MOST_NAMED: Final = 200


def write_streams(observed: Observed, directory: Path) -> Path:
    """Writes the page into the directory of the streams; returns its path. Raises RunDirectoryError when it cannot."""
    path = directory / REPORT
    store(path, rendered_streams(observed, directory.absolute().name))
    return path


def rendered_streams(observed: Observed, name: str) -> str:
    """The text of that page."""
    figure = _periods(observed)
    head, *conditions = lines(observed)
    return render(
        "streams.html.j2",
        [figure] if figure is not None else [],
        name=printable(name),
        verdict=observed.verdict,
        validity=observed.validity,
        headline=head.rpartition("  validity")[0],
        answers=_answers(observed),
        reasons=[printable(reason) for reason in observed.reasons],
        promises=_promises(observed),
        tables=[_table(one) for one in stream_tables(observed)],
        unseen=_named(observed.unseen),
        others=_named(observed.others),
        notes=[printable(note) for note in observed.notes],
        conditions=[one for one in conditions if not one.startswith("  - ")],
        contract=None if observed.contract is None else printable(observed.contract.file),
    )


def _named(names: Sequence[str]) -> list[str]:
    left = len(names) - _MOST_NAMED
    return [printable(one) for one in names[:_MOST_NAMED]] + ([f"and {left} more"] if left > 0 else [])


def _answers(observed: Observed) -> list[dict[str, str]]:
    """The figures that matter first."""
    results = [promise.result for promise in observed.promises]
    numbered = [stream.sequence for stream in observed.streams if stream.sequence is not None]
    missing = sum(sequence.missing for sequence in numbered)
    began = datetime.fromtimestamp(observed.epoch_realtime_ns / 1e9, UTC)
    dropped = [tap.dropped for tap in observed.taps]
    known = sum(count or 0 for count in dropped)
    boxes = []
    if observed.contract is not None:
        detail = f"of {count_of(len(results), 'promise')}, {results.count('undecided')} undecided"
        boxes.append({"question": "Promises broken", "figure": str(results.count("fail")), "detail": detail})
    boxes += [
        {
            "question": "Streams",
            "figure": str(len(observed.streams)),
            "detail": f"{count_of(observed.frames, 'frame')} from {began:%Y-%m-%d %H:%M:%S} UTC",
        },
        {
            "question": "Sequence numbers missing",
            "figure": str(missing) if numbered else "not known",
            "detail": f"in {count_of(len(numbered), 'stream')} that number their frames"
            if numbered
            else "no stream numbers its frames",
        },
        {
            "question": "Dropped by the capture",
            "figure": "not known" if None in dropped else str(known),
            "detail": f"at {', '.join(printable(tap.name) for tap in observed.taps)}",
        },
    ]
    return boxes


def _promises(observed: Observed) -> Table:
    rows = [
        [
            Cell(one.result, hint=printable(one.reason), kind="text bad" if one.result == "fail" else "text"),
            Cell(printable(one.stream), kind="text"),
            Cell(one.measure, kind="text"),
            Cell(f"{one.bound.replace('-', ' ')} {printable(one.written)}", kind="text"),
            Cell(_seen(one), kind="bad" if one.result == "fail" else ""),
            Cell(NONE if one.instrument is None or one.observed is None else _instrument(one)),
            Cell(str(one.n)),
            Cell(NONE if one.lacking is None else str(one.lacking)),
            Cell(printable(one.reason), kind="text"),
        ]
        for one in sorted(observed.promises, key=lambda one: _ORDER[one.result])
    ]
    heads = [
        *text_heads("result", "stream", "promise", "limit"),
        *(Head(text) for text in ("seen", "±", "n", "may lack")),
        *text_heads("why undecided"),
    ]
    return Table("Promises", heads, [Section("", rows)], lead=2, complete=_COMPLETE)


def _seen(one: PromiseResult) -> str:
    if one.observed is None:
        return NONE
    return duration(one.observed) if one.unit == "ns" else f"{one.observed:.0f} {one.unit}"


def _instrument(one: PromiseResult) -> str:
    """By how much timestamps and clock may falsify a figure."""
    assert one.instrument is not None
    assert one.observed is not None
    return duration(max(one.instrument[1] - one.observed, one.observed - one.instrument[0]), 2)


def _table(one: StreamTable) -> Table:
    """A table as the text has it; zero and what is not known are marks, so that empty columns fall out."""
    marks = {"-": NONE, "0": ZERO}
    rows = [
        [Cell(name, kind="text"), *(Cell(marks.get(text, text)) for text in rest)] for name, *rest in one.rows
    ]
    heads = [Head(one.heads[0], kind="text"), *(Head(text) for text in one.heads[1:])]
    return Table(one.title, heads, [Section("", rows)], complete=_COMPLETE)


def _periods(observed: Observed) -> Figure | None:
    """The range of times between two frames of the streams that vary most."""
    found = [
        (stream.period.max / max(stream.period.min, 1), stream)
        for stream in observed.streams
        if stream.period.n and stream.period.min is not None and stream.period.max
    ]
    if not found:
        return None
    drawn = [stream for _, stream in sorted(found, key=lambda one: -one[0])[:_DRAWN]]
    lanes = np.arange(len(drawn), dtype=np.float64)[::-1]
    # A logarithmic axis has no 0; nothing here resolves less than a nanosecond.
    low = np.array([max(one.period.min or 0, PS_PER_NS) for one in drawn]) / _PS_PER_US
    high = np.array([max(one.period.max or 0, PS_PER_NS) for one in drawn]) / _PS_PER_US
    mean = np.array([max(one.period.mean or 0.0, float(PS_PER_NS)) for one in drawn]) / _PS_PER_US
    traces: list[Trace] = [
        Spans("least to greatest", lanes, low, np.maximum(high - low, low * 1e-3), 0.5, Style(GREY)),
        Scatter("mean", mean, lanes, Style(BLUE), size=7, hints=[_hint(one.period.n) for one in drawn]),
    ]
    left = len(found) - len(drawn)
    ticks = [
        (float(lane), _short(stream_name(stream, observed)))
        for lane, stream in zip(lanes, drawn, strict=True)
    ]
    return Figure(
        "stream-periods",
        "Times between frames",
        "From the least to the greatest time between two frames of a stream, all of them; circles are means. The "
        "streams whose times vary most come first.",
        [
            Panel(
                "",
                Axis("time between frames (µs)", log=True),
                Axis("", span=(-0.6, len(drawn) - 0.4), ticks=ticks),
                traces,
            )
        ],
        notes=[f"{count_of(left, 'stream')} that vary less are not drawn."] if left else [],
        panel_height=max(150, 24 * len(drawn) + 90),
        margin_left=290,
    )


def _short(name: str) -> str:
    """A name that fits beside an axis; its ends tell more than its middle."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST // 2]}…{name[-_LONGEST // 2 + 1 :]}"


def _hint(count: int) -> str:
    return f"n = {count}"

"""What the view of messages against time (`zoom.js`) is told of a run, in a report and by a server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from wiregauge.figures.model import Style
from wiregauge.figures.palette import SHADED, apart, variety
from wiregauge.figures.traces import courses_note
from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.explaining.sentences import FOREIGN, took_text
from wiregauge.measures.extremes import CourseShape, measures_of
from wiregauge.measures.metrics.flow_plan import FlowPlan, RunPlan
from wiregauge.records import Notes

__all__ = [
    "BESIDE",
    "COLUMN_HEADS",
    "MOST_DRAWN",
    "NOTE_WORDS",
    "PICTURE_COLUMNS",
    "USUAL_DRAWN",
    "WINDOW_CURVE",
    "WINDOW_WORDS",
    "described",
    "flow_key",
    "notes_on",
    "shown_in",
    "slowest",
    "story_content",
    "styles_of",
]

MOST_DRAWN: Final = 12
"""Flows in one view: colours distinguish no more."""
USUAL_DRAWN: Final = 4
PICTURE_COLUMNS: Final = 1000
"""Columns of a picture as a file, and of its table."""
BESIDE: Final = 20.0
"""Periods on each side of a message that is shown among its neighbours."""
COLUMN_HEADS: Final[Mapping[str, str]] = {
    "begin": "begin_s",
    "end": "end_s",
    "messages": "messages",
    "lost": "lost",
    "unknown": "unknown",
    "n": "n",
    "least": "least_ns",
    "greatest": "greatest_ns",
    "least_at": "least_at_s",
    "greatest_at": "greatest_at_s",
}
"""Columns of a view as a CSV file: their names there."""
WINDOW_CURVE: Final[Mapping[str, int]] = {"ranks": 240, "greatest": 20, "fewest_bins": 20, "most_bins": 200}
"""The distribution of a window: ranks that its curve has, and the greatest values, each of which is in it; bins of its
density, by Rice's rule."""
WINDOW_WORDS: Final[Mapping[str, str]] = {
    "nothing": "No message of these flows has a value in the window.",
    "all": "From all {values} of the window.",
    "intervals": " Intervals are 95 % each, of chance; the errors of clocks and timestamps are in the report.",
    "no_intervals": " Intervals are not here: the server's page has those of a window, this report those of the run.",
    "unsupported": " A percentile that n does not support is left out.",
}
NOTE_WORDS: Final[Mapping[str, str]] = {
    "messages": "messages",
    "residence": "passages through switches",
    "nothing": "There are no {what} of these flows in the window.",
    "some": " Drawn: {drawn} of the run's {flows} flows.",
}
"""Words of `shown_in`, which adds them to those of `courses_note`."""


def flow_key(flow: FlowPlan) -> str:
    """Name of a flow at one receiver in addresses: its number, with the receiver's where there are several."""
    return f"{flow.id}-{flow.receiver}" if flow.multicast else f"{flow.id}"


def slowest(flows: Sequence[FlowPlan], greatest: Callable[[FlowPlan], float]) -> list[FlowPlan]:
    """The flows that are drawn unless others are asked for: those whose slowest message took longest."""
    chosen = {id(flow) for flow in sorted(flows, key=lambda flow: -greatest(flow))[:USUAL_DRAWN]}
    return [flow for flow in flows if id(flow) in chosen]


def styles_of(run: RunPlan) -> dict[str, Style]:
    """The style of each flow: as figures of the report have it, or where all are of one protocol a hue for each."""
    seen: Counter[str] = Counter()
    count = Counter(flow.protocol for flow in run.flows)
    found = {}
    for flow in run.flows:
        place, many = seen[flow.protocol], max(count.values())
        seen[flow.protocol] += 1
        found[flow_key(flow)] = (
            apart(place)
            if len(count) == 1
            else variety(flow.protocol, place, flows=len(run.flows) if many < 3 else SHADED)
        )
    return found


def described(run: RunPlan, names: Collection[str] | None = None) -> Mapping[str, Any]:
    """A run: its flows, their measures (of `names`, where given) and colours, and its span, s."""
    styles = styles_of(run)
    measures = {
        flow_key(flow): [name for name in measures_of(flow) if names is None or name in names]
        for flow in run.flows
    }
    return {
        "run": run.index,
        "span": [run.warm_up_ns / 1e9, (run.warm_up_ns + run.duration_ns) / 1e9],
        "flows": [
            {
                "key": flow_key(flow),
                "label": f"{flow.id}: {flow.source} → {flow.destination}"
                + (" and back" if flow.relayed else ""),
                "colour": styles[flow_key(flow)].colour,
                "measures": measures[flow_key(flow)],
            }
            for flow in run.flows
        ],
        "measures": [
            {"name": name, "title": one.title, "definition": one.formula}
            for name, one in DEFINITIONS.items()
            if any(name in of for of in measures.values())
        ],
        "most": MOST_DRAWN,
    }


def notes_on(notes: Notes, run: RunPlan) -> list[Mapping[str, object]]:
    """The notes on an instant of a run, for its pictures."""
    return [
        {
            "text": note.text,
            "at": note.at_s,
            "flow": next(
                (
                    flow_key(flow)
                    for flow in run.flows
                    if flow.id == note.flow and note.to in (None, flow.destination)
                ),
                None,
            ),
        }
        for note in notes.notes
        if note.at_s is not None and note.run in (None, run.index)
    ]


def shown_in(run: RunPlan, measure: str, shapes: Iterable[CourseShape]) -> str:
    """A sentence for below a picture: how many values of which flows it shows, and how."""
    what = NOTE_WORDS.get(measure, NOTE_WORDS["messages"])
    drawn = [shape for shape in shapes if len(shape.n)]
    if not drawn:
        return NOTE_WORDS["nothing"].format(what=what)
    note, flows = courses_note(drawn, what), len(run.flows)
    return (
        note if len(drawn) == flows else f"{note}{NOTE_WORDS['some'].format(drawn=len(drawn), flows=flows)}"
    )


def story_content(names: Sequence[str], flow: FlowPlan) -> Mapping[str, Any]:
    """What `story.html.j2` needs besides the story of a message of the flow."""
    return {
        "flow": flow,
        "names": names,
        "foreign": FOREIGN,
        "took_text": took_text,
        "width": BESIDE * (flow.period_ns or 1e6) / 1e9,
    }

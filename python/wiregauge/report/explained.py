"""The section "What explains it": sentences for each flow, the tables of recurring modes and of the worst messages."""

from __future__ import annotations

from msgspec import Struct

from wiregauge.figures.explained import figure_id
from wiregauge.measures.definitions.units import duration, p_text
from wiregauge.measures.explaining import Bounded, Explanation, FlowExplained, WorstMessage
from wiregauge.measures.explaining.sentences import LEAST_NS, chance, took_text
from wiregauge.report.tables import NONE, Cell, Head, Section, Table, micro, text_heads

MOST_FLOWS = 8
"""The most flows explained in a report; the terminal and JSON have all of them."""


class FlowSection(Struct, frozen=True):
    """The section of a flow: heading, sentences, tables (None where empty) and the id of its figure."""

    title: str
    sentences: tuple[str, ...]
    modes: Table | None
    worst: Table | None
    figure: str


def flow_sections(explanation: Explanation) -> list[FlowSection]:
    """A section for each explained flow."""
    return [_section(found) for found in explanation.flows]


def _section(found: FlowExplained) -> FlowSection:
    plan = found.flow
    point = ", ".join(f"{name} {value}" for name, value in found.run.point.items())
    where = f", run {found.run.index} ({point})" if point else ""
    return FlowSection(
        f"Flow {plan.name}, {plan.source} to {plan.destination}{where}",
        tuple(sentence for series in found.series for sentence in series.sentences),
        _modes(found),
        _worst(found),
        figure_id(found.run.index, plan.id, plan.receiver),
    )


def _modes(found: FlowExplained) -> Table | None:
    rows = [
        [
            Cell(series.measure.replace("_", " "), kind="text"),
            _bounded(mode.period, 1e9),
            _bounded(mode.duration, 1e9),
            _bounded(mode.height, 1.0),
            Cell(duration(mode.highest, 3)),
            Cell(duration(mode.jitter * 1e9, 2) if mode.jitter >= 1e-9 else "< 1 ns"),
            Cell(f"{mode.bands} of {mode.cycles}"),
            Cell(chance(mode.p_value), f"{p_text(mode.p_value)}, for the whole search"),
        ]
        for series in found.series
        for mode in series.recurrence.modes
    ]
    if not rows:
        return None
    heads = [
        Head("series", kind="text"),
        Head("every"),
        Head("for"),
        Head("adds"),
        Head("highest"),
        Head("jitter of onset"),
        Head("bands of cycles"),
        Head("p"),
    ]
    return Table(
        "Recurring modes", heads, [Section("", rows)], notes=["Hover a figure for its 95 % interval."]
    )


def _bounded(found: Bounded, scale: float) -> Cell:
    low, high = duration(found.low * scale, 6), duration(found.high * scale, 6)
    return Cell(duration(found.value * scale, 4), f"95 % {low} to {high}")


def _worst(found: FlowExplained) -> Table | None:
    rows = [_message(message) for message in found.worst if message.excess >= LEAST_NS]
    if not rows:
        return None
    heads = [
        Head("message"),
        Head("sent", unit="s"),
        Head("took", unit="µs"),
        Head("over the median", unit="µs"),
        Head("neighbours", unit="µs"),
        *text_heads("cause", "why"),
    ]
    return Table("The worst messages", heads, [Section("", rows)])


def _message(message: WorstMessage) -> list[Cell]:
    beside = " ".join(
        micro(near.value) if near.value is not None else near.outcome for near in message.neighbours
    )
    numbers = ", ".join(str(near.sequence) for near in message.neighbours)
    steps = "; ".join(f"{step.title} {took_text(step, 3)}" for step in message.steps if step.took)
    around = "; ".join(f"{event.node}: {event.text}" for event in message.events)
    why = message.sentence.split(": ", 1)[1] if ": " in message.sentence else message.sentence
    return [
        Cell(str(message.sequence), steps),
        Cell(f"{message.sent_at:.6f}"),
        Cell(micro(message.value)),
        Cell(micro(message.excess)),
        Cell(beside or NONE, f"messages {numbers}"),
        Cell(message.cause, around or "no other event is known", "text"),
        Cell(why, kind="text why"),
    ]

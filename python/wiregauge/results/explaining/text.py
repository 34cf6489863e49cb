"""An explanation for people at a terminal: sentences, then the steps of the worst message of each flow."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from wiregauge.measures.definitions.units import duration
from wiregauge.measures.explaining.explanation import Explanation, FlowExplained, WorstMessage
from wiregauge.measures.explaining.sentences import took_text

SHOWN = 3
"""Number of worst messages per flow that are printed; all are in JSON."""


def explain_text(explanation: Explanation, console: Console) -> None:
    """Prints the explanation of each flow."""
    if not explanation.flows:
        console.print("No latency was measured, so there is nothing to explain.")
    for flow in explanation.flows:
        _flow(flow, console)


def _flow(found: FlowExplained, console: Console) -> None:
    plan = found.flow
    point = ", ".join(f"{k} {v}" for k, v in found.run.point.items())
    title = f"What explains flow {plan.name}, {plan.source} to {plan.destination}"
    console.print()
    console.print(
        f"[bold]{escape(title)}[/]" + (f" [dim](run {found.run.index}: {escape(point)})[/]" if point else "")
    )
    for series in found.series:
        for sentence in series.sentences:
            console.print(f"  - {escape(sentence)}", soft_wrap=True)
    late = [message for message in found.worst if message.excess > 0]
    if found.worst and not late:
        console.print("  - No message took longer than the median.")
    for message in late[:SHOWN]:
        console.print(f"  - {escape(message.sentence)}", soft_wrap=True)
    if len(late) > SHOWN:
        console.print(f"  [dim]… {len(late) - SHOWN} more of the worst are in --json and in the report[/]")
    if late and late[0].steps:
        console.print(_ladder(found.worst[0]))


def _ladder(message: WorstMessage) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        title=f"the way of message {message.sequence}",
        title_justify="left",
    )
    for head in ("step", "took", "usual", "more"):
        table.add_column(head, justify="left" if head == "step" else "right")
    for step in message.steps:
        if step.took or step.usual:
            more = duration(step.excess, 3) if step.usual is not None else "-"
            table.add_row(escape(step.title), took_text(step), duration(step.usual), more)
    return table

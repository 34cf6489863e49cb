"""An explanation for people at a terminal: sentences, then the steps of the worst message of each flow."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from wiregauge.measures.definitions.units import duration
from wiregauge.measures.explaining.explanation import Explanation, FlowExplained, WorstMessage
from wiregauge.measures.explaining.sentences import message_name, took_text

SHOWN = 3
"""Number of findings on the worst messages of a flow that are printed, and of messages named in each."""


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
    findings = _by_finding(late)
    for finding, numbers in list(findings.items())[:SHOWN]:
        console.print(f"  - {escape(_named(numbers))} {escape(finding)}", soft_wrap=True)
    left = sum(len(numbers) for numbers in list(findings.values())[SHOWN:])
    if left:
        console.print(f"  [dim]… {left} more of the worst are in --json and in the report[/]")
    if late and late[0].steps:
        console.print(_ladder(found.worst[0]))


def _by_finding(worst: Sequence[WorstMessage]) -> dict[str, list[int]]:
    """The numbers of the messages of which the same is said, by what is said: the worst first."""
    found: dict[str, list[int]] = {}
    for message in worst:
        found.setdefault(message.sentence.removeprefix(message_name(message.sequence)).strip(), []).append(
            message.sequence
        )
    return found


def _named(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return message_name(numbers[0])
    listed = ", ".join(map(str, numbers[:SHOWN]))
    more = f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else ""
    return f"Messages {listed}{more}"


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

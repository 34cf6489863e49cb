"""`doctor --report`: a report about this machine's cards, as text to send in and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wiregauge.cli.shared import readable
from wiregauge.terminal import BAD_INPUT, fail

if TYPE_CHECKING:
    from wiregauge.examining.card import CardReport, CardSeen, Measured
    from wiregauge.measures.metrics.judgement import FlowResult, Judgement

__all__ = ["COLUMNS", "cells", "measured_in", "report_text", "table"]

COLUMNS = ("card, driver, firmware", "kernel", "timestamps", "XDP", "a thread wakes up late by", "measured")
"""Headings of a row of `cells`."""
_UNKNOWN = "not known"


def measured_in(places: Sequence[Path], kernel: str) -> list[Measured]:
    """The flows of these run directories. Ends the command where a run says nothing about cards of this kernel."""
    from wiregauge.measures import Grade
    from wiregauge.runner import judged

    found: list[Measured] = []
    for place in places:
        with readable(place) as (_, here):
            judgement = judged(here, lambda _: None, ())
        if judgement.traits.virtual_time:
            fail(f"--measured {place}: it was simulated, and says nothing about a card", BAD_INPUT)
        if judgement.validity == Grade.INVALID:
            why = "; ".join(judgement.reasons[:1])
            fail(f"--measured {place}: it is INVALID, and says nothing about a card: {why}", BAD_INPUT)
        ran_on = _kernel_of(judgement)
        if ran_on != kernel:
            fail(
                f"--measured {place}: it ran on {ran_on or 'an unknown kernel'}, this is {kernel}", BAD_INPUT
            )
        found += [
            _measured(judgement, flow, point.validity.word)
            for point in judgement.points
            for flow in point.flows
        ]
    return found


def _kernel_of(judgement: Judgement) -> str:
    """The kernel of the testmaster's host, as its manifest has it."""
    host = judgement.manifest.get("host")
    return str(host.get("kernel", "")).removeprefix("Linux ") if isinstance(host, dict) else ""


def _measured(judgement: Judgement, flow: FlowResult, validity: str) -> Measured:
    measure = "rtt" if flow.plan.relayed else "latency"
    summary = flow.summaries[measure]
    p50, p99 = (
        None if (found := summary.percentiles.get(name)) is None else found.value for name in ("p50", "p99")
    )
    return {
        "bench": str(judgement.manifest.get("bench", "")),
        "between": judgement.traits.driver,
        "protocol": flow.plan.protocol,
        "payload_bytes": flow.plan.payload,
        "measure": measure,
        "sent": flow.counts["sent"],
        "lost": flow.lost,
        "unknown": flow.open_ended,
        "p50_ns": p50,
        "p99_ns": p99,
        "max_ns": summary.maximum,
        "uncertainty_ns": summary.uncertainty.total if summary.uncertainty else None,
        "validity": validity,
    }


def cells(report: CardReport) -> Iterable[tuple[str, ...]]:
    """A row for each kind of card."""
    preemption = f" ({report['preemption']})" if report["preemption"] else ""
    for card in report["cards"]:
        yield (
            _named(card),
            f"{report['kernel']}{preemption}",
            _timestamps(card),
            card["xdp"] or _UNKNOWN,
            _wake_ups(report),
            "; ".join(map(_flow, report["measured"])) or "nothing",
        )


def _named(card: CardSeen) -> str:
    words = [card["card"] or "virtual", card["driver"] or f"driver {_UNKNOWN}", card["firmware"] or ""]
    ports = f" ({card['ports']} ports alike)" if card["ports"] > 1 else ""
    return ", ".join(filter(None, words)) + ports


def _timestamps(card: CardSeen) -> str:
    from wiregauge.measures.definitions.units import duration

    stamps = card["timestamps"]
    text = f"send {stamps['transmit'] or _UNKNOWN}, receive {stamps['receive'] or _UNKNOWN}"
    if stamps["filters"]:
        text += f" ({', '.join(stamps['filters'])})"
    if stamps["clock"] and stamps["clock_uncertainty_ns"] is not None:
        text += f"; its clock is read within {duration(stamps['clock_uncertainty_ns'])}"
    return text


def _wake_ups(report: CardReport) -> str:
    from wiregauge.measures.definitions.units import duration

    wake = report["wake_ups"]
    if wake is None:
        return _UNKNOWN
    return f"p50 {duration(wake['p50_ns'])}, p99 {duration(wake['p99_ns'])}, n = {wake['n']}"


def _flow(one: Measured) -> str:
    from wiregauge.measures.definitions.units import duration

    size = "" if one["payload_bytes"] is None else f" {one['payload_bytes']} B"
    figures = ", ".join(
        f"{name} {duration(value)}"
        for name, value in (("p50", one["p50_ns"]), ("p99", one["p99_ns"]), ("max", one["max_ns"]))
        if value is not None
    )
    where = f"{one['bench']}, {one['between']}"
    counted = f"{one['lost']} of {one['sent']} lost"
    return f"{one['protocol']}{size} ({where}): {one['measure']} {figures or _UNKNOWN}, {counted}, {one['validity']}"


def report_text(report: CardReport) -> str:
    """Markdown to paste into an issue: a table for people, and the same as JSON."""
    lines = [
        f"Cards and kernel, by `wiregauge doctor --report` of version {report['wiregauge']}:",
        "",
        *table(cells(report)),
        "",
        "```json",
        json.dumps(report, indent=1, ensure_ascii=False),
        "```",
    ]
    return "\n".join(lines)


def table(rows: Iterable[tuple[str, ...]]) -> list[str]:
    """The lines of a Markdown table under `COLUMNS`."""
    texts = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    return [f"| {' | '.join(row)} |" for row in (list(COLUMNS), ["---"] * len(COLUMNS), *texts)]

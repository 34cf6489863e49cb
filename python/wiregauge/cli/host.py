"""`doctor` and `agent`: this machine as an instrument, and the program that serves it."""

from __future__ import annotations

import json
import os
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from wiregauge.cli.shared import AsJson
from wiregauge.terminal import NO_ENVIRONMENT, fail


def doctor(as_json: AsJson = False) -> None:
    """Show which benches work here, what this machine grants to a measurement, and the cure for what it does not."""
    from wiregauge.benches import Findings, examine, programs_here
    from wiregauge.runner import BENCHES

    found: Findings = examine()
    programs = programs_here()
    benches: list[dict[str, Any]] = [
        {"name": name, **dict(zip(("works", "detail", "cure"), kind.here(found), strict=True))}
        for name, kind in BENCHES.items()
    ]
    if as_json:
        print(json.dumps({**found, "benches": benches, "programs": programs}, indent=1))
        return
    for heading, items, word in (
        ("bench", benches, "works"),
        ("what", found["findings"], "granted"),
    ):
        if not items:
            continue
        table = Table(heading, word, "detail", "cure", box=None, header_style="bold")
        for column in table.columns:
            column.overflow = "fold"  # a cure that is cut cannot be typed
        for item in items:
            mark = "[green]yes[/]" if item[word] else "[yellow]no[/]"
            detail = "" if item["detail"] == "yes" else item["detail"]
            table.add_row(escape(item["name"]), mark, escape(detail), escape(item.get("cure", "")))
        Console().print(table)
    beside = Table("program", "found", "for", "detail", "cure", box=None, header_style="bold")
    for column in beside.columns:
        column.overflow = "fold"
    for item in programs:
        mark = "[green]yes[/]" if item["found"] else "[yellow]no[/]"
        beside.add_row(escape(item["name"]), mark, *(escape(item[key]) for key in ("for", "detail", "cure")))
    Console().print(beside)
    timestamping = Table("interface", "timestamps", box=None, header_style="bold")
    for interface in found.get("interfaces", []):
        timestamping.add_row(escape(interface["name"]), escape(interface["detail"]))
    if timestamping.row_count:
        Console().print(timestamping)


def agent(context: typer.Context) -> None:
    """Run the agent program (`wiregauge agent serve --help`)."""
    from wiregauge.benches.base import BenchError, agent_program

    try:
        program = str(agent_program())
    except BenchError as error:
        fail(str(error), NO_ENVIRONMENT)
    os.execv(program, [program, *context.args])

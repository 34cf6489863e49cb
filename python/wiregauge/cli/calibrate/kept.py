"""What is kept: every calibration there is, and one of them again."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table

from wiregauge.cli.calibrate.shared import (
    Out,
    StoreAt,
    draw,
    show_calibration,
    told,
)
from wiregauge.cli.shared import AsJson
from wiregauge.terminal import make_console, put, say


def list_all(store: StoreAt = None, as_json: AsJson = False) -> None:
    """All kept calibrations, newest first, and whether runs on this machine can use them."""
    from wiregauge.calibrate import Store
    from wiregauge.calibrate.citing import standing
    from wiregauge.calibrate.text import headline

    with told():
        kept = Store(store)
        found, wrong = kept.all()
    for text in wrong:
        say(text)
    if as_json:
        entries = [
            {
                "id": one.number,
                "calibration": one.kind,
                "made": one.content["made"],
                "bench": one.content["bench"],
                "grade": one.content["grade"],
                "state": one.content["state"],
                "file": str(one.file),
                "usable": not (why := standing(one)),
                "reason": "; ".join(why) or None,
                "headline": headline(one),
            }
            for one in found
        ]
        print(
            json.dumps(
                {"schema": 1, "folder": str(kept.folder), "calibrations": entries, "unreadable": wrong},
                indent=1,
            )
        )
        return
    if not found:
        put(f"no calibrations in {kept.folder}; `wiregauge calibrate loop` makes the first")
        return
    # A number is there to be copied, so a narrow terminal must not cut it: findings are lines of their own.
    table = Table("number", "made", "bench", "grade", "usable", box=None, header_style="bold", pad_edge=False)
    findings = []
    for one in found:
        why = standing(one)
        made = f"{one.made.astimezone():%Y-%m-%d %H:%M}"
        finding = headline(one) if not why else f"{headline(one)} (not used: {'; '.join(why)})"
        table.add_row(
            one.number,
            made,
            one.content["bench"],
            one.content["grade"],
            "no" if why else "yes",
        )
        findings.append(f"{one.number}: {finding}")
    console = make_console()
    for column in table.columns:
        column.no_wrap = True
    console.print(table)
    for finding in findings:
        console.print()
        console.print(finding, highlight=False, markup=False, soft_wrap=True)


def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NUMBER|KIND|FILE",
            help="A number or its beginning, a kind for its newest, or a file.",
            show_default=False,
        ),
    ],
    out: Out = None,
    store: StoreAt = None,
    as_json: AsJson = False,
) -> None:
    """Show a calibration again; with --out draw its pictures again."""
    from wiregauge.calibrate import Store

    with told():
        calibration = Store(store).find(name)
        written = draw(calibration, out) if out is not None else []
    show_calibration(calibration, written, as_json=as_json)

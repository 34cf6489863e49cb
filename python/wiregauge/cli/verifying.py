"""`verify`: is a run directory still what was written, and does a certificate prove its bounds?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from wiregauge.cli.shared import AsJson
from wiregauge.files import is_file
from wiregauge.terminal import BAD_INPUT, INCOMPLETE, fail, put


def verify(
    place: Annotated[
        Path,
        typer.Argument(
            metavar="PLACE",
            help="Run directory, or a certificate that `bounds --certificate` wrote.",
            show_default=False,
        ),
    ],
    network: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With a certificate: the file whose bounds it proves; its numbers are compared with the premises.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Of a certificate every step is computed again in fractions: exit code 1 names a step that does not hold, 4 what
    was not checked.
    """
    if is_file(place):
        _certificate(place, network, as_json=as_json)
        return
    if network is not None:
        fail(
            f"--network has an effect with a certificate only; name one instead of {place}, or leave --network out",
            BAD_INPUT,
        )
    _directory(place, as_json=as_json)


def _directory(place: Path, *, as_json: bool) -> None:
    from wiregauge.records import verifying

    found = verifying.verify(place)
    if as_json:
        print(json.dumps(found.as_json(), indent=1))
    else:
        for finding in found.findings:
            put(f"{finding.file}: {finding.state}: {finding.detail}")
        checked = f"{found.files} files, {found.size / 1e6:.1f} MB compared with their hashes in {found.seconds:.2f} s"
        put(f"{place}: {found.state}: {checked}")
    if found.state is not verifying.State.WHOLE:
        raise typer.Exit(INCOMPLETE)


def _certificate(place: Path, network: Path | None, *, as_json: bool) -> None:
    from wiregauge.certificate import UnreadableError, check

    try:
        found = check(place, network)
    except UnreadableError as error:
        fail(
            f"{place}: {error}; name a run directory, or a certificate that `bounds --certificate` wrote",
            BAD_INPUT,
        )
    if as_json:
        print(json.dumps(found.as_json(), indent=1))
    else:
        for line in found.lines():
            put(line)
    if found.code:
        raise typer.Exit(found.code)

"""`verify`: is a run directory still what was written?"""

from __future__ import annotations

import json

import typer

from wiregauge.cli.shared import AsJson, RunDir
from wiregauge.terminal import INCOMPLETE, put


def verify(place: RunDir, as_json: AsJson = False) -> None:
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

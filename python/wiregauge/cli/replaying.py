"""`replay`: did the network between real hosts do what its model does?"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from wiregauge.cli.options import meant
from wiregauge.cli.shared import AsJson, RunDir
from wiregauge.terminal import BAD_INPUT, exit_code, fail, make_console, put_lines

if TYPE_CHECKING:
    from wiregauge.replay import Replay


def replay(
    place: RunDir,
    run: Annotated[
        int | None,
        typer.Option("--run", metavar="N", min=0, help=meant("--run"), show_default="all"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What hosts sent is handed to the model once more, at the instants at which it came; every record of the network,
    what it did to frames and what it handed to which host have to be equal. What hosts received is held against it, and
    against a simulation of the same run: messages that end otherwise there are named, with how late their host sent
    them.

    Exit code 0: equal; 1: something differs; 4: not all that crossed is stored.
    """
    from wiregauge.cli.progress import Work
    from wiregauge.cli.whole import Whole
    from wiregauge.records import RunDirectory
    from wiregauge.replay import CannotReplayError, replay_json, replay_run, replay_text

    directory = RunDirectory.open(place)
    numbers = [run] if run is not None else directory.run_indices
    found: list[Replay] = []
    try:
        with Work(make_console(stderr=True), Whole({f"run {number}": 1.0 for number in numbers})) as work:
            found += [replay_run(directory, number, partial(work.at, f"run {number}")) for number in numbers]
    except CannotReplayError as error:
        fail(str(error), BAD_INPUT)
    if as_json:
        print(json.dumps(replay_json(place, found), indent=1))
    else:
        put_lines(replay_text(found))
    code = exit_code(
        answered=bool(found) and not any(one.missing for one in found),
        failed=not all(one.equal for one in found),
    )
    if code:
        raise typer.Exit(code)

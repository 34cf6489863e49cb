"""What an option means that several commands have: one sentence for all of them, which each may go on with."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Annotated, Any, Final, get_type_hints

import typer

from wiregauge.cli.grouped import presented
from wiregauge.terminal import BAD_INPUT, fail, set_loudness

__all__ = ["FIXES", "MEANINGS", "meant", "with_loudness"]

FIXES: Final = "offloads, coalescing, EEE, pause frames, reverse-path filter, socket buffers, governor"

MEANINGS: Final = {
    "--beside": "Another directory",
    "--bench": "Where to run: sim = simulator, netns = real frames between namespaces of this machine",
    "--count": "How many to send",
    "--fix": "Set hosts for measuring",
    "--flow": "Only this flow",
    "--from": "Read this",
    "--granularity": "Step of the clocks",
    "--interface": "Interface",
    "--jobs": "Processors to simulate on: runs side by side, or parts of one run",
    "--json": "Print JSON of the documented schema instead of text",
    "--lab": "Folder of the lab, or the lab.toml in it",
    "--measure": "Only this measure",
    "--metrics": "Serve live figures in the OpenMetrics format, at 127.0.0.1 unless an address is given",
    "--on-alarm": "End it, or start a command that gets the alarm as JSON on its standard input; repeatable",
    "--out": "Where to write",
    "--payload": "Payloads",
    "--period": "Time between two messages",
    "--protocol": "How messages travel",
    "--quick": "A short form, for a first look",
    "--rate": "Rate of the links",
    "--realtime": "Ask for real-time scheduling of servicing threads",
    "--repeats": "Repeats of each point",
    "--resume": "Continue what was begun in this directory",
    "--run": "Only this run of a swept test",
    "--seed": "Seed of every random choice",
    "--sensitivity": "Change each parameter by itself",
    "--summaries": "Store each hour and each day by itself in this folder; in an earlier one go on, and state what is "
    "missing",
    "--time-limit": "How long to look for an answer",
}
"""By option; `tests/python/test_options.py` holds that every command says it so."""


def meant(option: str, more: str = "", *, only: str = "") -> str:
    """The help of an option: what it means, what this command adds, and with what `only` it has an effect."""
    text = MEANINGS[option]
    if only:
        text = f"{only}: {text[0].lower()}{text[1:]}"
    return f"{text}{more}."


_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the answer and errors, and no progress.")]
_Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="Also print how long each stage took, and with an internal error where it came from.",
    ),
]


def with_loudness(command: Callable[..., None]) -> Callable[..., None]:
    """The command with `-q` and `-v`, which every command has."""
    hints = get_type_hints(command, include_extras=True)
    parameters = [
        parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY)
        for name, parameter in signature(command).parameters.items()
    ]
    for name, kind in (("quiet", _Quiet), ("verbose", _Verbose)):
        parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=False, annotation=kind))

    def taken(*, quiet: bool, verbose: bool, **given: Any) -> None:
        if quiet and verbose:
            fail("--quiet and --verbose exclude each other; leave one out", BAD_INPUT)
        set_loudness(quiet=quiet, verbose=verbose)
        command(**given)

    taken.__name__, taken.__doc__ = command.__name__, command.__doc__
    return presented(taken, parameters)

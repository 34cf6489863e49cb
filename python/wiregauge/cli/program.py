"""The program `wiregauge`: its commands, and what becomes of an error that none of them expected.

Importing every command takes longer than most of them take to answer. So one that is named as the first argument is
made alone; help, completion, and whatever is no command are a matter of all of them.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Final, NoReturn

import typer

from wiregauge import __version__
from wiregauge.terminal import BAD_INPUT, INCOMPLETE, NO_ENVIRONMENT, guard, put, say

INTERNAL = 70

_GROUPS: Final = {"calibrate": "calibrate.commands:app", "lab": "lab:app"}
_COMMANDS: Final = {
    "new": "new:new",
    "check": "running:check",
    "run": "running:run",
    "probe": "probe:probe",
    "track": "running:track",
    "show": "reading:show",
    "report": "reading:report",
    "compare": "reading:compare",
    "trend": "reading:trend",
    "study": "study:study",
    "switch": "switch:switch",
    "schedule": "schedule:schedule",
    "bounds": "bounds:bounds",
    "identify": "identify:identify",
    "verify": "verifying:verify",
    "export": "exporting:export",
    "dissector": "exporting:dissector",
    "doctor": "doctor:doctor",
    "tsn": "tsn:tsn",
    "import": "importing:import_captures",
    "agent": "host:agent",
}
"""By name the module in `wiregauge.cli` and what it has, in the order of the help."""
_PASSED_ON: Final = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""Of the agent, whose options are its own program's."""


def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        put(f"wiregauge {__version__}")
        raise typer.Exit


def _program(names: Iterable[str]) -> typer.Typer:
    """The program with these commands."""
    made = typer.Typer(
        name="wiregauge",
        help="Tells how deterministic an Ethernet network is, and how far that answer can be trusted.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback(invoke_without_command=True)(_root)
    for name in names:
        module, _, attribute = (_GROUPS | _COMMANDS)[name].partition(":")
        found = getattr(importlib.import_module(f"wiregauge.cli.{module}"), attribute)
        if name in _GROUPS:
            made.add_typer(found)
        elif name == "agent":
            made.command(name, context_settings=_PASSED_ON, add_help_option=False)(found)
        else:
            made.command(name)(found)
    return made


def _named(arguments: Sequence[str]) -> Sequence[str]:
    """The command that is named, or all there are."""
    first = next(iter(arguments), "")
    return [first] if first in _GROUPS or first in _COMMANDS else [*_GROUPS, *_COMMANDS]


def __getattr__(name: str) -> typer.Typer:
    if name != "app":
        raise AttributeError(f"module 'wiregauge.cli.program' has no attribute {name!r}")
    # Whoever asks for the program as a whole asks again.
    globals()["app"] = whole = _program([*_GROUPS, *_COMMANDS])
    return whole


_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


def main() -> NoReturn:
    """Runs the command that was given and ends with its exit code."""
    guard()
    # gRPC's own account of a failed handshake would stand between the lines of ours.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        _program(_named(sys.argv[1:]))()
    except BrokenPipeError:  # `wiregauge show … | head`
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - only so that the interpreter can flush and close
        sys.exit(0)
    except SystemExit as end:
        # Rich ends with 1 when nobody reads any more, which would say that a limit failed.
        sys.exit(0 if isinstance(end.__context__, BrokenPipeError) else end.code)
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            sys.exit(_report_error(error))
        # What was written to is no file of ours: the output itself, or what a library keeps for a moment.
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - nothing of it can be flushed any more
        say(
            f"the output, or a file beside it, cannot be written: {error.strerror}; make room, or write elsewhere"
        )
        sys.exit(NO_ENVIRONMENT)
    except Exception as error:  # noqa: BLE001 - the last line of defence between a bug and the user
        sys.exit(_report_error(error))
    sys.exit(0)


def _report_error(error: Exception) -> int:
    """One clear message for whatever went wrong; returns the exit code."""
    from wiregauge.records import DamagedError, NoRoomError, RunDirectoryError, UnfinishedError

    if isinstance(error, RunDirectoryError):
        say(str(error))
        codes = {DamagedError: INCOMPLETE, UnfinishedError: INCOMPLETE, NoRoomError: NO_ENVIRONMENT}
        return codes.get(type(error), BAD_INPUT)
    from wiregauge.cluster import EngineError, StorageError

    if isinstance(error, EngineError | StorageError):
        say(str(error))
        return NO_ENVIRONMENT
    if os.environ.get("WIREGAUGE_TRACEBACK"):
        raise error
    say(
        f"internal error: {type(error).__name__}: {error}. This is a bug in wiregauge, not in your test; "
        "run again with WIREGAUGE_TRACEBACK=1 in the environment and report what it prints"
    )
    return INTERNAL

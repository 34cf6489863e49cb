"""The program `wiregauge`: its commands, and what becomes of an error that none of them expected.

Help and completion are made from the catalogue; the command that is given is imported, and no other.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Annotated, Any, Final, NoReturn

import typer
import typer.core
import typer.main

from wiregauge._version import __version__
from wiregauge.cli.catalogue import COMMANDS, Entry
from wiregauge.cli.coercion import hasten
from wiregauge.cli.completion import Suggested, offer
from wiregauge.cli.options import with_loudness
from wiregauge.terminal import (
    BAD_INPUT,
    INCOMPLETE,
    NO_ENVIRONMENT,
    disk_full,
    guard,
    is_verbose,
    put,
    say,
)

INTERNAL = 70

_PASSED_ON: Final = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""Of the agent, whose options are its own program's."""


class _Commands(Mapping[str, Any]):
    """The commands, each imported when it is asked for."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _command(name, COMMANDS[name])
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


def _command(name: str, entry: Entry) -> Any:
    """A command as the parser has it."""
    module, _, attribute = entry.place.partition(":")
    found = getattr(importlib.import_module(f"wiregauge.cli.{module}"), attribute)
    made = typer.Typer(rich_markup_mode=None)
    made.callback()(_root)  # a group, also around one command
    if isinstance(found, typer.Typer):
        for below in found.registered_commands:
            if (
                below.callback is not None and below.cls is not _Command
            ):  # the program may be made several times
                below.cls = _Command
                below.name = below.name or typer.main.get_command_name(below.callback.__name__)
                below.callback = with_loudness(below.callback)
        made.add_typer(found, cls=_Group, name=name, help=entry.summary)
    else:
        text = f"{entry.summary}\n\n{inspect.getdoc(found) or ''}".strip()
        more: dict[str, Any] = {}
        if name == "agent":
            more = {"context_settings": _PASSED_ON, "add_help_option": False}
        else:
            found = with_loudness(found)
        made.command(name, cls=_Command, help=text, **more)(found)
    return typer.main.get_group(made).commands[name]


class _Command(typer.core.TyperCommand):
    """A command whose options are read without what the parser has for hard ones."""

    def get_params(self, ctx: Any) -> list[Any]:
        return list(map(offer, hasten(super().get_params(ctx))))


class _Group(typer.core.TyperGroup):
    """A group of commands, whose help has the whole of every summary."""

    def get_params(self, ctx: Any) -> list[Any]:
        return list(map(offer, hasten(super().get_params(ctx))))

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, (command.help or "").partition("\n\n")[0]) for name, command in self.commands.items()]
            )


class _Program(_Group):
    """The program: its help and its completion come from the catalogue."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = _Commands()  # type: ignore[assignment]

    def list_commands(self, _ctx: Any) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        width = max(map(len, COMMANDS))
        for panel, names in groupby(COMMANDS, lambda name: COMMANDS[name].panel):
            with formatter.section(panel):
                formatter.write_dl([(name.ljust(width), COMMANDS[name].summary) for name in names])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        named = [
            Suggested(name, entry.summary) for name, entry in COMMANDS.items() if name.startswith(incomplete)
        ]
        return [*named, *super(typer.core.TyperGroup, self).shell_complete(ctx, incomplete)]


def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        put(f"wiregauge {__version__}")
        raise typer.Exit


app = typer.Typer(
    name="wiregauge",
    cls=_Program,
    help="Tells how deterministic an Ethernet network is, and how far that answer can be trusted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Plain text: what rich needs to draw frames takes longer to import than all else that help needs.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback(invoke_without_command=True)(_root)


def main() -> NoReturn:
    """Runs the command that was given and ends with its exit code."""
    guard()
    # gRPC's own account of a failed handshake would stand between the lines of ours.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        app()
    except BrokenPipeError:  # `wiregauge show … | head`
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - only so that the interpreter can flush and close
        sys.exit(0)
    except SystemExit as end:
        # Rich ends with 1 when nobody reads any more, which would say that a limit failed.
        sys.exit(0 if isinstance(end.__context__, BrokenPipeError) else end.code)
    except OSError as error:
        if not disk_full(error) or error.filename is not None:
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
        code = codes.get(type(error), BAD_INPUT)
        return NO_ENVIRONMENT if code == BAD_INPUT and disk_full(error) else code
    from wiregauge.cluster import EngineError, StorageError

    if isinstance(error, EngineError | StorageError):
        say(str(error))
        return NO_ENVIRONMENT
    if is_verbose():
        raise error
    say(
        f"internal error: {type(error).__name__}: {error}. This is a bug in wiregauge, not in your test; "
        "run again with --verbose and report what it prints"
    )
    return INTERNAL

"""The program `wiregauge`: its commands, and what becomes of an error that none of them expected."""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

import typer

from wiregauge import __version__
from wiregauge.cli.bounds import bounds
from wiregauge.cli.calibrate.commands import app as calibrate_app
from wiregauge.cli.doctor import doctor
from wiregauge.cli.exporting import dissector, export
from wiregauge.cli.host import agent
from wiregauge.cli.identify import identify
from wiregauge.cli.importing import import_captures
from wiregauge.cli.lab import app as lab_app
from wiregauge.cli.new import new
from wiregauge.cli.probe import probe
from wiregauge.cli.reading import compare, report, show, trend
from wiregauge.cli.running import check, run, track
from wiregauge.cli.schedule import schedule
from wiregauge.cli.study import study
from wiregauge.cli.switch import switch
from wiregauge.cli.tsn import tsn
from wiregauge.cli.verifying import verify
from wiregauge.terminal import BAD_INPUT, INCOMPLETE, NO_ENVIRONMENT, say

INTERNAL = 70

app = typer.Typer(
    name="wiregauge",
    help="Tells how deterministic an Ethernet network is, and how far that answer can be trusted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(calibrate_app)
app.add_typer(lab_app)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        print(f"wiregauge {__version__}")
        raise typer.Exit


for _command in (
    new,
    check,
    run,
    probe,
    track,
    show,
    report,
    compare,
    trend,
    study,
    switch,
    schedule,
    bounds,
    identify,
    verify,
    export,
    dissector,
    doctor,
    tsn,
):
    app.command()(_command)
app.command("import")(import_captures)
app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)(agent)


def main() -> NoReturn:
    """Runs the command that was given and ends with its exit code."""
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

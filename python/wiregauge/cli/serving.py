"""`serve`: runs in the browser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from wiregauge.terminal import BAD_INPUT, NO_ENVIRONMENT, fail, put

PORT = 8137


def serve(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[DIR...]",
            help="Folders whose run directories are shown, also those further below.",
            show_default="the current one",
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option("--port", metavar="N", min=0, max=65535, help="Port on 127.0.0.1; 0: any that is free."),
    ] = PORT,
    token: Annotated[
        bool | None,
        typer.Option(
            "--token/--no-token",
            help="Whether every address begins with a secret token, so that other users of this machine see nothing.",
            show_default="yes where other people have accounts",
        ),
    ] = None,
    control: Annotated[
        bool,
        typer.Option(
            "--control",
            help="Also let tests be stored and run, runs be stopped, notes be written; every address has a token then.",
        ),
    ] = False,
) -> None:
    """The page is for this machine only: it listens on loopback, and no request leaves it. Without --control nothing
    is written.
    """
    from wiregauge import serve as served

    chosen = list(dict.fromkeys(folders or [Path()]))
    for folder in chosen:
        if not folder.is_dir():
            fail(f"{folder}: no such folder; name one with run directories in it", BAD_INPUT)
    if control and token is False:
        fail("--control needs a token; leave --no-token out", BAD_INPUT)
    guarded = control or (served.is_shared() if token is None else token)
    try:
        at = served.bound(port)
    except served.PortTakenError as error:
        fail(str(error), NO_ENVIRONMENT)
    number = at.getsockname()[1]
    secret = served.new_token() if guarded else None
    server = served.Server(chosen, port=number, token=secret, control=control)
    put(f"http://127.0.0.1:{number}/{secret + '/' if secret else ''}")
    # A pipe would hold the address back until the server ends.
    sys.stdout.flush()
    served.listen(server, at)

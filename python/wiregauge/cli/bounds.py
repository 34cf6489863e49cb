"""`bounds`: worst-case delays and backlogs by network calculus."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from wiregauge.cli.shared import AsJson
from wiregauge.terminal import BAD_INPUT, INCOMPLETE, NO_ENVIRONMENT, exit_code, fail, say


class Method(StrEnum):
    """How bounds are found."""

    TFA = "tfa"
    SFA = "sfa"
    PMOO = "pmoo"
    PLP = "plp"


class Multiplexing(StrEnum):
    """In which order servers serve."""

    FIFO = "fifo"
    ARBITRARY = "arbitrary"


class Switch(StrEnum):
    """On or off."""

    ON = "on"
    OFF = "off"


class Arithmetic(StrEnum):
    """What is computed with."""

    EXACT = "exact"
    ROUNDED = "rounded"


def bounds(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A test file, a physical network (XML of WoPANets, xTFA, Saihu) or one of output ports (JSON "
            "of Saihu).",
            show_default=False,
        ),
    ],
    method: Annotated[
        Method,
        typer.Option(
            help="tfa = total flow analysis, sfa = separated flow analysis, pmoo = pay multiplexing only once, "
            "plp = linear programme for FIFO."
        ),
    ] = Method.TFA,
    multiplexing: Annotated[
        Multiplexing | None,
        typer.Option(help="In which order servers serve.", show_default="what the file says, or fifo"),
    ] = None,
    grouping: Annotated[
        Switch | None,
        typer.Option(
            help="Whether what comes over one link is bounded together, and by its capacity.",
            show_default="what the file says, or off",
        ),
    ] = None,
    arithmetic: Annotated[
        Arithmetic, typer.Option(help="Fractions, or doubles rounded outward, which are faster.")
    ] = Arithmetic.EXACT,
    run: Annotated[int, typer.Option(metavar="N", help="Run of a swept test.", min=0)] = 0,
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT",
            help="Write the network for other tools as well: output ports to OUT.json, a physical network to OUT.xml.",
            show_default=False,
        ),
    ] = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="Lay the longest latencies of a run directory of the test beside the bounds; repeatable, such as a "
            "measured and a simulated one.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Bound worst-case delays and backlogs by network calculus.

    Exit code 1 says that a bound exceeds a limit, or a run of --against its bound, 2 that the network is wrong or
    overloaded, 4 that it has no bound.
    """
    from wiregauge import bounds as calculus
    from wiregauge.bounds import against as held
    from wiregauge.config import TestError

    try:
        source = calculus.read(file, run)
        if write is not None:
            calculus.convert(source, write)
        answer = calculus.bound(
            source,
            method.value,
            multiplexing=multiplexing.value if multiplexing else None,
            grouping=None if grouping is None else grouping is Switch.ON,
            arithmetic=arithmetic.value,
        )
    except TestError as error:
        print(error, file=sys.stderr)
        raise typer.Exit(BAD_INPUT) from error
    except OSError as error:
        fail(f"--write {write}: {error.strerror}", NO_ENVIRONMENT)
    except calculus.NoAnswerError as error:
        say(str(error))
        raise typer.Exit(INCOMPLETE) from error
    laid = []
    try:
        laid = [held.lay(answer, source, place, run) for place in against or []]
    except held.NotComparableError as error:
        fail(str(error), BAD_INPUT)
    if as_json:
        more = {"against": held.laid_json(laid)} if against else {}
        print(json.dumps({**answer.as_json, **more}, indent=1))
    else:
        calculus.show_text(answer, Console())
        if laid:
            print()
            held.show_laid(laid, Console())
    exceeded = any(one.exceeded for one in laid)
    if code := exit_code(answered=answer.bounded, failed=exceeded or not answer.kept):
        raise typer.Exit(code)

"""`bounds`: worst-case delays and backlogs by network calculus."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wiregauge.cli.bound_search import Searched, check_out, searched
from wiregauge.cli.shared import AsJson
from wiregauge.terminal import (
    BAD_INPUT,
    INCOMPLETE,
    NO_ENVIRONMENT,
    exit_code,
    fail,
    make_console,
    put,
    put_lines,
    say,
)

if TYPE_CHECKING:
    from wiregauge.bounds import Answer, Source
    from wiregauge.bounds.advising import Advice
    from wiregauge.bounds.against import Laid


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
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT",
            help="Write the bounds as the results file of WoPANets as well (XML: delays of flows, loads of links).",
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
    search: Annotated[
        bool,
        typer.Option(
            "--search",
            help="Drive the simulator towards the bounds: choose when senders begin so that messages take as long as "
            "possible. Tests only.",
        ),
    ] = False,
    advise: Annotated[
        bool,
        typer.Option(
            "--advise",
            help="Say which port breaks a limit or a deadline, and which single change would mend it, each proved by "
            "the bound with that change.",
        ),
    ] = False,
    seconds: Annotated[
        str | None,
        typer.Option(
            "--time", metavar="TIME", help="With --search or --advise: how long at most.", show_default="30s"
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="With --search: its seed.", show_default="1")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="With --search: folder to make, with a test for the worst case of each flow, to be run by anybody.",
            show_default="nothing is written",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Bound worst-case delays and backlogs by network calculus.

    Exit code 1 says that a bound exceeds a limit, or a run of --against or --search its bound, 2 that the network is
    wrong or overloaded, 4 that it has no bound, or that a run of --against is INVALID.
    """
    _refuse_without_effect(search=search, advise=advise, seconds=seconds, seed=seed, out=out)
    limit_s = _limit_s(seconds)
    if out is not None:
        check_out(out)
    question = {
        "multiplexing": multiplexing.value if multiplexing else None,
        "grouping": None if grouping is None else grouping is Switch.ON,
        "arithmetic": arithmetic.value,
    }
    with _refusals():
        source, answer = _bounded(file, run, method.value, question, advise=advise)
        _write(source, answer, write, results)
        laid = _laid(source, answer, against or [], run)
        worst, advice = None, None
        if search:
            chosen = 1 if seed is None else seed
            worst = searched(file, source, answer, laid, seconds=limit_s, seed=chosen, out=out)
        if advise:
            advice = _advice(file, source, answer, limit_s, run)
    if as_json:
        print(json.dumps({**answer.as_json, **_json_of(laid, worst, advice)}, indent=1))
    else:
        _show(answer, laid, worst, advice)
    exceeded = any(one.exceeded for one in laid) or (worst is not None and worst.exceeded)
    fit = not any(one.invalid for one in laid)
    if code := exit_code(answered=answer.bounded and fit, failed=exceeded or not answer.kept):
        raise typer.Exit(code)


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """What keeps a network from an answer, as exit codes."""
    from wiregauge.bounds import NoAnswerError
    from wiregauge.bounds.against import NotComparableError
    from wiregauge.config import TestError

    try:
        yield
    except TestError as error:
        put_lines(str(error).split("\n"), error=True)
        raise typer.Exit(BAD_INPUT) from error
    except NoAnswerError as error:
        say(str(error))
        raise typer.Exit(INCOMPLETE) from error
    except NotComparableError as error:
        fail(str(error), BAD_INPUT)


def _bounded(
    file: Path, run: int, method: str, question: dict[str, Any], *, advise: bool
) -> tuple[Source, Answer]:
    from wiregauge import bounds as calculus

    source = calculus.read(file, run)
    if advise:
        source = calculus.with_deadlines(source, file)
    return source, calculus.bound(source, method, **question)


def _write(source: Source, answer: Answer, write: Path | None, results: Path | None) -> None:
    from wiregauge import bounds as calculus

    for option, place in (("--write", write), ("--results", results)):
        if place is None:
            continue
        try:
            if option == "--write":
                calculus.convert(source, place)
            else:
                calculus.write_results(answer, source, place)
        except OSError as error:
            fail(f"{option} {place}: {error.strerror}", NO_ENVIRONMENT)


def _laid(source: Source, answer: Answer, places: list[Path], run: int) -> list[Laid]:
    from wiregauge.bounds.against import lay

    return [lay(answer, source, place, run) for place in places]


def _advice(file: Path, source: Source, answer: Answer, limit_s: float, run: int) -> Advice:
    from wiregauge.bounds.advising import advise
    from wiregauge.cli.progress import Countdown

    with Countdown(make_console(stderr=True), "advice", limit_s) as countdown:
        return advise(file, source, answer, seconds=limit_s, run=run, tell=countdown.at)


def _json_of(laid: list[Laid], worst: Searched | None, advice: Advice | None) -> dict[str, Any]:
    from wiregauge.bounds.advising import advice_json
    from wiregauge.bounds.against import laid_json

    return {
        **({"against": laid_json(laid)} if laid else {}),
        **({"search": worst.as_json()} if worst is not None else {}),
        **({"advice": advice_json(advice)} if advice is not None else {}),
    }


def _show(answer: Answer, laid: list[Laid], worst: Searched | None, advice: Advice | None) -> None:
    from wiregauge.bounds import against as held
    from wiregauge.bounds import show_text
    from wiregauge.bounds.advising import show_advice

    console = make_console()
    show_text(answer, console)
    if laid:
        put()
        held.show_laid(laid, console)
    if worst is not None:
        put()
        worst.show(console)
    if advice is not None:
        put()
        show_advice(advice, console)


def _refuse_without_effect(
    *, search: bool, advise: bool, seconds: str | None, seed: int | None, out: Path | None
) -> None:
    """Refuses options that would do nothing."""
    if seconds is not None and not search and not advise:
        fail("--time has an effect with --search or --advise only; add one, or leave --time out", BAD_INPUT)
    for option, given in (("--seed", seed), ("--out", out)):
        if given is not None and not search:
            fail(f"{option} has an effect with --search only; add it, or leave {option} out", BAD_INPUT)


def _limit_s(text: str | None) -> float:
    from wiregauge.plan.quantity import QuantityError, time_ps

    try:
        found = time_ps(text if text is not None else "30s") / 1e12
    except QuantityError as error:
        fail(f"--time {error}", BAD_INPUT)
    if not found:
        fail("--time 0: there is no time to look; write 30s", BAD_INPUT)
    return found

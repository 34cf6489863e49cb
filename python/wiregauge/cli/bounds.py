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
from wiregauge.cli.options import meant
from wiregauge.cli.shared import A_PAGE, AsJson, leave_with_page
from wiregauge.files import unwritten
from wiregauge.terminal import (
    BAD_INPUT,
    INCOMPLETE,
    NO_ENVIRONMENT,
    exit_code,
    fail,
    make_console,
    put,
    put_errors,
    say,
)

if TYPE_CHECKING:
    from wiregauge.bounds import Bounded
    from wiregauge.bounds.advising import Advice
    from wiregauge.bounds.against import Laid
    from wiregauge.bounds.sensitivity import Sensitivity


class Method(StrEnum):
    """How bounds are found."""

    TFA = "tfa"
    SFA = "sfa"
    PMOO = "pmoo"
    PLP = "plp"
    BEST = "best"


class Multiplexing(StrEnum):
    """Order in which servers serve packets."""

    FIFO = "fifo"
    ARBITRARY = "arbitrary"


class Switch(StrEnum):
    """On or off."""

    ON = "on"
    OFF = "off"


class Phases(StrEnum):
    """What is known of when senders send."""

    KNOWN = "known"
    ANY = "any"


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
            "plp = linear programme for FIFO, best = the least of all for each flow."
        ),
    ] = Method.TFA,
    multiplexing: Annotated[
        Multiplexing | None,
        typer.Option(
            help="Order in which servers serve packets.", show_default="what the file says, or fifo"
        ),
    ] = None,
    grouping: Annotated[
        Switch | None,
        typer.Option(
            help="Whether flows that share a link are bounded together, by the capacity of the link.",
            show_default="what the file says, or off",
        ),
    ] = None,
    arithmetic: Annotated[
        Arithmetic, typer.Option(help="Fractions, or doubles rounded outward, which are faster.")
    ] = Arithmetic.EXACT,
    phases: Annotated[
        Phases | None,
        typer.Option(
            help="Whether periodic messages that meet gates are sent at their offsets, or at any time.",
            show_default="known, and any with --search",
        ),
    ] = None,
    run: Annotated[
        int | None,
        typer.Option(metavar="N", help=meant("--run"), show_default="every run", min=0),
    ] = None,
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
    certificate: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT",
            help="Write a proof of the bounds as well (JSON): premises and every step in fractions, which `verify OUT` "
            "checks without the code of the analyses.",
            show_default=False,
        ),
    ] = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="Show the longest latencies of a run directory of the test beside the bounds; repeatable, for a "
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
            help="Name the port that breaks a limit or a deadline, and single changes that mend it, each proved by the "
            "bound with that change.",
        ),
    ] = False,
    sensitive: Annotated[
        bool,
        typer.Option(
            "--sensitivity",
            help=meant(
                "--sensitivity",
                " (rates, frames, links, delays) as far as every limit and deadline holds, or until it does",
            ),
        ),
    ] = False,
    seconds: Annotated[
        str | None,
        typer.Option(
            "--time-limit",
            metavar="TIME",
            help=meant("--time-limit", only="With --search or --advise or --sensitivity"),
            show_default="30s",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help=meant("--seed", only="With --search"), show_default="1"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help=meant(
                "--out",
                f": {A_PAGE}; with --search a new folder with that page and a test that reproduces the worst case of "
                "each flow",
            ),
            show_default="nothing is written",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Exit code 1 says that a bound exceeds a limit, or a run of --against or --search its bound, 2 that the network is
    wrong or overloaded, 4 that it has no bound, or that a run of --against is INVALID.
    """
    _refuse_without_effect(search=search, timed=search or advise or sensitive, seconds=seconds, seed=seed)
    if search and phases is Phases.KNOWN:
        fail(
            "--search moves the offsets of senders, so --phases known has no meaning; leave it out", BAD_INPUT
        )
    limit_s = _limit_s(seconds)
    page = None if out is None else _page_at(out, search=search)
    question = {
        "multiplexing": multiplexing.value if multiplexing else None,
        "grouping": None if grouping is None else grouping is Switch.ON,
        "arithmetic": arithmetic.value,
        "phases": (phases or (Phases.ANY if search else Phases.KNOWN)).value,
    }
    with _refusals():
        found = _bounded(file, run, method.value, question, deadlines=advise or sensitive)
        _write(file, found, write, results)
        if certificate is not None:
            _certify(file, found, certificate)
        laid = _laid(found, against or [], run)
        shown = _worst_run(found)
        worst = None
        if search:
            chosen = 1 if seed is None else seed
            worst = searched(file, shown.source, shown.answer, laid, seconds=limit_s, seed=chosen, out=out)
        advice = _advice(file, found, limit_s) if advise else {}
        room = _room(shown, limit_s) if sensitive else None
    if as_json:
        print(json.dumps(_json(found, laid, worst, advice, room), indent=1))
    else:
        _show(found, laid, worst, advice, room, only=run)
    exceeded = any(one.exceeded for one in laid) or (worst is not None and worst.exceeded)
    fit = not any(one.invalid for one in laid)
    bounded, kept = (all(getattr(one.answer, what) for one in found) for what in ("bounded", "kept"))
    code = exit_code(answered=bounded and fit, failed=exceeded or not kept)

    def write_page(place: Path) -> Path:
        from wiregauge.report import BoundsShown, write_bounds

        simulated = {} if worst is None else worst.simulated
        return write_bounds(BoundsShown(found, laid, simulated, advice, room), place)

    leave_with_page(code, page, write_page, as_json=as_json)


def _page_at(out: Path, *, search: bool) -> Path:
    """The place of the page; a place that cannot take it is refused before any work."""
    from wiregauge.report import check_page

    if search:
        check_out(out)
        return out / "bounds.html"
    check_page(out)
    return out


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """What keeps a network from an answer, as exit codes."""
    from wiregauge.bounds import NoAnswerError
    from wiregauge.bounds.against import NotComparableError
    from wiregauge.config import TestError

    try:
        yield
    except TestError as error:
        put_errors(error)
        raise typer.Exit(BAD_INPUT) from error
    except NoAnswerError as error:
        say(str(error))
        raise typer.Exit(INCOMPLETE) from error
    except NotComparableError as error:
        fail(str(error), BAD_INPUT)


def _bounded(
    file: Path, run: int | None, method: str, question: dict[str, Any], *, deadlines: bool
) -> list[Bounded]:
    from wiregauge import bounds as calculus

    sources = calculus.read_every(file) if run is None else [calculus.read(file, run)]
    if deadlines:
        sources = [calculus.with_deadlines(source, file) for source in sources]
    return calculus.bound_every(sources, method, **question)


def _worst_run(found: list[Bounded]) -> Bounded:
    from wiregauge.bounds import worst_run

    return worst_run(found)


def _one_network(file: Path, found: list[Bounded], option: str) -> Bounded:
    """That of a test without several; what is about one network is not done with any of them."""
    if len(found) > 1:
        runs = ", ".join(str(one.source.runs[0]) for one in found)
        fail(
            f"{file}: {option} is about one network, and the runs of the test have {len(found)}; choose one with "
            f"--run ({runs})",
            BAD_INPUT,
        )
    return found[0]


def _write(file: Path, found: list[Bounded], write: Path | None, results: Path | None) -> None:
    from wiregauge import bounds as calculus

    for option, place in (("--write", write), ("--results", results)):
        if place is None:
            continue
        one = _one_network(file, found, option)
        try:
            if option == "--write":
                calculus.convert(one.source, place)
            else:
                calculus.write_results(one.answer, one.source, place)
        except OSError as error:
            fail(f"{option} {unwritten(place, error)}", NO_ENVIRONMENT)


def _certify(file: Path, found: list[Bounded], place: Path) -> None:
    from wiregauge.bounds.certifying import write_certificate

    one = _one_network(file, found, "--certificate")
    try:
        write_certificate(one.answer, one.source, file.read_bytes(), place)
    except OSError as error:
        fail(f"--certificate {unwritten(place, error)}", NO_ENVIRONMENT)


def _laid(found: list[Bounded], places: list[Path], run: int | None) -> list[Laid]:
    from wiregauge.bounds.against import lay_every

    return [laid for place in places for laid in lay_every(found, place, run)]


def _advice(file: Path, found: list[Bounded], limit_s: float) -> dict[int, Advice]:
    """Of each network its limits of which are not kept, or of the one there is, by its first run; each equally long."""
    from wiregauge.bounds.advising import advise
    from wiregauge.cli.progress import Countdown

    asked = [one for one in found if not one.answer.kept] or found[:1]
    advice = {}
    with Countdown(make_console(stderr=True), "advice", limit_s) as countdown:
        for place, one in enumerate(asked):

            def tell(part: float, place: int = place) -> None:
                countdown.at((place + part) / len(asked))

            run = one.source.runs[0] if one.source.runs else 0
            share = limit_s / len(asked)
            advice[run] = advise(file, one.source, one.answer, seconds=share, run=run, tell=tell)
    return advice


def _room(shown: Bounded, limit_s: float) -> Sensitivity:
    from wiregauge.bounds.sensitivity import sensitivity
    from wiregauge.cli.progress import Countdown

    with Countdown(make_console(stderr=True), "sensitivity", limit_s) as countdown:
        return sensitivity(shown.source, shown.answer, seconds=limit_s, tell=countdown.at)


def _json(
    found: list[Bounded],
    laid: list[Laid],
    worst: Searched | None,
    advice: dict[int, Advice],
    room: Sensitivity | None,
) -> dict[str, Any]:
    """The network that comes furthest from its limits, as if there were no other, and `runs`: every one."""
    from wiregauge.bounds import runs_json
    from wiregauge.bounds.advising import advice_json
    from wiregauge.bounds.against import laid_json
    from wiregauge.bounds.sensitivity import sensitivity_json

    shown = _worst_run(found)
    runs = runs_json(found)
    for one in runs:
        if (own := advice.get(one["runs"][0])) is not None:
            one["advice"] = advice_json(own)
    own = advice.get(shown.source.runs[0] if shown.source.runs else 0)
    return {
        **shown.answer.as_json,
        **({"run": shown.source.runs[0], "runs": runs} if runs else {}),
        **({"against": laid_json(laid)} if laid else {}),
        **({"search": worst.as_json()} if worst is not None else {}),
        **({"advice": advice_json(own)} if own is not None else {}),
        **({"sensitivity": sensitivity_json(room)} if room is not None else {}),
    }


def _show(
    found: list[Bounded],
    laid: list[Laid],
    worst: Searched | None,
    advice: dict[int, Advice],
    room: Sensitivity | None,
    *,
    only: int | None,
) -> None:
    from wiregauge.bounds import against as held
    from wiregauge.bounds import show_runs, show_text
    from wiregauge.bounds.advising import show_advice
    from wiregauge.bounds.sensitivity import show_sensitivity

    console = make_console()
    shown = _worst_run(found)
    if len(found) > 1:
        show_runs(found, console)
        put()
        put(f"{shown.name}, which comes furthest (--run N for another):")
    elif only is not None:
        put(f"{shown.name} alone:")
    show_text(shown.answer, console)
    if laid:
        put()
        held.show_laid(laid, console)
    if worst is not None:
        put()
        worst.show(console)
    for one in found:
        own = advice.get(one.source.runs[0] if one.source.runs else 0)
        if own is not None:
            put()
            if len(found) > 1:
                put(f"Advice for {one.name}:")
            show_advice(own, console)
    if room is not None:
        put()
        show_sensitivity(room, console)


def _refuse_without_effect(*, search: bool, timed: bool, seconds: str | None, seed: int | None) -> None:
    """Refuses options that would do nothing."""
    if seconds is not None and not timed:
        fail(
            "--time-limit has an effect with --search, --advise or --sensitivity only; add one, or leave --time-limit "
            "out",
            BAD_INPUT,
        )
    if seed is not None and not search:
        fail("--seed has an effect with --search only; add it, or leave --seed out", BAD_INPUT)


def _limit_s(text: str | None) -> float:
    from wiregauge.plan.quantity import QuantityError, time_ps

    try:
        found = time_ps(text if text is not None else "30s") / 1e12
    except QuantityError as error:
        fail(f"--time-limit {error}", BAD_INPUT)
    if not found:
        fail("--time-limit 0: there is no time to look; write 30s", BAD_INPUT)
    return found

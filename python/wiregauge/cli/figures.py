"""`figure`: one figure of run directories as a file, in the size and style that it is printed in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wiregauge.cli.options import meant
from wiregauge.cli.shared import open_run, points_at
from wiregauge.terminal import BAD_INPUT, NO_ENVIRONMENT, fail, make_console, put, say

if TYPE_CHECKING:
    from wiregauge.results.shapes import Side

__all__ = ["figure", "judged_sides", "part_of_time"]

Runs = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[DIR...]", help="Run directories; several are drawn in one figure.", show_default=False
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="TEXT",
        help="Name of a run directory in the figure, in their order; repeatable.",
        show_default="its folder",
    ),
]


def figure(
    places: Runs = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--figure",
            metavar="NAME",
            help="cdf, percentiles, density, histogram, box or time, of a measure; hops, split, queues, …: without a "
            "run directory all are listed.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help=meant("--out", ": a file that ends in .pdf, .svg or .png"),
            show_default=False,
        ),
    ] = None,
    style: Annotated[
        str,
        typer.Option(metavar="STYLE", help="Where it is printed; without a run directory all are listed."),
    ] = "ieee-column",
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=meant("--measure", ", for example ipdv"),
            show_default="rtt of relayed flows, latency of others",
        ),
    ] = None,
    flows: Annotated[
        list[str] | None,
        typer.Option(
            "--flow",
            metavar="ID",
            help=meant("--flow", '; of a multicast flow "ID to RECEIVER"; repeatable'),
            show_default=False,
        ),
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option(
            "--at", metavar="AXIS=VALUE", help="Only this point of the sweep; repeatable.", show_default=False
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="BEGIN..END",
            help="Only messages sent then, from the epoch of a run: 200ms..1.5s, or one end alone.",
            show_default=False,
        ),
    ] = None,
    labels: Labels = None,
) -> None:
    from wiregauge.figures import printed
    from wiregauge.figures.registry import NoFigureError, draw, of_measure
    from wiregauge.figures.styles import STYLES
    from wiregauge.files import ForeignFileError, nearest, unwritten
    from wiregauge.results.shapes import Selection

    if not places:
        _list()
        return
    if name is None:
        fail("--figure is missing; `wiregauge figure` lists what there is", BAD_INPUT)
    if out is None:
        fail("--out is missing: name a file that ends in .pdf, .svg or .png", BAD_INPUT)
    if style not in STYLES:
        fail(f'--style "{style}" is none{nearest(style, STYLES)}; there are {", ".join(STYLES)}', BAD_INPUT)
    if out.suffix.removeprefix(".") not in printed.FORMATS:
        fail(f"{out}: the ending of --out says the format; write .pdf, .svg or .png", BAD_INPUT)
    if not out.parent.is_dir():
        fail(f"{out}: there is no folder {out.parent}; make it, or name another", BAD_INPUT)
    begin, end = part_of_time(time)
    part = Selection(tuple(flows or ()), points_at("--at", at), begin, end)
    try:
        of_measure(name, measure)
        drawn = draw(name, judged_sides(places, labels), measure, part)
        printed.write(drawn, out, STYLES[style])
    except (NoFigureError, printed.TooHighError) as error:
        fail(str(error), BAD_INPUT)
    except ForeignFileError as error:
        fail(f"{out}: {error.strerror}", BAD_INPUT)
    except OSError as error:
        fail(unwritten(out, error), NO_ENVIRONMENT)
    width, height = printed.size_mm(drawn, STYLES[style])
    put(f"figure: {out} ({width:.1f} mm x {height:.1f} mm)")
    put(f"caption: {printed.caption(drawn)}")


def _list() -> None:
    """Prints every figure and style, a line each."""
    from wiregauge.figures.registry import FIGURES
    from wiregauge.figures.styles import STYLES

    of = {
        "Figures of a measure (--measure)": [
            (one.name, one.shows) for one in FIGURES.values() if one.of_measure
        ],
        "Figures of a run": [(one.name, one.shows) for one in FIGURES.values() if not one.of_measure],
        "Styles": [(one.name, one.where) for one in STYLES.values()],
    }
    for title, lines in of.items():
        put(title)
        for name, text in lines:
            put(f"  {name:18} {text}", indent=21)


def judged_sides(places: Sequence[Path], labels: Sequence[str] | None) -> list[Side]:
    """The judgements of run directories, each with its name where there are several."""
    from wiregauge import results
    from wiregauge.cli.progress import Work
    from wiregauge.cli.whole import AFTER_RUNS, Whole
    from wiregauge.results.shapes import Side

    if labels and len(labels) != len(places):
        fail(
            f"--label is given {len(labels)} times for {len(places)} run directories; give one for each, or none",
            BAD_INPUT,
        )
    names = list(labels or [place.resolve().name for place in places])
    if len(set(names)) < len(names):
        if labels:
            fail("two run directories have one --label; give each its own", BAD_INPUT)
        names = [str(place) for place in places]
    if len(set(names)) < len(names):
        fail("a run directory is named twice; name each once", BAD_INPUT)
    for place in places:
        open_run(place)
    whole = Whole({"judging": AFTER_RUNS["judging"]}, rounds=len(places))
    sides = []
    for place, name in zip(places, names, strict=True):
        with Work(make_console(stderr=True), whole, last=place == places[-1]):
            judgement = results.judge(place, unkept=say)
        sides.append(Side(judgement, name if len(places) > 1 or labels else ""))
    return sides


def part_of_time(text: str | None) -> tuple[float | None, float | None]:
    """BEGIN..END of --time, s; None for an end that is open."""
    from wiregauge.plan import quantity

    if text is None:
        return None, None
    begin, dots, end = text.partition("..")
    if not dots or not (begin or end):
        fail(f'--time "{text}": write BEGIN..END, as in 200ms..1.5s', BAD_INPUT)
    try:
        first, last = (quantity.time_ps(one) / 1e12 if one else None for one in (begin, end))
    except quantity.QuantityError as error:
        fail(f"--time {error}", BAD_INPUT)
    return first, last

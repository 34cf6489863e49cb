"""`study`: a whole experiment of a published paper, its tables and figures laid beside ours."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct
from rich.console import Console

from wiregauge.cli.options import meant
from wiregauge.cli.shared import AsJson, bench_name
from wiregauge.terminal import (
    BAD_INPUT,
    INCOMPLETE,
    NO_ENVIRONMENT,
    fail,
    make_console,
    print_table,
    put,
    say,
)

if TYPE_CHECKING:
    from wiregauge.config import Loaded
    from wiregauge.runner import Bench
    from wiregauge.studies import Beside, Carried, ItemResult, ListedShown, Pace, Size, Study

__all__ = ["study"]


def study(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="A study, or a folder with one; without a name, list them.",
            show_default=False,
        ),
    ] = None,
    bench: Annotated[
        str | None,
        typer.Option(
            parser=bench_name,
            metavar="[sim|netns]",
            help=meant("--bench", "; sim models the paper's hosts"),
            show_default="sim",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help=meant("--quick"))] = False,
    full: Annotated[bool, typer.Option("--full", help="As long as the paper's own.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help=meant("--out", ": a new study directory"),
            show_default="NAME-study",
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            metavar="DIR",
            help=meant("--resume", "; what is complete is judged again"),
            show_default=False,
        ),
    ] = None,
    beside: Annotated[
        Path | None,
        typer.Option(
            "--beside",
            metavar="DIR",
            help=meant(
                "--beside",
                " of the same study, from another machine or bench, whose figures are shown as well",
            ),
            show_default=False,
        ),
    ] = None,
    sensitivity: Annotated[
        bool,
        typer.Option(
            "--sensitivity",
            help=meant(
                "--sensitivity",
                ", of those of the model that the paper does not state, and show by how much each result moves (sim). "
                "What each move changes is run again: at most as long as the study, times the moves that "
                "`--sensitivity` names as it goes",
            ),
        ),
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            min=1,
            help=meant("--jobs", only="sim"),
            show_default="one per processor",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Exit code 0: every expectation of the study is met; 1: one is not; 4: it is incomplete or undecided."""
    from wiregauge.studies import StudyDirectory, StudyError, open_study

    size = _size(quick=quick, full=full)
    if name is None:
        for option, given in (
            *(("--bench", bench), ("--out", out), ("--resume", resume), ("--beside", beside)),
            ("--jobs", jobs),
        ):
            if given is not None:
                fail(f"{option} has no effect without the name of a study; name one", BAD_INPUT)
        if size is not None or sensitivity:
            fail(
                "--quick, --full and --sensitivity have no effect without the name of a study; name one",
                BAD_INPUT,
            )
        _show_list(as_json=as_json)
        return
    if out is not None and resume is not None:
        fail("--resume goes on in its own directory; leave --out out", BAD_INPUT)
    with _described():
        try:
            chosen = open_study(name)
            directory = StudyDirectory(resume or out or Path(f"{chosen.name}-study"))
            if resume is not None:
                carried = directory.resume(chosen, size, bench)
                opened = _opened(carried.bench, jobs)
            else:
                opened = _opened(bench or "sim", jobs)
                directory.check_free(directory.place)
                carried = None
            other = StudyDirectory(beside).beside(chosen) if beside is not None else None
            from wiregauge.runner import SimulatorBench

            if sensitivity and not isinstance(opened, SimulatorBench):
                fail(
                    "--sensitivity moves a model, and only bench sim has one; leave one of the two out",
                    BAD_INPUT,
                )
            code = _carry_out(
                chosen,
                opened,
                directory,
                carried,
                size or "usual",
                beside=other,
                as_json=as_json,
                sensitivity=sensitivity,
            )
        except StudyError as error:
            fail(str(error), BAD_INPUT)
    raise typer.Exit(code)


def _size(*, quick: bool, full: bool) -> Size | None:
    if quick and full:
        fail("give --quick or --full, not both", BAD_INPUT)
    return "quick" if quick else "full" if full else None


def _benches() -> list[str]:
    """Those that need no inventory."""
    from wiregauge.runner import BENCHES, options_of

    return [name for name in BENCHES if "lab" not in options_of(name)]


def _opened(name: str, jobs: int | None) -> Bench:
    from wiregauge.runner import OptionError, bench_named

    if name not in _benches():
        cure = f"run one of its tests with `wiregauge run --bench {name}`"
        fail(f"a study runs on bench {' or '.join(_benches())}; {cure}", BAD_INPUT)
    try:
        return bench_named(name, jobs=jobs)
    except OptionError as error:
        fail(f"--jobs {error}", BAD_INPUT)


@contextlib.contextmanager
def _described() -> Iterator[None]:
    """Ends the command with what a bench cannot do."""
    from wiregauge.runner import BenchError, BeyondBenchError

    try:
        yield
    except BeyondBenchError as error:
        for line in error.reasons:
            say(line)
        fail("this study cannot run on this bench, for what is named above", NO_ENVIRONMENT)
    except BenchError as error:
        fail(str(error), NO_ENVIRONMENT)


def _carry_out(
    chosen: Study,
    bench: Bench,
    directory: Any,
    carried: Carried | None,
    size: Size,
    *,
    beside: Beside | None,
    as_json: bool,
    sensitivity: bool,
) -> int:
    """Carries a study out and shows it; the exit code."""
    from wiregauge import studies
    from wiregauge.cli.progress import ProgressView
    from wiregauge.records import RunDirectoryError
    from wiregauge.runner.stopping import exit_on_second_signal

    size = carried.size if carried is not None else size
    loaded = studies.load_parts(chosen, size, bench.name)
    for one in loaded.values():
        bench.adapt(one.campaign)
    bench.enter()
    if carried is None:
        carried = directory.begin(chosen, size, bench.name)
    carried.beside = beside
    directory.save(studies.study_json(carried, ()))
    console = make_console(stderr=True)
    going = _View(console)
    troubles: list[str] = []
    with exit_on_second_signal(INCOMPLETE):
        studies.carry_out(
            carried, loaded, bench, observer=ProgressView(console), going=going, told=troubles.append
        )
        items = studies.lay(chosen, carried.results)
        directory.save(studies.study_json(carried, items))
        if sensitivity and carried.state == "complete":
            _move(carried, items, loaded, bench, console, troubles)
        modelled = carried.results.modelled
        moved = (
            studies.find_sensitivity(chosen, carried.size, directory.place, chosen.folder)
            if modelled
            else None
        )
        shown = studies.study_json(carried, items, moved)
        directory.save(shown)
        own = chosen.figures(carried.results) if chosen.figures is not None else {}
        try:
            page = studies.write_page(carried, items, own, moved)
        except RunDirectoryError as error:
            troubles.append(f"the report is missing: {error}")
            page = None
    if as_json:
        print(json.dumps(shown, indent=1))
    else:
        studies.study_text(carried, items, make_console(), moved)
        if page is not None:
            put(f"report: {page}")
    if carried.reason:
        again = f"`wiregauge study {chosen.name} --resume {directory.place}` goes on"
        say(f"{carried.state}: {carried.reason}; {again}")
    for trouble in troubles:
        say(trouble)
    return studies.code_of(carried, items) if page is not None else INCOMPLETE


def _move(
    carried: Carried,
    items: tuple[ItemResult, ...],
    loaded: Mapping[str, Loaded],
    bench: Bench,
    console: Console,
    troubles: list[str],
) -> None:
    """Moves each parameter; a stop keeps those that were moved."""
    from wiregauge import studies
    from wiregauge.cli.progress import ProgressView
    from wiregauge.runner import DiskError, NothingRunError
    from wiregauge.runner.stopping import Interrupted

    def going(number: int, of: int, name: str) -> None:
        console.print(f"move {number}/{of}  {name}", highlight=False, markup=False, soft_wrap=True)

    try:
        studies.measure(
            carried, items, loaded, bench, observer=ProgressView(console), going=going, told=troubles.append
        )
    except (Interrupted, NothingRunError, DiskError) as stop:
        carried.state, carried.reason = "interrupted", f"while parameters were moved: {stop}"


class _View(Struct):
    """Says which part begins, and how long the rest takes."""

    console: Console
    _pace: Pace | None = None
    _names: tuple[str, ...] = ()

    def parts_known(self, planned_s: Mapping[str, float]) -> None:
        """Which parts there are."""
        from wiregauge.studies import Pace

        self._pace, self._names = Pace(planned_s), tuple(planned_s)

    def part_began(self, name: str) -> None:
        """One begins."""
        left = self._pace.left_s if self._pace is not None else None
        rest = f", about {int(left // 60)}:{int(left % 60):02d} left" if left is not None else ""
        place = self._names.index(name) + 1
        self.console.print(
            f"part {place}/{len(self._names)}  {name}{rest}", highlight=False, markup=False, soft_wrap=True
        )

    def part_ended(self, name: str) -> None:
        """One has ended."""
        if self._pace is not None:
            self._pace.ended(name)


def _show_list(*, as_json: bool) -> None:
    from wiregauge.studies import names, open_study

    listed = [_listed(open_study(name)) for name in names()]
    if as_json:
        print(json.dumps({"schema": 1, "studies": listed}, indent=1))
        return
    rows = [
        [
            one["name"],
            one["question"],
            "; ".join(
                f"{size['size']} {size['runs']} runs, {size['planned_seconds']:.0f} s"
                for size in one["sizes"]
            ),
        ]
        for one in listed
    ]
    console = make_console()
    print_table(["study", "question", "runs and seconds of traffic (sim)"], rows, console)
    for one in listed:
        console.print(f"{one['name']}: {one['paper']}", highlight=False, markup=False, soft_wrap=True)


def _listed(one: Study) -> ListedShown:
    from wiregauge.studies import SIZES, load_parts

    sizes: list[Any] = []
    for size in SIZES:
        campaigns = [loaded.campaign for loaded in load_parts(one, size, "sim").values()]
        runs, planned = sum(len(c.runs) for c in campaigns), sum(c.planned_s for c in campaigns)
        sizes.append({"size": size, "runs": runs, "planned_seconds": round(planned, 3)})
    benches = [
        bench
        for bench in _benches()
        if any(not part.left_out(bench, size) for part in one.parts for size in SIZES)
    ]
    return {
        "name": one.name,
        "title": one.title,
        "paper": one.paper,
        "question": one.question,
        "benches": benches,
        "items": [item.number for item in one.items],
        "sizes": sizes,
    }

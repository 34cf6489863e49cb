"""What commands share: options, the test file, the run directory, the engine, and how a judgement is shown."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer

from wiregauge.cli.options import meant
from wiregauge.terminal import BAD_INPUT, INCOMPLETE, fail, make_console, put, put_errors, say

if TYPE_CHECKING:
    from wiregauge.cli.whole import Whole
    from wiregauge.measures import Judgement

A_PAGE: Final = "a page (HTML, one file)"
TestFile = Annotated[Path, typer.Argument(metavar="TEST", help="Test file (XML).", show_default=False)]
RunDir = Annotated[Path, typer.Argument(metavar="DIR", help="Run directory.", show_default=False)]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="local|ray|ray://HOST:PORT",
        help="Where the work is done: this process, a Ray of this machine (or the cluster that RAY_ADDRESS names), "
        "or a Ray cluster. The results are the same.",
    ),
]
StorageUrl = Annotated[
    str | None,
    typer.Option(
        "--storage",
        metavar="URL",
        help="ray: storage for nodes that share no file system: s3://bucket/prefix or another URL of fsspec.",
        show_default=False,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="ELEMENT.KEY.ATTRIBUTE=VALUE",
        help="Set an attribute of the test beside its file, for example send.10.period=1ms; repeatable.",
        show_default=False,
    ),
]
_TIMES_ITS_SIZE = 4
"""Room that tracking may take, in sizes of what was recorded."""
AsJson = Annotated[bool, typer.Option("--json", help=meant("--json"))]


def bench_name(text: str) -> str:
    """Refuses the name of a bench that there is not; which there are is looked up when it is needed."""
    from wiregauge.runner import BENCHES

    if text not in BENCHES:
        raise typer.BadParameter(f"'{text}' is not one of {', '.join(repr(name) for name in BENCHES)}.")
    return text


def who_plays(text: str) -> str:
    """Refuses somebody who plays no switches."""
    from typing import get_args

    from wiregauge.runner.benches.netns.order import Switches

    known = get_args(Switches)
    if text not in known:
        raise typer.BadParameter(f"'{text}' is not one of {', '.join(map(repr, known))}.")
    return text


def load_test(test: Path, settings: Sequence[str] = ()) -> Any:
    from wiregauge.config import TestError, load

    try:
        return load(test, settings)
    except TestError as error:
        put_errors(error)
        raise typer.Exit(BAD_INPUT) from error


def check_engine(engine: str, storage: str | None, bench: str | None = None) -> None:
    """Refuses an engine that is none, and what would have no effect."""
    from wiregauge.cluster import EngineNameError, OnCluster, read_engine
    from wiregauge.runner import BENCHES

    try:
        read_engine(engine)
    except EngineNameError as error:
        fail(f"--engine {error}", BAD_INPUT)
    if engine != "local" and bench is not None and not issubclass(OnCluster, BENCHES[bench]):
        fail(f"--engine has no effect with --bench {bench}; leave it out", BAD_INPUT)
    if engine == "local" and storage is not None:
        fail("--storage has an effect with --engine ray only; leave it out", BAD_INPUT)


def judge_and_show(
    place: Path, *, as_json: bool, with_report: bool, worst: int | None = None, flows: Collection[int] = ()
) -> int:
    """Judges a run directory and shows it, or these `flows` of it; returns the exit code."""
    from wiregauge.cli.progress import Work
    from wiregauge.cli.whole import AFTER_RUNS, Whole
    from wiregauge.measures import only
    from wiregauge.runner import judged

    # Said after the answer, which does not depend on it.
    troubles: list[str] = []
    stages = ["judging"]
    stages += ["explaining"] if worst is not None or with_report else []
    stages += ["drawing"] if with_report else []
    rounds = {"explaining": 2.0} if worst is not None and with_report else {}
    whole = Whole({name: AFTER_RUNS[name] * rounds.get(name, 1.0) for name in stages})
    with Work(make_console(stderr=True), whole, last=len(stages) == 1):
        judgement = judged(place, troubles.append, flows)
    if flows:
        judgement = only(judgement, flows)
    return show_judgement(
        judgement, troubles, as_json=as_json, with_report=with_report, worst=worst, whole=whole
    )


def show_judgement(
    judgement: Judgement,
    troubles: list[str],
    *,
    as_json: bool,
    with_report: bool,
    worst: int | None = None,
    whole: Whole | None = None,
) -> int:
    """Shows, and with `worst` also explains, with so many messages per flow; returns the exit code.

    `whole` is how much of the command is done by now; without it this is all of it.

    `troubles` is what did not go well since, for the user. `with_report` is for commands that make the directory: a
    judgement or report that cannot be kept is no answer then.
    """
    from wiregauge import results
    from wiregauge.cli import whole as stages
    from wiregauge.cli.progress import Work
    from wiregauge.measures import explaining
    from wiregauge.records import RunDirectoryError
    from wiregauge.results.explaining import explain_json, explain_text

    if whole is None:
        whole = stages.Whole({name: stages.AFTER_RUNS[name] for name in ("explaining", "drawing")})
    explanation = None
    if worst is not None:
        with Work(make_console(stderr=True), whole, last=not with_report):
            explanation = explaining.explain(judgement, worst=worst)
    if as_json:
        more = {} if explanation is None else {"explained": explain_json(explanation)}
        for chunk in results.show_chunks(judgement, {}, more):
            sys.stdout.write(chunk)
        put()
    else:
        # Who made the run sees how it went; who looks at it again sees all of it.
        (results.closing_text if with_report else results.show_text)(judgement, make_console())
        if explanation is not None:
            explain_text(explanation, make_console())
    if with_report:
        from wiregauge import report as reports

        try:
            with Work(make_console(stderr=True), whole, last=True):
                path = reports.write(judgement.directory, judgement)
        except RunDirectoryError as error:  # the disk may be full; what was measured is safe by now
            troubles.append(f"the report is missing: {error}")
        else:
            if not as_json:
                put(f"report: {path}")
    if judgement.state != "complete":
        say(f"incomplete: {judgement.reason}")
    for trouble in troubles:
        say(trouble)
    # What was to be made here is a whole directory; who only looks at one has been answered.
    return INCOMPLETE if troubles and with_report else judgement.exit_code


@contextlib.contextmanager
def readable(place: Path) -> Iterator[tuple[Any, Path]]:
    """A run directory to look at, and where it is: a copy for as long as it is looked at, where it was left unfinished
    on a disk that is full or cannot be written."""
    from wiregauge.records import DamagedError, RunDirectory, RunDirectoryError

    try:
        directory = open_run(place)
    except DamagedError:
        raise
    except RunDirectoryError as error:
        refused = error
    else:
        yield directory, place
        return
    try:
        size = (
            sum(path.stat().st_size for path in place.rglob("*") if path.is_file()) if place.is_dir() else 0
        )
    except OSError:  # nothing that has such a name can be looked at
        raise refused from None
    with tempfile.TemporaryDirectory(prefix="wiregauge-") as folder:
        copy = Path(folder) / (place.name or "run")
        if (
            not size
            or RunDirectory.open(place).is_being_written()
            or shutil.disk_usage(folder).free < _TIMES_ITS_SIZE * size
        ):
            raise refused
        shutil.copytree(place, copy, ignore=shutil.ignore_patterns(".lock", ".reserve"))
        say(
            f"{place}: it was left unfinished and cannot be finished there ({refused}); "
            "this is of a copy, which is not kept"
        )
        yield open_run(copy), copy


def open_run(place: Path) -> Any:
    """Opens a run directory; one whose testmaster was killed is made readable first."""
    from wiregauge.records import RunDirectory, recover

    directory = RunDirectory.open(place)
    if directory.is_being_written():
        fail(f"{place}: this campaign is still running; wait for it to end", INCOMPLETE)
    if recover(directory):
        why = directory.manifest.get("reason") or "tables were missing and were made again from the records"
        say(f"{place}: {why}")
    if not directory.inventory.verified:
        say(f"{place}: unverified: it keeps no hashes, so damage cannot be detected")
    if not directory.runs:
        fail(f"{place}: no run was started, so there is nothing to show", INCOMPLETE)
    return directory


def points_at(option: str, texts: list[str] | None) -> dict[str, str]:
    """AXIS=VALUE of an option that chooses points."""
    chosen: dict[str, str] = {}
    for text in texts or []:
        axis, equals, value = text.partition("=")
        if not (axis and equals and value):
            fail(f'{option} "{text}": write AXIS=VALUE, as in load=0%', BAD_INPUT)
        if axis in chosen:
            fail(f"{option}: {axis} is given twice; a side has one value of an axis", BAD_INPUT)
        chosen[axis] = value
    return chosen


def leave_with_page(code: int, out: Path | None, write: Callable[[Path], Path], *, as_json: bool) -> NoReturn:
    """Ends with an answer that was given, after its page is written; its place was good when the work began."""
    from wiregauge.records import RunDirectoryError

    try:
        page = write(out) if out is not None else None
    except RunDirectoryError as error:
        fail(str(error), INCOMPLETE)
    if page is not None and not as_json:
        put(f"page: {page}")
    raise typer.Exit(code)

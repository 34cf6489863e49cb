"""Judges a run directory: measures, validity, limits, in this order for every run, then the repeats of each point."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from itertools import chain
from pathlib import Path

from wiregauge.files import cure_for, whole
from wiregauge.measures.definitions.units import count_of
from wiregauge.measures.extremes import keep
from wiregauge.measures.judge_run import judge_run
from wiregauge.measures.large import are_many, large_run
from wiregauge.measures.metrics.recorded import Recorded, open_recorded
from wiregauge.measures.metrics.results import Check, Grade, Judgement
from wiregauge.measures.progress import reached
from wiregauge.measures.repeats import points_of
from wiregauge.measures.show import details, details_file, show_chunks
from wiregauge.measures.validity.evidence import few
from wiregauge.records import uncollected, write_sealed


def _warned(sentence: str) -> None:
    warnings.warn(sentence, stacklevel=4)


def judge(
    run_dir: Path,
    *,
    unkept: Callable[[str], object] = _warned,
    in_full: Collection[int] = (),
    held: bool = False,
) -> Judgement:
    """Judges everything in `run_dir` and writes `measures.json` there, and the extremes that pictures draw.

    Of a run with more flows than `large.MANY`, latency between every two points is judged of the flows `in_full` only,
    by number, or where a limit is on it.

    A directory that cannot be written (an archive, a full disk) is still judged, and what was there stays: `unkept` is
    told so in a sentence for the user; unless somebody listens it is a warning. `held`: the caller holds the directory.
    Raises RunDirectoryError, whose text is
    such a sentence, when the directory cannot be read.
    """
    directory = open_recorded(run_dir)
    with uncollected() if any(are_many(run.flows) for run in directory.plan.runs) else nullcontext():
        return _judge(keep(directory, unkept, held=held), unkept, in_full)


def _judge(directory: Recorded, unkept: Callable[[str], object], in_full: Collection[int]) -> Judgement:
    run_dir = directory.path
    made = [run for run in directory.plan.runs if run.index in directory.runs]
    judged = []
    for place, run in enumerate(made):
        reached("judging", place / len(made))
        judged.append(judge_run(directory, run, in_full))
    reached("judging", 1.0)
    runs = tuple(judged)
    state, reason = _state(directory.manifest)
    judgement = Judgement(
        directory=run_dir,
        manifest=directory.manifest,
        plan=directory.plan,
        state=state,
        reason=reason,
        checks=_campaign_checks(directory, state, reason, len(runs)),
        runs=runs,
        points=points_of(runs),
    )
    try:
        _write_details(run_dir, judgement)
        _write(run_dir / "measures.json", directory, judgement)
    except OSError as error:
        unkept(
            f"{run_dir / 'measures.json'}: the judgement is not kept ({error.strerror or error}); {cure_for(error)}, "
            f"then `wiregauge show {run_dir}` keeps it"
        )
    return judgement


def _write(path: Path, directory: Recorded, judgement: Judgement) -> None:
    """Replaces `path` whole or not at all; raises OSError where the disk refuses.

    It carries its own digest and that of the manifest it was made from, which holds those of all other files.
    """
    digest = directory.manifest.get("digest")
    sources = {"manifest.json": digest} if digest is not None else {}
    with whole(path) as beside:
        write_sealed(beside, chain(show_chunks(judgement, {"digest": "", "sources": sources}, {}), ["\n"]))


def _write_details(run_dir: Path, judgement: Judgement) -> None:
    """Of runs with very many flows all figures of each, in files of their own; raises OSError as `_write`.

    Compressed they are a fifth as long, at the least effort: the program is to be at its figures, not at this.
    """
    for run in filter(large_run, judgement.runs):
        path = run_dir / details_file(run.plan.index)
        path.parent.mkdir(exist_ok=True)
        with whole(path) as beside, gzip.open(beside, "wb", compresslevel=1) as file:
            file.writelines(details(judgement, run))


def _state(manifest: Mapping[str, object]) -> tuple[str, str | None]:
    state, reason = str(manifest.get("state")), manifest.get("reason")
    if state == "running":
        # Only the directory's lock tells a killed testmaster from a living one, and that is the opener's to see.
        return state, "its testmaster has not finished it"
    return state, str(reason) if reason else None


def _campaign_checks(directory: Recorded, state: str, reason: str | None, done: int) -> tuple[Check, ...]:
    planned = len(directory.plan.runs)
    ended = state == "complete"
    whole = Check(
        "campaign-complete",
        "Campaign ended as planned",
        "state complete",
        state,
        Grade.OK if ended else Grade.DEGRADED,
        "" if ended else f"the campaign is not complete ({state}): {reason or 'no reason was recorded'}",
    )
    missing = planned - done
    every = Check(
        "runs-done",
        "Every planned run was run",
        count_of(planned, "run"),
        count_of(done, "run"),
        Grade.INVALID if done == 0 else Grade.DEGRADED if missing else Grade.OK,
        f"{missing} of {planned} planned runs were not run" if missing else "",
    )
    return whole, every, _files_check(directory)


def _files_check(directory: Recorded) -> Check:
    """What was read is what was written, or nobody can tell: a directory may have no hashes.

    A file that is not what was written ends the command, so there is no worse grade.
    """
    verified, adopted = directory.inventory.verified, directory.inventory.adopted
    reason = "" if verified else "unverified: the directory keeps no hashes"
    if adopted:
        reason = f"records were put there by hand and are not those of the run: {few(adopted)}"
    return Check(
        "files",
        "Files are those that were written",
        "every file that is read has its hash in the manifest",
        f"{count_of(len(adopted), 'file')} put there by hand"
        if adopted
        else "verified"
        if verified
        else "unverified",
        Grade.DEGRADED if adopted else Grade.OK if verified else Grade.NOTE,
        reason,
    )

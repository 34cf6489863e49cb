"""Judges a run directory: measures, validity, limits, in this order for every run, then the repeats of each point."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from wiregauge.measures.definitions.units import count_of
from wiregauge.measures.judge_run import judge_run
from wiregauge.measures.metrics.judgement import Check, Grade, Judgement
from wiregauge.measures.metrics.recorded import Recorded
from wiregauge.measures.progress import reached
from wiregauge.measures.repeats import points_of
from wiregauge.measures.validity.evidence import few

__all__ = ["evaluate"]


def evaluate(directory: Recorded, in_full: Collection[int] = ()) -> Judgement:
    """The judgement of everything in a run directory.

    Of a run with more flows than `large.MANY`, latency between every two points is judged of the flows `in_full` only,
    by number, or where a limit is on it. Raises RunDirectoryError for a file that cannot be read.
    """
    made = [run for run in directory.plan.runs if run.index in directory.runs]
    judged = []
    for place, run in enumerate(made):
        reached("judging", place / len(made))
        judged.append(judge_run(directory, run, in_full))
    reached("judging", 1.0)
    runs = tuple(judged)
    state, reason = _state(directory.manifest)
    return Judgement(
        directory=directory.path,
        manifest=directory.manifest,
        plan=directory.plan,
        state=state,
        reason=reason,
        checks=_campaign_checks(directory, state, reason, len(runs)),
        runs=runs,
        points=points_of(runs),
    )


def _state(manifest: Mapping[str, object]) -> tuple[str, str | None]:
    state, reason = str(manifest.get("state")), manifest.get("reason")
    if state == "running":
        # Only the directory's lock distinguishes a killed testmaster from a running one; whoever opens it
        # checks that.
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
    """The check of file integrity: read files match their hashes, or the directory has none.

    A mismatch ends the command, so there is no worse grade.
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

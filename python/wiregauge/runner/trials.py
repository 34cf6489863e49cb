"""Trials on an open bench: each a test, a run directory and a judgement."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gc
import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from wiregauge._version import __version__
from wiregauge.plan import Campaign, plain
from wiregauge.records import RunDirectory, RunDirectoryError, resumed
from wiregauge.records.directory import SCHEMA, utc_now
from wiregauge.runner.bench import Bench, BenchError, Fact
from wiregauge.runner.host_facts import host_facts
from wiregauge.runner.live.state import LiveState
from wiregauge.runner.observer import Observer, Several
from wiregauge.runner.registry import bench_named
from wiregauge.runner.stopping import Interrupted, stoppable

if TYPE_CHECKING:
    from wiregauge.config import Loaded, Test

    # Imported once there is something to judge: it is heavy, and not needed while frames travel.
    from wiregauge.measures import Judgement

__all__ = ["DiskError", "NothingRunError", "Trials", "judged", "open"]


class NothingRunError(BenchError):
    """No run of a trial was begun, and no directory is left; the text says why. `stopped`: on the user's request."""

    def __init__(self, reason: str, *, stopped: bool) -> None:
        super().__init__(reason)
        self.stopped = stopped


class DiskError(RunDirectoryError):
    """The disk failed during a trial; its content can be judged elsewhere."""


def _warn(sentence: str) -> None:
    warnings.warn(sentence, stacklevel=3)


@contextlib.contextmanager
def open(  # noqa: A001 - it opens a bench as open opens a file
    bench: Bench | str,
    out: Path | None = None,
    *,
    observer: Observer | None = None,
    told: Callable[[str], object] = _warn,
) -> Iterator[Trials]:
    """Opens a bench, or the one of that name, for trials with run directories in `out`.

    `told` gets remarks for the user that no figure depends on, a sentence each. Only for the main thread.
    """
    opened = bench_named(bench) if isinstance(bench, str) else bench
    try:
        yield Trials(opened, out, observer or Observer(), told)
    finally:
        opened.close()


class Trials:
    """An open bench, on which trials run."""

    def __init__(
        self, bench: Bench, out: Path | None, observer: Observer, told: Callable[[str], object]
    ) -> None:
        self._bench = bench
        self._out = out
        self._observer = observer
        self._told = told
        self._made = 0
        self._stopped: str | None = None

    def run(
        self,
        test: Test | Loaded | Path,
        place: Path | None = None,
        *,
        file: str | None = None,
        calibrations: Sequence[dict[str, Any]] | None = None,
    ) -> Judgement:
        """Runs a test into the run directory `place`, or the next one in `out`, and judges it.

        A stopped or failed trial is judged by its records, and says so; after a stopped one the next call raises
        Interrupted. `file` is the test's name in the manifest, `calibrations` are those it cites.

        Raises TestError; BeyondBenchError; NothingRunError; RunDirectoryError where no directory can be created,
        DiskError where it cannot be written.
        """
        # Not needed by the programs of a bench, which import this package as well.
        from wiregauge.config import Loaded, load

        if self._stopped is not None:
            raise Interrupted(self._stopped)
        loaded = (
            load(test) if isinstance(test, Path) else test if isinstance(test, Loaded) else test.compile()
        )
        campaign = self._bench.adapt(loaded.campaign)
        name = file or (str(test) if isinstance(test, Path) else f"{campaign.name}.xml")
        manifest = self._manifest(campaign, name, loaded)
        if calibrations is not None:
            manifest["calibrations"] = list(calibrations)
        return self._carry_out(RunDirectory.create(place or self._next(), manifest, loaded.xml, campaign))

    def resume(self, place: Path) -> Judgement:
        """Makes the runs that a run directory lacks, and judges it. Raises as `run` does."""
        campaign = RunDirectory.open(place).plan
        if self._bench.adapt(campaign) != campaign:
            raise RunDirectoryError(
                f"{place}: its hosts or interfaces have other addresses than when its campaign began; run the test anew"
            )
        return self._carry_out(resumed(place))

    def _carry_out(self, directory: RunDirectory) -> Judgement:
        """Makes the runs of a locked directory, judges it, and releases it."""
        manifest = directory.manifest
        try:
            self._execute(directory)
            if manifest["state"] == "interrupted":
                self._stopped = str(manifest["reason"])
            if not directory.runs:
                raise NothingRunError(
                    manifest["reason"] or "nothing was run", stopped=self._stopped is not None
                )
            self._tidy(directory)
            directory.forget_plan()
            self._observer.judging_began()
            try:
                return judged(directory.root, self._told, held=True)
            finally:
                self._observer.judging_ended()
        except RunDirectoryError as error:
            raise DiskError(_untracked(directory) or str(error)) from error
        finally:
            # A resumed directory must not be removed by this process.
            if not directory.runs and "resumed" not in manifest:
                directory.discard()
            directory.close()

    def _execute(self, directory: RunDirectory) -> None:
        """Makes every run of the plan. The manifest has the final state."""
        manifest, bench = directory.manifest, self._bench
        observer = Several(self._observer, LiveState(directory))
        with stoppable():
            observer.trial_began(directory.plan.runs, virtual_time=bench.traits.virtual_time)
            try:
                manifest["bench_facts"] = [
                    to_builtins(fact) for fact in (*bench.facts(directory.plan), *_resumptions(manifest))
                ]
                directory.save()
                bench.run(directory, observer)
                unfinished = [run.reason for run in directory.entries().values() if run.state != "complete"]
                manifest["state"] = "failed" if unfinished else "complete"
                manifest["reason"] = unfinished[0] if unfinished else None
            except Interrupted as stop:
                manifest["state"], manifest["reason"] = "interrupted", str(stop)
            except (BenchError, RunDirectoryError) as error:
                manifest["state"], manifest["reason"] = "failed", str(error)
            finally:
                manifest["finished"] = utc_now()
                directory.save()
                observer.trial_ended()

    def _manifest(self, campaign: Campaign, file: str, loaded: Loaded) -> dict[str, Any]:
        """The manifest of a trial that is about to begin."""
        return {
            "schema": SCHEMA,
            "program": {"name": "wiregauge", "version": __version__},
            "test": {
                "name": campaign.name,
                "file": file,
                "sha256": loaded.sha256,
                **({"settings": list(loaded.settings)} if loaded.settings else {}),
            },
            "seed": campaign.seed,
            "bench": self._bench.name,
            "traits": self._bench.traits.as_json(),
            "state": "running",
            "reason": None,
            "started": utc_now(),
            "finished": None,
            "writer_pid": os.getpid(),
            "host": host_facts(),
            "bench_facts": [],
            "plan": plain(campaign),
            "runs": [],
        }

    def _next(self) -> Path:
        if self._out is None:
            raise ValueError("open the bench with a folder for its trials, or name the place of each")
        self._made += 1
        return self._out / f"trial-{self._made:04d}"

    def _tidy(self, directory: RunDirectory) -> None:
        """Removes the spool, unless it has untracked records, which are recovered when the directory is opened."""
        spool = directory.root / "spool"
        try:
            spool.rmdir()
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
                self._told(f"{spool}: cannot be removed ({error.strerror}); it is empty and can go")


def _untracked(directory: RunDirectory) -> str | None:
    """The reason why a campaign with untracked records in the spool failed, and the cure; None for any other."""
    spooled = any(map(directory.segments, directory.run_indices))
    if directory.manifest["state"] != "failed" or not spooled:
        return None
    cure = f"once the disk can be written again, `wiregauge show {directory.root}` shows what was recorded"
    return f"{directory.manifest['reason']}; {cure}"


def _resumptions(manifest: Mapping[str, Any]) -> Iterator[Fact]:
    """Facts about the interruptions of a resumed campaign."""
    for one in manifest.get("resumed", ()):
        runs = len(one["runs"])
        yield Fact(
            "resumed", f"{one['at']}, with {runs} run{'s' if runs != 1 else ''} to make", one["reason"] or ""
        )


def judged(
    place: Path, told: Callable[[str], object], in_full: Collection[int] = (), *, held: bool = False
) -> Judgement:
    """`results.judge`, after memory freed by simulation and tracking is returned to the system.

    glibc would keep it for similar use, which does not follow; other C libraries lack the call and do not need it.
    """
    from wiregauge import results

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    judgement = results.judge(place, unkept=told, in_full=in_full, held=held)
    # These objects live to the end, so the garbage collector need not scan them.
    gc.freeze()
    return judgement

"""Runs the tests of a calibration on a bench, with the same language, testmaster, agents and judging as other tests.

A calibration then describes what the instrument does in a run, and not a loop written to calibrate.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge.calibrate.errors import BenchMissingError, CalibrationError, StoppedError
from wiregauge.config import Test, TestError
from wiregauge.measures import FlowResult, RunResult
from wiregauge.measures.validity.streams import streams_of
from wiregauge.plan import Campaign
from wiregauge.plan import Run as RunPlan
from wiregauge.records import RunDirectory
from wiregauge.records.reported import StreamReport
from wiregauge.runner import BenchError, NothingRunError, Trials

Floats = NDArray[np.float64]


class Run(Struct, frozen=True):
    """One run of a test: its part of the plan, and the messages of its measured part in send order."""

    plan: RunPlan
    messages: pl.DataFrame
    timestamp_ns: float
    """Bound of the error of the difference of two timestamps, ns, from any cause."""
    stream: StreamReport | None = None
    """Report of the stream that sent them; None for messages that share a servicing thread."""
    grade: str = "VALID"
    reasons: tuple[str, ...] = ()

    def differences(self, end: str, start: str) -> Floats:
        """`end` minus `start` of every message that has both, ns."""
        return self._ns((pl.col(end) - pl.col(start)).alias("value"))

    def times(self, column: str) -> Floats:
        """Times of a column, ns since the epoch, without missing ones."""
        return self._ns(pl.col(column).alias("value"))

    def _ns(self, what: pl.Expr) -> Floats:
        found: Floats = (
            self.messages.select(what).drop_nulls().to_series().to_numpy().astype(np.float64) / 1e3
        )
        return found

    @property
    def lost(self) -> int:
        """The number of messages that were lost, corrupted or misdirected."""
        gone = pl.col("outcome").cast(pl.String).is_in(["lost", "misdirected", "corrupted"])
        return self.messages.select(gone.sum()).item() if self.messages.height else 0


class Outcome(Struct, frozen=True):
    """The result of a test: complete runs, and their validity."""

    state: str
    reason: str | None
    grade: str
    reasons: list[str]
    runs: list[Run]
    campaign: Campaign


@contextlib.contextmanager
def workplace(keep: Path | None) -> Iterator[Path]:
    """A folder for run directories: `keep`, which stays, or a temporary one."""
    if keep is not None:
        try:
            if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
                raise CalibrationError(
                    f"{keep}: already holds something; name a folder that is empty or does not exist"
                )
            keep.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CalibrationError(f"{keep}: cannot be made ({error.strerror})") from None
        yield keep
        return
    place = Path(tempfile.mkdtemp(prefix="wiregauge-calibrate-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def run_test(test: Test, trials: Trials, place: Path) -> Outcome:
    """Runs a test into a new folder of `place`. If interrupted, it returns the finished runs.

    Raises StoppedError or BenchMissingError when there is none, and CalibrationError for an invalid test.
    """
    try:
        loaded = test.compile()
    except TestError as error:
        raise CalibrationError(f"these settings make no test: {fault_of(error)}") from None
    name = loaded.campaign.name
    try:
        judgement = trials.run(loaded, place / name, file=f"calibrate {name}")
    except NothingRunError as error:
        raise (StoppedError if error.stopped else BenchMissingError)(str(error)) from None
    except BenchError as error:
        raise BenchMissingError(str(error)) from None
    whole = [run for run in judgement.runs if run.state == "complete"]
    if not whole:
        raise (StoppedError if judgement.state == "interrupted" else BenchMissingError)(
            judgement.reason or "no run was finished, so there is nothing to calibrate with"
        )
    directory = RunDirectory.open(place / name)
    return Outcome(
        state="complete" if judgement.complete else "interrupted",
        reason=judgement.reason,
        grade=max(run.validity for run in whole).word,
        reasons=sorted({reason for run in whole for reason in run.reasons}),
        runs=[_run(directory, run) for run in whole],
        campaign=directory.plan,
    )


def fault_of(error: TestError) -> str:
    """The first fault of a test, with its cure."""
    first = error.diagnostics[0]
    return f"{first.message}; {first.cure}" if first.cure else str(first.message)


def _timestamp(flows: Sequence[FlowResult]) -> float:
    known = (flow.summaries["latency"].uncertainty for flow in flows)
    return max((found.timestamp + found.clock for found in known if found is not None), default=0.0)


def _run(directory: RunDirectory, run: RunResult) -> Run:
    index = run.plan.index
    directory.inventory.check([directory.messages(index)])
    messages = (
        pl.read_parquet(directory.messages(index), glob=False)
        .filter(~pl.col("warm_up"))
        .sort("flow", "sequence")
    )
    sent = next((stream for _, stream in streams_of(run.agents) if stream.kind == "send"), None)
    return Run(
        directory.plan.runs[index], messages, _timestamp(run.flows), sent, run.validity.word, run.reasons
    )

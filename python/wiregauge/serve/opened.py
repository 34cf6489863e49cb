"""Run directories that are looked at: opened once for all viewers, the last few held in memory."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from wiregauge.measures.extremes import Courses
from wiregauge.measures.metrics.flow_plan import FlowPlan, RunPlan
from wiregauge.measures.metrics.recorded import Recorded, open_recorded
from wiregauge.records import MANIFEST, RunDirectoryError, read_json
from wiregauge.serve.index import Stamp, stamp_of

__all__ = ["Opened", "Shelf"]

MOST_HELD: Final = 3
"""Run directories whose plans and extremes are held."""


class Opened(Struct):
    """A run directory with its judgement as it is stored; `measures` is empty where none is."""

    recorded: Recorded
    measures: Mapping[str, Any]
    reading: threading.Lock = field(default_factory=threading.Lock)
    """Held while extremes are read: what is read of them is shared."""
    _courses: dict[int, Courses] = field(default_factory=dict)
    _judged: Mapping[tuple[int, int, str], Mapping[str, Any]] | None = None
    _is_checking: bool = False

    @property
    def path(self) -> Path:
        """The run directory."""
        return self.recorded.path

    @property
    def digest(self) -> str:
        """The digest of its manifest, which those of all its files are in; empty without one."""
        return str(self.recorded.manifest.get("digest") or "")

    @property
    def runs(self) -> Sequence[RunPlan]:
        """The runs that were made."""
        return [run for run in self.recorded.plan.runs if run.index in self.recorded.runs]

    def run(self, index: int) -> RunPlan | None:
        """A run by its index; None where it was not made."""
        return next((run for run in self.runs if run.index == index), None)

    def judged_run(self, index: int) -> Mapping[str, Any]:
        """A run as `measures.json` has it; empty where it does not."""
        found = (run for run in self.measures.get("runs", ()) if run.get("index") == index)
        return next(found, {})

    def judged_flow(self, index: int, flow: FlowPlan) -> Mapping[str, Any]:
        """A flow at its receiver as `measures.json` has it; empty where it does not."""
        if self._judged is None:
            self._judged = {
                (run["index"], one["flow"], one["to"]): one
                for run in self.measures.get("runs", ())
                for one in run["flows"]
            }
        return self._judged.get((index, flow.id, flow.destination), {})

    @property
    def not_kept(self) -> Sequence[tuple[int, Mapping[str, Any]]]:
        """The limits that failed or are undecided, of all runs with the run's index; the failed ones first."""
        found = (
            (run["index"], limit)
            for run in self.measures.get("runs", ())
            for limit in run["limits"]
            if limit["result"] != "pass"
        )
        return sorted(found, key=lambda one: one[1]["result"] != "fail")

    def check_tables(self) -> None:
        """Begins to compare the tables that a zoom reads with their hashes, once, so that the first zoom need not."""
        if not self._is_checking:
            self._is_checking = True
            threading.Thread(target=self._check, name="check", daemon=True).start()

    def _check(self) -> None:
        for run in self.runs:
            for table in (self.recorded.directory.messages, self.recorded.directory.passages):
                # What is wrong with one is told where it is read.
                with contextlib.suppress(RunDirectoryError):
                    self.recorded.inventory.find(table(run.index))

    def courses(self, run: RunPlan) -> Courses:
        """The courses of a run over time; to be used under `reading`."""
        if run.index not in self._courses:
            self._courses[run.index] = Courses(self.recorded, run, run.flows)
        return self._courses[run.index]


class Shelf:
    """Opened run directories by path, the least used put away first."""

    def __init__(self) -> None:
        self._held: OrderedDict[Path, tuple[Stamp, Opened]] = OrderedDict()
        self._opening = threading.Lock()

    def open(self, path: Path) -> Opened:
        """A run directory as it is now. Raises RunDirectoryError where it cannot be read."""
        with self._opening:
            stamp = tuple(stamp_of(path / name) for name in (MANIFEST, "tracking.json", "measures.json"))
            held = self._held.get(path)
            if held is None or held[0] != stamp:
                recorded = open_recorded(path)
                held = stamp, Opened(recorded, _measures(path, recorded.manifest.get("digest")))
                self._held[path] = held
            self._held.move_to_end(path)
            while len(self._held) > MOST_HELD:
                self._held.popitem(last=False)
            return held[1]


def _measures(path: Path, digest: object) -> Mapping[str, Any]:
    """The stored judgement, if it is whole and of this state of the directory."""
    try:
        found, _ = read_json(path / "measures.json")
    except RunDirectoryError:
        return {}
    sources = found.get("sources")
    fits = isinstance(sources, dict) and (digest is None or sources.get(MANIFEST) == digest)
    return found if fits else {}

"""Imports capture files into a run directory.

`crates/capture` reads the files and writes records; here they become the run of a bench. Its manifest names the taps,
their clocks, the octet that timestamps refer to, and the unusable parts of the files.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from wiregauge import _native
from wiregauge.captures import passive
from wiregauge.config import Loaded
from wiregauge.files import check_regular, open_regular
from wiregauge.plan import Campaign, Run, decode, plain
from wiregauge.records import RunDirectory, RunDirectoryError, Traits, process_run
from wiregauge.records.directory import utc_now
from wiregauge.records.entry import new_entry
from wiregauge.records.reported import AgentReport, RunEntry, TaskReport, TimestampKind
from wiregauge.runner import Bench, Fact, Observer

__all__ = ["CaptureError", "Captured", "Captures", "Comparison", "OnePlaceError", "opened"]

_SIDES = 2
"""The number of captures for a comparison: one before the device and one behind it."""


class CaptureError(Exception):
    """The captures cannot be used as requested; the text says why and what to do."""


class OnePlaceError(CaptureError):
    """No message of ours in captures that need not be of before and behind a device: their streams can be reported."""


class Comparison(Struct, frozen=True):
    """Options for matching arbitrary traffic before and after a device.

    `asked` compares even if the captures contain our messages. `ignored` are fields that the device changes, by their
    names in `--ignore`. `longest_ns` is the greatest residence time; None: twice the greatest among frames
    of unique content. `offset_ns` is the second clock minus the first, within `agree_ns`.
    `in_order`: no frame overtakes another of its flow.
    """

    asked: bool = False
    ignored: Sequence[str] = ()
    longest_ns: float | None = None
    offset_ns: float = 0
    in_order: bool = False


class Captured(Struct, frozen=True):
    """The captures and their options. `places` maps a tap's name to `NODE` or `NODE:PORT` of the test.

    `octet` (`first`, `last` or `preamble`) and `rate_bps` hold for taps that do not say themselves. `agree_ns` is
    the greatest difference of the clocks of several files; None: unknown.
    """

    files: Sequence[Path]
    test: Campaign | None = None
    test_xml: bytes = b""
    run: int = 0
    places: Mapping[str, str] = field(default_factory=dict)
    octet: str | None = None
    rate_bps: int | None = None
    agree_ns: float | None = None
    comparison: Comparison = field(default_factory=Comparison)


@contextlib.contextmanager
def opened(captured: Captured, out: Path) -> Iterator[tuple[Captures, Loaded]]:
    """Reads the captures; yields the bench that provides their one run, and the test that represents them.

    The data are next to `out`, the future run directory, until the block ends: nothing is created without content.
    Raises CaptureError, or RunDirectoryError where nothing can be written.
    """
    RunDirectory.check_free(out)
    test = captured.test
    order: dict[str, Any] = {
        "files": [str(path) for path in captured.files],
        "octet": captured.octet,
        "rate_bps": captured.rate_bps,
        "places": dict(captured.places),
    }
    if test is not None:
        order["test"] = {
            "network": plain(test.network),
            "run": plain(_run_of(test, captured.run)),
        }
    started = utc_now()
    with contextlib.ExitStack() as ending:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            beside = Path(tempfile.mkdtemp(prefix=".wiregauge-", dir=out.parent))
            ending.callback(shutil.rmtree, beside, ignore_errors=True)
            for path in captured.files:
                _check(path)
            sources = {str(path): _sha256(path) for path in captured.files if not path.is_dir()}
            taken = _taken(captured, order, beside)
            _refuse_twice(captured.files, sources)
        except _native.NativeError as error:
            raise CaptureError(str(error)) from error
        except OSError as error:
            raise RunDirectoryError(f"{out}: cannot be written: {error.strerror}") from error
        campaign = decode(taken["campaign"]) if test is None else _only(test, captured.run)
        xml = captured.test_xml or _summary(captured, taken)
        yield (
            Captures(captured, taken, beside, sources, started),
            Loaded(campaign, xml, _digest(captured, sources), ()),
        )


def _check(path: Path) -> None:
    """Refuses files that would block. The capture reader reports faults of directories and files."""
    try:
        check_regular(path)
    except IsADirectoryError:
        return
    except OSError as error:
        raise CaptureError(f"{path}: cannot be read: {error.strerror}") from None


def _refuse_twice(files: Sequence[Path], sources: Mapping[str, str]) -> None:
    """Refuses captures of equal content: between a capture and itself nothing takes time or is lost."""
    first: dict[str, Path] = {}
    for path in files:
        digest = sources.get(str(path))
        if digest is None:
            continue
        other = first.setdefault(digest, path)
        if other is not path:
            same = "is named twice" if other == path else f"has the same content as {other}"
            raise CaptureError(
                f"{path}: {same}; name captures of two places, with timestamps fine enough to tell them apart"
            )


def _taken(captured: Captured, order: Mapping[str, Any], beside: Path) -> dict[str, Any]:
    """The content of the captures: our messages, or else any frames before and after a device."""
    comparison = captured.comparison
    if not comparison.asked:
        taken: dict[str, Any] = json.loads(_native.take_captures(json.dumps(order), str(beside)))
        if "no_message" not in taken:
            return taken
        if captured.test is not None:
            raise CaptureError(taken["no_message"])
        if len(captured.files) != _SIDES:
            raise OnePlaceError(taken["no_message"])
        try:
            return _compared(captured, order, beside)
        except _native.NativeError as error:
            raise CaptureError(f"{taken['no_message']}. As anyone's traffic: {error}") from error
    return _compared(captured, order, beside)


def _compared(captured: Captured, order: Mapping[str, Any], beside: Path) -> dict[str, Any]:
    comparison, agree = captured.comparison, captured.agree_ns
    compared: dict[str, Any] = json.loads(
        _native.compare_captures(
            json.dumps(
                {
                    "files": order["files"],
                    "octet": captured.octet,
                    "rate_bps": captured.rate_bps,
                    "ignored": list(comparison.ignored),
                    "greatest_ps": None if comparison.longest_ns is None else _ps(comparison.longest_ns),
                    "offset_ps": _ps(comparison.offset_ns),
                    "agree_ps": None if agree is None else _ps(agree),
                    "in_order": comparison.in_order,
                }
            ),
            str(beside),
        )
    )
    return compared | {"unknown_flows": {}}


def _ps(ns: float) -> int:
    return round(ns * 1000)


class Captures(Bench):
    """The bench of imported captures: its one run is over before it begins."""

    name = "capture"

    def __init__(
        self,
        captured: Captured,
        taken: Mapping[str, Any],
        segments: Path,
        sources: Mapping[str, str],
        started: str,
    ) -> None:
        self.traits = Traits(tapped=True, one_clock=_clocks(captured, taken)[1] == "one-capture")
        self._captured = captured
        self._taken = taken
        self._segments = segments
        self._sources = sources
        self._started = started

    @property
    def compared(self) -> Mapping[str, Any] | None:
        """How arbitrary traffic was matched, and what that leaves open; None for our messages."""
        return self._taken.get("passive")

    def facts(self, campaign: Campaign) -> Sequence[Fact]:
        """The facts: each tap, and the unusable parts of the files."""
        del campaign
        return list(_facts(self._taken))

    def run(self, directory: RunDirectory, observer: Observer) -> None:
        """Moves the records made from the captures into the run directory."""
        manifest = directory.manifest
        manifest["sources"] = dict(self._sources)
        manifest["started"] = self._started
        entry = _entry(self._captured, self._taken, self._started)
        try:
            directory.spool(0).mkdir(parents=True)
            for segments in self._segments.iterdir():
                segments.rename(directory.spool(0) / segments.name)
        except OSError as error:
            raise RunDirectoryError(f"{directory.root}: cannot be written: {error.strerror}") from error
        directory.enter(entry)
        process_run(directory, 0, self._sources)
        observer.run_ended(0, entry)


def _run_of(test: Campaign, number: int) -> Run:
    if not 0 <= number < len(test.runs):
        raise CaptureError(f"run {number} is not in the plan; the test has {len(test.runs)} (from 0)")
    return replace(test.runs[number], index=0)


def _only(test: Campaign, number: int) -> Campaign:
    """The campaign with the captured run only."""
    return replace(test, axes=(), repeats=1, runs=(replace(_run_of(test, number), point={}, repeat=0),))


def _digest(captured: Captured, sources: Mapping[str, str]) -> str:
    """The digest of the test, or of the captures where there is none."""
    if captured.test_xml:
        return hashlib.sha256(captured.test_xml).hexdigest()
    return hashlib.sha256(b"".join(bytes.fromhex(sources[str(path)]) for path in captured.files)).hexdigest()


def _sha256(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _entry(captured: Captured, taken: Mapping[str, Any], started: str) -> RunEntry:
    """The entry of the run, with each tapped node as a reporter."""
    taps = taken["taps"]
    ended = [trouble for trouble in taken["troubles"] if trouble["ends_the_file"]]
    unseen = _unseen(captured, taps)
    reason = "; ".join([*(f"{trouble['file']}: {trouble['what']}" for trouble in ended), *unseen]) or None
    one_clock, method, agree_ns = _clocks(captured, taken)
    # The bound is that of the difference of two clocks, of which each gets one half.
    half = agree_ns / 2
    compared = (tap["node"] for tap in taps if one_clock)
    entry = new_entry(0, compared, method=method, uncertainty_ns=half)
    tasks: dict[str, list[TaskReport]] = {}
    for tap in taps:
        task = TaskReport(
            "capture",
            planned=tap["frames"] + tap["dropped"],
            done=tap["frames"],
            ring_drops=tap["dropped"],
            unwritten=0,
            failure="",
        )
        tasks.setdefault(tap["node"], []).append(task)
    for place, (node, made) in enumerate(tasks.items()):
        entry.agents[node] = AgentReport(
            node,
            complete=True,
            incomplete_reason="",
            tasks=tuple(made),
            # Nobody knows which file a record is from.
            records_written=0 if place else taken["records"],
            records_dropped=0,
            grants=(),
        )
    entry.state, entry.reason = "partial" if reason else "complete", reason
    entry.epoch_realtime_ns = taken["epoch_realtime_ns"]
    entry.started, entry.finished = started, utc_now()
    entry.timestamps = {tap["node"]: _timestamps(tap) for tap in taps}
    entry.all_taps = taps
    entry.troubles, entry.unknown_flows = taken["troubles"], taken["unknown_flows"]
    _enter_unrelated(entry, captured, taken)
    if "passive" in taken:
        entry.passive = taken["passive"]
    else:
        entry.gaps = taken.get("gaps", ())
    return entry


def _clocks(captured: Captured, taken: Mapping[str, Any]) -> tuple[bool, str, float]:
    """Whether the clocks of the taps are comparable, the evidence, and their greatest difference, ns."""
    matched = taken.get("passive")
    if matched is not None and not matched["offset_is_said"]:
        # An offset estimated from one direction does not make clocks comparable.
        within = matched["offset_uncertainty_ps"]
        return within is not None, "two-way-traffic", (within or 0) / 1000
    if len(captured.files) == 1:
        return True, "one-capture", captured.agree_ns or 0.0
    if captured.agree_ns is not None:
        return True, "stated", captured.agree_ns
    return False, "", 0.0


def _enter_unrelated(entry: RunEntry, captured: Captured, taken: Mapping[str, Any]) -> None:
    """Enters unrelated clocks: nodes with several of them, and the shift applied to a node's times."""
    if _clocks(captured, taken)[0]:
        return
    if "passive" in taken:
        _, second = (str(tap["node"]) for tap in taken["taps"])
        entry.clocks_moved_ns = {second: taken["passive"]["offset_ps"] / 1000}
        return
    files: dict[str, set[str]] = {}
    for tap in taken["taps"]:
        if tap["messages"]:
            files.setdefault(str(tap["node"]), set()).add(str(tap["file"]))
    entry.clocks_apart = tuple(sorted(node for node, of in files.items() if len(of) > 1))


def _unseen(captured: Captured, taps: Sequence[Mapping[str, Any]]) -> list[str]:
    """End systems of the test without a tap: unseen frames there must not count as lost."""
    if captured.test is None:
        return []
    names = captured.test.network.names
    tapped = {str(tap["node"]) for tap in taps}
    ends: set[str] = set()
    for flow in _run_of(captured.test, captured.run).flows:
        ends |= {names[end] for end in flow.ends}
    missing = sorted(ends - tapped)
    if not missing:
        return []
    return [
        f"no tap at {', '.join(missing)}: what was sent and lost there is not known; "
        "give their captures too, or leave --test out to judge from tap to tap"
    ]


def _timestamps(tap: Mapping[str, Any]) -> TimestampKind:
    known = tap["timestamps"]
    return TimestampKind(known["kind"] if known else "unknown", tap["step_ns"], tap["reference"])


def _facts(taken: Mapping[str, Any]) -> Iterator[Fact]:
    if "passive" in taken:
        yield from passive.facts(taken["passive"])
    for tap in taken["taps"]:
        said = tap["timestamps"]
        timestamps = (
            f"{said['kind']} timestamps; sent: {said['sent']}, received: {said['received']} octet"
            if said
            else f"timestamps of the {tap['octet']} octet, as nothing else was said"
        )
        yield Fact(
            f"tap {tap['name']}",
            f"{_frames(taken, tap)}; {timestamps}; step {tap['step_ns']:g} ns",
            f"times belong to: {tap['reference']}"
            + (f"; {tap['damaged']} damaged" if tap["damaged"] else "")
            + (f"; {tap['unchecked']} captured in part, their CRC unchecked" if tap["unchecked"] else "")
            + (f"; the capture dropped {tap['dropped']} frames" if tap["dropped"] else ""),
        )
    for trouble in taken["troubles"]:
        yield Fact("unusable", f"{trouble['count']} x {trouble['what']}", trouble["file"])
    for flow, count in taken["unknown_flows"].items():
        yield Fact("flow not in the test", f"flow {flow}: {count} messages left out")


def _frames(taken: Mapping[str, Any], tap: Mapping[str, Any]) -> str:
    frames = f"{tap['frames']} frames"
    return frames if "passive" in taken else f"{tap['messages']} messages in {frames}"


def _summary(captured: Captured, taken: Mapping[str, Any]) -> bytes:
    """The text that represents the test where there was none."""
    names = ", ".join(path.name for path in captured.files)
    return f"<!-- No test: made from {names} ({len(taken['taps'])} taps). -->\n".encode()

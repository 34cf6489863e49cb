"""From capture files to a run directory.

`crates/capture` reads the files and writes records; here they become a run: its manifest says what was tapped, by
whose clock, to which octet its times belong and what of the files could not be used.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from wiregauge import _native
from wiregauge.master import new_manifest
from wiregauge.plan import receivers
from wiregauge.records import RunDirectory, RunDirectoryError, process_run
from wiregauge.records.directory import utc_now
from wiregauge.records.entry import begun

__all__ = ["CaptureError", "Captured", "import_captures"]

BENCH = "capture"
"""What the manifest calls the bench of such a run."""


class CaptureError(Exception):
    """Nothing can be made of the captures as asked; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Captured:
    """What was captured and how. `places` maps a tap's name to `NODE` or `NODE:PORT` of the test.

    `octet` (`first`, `last` or `preamble`) and `rate_bps` hold for taps that do not say themselves. `agree_ns` is by
    how much the clocks of several files may differ at most; None: nobody knows.
    """

    files: Sequence[Path]
    test: Mapping[str, Any] | None = None
    test_file: str = ""
    test_xml: bytes = b""
    run: int = 0
    places: Mapping[str, str] = field(default_factory=dict)
    octet: str | None = None
    rate_bps: int | None = None
    agree_ns: float | None = None


def import_captures(captured: Captured, out: Path) -> RunDirectory:
    """Makes the run directory `out`, still open. Raises CaptureError, with nothing made, or RunDirectoryError."""
    RunDirectory.check_free(out)
    test = captured.test
    order: dict[str, Any] = {
        "files": [str(path) for path in captured.files],
        "octet": captured.octet,
        "rate_bps": captured.rate_bps,
        "places": dict(captured.places),
    }
    if test is not None:
        order["test"] = {"network": test["network"], "run": _run_of(test, captured.run)}
    started = utc_now()
    # Beside the directory, which is made only once there is something to put into it.
    beside: Path | None = None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=".wiregauge-", dir=out.parent))
        taken = json.loads(_native.take_captures(json.dumps(order), str(beside)))
        campaign = taken["campaign"] if test is None else _only(test, captured.run)
        manifest = new_manifest(
            campaign,
            file=captured.test_file or str(captured.files[0]),
            sha256=_digest(captured),
            bench=BENCH,
        )
        manifest["bench_facts"] = [asdict(fact) for fact in _facts(taken)]
        manifest["sources"] = {str(path): _sha256(path) for path in captured.files}
        manifest["started"] = started
        manifest["runs"] = [_entry(captured, taken, started)]
        directory = RunDirectory.create(out, manifest, captured.test_xml or _summary(captured, taken))
        directory.spool(0).mkdir(parents=True)
        for segments in beside.iterdir():
            segments.rename(directory.spool(0) / segments.name)
    except _native.NativeError as error:
        raise CaptureError(str(error)) from error
    except OSError as error:
        raise RunDirectoryError(f"{out}: cannot be written: {error.strerror}") from error
    finally:
        if beside is not None:
            shutil.rmtree(beside, ignore_errors=True)
    process_run(directory, 0, manifest["sources"])
    entry = manifest["runs"][0]
    manifest["state"] = "complete" if entry["state"] == "complete" else "failed"
    manifest["reason"] = entry["reason"]
    manifest["finished"] = utc_now()
    directory.save()
    return directory


def _run_of(test: Mapping[str, Any], number: int) -> dict[str, Any]:
    runs = test["runs"]
    if not 0 <= number < len(runs):
        raise CaptureError(f"run {number} is not in the plan; the test has {len(runs)} (from 0)")
    run: dict[str, Any] = {**runs[number], "index": 0}
    return run


def _only(test: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The campaign of the one run that was captured."""
    return {**test, "axes": [], "repeats": 1, "runs": [{**_run_of(test, number), "point": {}, "repeat": 0}]}


def _digest(captured: Captured) -> str:
    """Of the test, or of the captures where there is none."""
    if captured.test_xml:
        return hashlib.sha256(captured.test_xml).hexdigest()
    return hashlib.sha256(b"".join(bytes.fromhex(_sha256(path)) for path in captured.files)).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _entry(captured: Captured, taken: Mapping[str, Any], started: str) -> dict[str, Any]:
    """The entry of the run: each node with a tap is its own reporter."""
    taps = taken["taps"]
    ended = [trouble for trouble in taken["troubles"] if trouble["ends_the_file"]]
    unseen = _unseen(captured, taps)
    reason = "; ".join([*(f"{trouble['file']}: {trouble['what']}" for trouble in ended), *unseen]) or None
    agents: dict[str, dict[str, Any]] = {}
    for tap in taps:
        agent = agents.setdefault(
            tap["node"],
            {
                "end_system": tap["node"],
                "complete": True,
                "incomplete_reason": "",
                "access_points": [],
                "tasks": [],
                "records_written": 0,
                "records_dropped": 0,
                "grants": [],
            },
        )
        agent["tasks"].append(
            {
                "kind": "capture",
                "planned": tap["frames"] + tap["dropped"],
                "done": tap["frames"],
                "ring_drops": tap["dropped"],
                "unwritten": 0,
                "failure": "",
            }
        )
    if agents:
        next(iter(agents.values()))["records_written"] = taken["records"]
    one_clock = len(captured.files) == 1 or captured.agree_ns is not None
    method = "one-capture" if len(captured.files) == 1 else "stated"
    # The bound is of the difference of two clocks, of which each carries one half.
    half = (captured.agree_ns or 0.0) / 2
    compared = (tap["node"] for tap in taps if one_clock)
    return {
        **begun(0, compared, method=method, uncertainty_ns=half),
        "state": "partial" if reason else "complete",
        "reason": reason,
        "epoch_realtime_ns": taken["epoch_realtime_ns"],
        "started": started,
        "finished": utc_now(),
        "agents": agents,
        "stamps": {tap["node"]: _stamps(tap) for tap in taps},
        "taps": taps,
        "troubles": taken["troubles"],
        "unknown_flows": taken["unknown_flows"],
    }


def _unseen(captured: Captured, taps: Sequence[Mapping[str, Any]]) -> list[str]:
    """End systems of the test without a tap: what nobody saw there must not pass for lost."""
    if captured.test is None:
        return []
    nodes = captured.test["network"]["nodes"]
    names = [str(node["name"]) for node in nodes]
    tapped = {str(tap["node"]) for tap in taps}
    ends: set[str] = set()
    for flow in _run_of(captured.test, captured.run)["flows"]:
        ends |= {names[end] for end in (flow["from"], *receivers(flow))}
    missing = sorted(ends - tapped)
    if not missing:
        return []
    return [
        f"no tap at {', '.join(missing)}: what was sent and lost there is not known; "
        "give their captures too, or leave --test out to judge from tap to tap"
    ]


def _stamps(tap: Mapping[str, Any]) -> dict[str, Any]:
    known = tap["stamps"]
    return {
        "kind": known["kind"] if known else "unknown",
        "step_ns": tap["step_ns"],
        "reference": tap["reference"],
    }


@dataclass(frozen=True, slots=True)
class _Fact:
    name: str
    value: str
    note: str = ""


def _facts(taken: Mapping[str, Any]) -> Iterable[_Fact]:
    for tap in taken["taps"]:
        said = tap["stamps"]
        stamps = (
            f"{said['kind']} stamps; sent: {said['sent']}, received: {said['received']} octet"
            if said
            else f"stamps of the {tap['octet']} octet, as nothing else was said"
        )
        yield _Fact(
            f"tap {tap['name']}",
            f"{tap['messages']} messages in {tap['frames']} frames; {stamps}; step {tap['step_ns']:g} ns",
            f"times belong to: {tap['reference']}"
            + (f"; {tap['damaged']} damaged" if tap["damaged"] else "")
            + (f"; {tap['unchecked']} captured in part, their CRC unchecked" if tap["unchecked"] else "")
            + (f"; the capture dropped {tap['dropped']} frames" if tap["dropped"] else ""),
        )
    for trouble in taken["troubles"]:
        yield _Fact("unusable", f"{trouble['count']} x {trouble['what']}", trouble["file"])
    for flow, count in taken["unknown_flows"].items():
        yield _Fact("flow not in the test", f"flow {flow}: {count} messages left out")


def _summary(captured: Captured, taken: Mapping[str, Any]) -> bytes:
    """What stands in for the test where there was none."""
    names = ", ".join(path.name for path in captured.files)
    return f"<!-- No test: made from {names} ({len(taken['taps'])} taps). -->\n".encode()

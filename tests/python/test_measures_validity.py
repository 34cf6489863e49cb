"""Every validity check is tripped by a planted fault, and the verdict follows validity."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from synthetic import Columns, Recipe, make
from wiregauge import measures, results
from wiregauge.measures import Grade

BASE = Recipe(protocols=("udp",), payloads=(64,), messages=400, warm_up=10, loss=0.0)
Change = Callable[[dict[str, Any], dict[str, Any]], None]


def limit(measure: str, value: float, bound: str = "at-most", flow: int | None = 10) -> dict[str, Any]:
    return {
        "flow": flow,
        "measure": measure,
        "bound": bound,
        "value": value,
        "written": f"{value:g}",
        "line": 7,
    }


def judged(path: Path, recipe: Recipe = BASE, change: Change | None = None) -> measures.Judgement:
    make(path, recipe)
    if change is not None:
        manifest = json.loads((path / "manifest.json").read_text())
        tracking = json.loads((path / "tracking.json").read_text())
        change(manifest, tracking)
        (path / "manifest.json").write_text(json.dumps(manifest))
        (path / "tracking.json").write_text(json.dumps(tracking))
    return results.judge(path)


def grade(judgement: measures.Judgement, name: str) -> Grade:
    (found,) = [check for check in judgement.runs[0].checks if check.name == name]
    assert (found.reason == "") == (found.grade == Grade.OK)
    return found.grade


def test_a_good_run_is_valid_with_notes(tmp_path: Path) -> None:
    judgement = judged(tmp_path)
    assert judgement.validity.word == "VALID"
    assert judgement.reasons == ()
    assert grade(judgement, "grants") == Grade.NOTE
    assert grade(judgement, "stolen-time") == Grade.OK
    assert judgement.exit_code == 0


def agent(**values: Any) -> Change:
    def change(manifest: dict[str, Any], tracking: dict[str, Any]) -> None:
        manifest["runs"][0]["agents"]["sensor"].update(values)

    return change


def access(**values: int) -> Change:
    return agent(access_points=[{"protocol": "udp", **values}])


def timestamped(kind: str = "hardware", *, steps: int = 0, **values: int) -> Change:
    """An interface that timestamped 1000 frames sent, `values` of them otherwise."""
    sent = {"asked": 1000, "timestamped": 1000 - values.get("missing", 0), "duplicates": 0, **values}
    clock = {"uncertainty_ns": 50.0, "step_ns": 8, "steps": steps, "placed": 1000, "unplaced": 0}
    figures = {
        "transmit_timestamps": sent,
        "receive_timestamps": {"timestamped": 0, "missing": 0},
        "clock": clock,
    }
    return agent(timestamps=[{"interface": "eth0", "transmit": kind, "receive": kind, "figures": figures}])


def tracked(**values: Any) -> Change:
    def change(manifest: dict[str, Any], tracking: dict[str, Any]) -> None:
        tracking["runs"][0]["flows"][0].update(values)

    return change


def entry(**values: Any) -> Change:
    def change(manifest: dict[str, Any], tracking: dict[str, Any]) -> None:
        manifest["runs"][0].update(values)

    return change


def run_tracking(**values: Any) -> Change:
    def change(manifest: dict[str, Any], tracking: dict[str, Any]) -> None:
        tracking["runs"][0].update(values)

    return change


def offset(uncertainty: int) -> Change:
    return entry(
        clock_offsets={
            n: {"offset_ns": 0, "uncertainty_ns": uncertainty, "method": "x"} for n in ("mac", "sensor")
        }
    )


def drop_agent(manifest: dict[str, Any], tracking: dict[str, Any]) -> None:
    del manifest["runs"][0]["agents"]["sensor"]


def drop_tracking(manifest: dict[str, Any], tracking: dict[str, Any]) -> None:
    tracking["runs"] = []


CASES: dict[str, tuple[str, Change, Grade]] = {
    "partial": ("run-complete", entry(state="partial", reason="agent died"), Grade.INVALID),
    "no report": ("agents-reported", drop_agent, Grade.INVALID),
    "incomplete agent": ("agents-complete", agent(complete=False, incomplete_reason="lease"), Grade.INVALID),
    "untracked": ("tracked", drop_tracking, Grade.INVALID),
    "accounts": ("conservation", tracked(lost=1), Grade.INVALID),
    "more than planned": ("sent-as-planned", tracked(planned=399), Grade.INVALID),
    "few unsent": ("sent-as-planned", tracked(planned=401), Grade.DEGRADED),
    "many unsent": ("sent-as-planned", tracked(planned=500), Grade.INVALID),
    "one refused": ("send-refused", access(send_errors=1), Grade.DEGRADED),
    "many refused": ("send-refused", access(send_errors=50), Grade.INVALID),
    "ring full": ("record-drops", agent(records_dropped=1), Grade.DEGRADED),
    "socket full": ("socket-drops", access(socket_drops=3), Grade.DEGRADED),
    "inbox full": ("inbox-drops", access(inbox_drops=3), Grade.DEGRADED),
    "segment": ("segments", run_tracking(damaged_segments=[{"problem": "cut off"}]), Grade.DEGRADED),
    "missing part": ("records-stored", run_tracking(records=1), Grade.DEGRADED),
    "behind the window": ("records-in-window", tracked(behind_window=2), Grade.DEGRADED),
    "unpaired": ("passages-paired", tracked(unpaired_departures=2), Grade.DEGRADED),
    "out of order": ("records-in-order", run_tracking(out_of_order=7), Grade.DEGRADED),
    "clock back": (
        "clocks-forward",
        run_tracking(clock_jumps=[{"node": 0, "times": 1, "farthest_ps": 500_000_000_000}]),
        Grade.INVALID,
    ),
    "numbers anew": ("numbers-once", tracked(restarts=1), Grade.DEGRADED),
    "no send record": ("send-records", tracked(missing_send_records=1), Grade.DEGRADED),
    "clock step": ("clock-steps", agent(clock_steps=1, largest_clock_step_ns=-5), Grade.INVALID),
    "stolen time": ("stolen-time", agent(steal_ns=10_000_000), Grade.DEGRADED),
    "preempted": ("preemptions", agent(involuntary_switches=1), Grade.NOTE),
    "uncertain clock": ("clock-offset", offset(5_000), Grade.DEGRADED),
    "useless clock": ("clock-offset", offset(50_000), Grade.INVALID),
    "unknown clock": ("clock-offset", entry(clock_offsets={}), Grade.DEGRADED),
    "stray frames": ("unplanned", run_tracking(unplanned={"never_sent": 1}), Grade.DEGRADED),
    "few timestamps of the interface": ("hardware-timestamps", timestamped(not_asked=500), Grade.NOTE),
    "a timestamp is missing": ("hardware-timestamps", timestamped(missing=1), Grade.NOTE),
    "timestamps are missing": ("hardware-timestamps", timestamped(missing=2), Grade.DEGRADED),
    "a timestamp came twice": ("hardware-timestamps", timestamped(duplicates=1), Grade.NOTE),
    "interface's clock set": ("hardware-timestamps", timestamped(steps=1), Grade.DEGRADED),
    "planted timestamps": ("hardware-timestamps", timestamped("planted"), Grade.DEGRADED),
    "foreign frames": ("unplanned", run_tracking(unplanned={"foreign": 9}), Grade.NOTE),
}


def test_a_capture_that_is_not_whole_is_named_by_the_file_the_user_has(tmp_path: Path) -> None:
    failure = "cannot be written: No space left on device; its first 3 frames are there and readable"
    judgement = judged(
        tmp_path, change=entry(captures={"sw1": {"done": 3, "unwritten": 7, "failure": failure}})
    )
    assert grade(judgement, "captures") == Grade.DEGRADED
    reasons = [
        reason for run in judgement.runs for c in run.checks if c.name == "captures" for reason in [c.reason]
    ]
    assert reasons == [
        f"a capture is not whole (captures/run-0000/sw1.pcapng: {failure}); no figure comes from it"
    ]


def test_a_capture_whose_task_left_no_report_is_not_taken_for_whole(tmp_path: Path) -> None:
    def change(manifest: dict[str, Any], tracking: dict[str, Any]) -> None:
        manifest["plan"]["runs"][0]["captures"] = [{"on": 0, "snap": 96}]

    judgement = judged(tmp_path, change=change)
    assert grade(judgement, "captures") == Grade.DEGRADED
    (said,) = {c.reason for run in judgement.runs for c in run.checks if c.name == "captures"}
    assert "captures/run-0000/mac.pcapng: its task left no report" in said


def test_timestamps_of_an_interface_that_all_came_are_no_reservation(tmp_path: Path) -> None:
    judgement = judged(tmp_path, change=timestamped())
    assert grade(judgement, "hardware-timestamps") == Grade.OK
    said = next(c.observed for run in judgement.runs for c in run.checks if c.name == "hardware-timestamps")
    assert said == "1000 of 1000, each ± 58 ns"


def test_a_clock_that_placed_no_timestamp_made_no_time_wrong(tmp_path: Path) -> None:
    def change(manifest: dict[str, Any], tracking: dict[str, Any]) -> None:
        timestamped()(manifest, tracking)
        agents = manifest["runs"][0]["agents"]
        idle = copy.deepcopy(agents["sensor"]["timestamps"])
        idle[0]["figures"]["transmit_timestamps"] = {}
        idle[0]["figures"]["clock"] = {"uncertainty_ns": 15_000.0, "step_ns": 8, "placed": 0}
        agents["mac"]["timestamps"] = idle

    judgement = judged(tmp_path, change=change)
    said = next(c.observed for run in judgement.runs for c in run.checks if c.name == "hardware-timestamps")
    assert said == "1000 of 1000, each ± 58 ns"


@pytest.mark.parametrize("case", CASES)
def test_a_planted_fault_trips_its_check(tmp_path: Path, case: str) -> None:
    name, change, wanted = CASES[case]
    judgement = judged(tmp_path, change=change)
    assert grade(judgement, name) == wanted
    assert judgement.validity.word == (wanted.word if wanted > Grade.NOTE else "VALID")
    assert bool(judgement.reasons) == (wanted > Grade.NOTE)


def late(share: float) -> Callable[[Columns, int], None]:
    def alter(columns: Columns, flow: int) -> None:
        hit = np.arange(len(columns["tx_app"])) % round(1 / share) == 0
        for name in (
            "tx_app",
            "tx_drv",
            "rx_drv",
            "rx_app",
            "back_tx_app",
            "back_tx_drv",
            "back_rx_drv",
            "back_rx_app",
        ):
            if name in columns:
                columns[name] = columns[name] + hit * 300_000_000

    return alter


def negative(columns: Columns, flow: int) -> None:
    columns["rx_app"] = columns["rx_app"].copy()
    columns["rx_app"][50] = columns["tx_app"][50] - 1000


def no_timestamp(columns: Columns, flow: int) -> None:
    columns["present"]["tx_drv"] = np.arange(len(columns["tx_app"])) % 50 > 0


def silence(columns: Columns, flow: int) -> None:
    columns["lost"][:] = True
    columns["copies"] = columns["copies"] * 0
    columns["reordered"][:] = False
    for name in ("rx_drv", "rx_app", "back_tx_app", "back_tx_drv", "back_rx_drv", "back_rx_app"):
        columns["present"][name][:] = False


@pytest.mark.parametrize(
    ("alter", "name", "wanted"),
    [
        (late(0.02), "late-sends", Grade.DEGRADED),
        (late(0.2), "late-sends", Grade.INVALID),
        (negative, "negative-latency", Grade.DEGRADED),
        (no_timestamp, "kernel-timestamps", Grade.DEGRADED),
        (silence, "arrivals", Grade.DEGRADED),
    ],
)
def test_planted_messages_trip_their_check(
    tmp_path: Path, alter: Callable[[Columns, int], None], name: str, wanted: Grade
) -> None:
    assert grade(judged(tmp_path, replace(BASE, alter=alter)), name) == wanted


def test_negative_latencies_are_kept(tmp_path: Path) -> None:
    latency = judged(tmp_path, replace(BASE, alter=negative)).runs[0].flows[0].summaries["latency"]
    assert latency.negative == 1
    assert latency.minimum == -1.0


def test_instrument_losses_with_message_losses_make_a_run_invalid(tmp_path: Path) -> None:
    judgement = judged(tmp_path, replace(BASE, loss=0.02), agent(records_dropped=1))
    assert judgement.runs[0].flows[0].counts["lost"] > 0
    assert grade(judgement, "record-drops") == Grade.INVALID


def test_offered_load_is_held_against_the_plan(tmp_path: Path) -> None:
    recipe = replace(BASE, loads=(50,))

    def short(manifest: dict[str, Any], tracking: dict[str, Any]) -> None:
        task = manifest["runs"][0]["agents"]["flooder"]["tasks"][0]
        task["done"] = round(task["planned"] * 0.95)

    assert grade(judged(tmp_path, recipe), "offered-load") == Grade.OK
    assert grade(judged(tmp_path, recipe, short), "offered-load") == Grade.DEGRADED

    def missing(manifest: dict[str, Any], tracking: dict[str, Any]) -> None:
        manifest["runs"][0]["agents"]["flooder"]["tasks"] = []

    assert grade(judged(tmp_path, recipe, missing), "offered-load") == Grade.INVALID


@pytest.mark.parametrize(
    ("limits", "verdict", "code"),
    [
        ([], "NONE", 0),
        ([limit("latency.max", 1e9), limit("lost", 0)], "PASS", 0),
        ([limit("latency.min", 1e9, "at-least")], "FAIL", 1),
        ([limit("latency.p99.9", 1e9)], "UNDECIDED", 4),
        ([limit("rtt.p50", 1e9)], "UNDECIDED", 4),
        ([limit("latency.p99.9", 1e9), limit("latency.max", 1)], "FAIL", 1),
        ([limit("rtt.p50", 1e9, flow=None)], "PASS", 0),
        (
            [limit("loss", 0.01), limit("goodput", 2e5, "at-least"), limit("unplanned", 0, flow=None)],
            "PASS",
            0,
        ),
        ([limit("lost", 0, flow=99)], "UNDECIDED", 4),
        ([limit("nonsense", 0)], "UNDECIDED", 4),
    ],
)
def test_limits_give_a_verdict(tmp_path: Path, limits: list[dict[str, Any]], verdict: str, code: int) -> None:
    judgement = judged(tmp_path, replace(BASE, limits=limits))
    assert (judgement.verdict, judgement.exit_code) == (verdict, code)
    for result in judgement.runs[0].limits:
        assert (result.observed is None) == bool(result.reason)


def test_an_invalid_run_decides_nothing(tmp_path: Path) -> None:
    for value in (1e9, 0.0):
        recipe = replace(BASE, limits=[limit("latency.max", value)])
        judgement = judged(tmp_path, recipe, agent(clock_steps=1))
        assert (judgement.verdict, judgement.exit_code) == ("UNDECIDED", 4)


def test_an_interrupted_campaign_is_incomplete(tmp_path: Path) -> None:
    recipe = replace(BASE, payloads=(64, 128), stop_after=1, state="interrupted", reason="Ctrl-C")
    judgement = judged(tmp_path, replace(recipe, limits=[limit("lost", 0)]))
    assert judgement.exit_code == 4
    assert judgement.verdict == "UNDECIDED"
    assert judgement.validity == Grade.DEGRADED
    assert any("Ctrl-C" in reason for reason in judgement.reasons)


def test_an_unfinished_campaign_is_recognised(tmp_path: Path) -> None:
    judgement = judged(tmp_path, replace(BASE, state="running", stop_after=0))
    assert judgement.validity == Grade.INVALID
    assert judgement.exit_code == 4
    assert any("not finished" in reason for reason in judgement.reasons)


def tsn_grants(*grants: dict[str, Any]) -> Change:
    """What the agents of a run say of TSN settings."""

    def change(manifest: dict[str, Any], _: dict[str, Any]) -> None:
        for run in manifest["runs"]:
            for one in run["agents"].values():
                one["grants"] = [*one.get("grants", []), *grants]

    return change


def test_tsn_settings_of_hosts_are_shown_and_a_tai_that_nobody_set_is_noted(tmp_path: Path) -> None:
    made = {"name": "host-tsn", "granted": True, "detail": "taprio with 3 classes by the kernel"}
    known = {"name": "tai-offset", "granted": True, "detail": "37 s"}
    good = judged(tmp_path / "good", change=tsn_grants(made, known))
    assert grade(good, "host-tsn") == Grade.OK
    unset = judged(
        tmp_path / "unset", change=tsn_grants(made, {**known, "granted": False, "detail": "0 s: nobody"})
    )
    assert grade(unset, "host-tsn") == Grade.NOTE
    (found,) = [check for check in unset.runs[0].checks if check.name == "host-tsn"]
    assert "tai-offset 0 s: nobody" in found.reason
    # It is no request to the scheduler, which that check is about.
    (asked,) = [check for check in unset.runs[0].checks if check.name == "grants"]
    assert "tai-offset" not in asked.reason
    left = judged(
        tmp_path / "left", change=tsn_grants(made, {**made, "granted": False, "detail": "still there"})
    )
    assert grade(left, "host-tsn") == Grade.NOTE
    assert not [check for check in judged(tmp_path / "none").runs[0].checks if check.name == "host-tsn"]

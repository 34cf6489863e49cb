"""Runs that are looked at while they go on, on real frames: an injected loss raises an alarm, and what follows."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from support import COMMAND, Runner, assert_measured, frame_times, scenario, until

FLOWS = '<flow id="10" protocol="udp" from="mac" to="sensor"/><flow id="20" protocol="raw" from="mac" to="sensor"/>'
LOST = range(1000, 1007)
"""Sequence numbers lost of flow 20 in its second second, at the relay: seven messages."""


def lossy(seconds: int) -> str:
    return scenario(
        f'<tasks warm-up="100ms" duration="{seconds}s">'
        '<send flow="10" period="1ms" payload="64B"/><receive flow="10"/>'
        '<send flow="20" period="2ms" payload="64B"/><relay flow="20">'
        f'<fault kind="loss" sequence="{LOST[0]}-{LOST[-1]}"/></relay></tasks>',
        flows=FLOWS,
    )


def manifest_of(place: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((place / "manifest.json").read_text(encoding="utf-8"))
    return found


def test_a_loss_raises_an_alarm_that_starts_a_command_and_ends_the_run(
    wiregauge: Runner, tmp_path: Path
) -> None:
    (tmp_path / "t.xml").write_text(lossy(60))
    hook = tmp_path / "hook.py"
    hook.write_text("import pathlib, sys\npathlib.Path(sys.argv[1]).write_bytes(sys.stdin.buffer.read())\n")
    command = f"{sys.executable} {hook} {tmp_path / 'told'}"
    done = wiregauge(
        "run", "t.xml", "--out", "r", "--alarm", "lost <= 3", "--alarm", "rtt.max <= 1h",
        "--on-alarm", command, "--on-alarm", "exit",
    )  # fmt: skip
    assert done.code == 4, done.err
    (line,) = (line for line in done.err.splitlines() if line.startswith("alarm at "))
    assert line.endswith("flow 20 (mac → sensor): lost is 7, the limit is lost <= 3")
    manifest = manifest_of(tmp_path / "r")
    (entry,) = manifest["runs"]
    assert (manifest["state"], entry["state"]) == ("interrupted", "partial")
    assert line in (manifest["reason"], entry["reason"])
    (incident,) = entry["alarms"]["incidents"]
    assert (incident["flow"], incident["worst"], incident["alarm"]) == (20, 7, "lost <= 3")
    assert 2.0 < incident["begin_s"] < 30.0
    (told,) = json.loads((tmp_path / "told").read_text())["alarms"]
    assert told == {"run": 0, **incident}
    (started,) = entry["alarms"]["commands"]
    assert (started["started"], started["failed"]) == (1, 0)
    report = (tmp_path / "r" / "report.html").read_text()
    assert '<details class="part" id="alarms">' in report
    # What was measured until then is kept, and says what the live figure said.
    shown = wiregauge("show", "r", "--json").json()
    assert {flow["flow"]: flow["lost"] for flow in shown["runs"][0]["flows"]} == {10: 0, 20: 7}


def test_live_figures_are_served_while_the_run_lasts_and_agree_with_the_report(tmp_path: Path) -> None:
    (tmp_path / "t.xml").write_text(lossy(8))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    scrapes: list[dict[str, Any]] = []

    def seen() -> bool:
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}/metrics", headers={"Accept": "application/openmetrics-text"}
        )
        try:
            with urllib.request.urlopen(asked, timeout=5) as answer:
                text = answer.read().decode()
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return running.poll() is not None
        scrapes.append({family.name: family for family in text_string_to_metric_families(text)})  # type: ignore[no-untyped-call]
        return running.poll() is not None

    arguments = ["run", "t.xml", "--out", "r", "--alarm", "lost <= 0", "--metrics", str(port)]
    with subprocess.Popen(
        [str(COMMAND), *arguments], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as running:
        until(seen, "the end of the run")
        assert running.stderr is not None
        said = running.stderr.read()
    assert "Traceback" not in said
    last = next(one for one in reversed(scrapes) if "wiregauge_live_lost_messages" in one)

    def by_flow(name: str) -> dict[str, float]:
        return {sample.labels["flow"]: sample.value for sample in last[name].samples}

    assert by_flow("wiregauge_live_lost_messages") == {"10": 0, "20": len(LOST)}
    for name, most in (("sent", {"10": 8000, "20": 4000}), ("received", {"10": 8000, "20": 3993})):
        found = by_flow(f"wiregauge_live_{name}_messages")
        assert all(0.5 * most[flow] < count <= most[flow] for flow, count in found.items()), found
    assert last["wiregauge_live_latency_seconds"].samples[0].labels["flow"] == "10"
    assert last["wiregauge_live_rtt_seconds"].samples[0].labels["flow"] == "20"
    assert last["wiregauge_alarms_raised"].samples[0].value >= 1
    # Without `exit` the run goes on to its end.
    manifest = manifest_of(tmp_path / "r")
    assert manifest["state"] == "complete", manifest["reason"]


def test_a_run_ends_before_its_directory_comes_to_a_bound(wiregauge: Runner, tmp_path: Path) -> None:
    fast = scenario(
        '<tasks warm-up="100ms" duration="60s"><send flow="10" period="100us" payload="64B"/><receive flow="10"/>'
        "</tasks>"
    )
    (tmp_path / "t.xml").write_text(fast)
    done = wiregauge("run", "t.xml", "--out", "r", "--disk", "8MB")
    assert done.code == 4, done.err
    manifest = manifest_of(tmp_path / "r")
    assert manifest["state"] == "interrupted"
    assert "before the directory comes to --disk 8 MB" in manifest["reason"]
    records = sum(path.stat().st_size for path in (tmp_path / "r").rglob("*") if path.is_file())
    assert 0 < records < 8_000_000


@pytest.mark.parametrize("switches", ["model", "kernel"])
def test_captures_keep_the_frames_around_an_alarm_and_no_others(
    wiregauge: Runner, tmp_path: Path, switches: str
) -> None:
    (tmp_path / "t.xml").write_text(
        lossy(14).replace("</tasks>", '<capture on="sensor"/><capture on="sw1" snap="64B"/></tasks>')
    )
    asked = ("--alarm", "lost <= 0", "--capture-around", "500ms", "--json")
    done = wiregauge("run", "t.xml", "--switches", switches, "--out", "r", *asked)
    assert_measured(done, tmp_path / "r")
    (entry,) = manifest_of(tmp_path / "r")["runs"]
    alarms = entry["alarms"]
    assert (alarms["raised"], alarms["around_s"]) == (1, 0.5)
    ((begin, end),) = alarms["kept"]
    (incident,) = alarms["incidents"]
    lost_at = 0.1 + LOST[0] * 0.002
    assert begin <= lost_at - 0.5
    assert end == incident["end_s"] + 0.5 < 13
    reports = {
        "sw1": entry["captures"]["sw1"],
        "sensor": next(task for task in entry["agents"]["sensor"]["tasks"] if task["kind"] == "capture"),
    }
    for node, report in reports.items():
        times = frame_times(
            tmp_path / "r" / "captures" / "run-0000" / f"{node}.pcapng", entry["epoch_realtime_ns"]
        )
        assert len(times) == report["done"] > 0
        # Of what the ring hands over together, all is kept.
        assert begin - 0.3 <= min(times) <= max(times) <= end + 0.3
        assert any(abs(at - lost_at) < 0.1 for at in times), "what the alarm is about"
        assert report["passed_over"] > report["done"] / 2
        assert report["planned"] == report["done"] + report["passed_over"] + report["ring_drops"]
        assert (report["crowded_out"], report["failure"]) == (0, "")
    checks = {check["name"]: check for check in done.json()["runs"][0]["checks"]}
    assert checks["captures"]["grade"] == "ok"
    assert "left out, near no alarm" in checks["captures"]["observed"]
    # The records are all there: the verdict rests on every message.
    flows = {flow["flow"]: flow for flow in done.json()["runs"][0]["flows"]}
    assert (flows[10]["sent"], flows[20]["lost"]) == (14_000, len(LOST))


def test_options_without_effect_are_refused(wiregauge: Runner, tmp_path: Path) -> None:
    (tmp_path / "t.xml").write_text(lossy(8))
    for options, said in (
        (("--bench", "sim", "--alarm", "lost <= 0"), "--alarm has no effect with --bench sim"),
        (("--bench", "sim", "--metrics", "9464"), "--metrics has no effect with --bench sim"),
        (("--bench", "lab", "--disk", "1GB"), "--disk has no effect with --bench lab"),
        (("--on-alarm", "exit"), "--on-alarm has an effect with --alarm only"),
        (("--metrics", "0.0.0.0:9464"), "every network of this host"),
        (("--capture-around", "1s"), "--capture-around has an effect with --alarm only"),
        (("--alarm", "lost <= 0", "--capture-around", "1s"), "this test captures nothing"),
        (("--alarm", "lost <= 0", "--capture-around", "11min"), "up to 10min"),
        (("--alarm", "lost <= 0", "--capture-around", "5"), "--capture-around"),
        (("--bench", "sim", "--alarm", "lost <= 0"), "no effect with --bench sim"),
        (("--alarm", "lost <= 0", "--on-alarm", "no-such-program"), "there is no such program"),
        (("--alarm", "driver_latency.max <= 1ms"), "no live figures of driver_latency.max"),
    ):
        done = wiregauge("run", "t.xml", "--out", "r", *options)
        assert done.code == 2, done.err
        assert said in done.err
        assert not (tmp_path / "r").exists()

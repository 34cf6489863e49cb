"""The simulator as a user meets it: the default, without privilege, and in good order when something fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support import COMMAND, Runner, assert_measured, scenario

ROOT = Path(__file__).resolve().parents[2]
LONG = '<tasks><send flow="10" period="1ms" payload="64B" count="60000"/><receive flow="10"/></tasks>'

SIMULATED = scenario(
    '<tasks warm-up="10ms"><send flow="10" period="1ms" payload="64B" count="300"/><receive flow="10"/></tasks>'
).replace(' bench="netns"', "")


def test_a_first_report_needs_no_privilege(wiregauge: Runner, tmp_path: Path) -> None:
    plain = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
    done = wiregauge("run", ROOT / "examples" / "first.xml", "--out", "r", prefix=plain)
    assert done.code == 0, done.err
    assert json.loads((tmp_path / "r" / "manifest.json").read_text())["bench"] == "sim"
    assert (tmp_path / "r" / "report.html").exists()


def test_what_namespaces_cannot_carry_is_refused(wiregauge: Runner, tmp_path: Path) -> None:
    done = wiregauge(
        "run", ROOT / "examples" / "afdx.xml", "--switches", "kernel", "--bench", "netns", "--out", "r"
    )
    assert done.code == 3
    assert "leave out --switches kernel" in done.err
    assert "network B" in done.err
    assert not (tmp_path / "r").exists()


def test_a_full_disk_keeps_what_fitted(wiregauge: Runner, tmp_path: Path) -> None:
    (tmp_path / "t.xml").write_text(scenario(LONG))
    script = (
        f'mkdir small && mount -t tmpfs -o size=900k none small && "{COMMAND}" run t.xml --bench sim --out small/r; '
        "code=$?; cp -r small kept; exit $code"
    )
    answer = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert "Traceback" not in answer.stderr
    assert answer.returncode == 4, answer.stderr
    assert wiregauge("show", "kept/r", "--json").code == 4


def test_doctor_says_which_benches_work(wiregauge: Runner) -> None:
    benches = {bench["name"]: bench for bench in wiregauge("doctor", "--json").json()["benches"]}
    assert benches["sim"]["works"]
    assert benches["netns"]["works"] or benches["netns"]["cure"]


def test_the_simulator_is_the_default(wiregauge: Runner, tmp_path: Path) -> None:
    (tmp_path / "t.xml").write_text(SIMULATED)
    done = wiregauge("run", "t.xml", "--out", "r")
    assert done.code == 0, done.err
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
    assert manifest["bench"] == "sim"
    assert not (tmp_path / "r" / "spool").exists()
    assert (tmp_path / "r" / "truth" / "run-0000.parquet").exists()
    page = (tmp_path / "r" / "report.html").read_text()
    assert "discrete-event simulation" in page


def test_the_same_bytes_twice(wiregauge: Runner, tmp_path: Path) -> None:
    (tmp_path / "t.xml").write_text(SIMULATED)
    for place, jobs in (("a", "1"), ("b", "2")):
        assert wiregauge("run", "t.xml", "--out", place, "--jobs", jobs).code == 0
    for name in ("records/run-0000.parquet", "messages/run-0000.parquet", "truth/run-0000.parquet"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--rootless",), "--rootless has no effect with --bench sim"),
        (("--no-realtime",), "--no-realtime has no effect with --bench sim"),
        (("--bench", "netns", "--jobs", "2"), "--jobs has no effect with --bench netns"),
    ],
)
def test_options_without_effect_are_refused(
    wiregauge: Runner, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    (tmp_path / "t.xml").write_text(SIMULATED)
    done = wiregauge("run", "t.xml", "--out", "r", *options)
    assert done.code == 2
    assert said in done.err
    assert not (tmp_path / "r").exists()


def test_side_by_side(wiregauge: Runner, tmp_path: Path) -> None:
    (tmp_path / "t.xml").write_text(SIMULATED)
    assert wiregauge("run", "t.xml", "--out", "sim").code == 0
    live = wiregauge("run", "t.xml", "--out", "live", "--bench", "netns")
    assert_measured(live, tmp_path / "live")
    done = wiregauge("compare", "sim", "live", "--out", "both.html")
    assert done.code in ((0, 1) if live.code == 0 else (4,)), done.err
    assert "bench: sim against netns" in done.out
    page = (tmp_path / "both.html").read_text()
    assert "sim against live" in page
    assert 'href="sim/report.html"' in page
    assert 'href="live/report.html"' in page


def test_ctrl_c_keeps_what_was_simulated(wiregauge: Runner, tmp_path: Path) -> None:
    (tmp_path / "t.xml").write_text(SIMULATED.replace('count="300"', 'count="30000000"'))
    process = subprocess.Popen(
        [str(COMMAND), "run", "t.xml", "--out", "r"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    patience = time.monotonic() + 60
    segments = tmp_path / "r" / "spool" / "run-0000" / "simulator"
    while time.monotonic() < patience and not (
        segments.is_dir() and any(p.stat().st_size > 2e6 for p in segments.iterdir())
    ):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 4, said
    assert "stopped by Ctrl-C" in said
    shown = wiregauge("show", "r", "--json")
    assert shown.code == 4
    assert shown.json()["runs"][0]["flows"][0]["delivered"] > 0


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_simulation_keeps_what_it_had_recorded(wiregauge: Runner, tmp_path: Path, jobs: int) -> None:
    """SIGKILL leaves no time to tidy up: the next command that reads the directory does, and says so."""
    many = LONG.replace('count="60000"', 'count="40000000"')
    sweep = '<sweep><axis of="payload" values="64B 128B"/></sweep>'
    (tmp_path / "t.xml").write_text(scenario(many, extra=sweep if jobs == 2 else ""))
    command: list[str | Path] = [COMMAND, "run", "t.xml", "--bench", "sim", "--out", "r", "--jobs", str(jobs)]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as master:
        try:
            until = time.monotonic() + 60
            while min(written(tmp_path / "r", run) for run in range(jobs)) < 1 << 20:
                assert master.poll() is None, "the simulation goes on until it is killed"
                assert time.monotonic() < until, "it writes while it simulates"
                time.sleep(0.05)
        finally:
            master.send_signal(signal.SIGKILL)
        assert master.wait(timeout=10) == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.killpg(master.pid, 0)  # it left no process either

    done = wiregauge("show", "r", "--json")
    assert done.code == 4, done.err
    shown = done.json()
    assert shown["validity"] == "INVALID"
    assert len(shown["runs"]) == jobs
    for run in shown["runs"]:
        (flow,) = run["flows"]
        assert 0 < flow["sent"] < 40_000_000
        assert flow["sent"] == flow["delivered"] + flow["lost"] + flow["unknown"]
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
    assert manifest["state"] == "interrupted"
    assert "killed" in manifest["reason"]
    assert [run["state"] for run in manifest["runs"]] == ["partial"] * jobs
    assert all("killed" in run["reason"] for run in manifest["runs"])
    left = {path.name for path in (tmp_path / "r").iterdir()}
    assert not left & {"spool"}, "what was spooled is stored"
    assert not [name for name in left if name.endswith((".tmp", ".part"))]

    again = wiregauge("show", "r")
    assert again.code == 4
    assert "killed" in again.out + again.err
    assert wiregauge("report", "r").code in (0, 4)


def written(directory: Path, run: int) -> int:
    """Bytes a simulation has spooled of a run."""
    place = directory / "spool" / f"run-{run:04d}"
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file()) if place.is_dir() else 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_computation_of_bounds_ends_when_it_is_told_to(tmp_path: Path, number: signal.Signals) -> None:
    """Fractions of a ring of so many flows take many minutes, in native code that knows no signals."""
    servers = range(11)
    ring = {
        "network": {"name": "ring"},
        "flows": [
            {
                "name": f"f{at}-{hops}",
                "path": [f"s{(at + step) % len(servers)}" for step in range(hops)],
                "arrival_curve": {"bursts": [8_000], "rates": [10]},
            }
            for at in servers
            for hops in range(2, 8)
        ],
        "servers": [
            {"name": f"s{at}", "service_curve": {"latencies": [1], "rates": [1_000]}} for at in servers
        ],
    }
    (tmp_path / "ring.json").write_text(json.dumps(ring))
    words = ["bounds", "ring.json", "--method", "sfa", "--grouping", "off"]
    process = subprocess.Popen([str(COMMAND), *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    time.sleep(5)
    assert process.poll() is None
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode not in (0, -signal.SIGKILL)
    assert "Traceback" not in said

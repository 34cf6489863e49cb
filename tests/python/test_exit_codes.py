"""One order of exit codes, by every command that judges or compares: states against commands."""

from __future__ import annotations

import itertools
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from msgspec.structs import replace
from typer.testing import CliRunner

from synthetic import Columns, Recipe, make
from test_measures_validity import agent, limit
from wiregauge import measures, report, results
from wiregauge.cli import app
from wiregauge.export import Choice, junit
from wiregauge.measures import comparing
from wiregauge.results.comparing import compare_json, trend_json
from wiregauge.terminal import exits

SMALL = Recipe(protocols=("udp",), payloads=(64,), messages=400, warm_up=10, loss=0.0, relay=False)
INVALID = agent(clock_steps=1)
DEGRADED = agent(affinity="refused")

STATES = {
    "no limits": (SMALL, None, 0),
    "within limits": (replace(SMALL, limits=[limit("latency.max", 1e9)]), None, 0),
    "a limit failed": (replace(SMALL, limits=[limit("latency.max", 1.0)]), None, 1),
    "a limit undecided": (replace(SMALL, limits=[limit("latency.p99.9", 1e9)]), None, 4),
    "one failed, one undecided": (
        replace(SMALL, limits=[limit("latency.p99.9", 1e9), limit("latency.max", 1.0)]),
        None,
        1,
    ),
    "INVALID without limits": (SMALL, INVALID, 4),
    "INVALID within limits": (replace(SMALL, limits=[limit("latency.max", 1e9)]), INVALID, 4),
    "INVALID and beyond": (replace(SMALL, limits=[limit("latency.max", 1.0)]), INVALID, 4),
    "incomplete without limits": (
        replace(SMALL, payloads=(64, 128), stop_after=1, state="interrupted", reason="stopped"),
        None,
        4,
    ),
    "incomplete and beyond": (
        replace(
            SMALL,
            payloads=(64, 128),
            stop_after=1,
            state="interrupted",
            reason="stopped",
            limits=[limit("latency.max", 1.0)],
        ),
        None,
        4,
    ),
}


def test_the_order_of_the_codes() -> None:
    for answered, failed, undecided in itertools.product((True, False), repeat=3):
        code = exits.exit_code(answered=answered, failed=failed, undecided=undecided)
        assert code == (4 if not answered else 1 if failed else 4 if undecided else 0)


@pytest.mark.parametrize("state", STATES)
def test_every_command_ends_with_the_code_of_the_state(state: str, tmp_path: Path) -> None:
    recipe, change, code = STATES[state]
    place = tmp_path / "r"
    make(place, recipe)
    if change is not None:
        manifest = json.loads((place / "manifest.json").read_text())
        change(manifest, {})
        (place / "manifest.json").write_text(json.dumps(manifest))
    judgement = results.judge(place)
    assert judgement.exit_code == code
    done = CliRunner().invoke(app, ["show", str(place), "--json"])
    assert done.exit_code == code, done.output
    # Laid beside a good run: a limit is none of its business, an unfit side is.
    good = tmp_path / "good"
    make(good, replace(recipe, limits=(), stop_after=None, state="complete", reason=None))
    unfit = judgement.validity == measures.Grade.INVALID or not judgement.complete
    found = comparing.compare(results.judge(good), judgement)
    assert (found.exit_code == 4) == unfit
    assert comparing.trend([results.judge(good), judgement]).exit_code == (4 if unfit else 0)


def test_an_invalid_run_heads_no_page_with_pass_or_fail(tmp_path: Path) -> None:
    """One run is INVALID and the other beyond its limit: everywhere no answer comes before a failure."""
    place, good = tmp_path / "r", tmp_path / "good"
    recipe = replace(SMALL, payloads=(64, 128))
    make(good, recipe)
    make(place, replace(recipe, limits=[limit("latency.max", 1.0), limit("lost", 0)]))
    assert results.judge(place).verdict == "FAIL"
    manifest = json.loads((place / "manifest.json").read_text())
    INVALID(manifest, {})
    (place / "manifest.json").write_text(json.dumps(manifest))
    judgement = results.judge(place)
    assert [run.verdict for run in judgement.runs] == ["UNDECIDED", "FAIL"]
    assert (judgement.validity.word, judgement.verdict, judgement.exit_code) == ("INVALID", "UNDECIDED", 4)
    first, second = (run.limits for run in judgement.runs)
    assert [one.result for one in first] == ["undecided"] * 2
    assert all(one.reason == "the run is INVALID" and one.observed is not None for one in first)
    assert [one.result for one in second] == ["fail", "pass"]
    shown: Any = results.show_json(judgement)
    assert (shown["validity"], shown["verdict"]) == ("INVALID", "UNDECIDED")
    text = CliRunner().invoke(app, ["show", str(place)]).output
    assert "verdict UNDECIDED  validity INVALID" in text
    page = report.write(place, judgement).read_text(encoding="utf-8")
    assert re.findall(r'<span class="badge (\w+)"><small>verdict', page) == ["undecided"]
    suites = etree.fromstring(junit.document(judgement, Choice()))
    assert suites.xpath("testsuite[1]/properties/property[@name='verdict']/@value") == ["UNDECIDED"]
    base = results.judge(good)
    compared: Any = compare_json(comparing.compare(base, judgement))
    assert (compared["verdict"], compared["new"]["verdict"]) == ("undecided", "UNDECIDED")
    followed: Any = trend_json(comparing.trend([base, base, judgement]))
    assert (followed["verdict"], followed["runs"][-1]["verdict"]) == ("undecided", "undecided")
    none_before = comparing.trend([judgement, base])
    assert (none_before.verdict, none_before.exit_code) == ("undecided", 4)


def test_a_degraded_run_within_limits_is_0(tmp_path: Path) -> None:
    def alter(columns: Columns, flow: int) -> None:
        columns["present"]["tx_drv"][10:20] = False

    make(tmp_path / "r", replace(SMALL, alter=alter, limits=[limit("latency.max", 1e9)]))
    judgement = results.judge(tmp_path / "r")
    assert judgement.validity.word == "DEGRADED", judgement.reasons
    assert (judgement.verdict, judgement.exit_code) == ("PASS", 0)


def test_bad_input_comes_before_everything(tmp_path: Path) -> None:
    make(tmp_path / "r", replace(SMALL, limits=[limit("latency.max", 1.0)]))
    for words in (
        ["show", str(tmp_path / "none")],
        ["show", str(tmp_path / "r"), "--worst", "3"],
        ["compare", str(tmp_path / "r"), str(tmp_path / "none")],
        ["trend", str(tmp_path / "r")],
        ["export", str(tmp_path / "r")],
        ["track", str(tmp_path / "r"), "--run", "7"],
        ["run", str(tmp_path / "none.xml")],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "wiregauge", *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2, (words, done.stderr)


BUSY = """
import sys, time, types
busy = types.ModuleType("wiregauge.cli.program")
def main():
    print("ready", flush=True)
    time.sleep(60)
busy.main = main
sys.modules["wiregauge.cli.program"] = busy
from wiregauge.cli import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_no_answer(number: signal.Signals) -> None:
    """A signal ends any command with the code of no answer."""
    with subprocess.Popen(
        [sys.executable, "-c", BUSY], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.send_signal(number)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 4, said
    assert said.strip().startswith("wiregauge: stopped")
    assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize("command", ["show", "show --json"])
def test_an_output_that_is_full_is_no_bug(tmp_path: Path, command: str) -> None:
    place = make(tmp_path / "r", SMALL)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from wiregauge.cli import main; main()", *command.split(), str(place)],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == exits.NO_ENVIRONMENT
    *_, line = done.stderr.splitlines()
    assert "cannot be written: No space left on device; make room" in line

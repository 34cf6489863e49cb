"""`wiregauge compare` and `trend` as a user meets them: exit codes, one clear line for what is broken, pages."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from support import COMMAND, Runner, scenario

TASKS = '<tasks warm-up="10ms"><send flow="10" period="1ms" payload="64B" count="600"/><receive flow="10"/></tasks>'


def written(delay: str, seed: int) -> str:
    text = scenario(TASKS).replace(' bench="netns"', "").replace('seed="1"', f'seed="{seed}"')
    return text.replace('<switch name="sw1"/>', f'<switch name="sw1" delay="{delay}"/>')


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directories `a` and `b` of one test with two seeds, `slow` with a slower switch."""
    place = tmp_path_factory.mktemp("runs")
    for name, delay, seed in (("a", "2us", 1), ("b", "2us", 2), ("slow", "6us", 3)):
        (place / f"{name}.xml").write_text(written(delay, seed))
        subprocess.run(
            [str(COMMAND), "run", f"{name}.xml", "--out", name],
            cwd=place,
            check=True,
            capture_output=True,
            timeout=60,
        )
    return place


def test_nothing_worse_is_0_and_something_worse_is_1(wiregauge: Runner, runs: Path, tmp_path: Path) -> None:
    same = wiregauge("compare", runs / "a", runs / "b", "--out", "same.html")
    assert same.code == 0, same.err
    assert "verdict SAME" in same.out
    assert (tmp_path / "same.html").stat().st_size > 5e5
    worse = wiregauge("compare", runs / "a", runs / "slow", "--json")
    assert worse.code == 1
    tree = worse.json()
    assert (tree["verdict"], tree["exit_code"]) == ("worse", 1)
    assert wiregauge("compare", runs / "slow", runs / "a").code == 0
    assert wiregauge("compare", runs / "a", runs / "slow", "--threshold", "latency.p50=10us").code == 0
    asked = ("--equivalence", "-t", "latency.p50=2us")
    assert wiregauge("compare", runs / "a", runs / "b", *asked).code == 0
    assert wiregauge("compare", runs / "slow", runs / "a", *asked).code == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("a", "none"), "none: no such directory"),
        (("a", "."), "no manifest.json"),
        (("a", "b", "--threshold", "latency.p99=5"), '"5" has no unit'),
        (("a", "b", "--threshold", "rtt=5us"), "would judge nothing"),
        (("a", "b", "--equivalence"), "--equivalence needs a --threshold"),
        (("a", "b", "--base-at", "load=0%"), "has no axis load"),
        (("a", "b", "--out", "a/none/x.html"), "cannot be written"),
    ],
)
def test_usage_is_2_with_one_line(wiregauge: Runner, runs: Path, options: tuple[str, ...], said: str) -> None:
    places = [str(runs / option) if k < 2 else option for k, option in enumerate(options)]
    done = wiregauge("compare", *places)
    assert done.code == 2
    assert said in done.err
    assert len(done.err.strip().splitlines()) == 1


def broken(runs: Path, place: Path, how: str) -> Path:
    copy = place / "broken"
    shutil.copytree(runs / "b", copy)
    manifest = copy / "manifest.json"
    if how == "manifest cut":
        manifest.write_bytes(manifest.read_bytes()[:500])
    elif how == "messages cut":
        table = copy / "messages" / "run-0000.parquet"
        table.write_bytes(table.read_bytes()[:1000])
    else:
        tree = json.loads(manifest.read_text())
        if how == "interrupted":
            tree |= {"state": "interrupted", "reason": "stopped by Ctrl-C"}
            tree["runs"][0] |= {"state": "partial", "reason": "stopped by Ctrl-C"}
        else:
            tree["runs"][0]["agents"] = {}
        # As a version without hashes would have left it.
        for key in ("digest", "files"):
            tree.pop(key)
        manifest.write_text(json.dumps(tree))
    return copy


@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        ("manifest cut", 4, "manifest.json"),
        ("messages cut", 4, "run-0000.parquet"),
        ("interrupted", 4, "stopped by Ctrl-C"),
        ("no reports", 4, "INVALID"),
    ],
)
def test_broken_directories_never_compare_as_fine(
    wiregauge: Runner, runs: Path, tmp_path: Path, how: str, code: int, said: str
) -> None:
    bad = broken(runs, tmp_path, how)
    done = wiregauge("compare", bad, runs / "a")
    assert done.code == code, done.out + done.err
    assert said in done.out + done.err
    assert how.endswith(" cut") or "verdict UNDECIDED" in done.out
    assert wiregauge("trend", runs / "a", bad).code == code


def test_a_trend(wiregauge: Runner, runs: Path, tmp_path: Path) -> None:
    assert wiregauge("trend", runs / "a").code == 2
    done = wiregauge("trend", runs / "a", runs / "b", runs / "slow", "--out", "t.html")
    assert done.code == 1, done.err
    assert "newest slow" in done.out
    assert (tmp_path / "t.html").stat().st_size > 5e5
    tree = wiregauge("trend", runs / "b", runs / "a", "--reference", "first", "--json").json()
    assert [run["name"] for run in tree["runs"]] == ["a", "b"]
    assert tree["exit_code"] == 0

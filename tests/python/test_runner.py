"""The one way a test is run: searches on it, observers of it, benches that nobody knew of, and how trials end."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import simulation
from toy_bench import LATENCY_PS, Toy
from wiregauge import runner
from wiregauge.cli import app
from wiregauge.config import Test
from wiregauge.measures import Judgement
from wiregauge.plan import Campaign, Run, decode
from wiregauge.records import RunDirectory, Traits, traits_of
from wiregauge.records.reported import RunEntry
from wiregauge.runner import BenchError
from wiregauge.runner.stopping import Interrupted

ROOT = Path(__file__).resolve().parents[2]
FIRST = ROOT / "examples" / "first.xml"
PACKAGE = ROOT / "python" / "wiregauge"

PAYLOAD, BOTTLENECK = 1000, 100 * 10**6


class Bisection:
    """The highest rate at which nothing is lost."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def next(self) -> float | None:
        self.rate = (self.low + self.high) / 2
        return self.rate if self.high - self.low > 2e-3 * self.high else None

    def tell(self, judgement: Judgement) -> None:
        lost = sum(flow.counts["lost"] for run in judgement.runs for flow in run.flows)
        self.low, self.high = (self.low, self.rate) if lost else (self.rate, self.high)


def plan_at(rate: float) -> Test:
    """A flow and a load that takes half of the slow link on which both end, with a small buffer before it."""
    test = Test("search", host="ideal").end_system("a").end_system("c").end_system("b")
    test.switch("s", buffer="8KiB").link("a", "s", rate="1Gbit/s").link("c", "s", rate="100Mbit/s")
    test.link("s", "b", rate="100Mbit/s").flow(10, protocol="raw", from_="a", to="b")
    test.send(10, period=f"{1e9 / rate:.3f}ns", payload=f"{PAYLOAD}B", count=2000).receive(10)
    return test.inject(on="c", to="b", load="50%", payload=f"{PAYLOAD}B")


def test_a_search_for_the_highest_rate_without_loss_is_three_lines(tmp_path: Path) -> None:
    search = Bisection(1000.0, 12_000.0)
    with runner.open("sim", tmp_path) as trials:
        while rate := search.next():
            search.tell(trials.run(plan_at(rate)))
    half = 1e12 / simulation.occupation(simulation.frame(PAYLOAD), BOTTLENECK) / 2
    assert search.low == pytest.approx(half, rel=0.01)
    places = sorted(path.name for path in tmp_path.iterdir())
    assert len(places) > 8
    assert places == [f"trial-{k + 1:04d}" for k in range(len(places))]


def test_the_page_on_searches_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "how-to" / "search.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    monkeypatch.chdir(tmp_path)
    exec(compile(shown, "search.md", "exec"), {})
    half = 1e12 / simulation.occupation(simulation.frame(PAYLOAD), BOTTLENECK) / 2
    assert float(capsys.readouterr().out.split()[0]) == pytest.approx(half, rel=0.02)


class Noting(runner.Observer):
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def trial_began(self, runs: Sequence[Run], *, virtual_time: bool) -> None:
        self.heard.append(("began", len(runs), virtual_time))

    def run_progressed(self, position: int, share: float) -> None:
        assert 0 <= share <= 1

    def run_ended(self, position: int, entry: RunEntry) -> None:
        self.heard.append((position, entry.state))

    def trial_ended(self) -> None:
        self.heard.append("ended")


def test_an_observer_hears_of_every_run(tmp_path: Path) -> None:
    observer = Noting()
    with runner.open("sim", observer=observer) as trials:
        trials.run(ROOT / "examples" / "under-load.xml", tmp_path / "r")
    assert observer.heard[0] == ("began", 18, True)
    assert observer.heard[-1] == "ended"
    assert sorted(observer.heard[1:-1]) == [(position, "complete") for position in range(18)]


def test_a_plan_is_decoded_once_in_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the compiler's reader for a trial, by the reader of the manifest for a command that opens it."""
    decoded: list[object] = []

    def counting(raw: object) -> Campaign:
        decoded.append(raw)
        return decode(raw)

    monkeypatch.setattr("wiregauge.config.loading.decode", counting)
    monkeypatch.setattr("wiregauge.records.directory.decode", counting)
    with runner.open("sim") as trials:
        trials.run(FIRST, tmp_path / "r")
    assert len(decoded) == 1
    # Another plan than that of the last trial.
    copy = RunDirectory.open(tmp_path / "r")
    copy.manifest["plan"]["seed"] += 1
    copy.save()
    for _ in range(2):
        assert runner.judged(tmp_path / "r", pytest.fail).runs
        assert RunDirectory.open(tmp_path / "r").plan.seed == copy.plan.seed + 1
    assert len(decoded) == 2


def test_after_a_trial_that_was_stopped_a_search_ends(tmp_path: Path) -> None:
    text = FIRST.read_text(encoding="utf-8")
    test = tmp_path / "long.xml"
    test.write_text(re.sub(r'count="\d+"', 'count="40000000"', text), encoding="utf-8")

    class Stopping(runner.Observer):
        def run_progressed(self, position: int, share: float) -> None:
            if share > 0:
                os.kill(os.getpid(), signal.SIGINT)

    with runner.open("sim", tmp_path / "out", observer=Stopping()) as trials:
        assert trials.run(test).state == "interrupted"
        with pytest.raises(Interrupted, match="Ctrl-C"):
            trials.run(test)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["trial-0001"]


# -- a bench that nobody knew of


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line of the registry."""
    monkeypatch.setitem(runner.BENCHES, Toy.name, Toy)


@pytest.mark.usefixtures("toy")
def test_a_new_bench_is_one_file_and_one_line(tmp_path: Path) -> None:
    place = str(tmp_path / "r")
    done = CliRunner().invoke(app, ["run", str(FIRST), "--bench", "toy", "--out", place, "--json"])
    assert done.exit_code == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["validity"] == "VALID"
    flow = shown["runs"][0]["flows"][0]
    assert flow["sent"] == flow["delivered"] == 500
    assert flow["latency_ns"]["min"] == flow["latency_ns"]["max"] == LATENCY_PS / 1000
    checks = {check["name"]: check for check in shown["runs"][0]["checks"]}
    assert checks["stolen-time"]["observed"] == "not looked at: virtual time", "it says so, whatever its name"
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
    assert manifest["bench"] == "toy"
    assert traits_of(manifest) == Toy.traits
    for command in (["show", place], ["report", place], ["verify", place], ["compare", place, place]):
        assert CliRunner().invoke(app, command).exit_code == 0, command
    assert (tmp_path / "r" / "report.html").exists()


@pytest.mark.usefixtures("toy")
def test_commands_know_a_new_bench() -> None:
    benches = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)["benches"]
    assert [bench["name"] for bench in benches] == ["sim", "netns", "lab", "toy"]
    refused = CliRunner().invoke(app, ["run", str(FIRST), "--bench", "toy", "--jobs", "2"])
    assert refused.exit_code == 2
    assert "--jobs has no effect with --bench toy; leave it out or run with --bench sim" in refused.stderr
    unknown = CliRunner().invoke(app, ["run", str(FIRST), "--bench", "desk"])
    assert unknown.exit_code == 2
    assert "'desk' is not one of 'sim', 'netns', 'lab', 'toy'" in re.sub(r"[\s│]+", " ", unknown.output)


def test_nobody_asks_what_a_bench_is_called() -> None:
    """Names are said where a bench is defined, chosen, or was before manifests stated traits."""
    asked = re.compile(r"""(?:[=!]=|\bin|\bis(?: not)?)\s*[({]?["'](?:sim|netns|capture|tap)["']""")
    backwards = re.compile(r"""["'](?:sim|netns|capture|tap)["']\s*(?:[=!]=)""")
    of_tasks = re.compile(r"""kind["']?\]?\)? == "capture\"""")
    found = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in (*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.j2"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if (asked.search(line) or backwards.search(line)) and not of_tasks.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("manifest", "traits"),
    [
        ({"bench": "sim"}, Traits()),
        ({}, Traits()),
        ({"bench": "sim", "traits": {"tapped": True, "of a later version": 1}}, Traits(tapped=True)),
    ],
)
def test_traits_are_those_stated_whatever_the_name_of_the_bench(
    manifest: dict[str, Any], traits: Traits
) -> None:
    assert traits_of(manifest) == traits


# -- how trials end


def broken(why: BaseException, *, runs: bool = False) -> runner.Bench:
    class Broken(Toy):
        def run(self, directory: RunDirectory, observer: runner.Observer) -> None:
            if runs:
                super().run(directory, observer)
            raise why

    return Broken()


def test_of_a_bench_that_cannot_begin_nothing_is_left(tmp_path: Path) -> None:
    with (
        runner.open(broken(BenchError("no power"))) as trials,
        pytest.raises(runner.NothingRunError, match="no power") as found,
    ):
        trials.run(FIRST, tmp_path / "r")
    assert not found.value.stopped
    assert not (tmp_path / "r").exists()


def test_what_nobody_expected_leaves_no_empty_directory_and_no_lock(tmp_path: Path) -> None:
    for runs in (False, True):
        with runner.open(broken(ZeroDivisionError(), runs=runs)) as trials, pytest.raises(ZeroDivisionError):
            trials.run(FIRST, tmp_path / f"{runs}")
    assert not (tmp_path / "False").exists()
    assert not RunDirectory.open(tmp_path / "True").is_being_written()


def test_a_bench_that_breaks_keeps_the_runs_it_finished(tmp_path: Path) -> None:
    with runner.open(broken(BenchError("no power any more"), runs=True)) as trials:
        judgement = trials.run(FIRST, tmp_path / "r")
    assert (judgement.state, judgement.reason) == ("failed", "no power any more")
    assert [run.state for run in judgement.runs] == ["complete"]


def test_a_spool_that_stays_for_no_reason_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    rmdir = Path.rmdir

    def refused(path: Path) -> None:
        if path.name == "spool":
            raise PermissionError(13, "Permission denied")
        rmdir(path)

    monkeypatch.setattr(Path, "rmdir", refused)
    with runner.open("sim", told=told.append) as trials:
        trials.run(FIRST, tmp_path / "r")
    assert told == [
        f"{tmp_path / 'r' / 'spool'}: cannot be removed (Permission denied); it is empty and can go"
    ]


def test_options_are_those_of_the_bench() -> None:
    with pytest.raises(runner.OptionError, match="leave it out or run with --bench netns"):
        runner.bench_named("sim", realtime=False)
    with pytest.raises(BenchError, match='no bench "desk"; there are sim, netns'):
        runner.bench_named("desk")
    assert isinstance(runner.bench_named("sim", jobs=2, realtime=None), runner.SimulatorBench)

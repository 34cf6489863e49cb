"""Progress in a log: whole plain lines, not too seldom and not too many; a line that moves on a terminal alone."""

from __future__ import annotations

import io
import itertools
import json
import random
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

from wiregauge import measures
from wiregauge.cli import app, progress
from wiregauge.cli.progress import EVERY_S, LASTS_S, MOST_TOLD, Countdown, ProgressView, Work
from wiregauge.cli.whole import AFTER_RUNS, Whole
from wiregauge.records.live import FlowNow, RunNow
from wiregauge.records.reported import AgentReport, RunEntry, TaskReport


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _no_build_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def runs(count: int, planned_s: float, **point: str) -> Any:
    """Runs of a flow to two receivers, with 250 messages of warm-up."""
    flows = (SimpleNamespace(id=10, exchange=False, receivers=(1, 2)),)
    sends = (SimpleNamespace(flow=10, warm_up_count=250),)
    return [
        SimpleNamespace(
            index=index, planned_s=planned_s - 0.3, point=point, repeat=0, flows=flows, sends=sends
        )
        for index in range(count)
    ]


def measured(position: int, seconds: float, sent: int) -> RunNow:
    """Live figures, but for those of a second: the run is not long enough to have them shown."""
    flow = FlowNow(10, "a", "b", "latency", sent, sent, 0, 0, 0.0, 0, None, None, None, None, 0)
    return RunNow(position, position, min(seconds, LASTS_S / 2), (flow,), 0, 0)


def entry_of(reason: str | None = None) -> RunEntry:
    task = TaskReport("send", 10, done=500)
    return RunEntry(reason=reason, agents={"a": AgentReport(tasks=(task,))})


def trial(
    file: io.StringIO,
    count: int,
    planned_s: float,
    *,
    virtual_time: bool = False,
    steps_per_s: float = 5,
    reason: str | None = None,
) -> list[str]:
    """What is written in the course of a trial whose runs take as long as they were to."""
    clock = Clock()
    view = ProgressView(Console(file=file, width=40), clock)
    view.trial_began(runs(count, planned_s, payload="64B\x1b[31m"), virtual_time=virtual_time)
    steps = max(int(planned_s * steps_per_s), 1)
    for position in range(count):
        if not virtual_time:
            view.run_began(position)
        for step in range(1, steps + 1):
            clock.now += planned_s / steps
            if not virtual_time:
                view.run_measured(measured(position, step / steps_per_s, 10 * step))
            view.run_progressed(position, step / steps)
        view.run_ended(position, entry_of(reason))
    view.trial_ended()
    return file.getvalue().splitlines()


def test_a_run_begins_goes_on_and_ends() -> None:
    lines = trial(io.StringIO(), 2, 30.0)
    assert lines == [
        "2 runs, 0 to 1",
        "run 0  payload 64B [31m: begins",
        "run 0  payload 64B [31m: 16 % done, 500 messages sent, 0:50 left",
        "run 0  payload 64B [31m: 33 % done, 1000 messages sent, 0:40 left",
        "run 0  payload 64B [31m: 49 % done, 1500 messages sent, 0:30 left",
        "run 0  payload 64B [31m: 250 messages sent (0:30 left)",
        "run 1  payload 64B [31m: begins",
        "run 1  payload 64B [31m: 66 % done, 500 messages sent, 0:20 left",
        "run 1  payload 64B [31m: 82 % done, 1000 messages sent, 0:10 left",
        "run 1  payload 64B [31m: 99 % done, 1500 messages sent, 0:00 left",
        "run 1  payload 64B [31m: 250 messages sent (done)",
    ]


@pytest.mark.parametrize("virtual_time", [False, True])
@pytest.mark.parametrize(
    ("count", "planned_s"), [(1, 86_400.0), (100, 1_000.0), (10_000, 10.0), (10_000, 0.5)]
)
def test_lines_are_bounded(count: int, planned_s: float, *, virtual_time: bool) -> None:
    """A day, or ten thousand runs: hundreds of lines. Each is whole, plain and ends."""
    file = io.StringIO()
    lines = trial(file, count, planned_s, virtual_time=virtual_time, steps_per_s=0.5)
    assert len(lines) <= 2 * MOST_TOLD + 450
    assert file.getvalue().endswith("\n")
    assert all(line.isprintable() and line for line in lines)
    assert any(" % done" in line for line in lines)


def test_silence_is_not_long_at_first_nor_too_long_later() -> None:
    clock, file = Clock(), io.StringIO()
    view = ProgressView(Console(file=file), clock)
    view.trial_began(runs(1, 86_400.0), virtual_time=False)
    view.run_began(0)
    told, length = [clock.now], len(file.getvalue())
    while clock.now < 1000.0 + 86_400.0:
        clock.now += 1.0
        view.run_progressed(0, (clock.now - 1000.0) / 86_400.0)
        if len(file.getvalue()) > length:
            told.append(clock.now)
            length = len(file.getvalue())
    silences = [later - earlier for earlier, later in itertools.pairwise(told)]
    assert set(silences[:50]) == {EVERY_S}
    assert max(silences) < 86_400 / 50


def test_many_runs_are_counted_and_a_failed_one_is_named() -> None:
    lines = trial(io.StringIO(), MOST_TOLD + 1, 1.0, virtual_time=True)
    assert lines[0] == "101 runs begin, 101 s of traffic in all"
    assert lines[1] == "9 of 101 runs: 4 % done, 3:22 left"
    assert lines[-1] == "101 of 101 runs done in 1:41"
    assert not any("messages sent" in line for line in lines)
    failed = trial(io.StringIO(), MOST_TOLD + 1, 1.0, virtual_time=True, reason="the disk\nis full")
    assert any("250 messages sent; the disk is full" in line for line in failed)


@pytest.mark.parametrize("example", ["round-trips", "priorities", "ring-frer"])
def test_as_many_messages_are_sent_as_the_report_counts(example: str, tmp_path: Path) -> None:
    """Flows to several receivers, a warm-up, and frames that are sent twice."""
    file = Path(__file__).resolve().parents[2] / "examples" / f"{example}.xml"
    done = CliRunner().invoke(app, ["run", str(file), "--bench", "sim", "--out", str(tmp_path / "r")])
    assert done.exit_code == 0, done.output
    (told,) = re.findall(r"^run 0: (\d+) messages sent", done.stderr, re.MULTILINE)
    shown = json.loads((tmp_path / "r" / "measures.json").read_text(encoding="utf-8"))
    (run,) = shown["runs"]
    # Each message once, however many receivers it has.
    sent = {flow["flow"]: flow["sent"] for flow in run["flows"]}
    assert int(told) == sum(sent.values())
    assert f" of {told} messages lost" in done.stdout


def test_a_run_has_the_number_that_everything_else_calls_it_by() -> None:
    """Also where a trial that was interrupted goes on with its last runs."""
    for left, named in (((2, 3), "2 runs, 2 to 3"), ((0, 2, 3), "3 runs, 0, 2, 3")):
        file = io.StringIO()
        view = ProgressView(Console(file=file), Clock())
        view.trial_began([runs(4, 1.0)[index] for index in left], virtual_time=False)
        view.run_began(0)
        assert file.getvalue().splitlines() == [named, f"run {left[0]}: begins"]


def test_where_nothing_is_known_no_time_is_promised() -> None:
    clock, file = Clock(), io.StringIO()
    view = ProgressView(Console(file=file), clock)
    view.trial_began(runs(1, 100.0), virtual_time=True)
    view.run_progressed(0, 0.0)
    clock.now += 11
    view.run_progressed(0, 0.0)
    clock.now += 11
    view.run_progressed(0, 0.5)
    assert file.getvalue().splitlines() == [
        "run 0: begins",
        "0 of 1 runs: 0 % done",
        "0 of 1 runs: 12 % done, 2:34 left",
    ]


def test_only_a_terminal_without_a_build_server_sees_a_line_move(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" in "".join(trial(Terminal(), 1, 1.0))
    monkeypatch.setenv("FORCE_COLOR", "1")
    for file, server in ((io.StringIO(), ""), (Terminal(), "true"), (Terminal(), "1")):
        monkeypatch.setenv("CI", server)
        lines = trial(file, 1, 25.0)
        assert len(lines) == 4
        assert all(line.isprintable() for line in lines)
    monkeypatch.setenv("CI", "false")
    assert "\x1b" in "".join(trial(Terminal(), 1, 1.0))
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in "".join(trial(Terminal(), 1, 1.0))


def test_a_countdown_is_plain_as_well() -> None:
    clock, file = Clock(), io.StringIO()
    with Countdown(Console(file=file), "reading clocks", 60.0, clock) as countdown:
        for second in range(1, 61):
            clock.now += 1
            countdown.at(second / 60)
    lines = file.getvalue().splitlines()
    assert lines[:2] == ["reading clocks: about 60 s", "reading clocks: 17 % done, 0:50 left"]
    assert len(lines) == 7
    assert all(line.isprintable() for line in lines)


def test_what_follows_the_simulation_is_said() -> None:
    file, clock = io.StringIO(), Clock()
    view = ProgressView(Console(file=file, width=40), clock)
    view.trial_began(runs(1, 100.0), virtual_time=True)
    for share in (0.0, 0.5, 1.0, 1.0):
        view.run_progressed(0, share)
        clock.now += EVERY_S + 1
    view.run_ended(0, entry_of())
    view.trial_ended()
    view.judging_began()
    view.judging_ended()
    assert file.getvalue().splitlines() == [
        "run 0: begins",
        "0 of 1 runs: 12 % done, 1:17 left",
        "0 of 1 runs: 25 % done, messages are tracked, 1:06 left",
        "0 of 1 runs: 34 % done, messages are tracked, 1:03 left",
        "run 0: 250 messages sent (done)",
        "judging: 50 % done, 0:44 left",
    ]


def test_a_short_trial_has_no_line_for_judging() -> None:
    file = io.StringIO()
    view = ProgressView(Console(file=file, width=40), Clock())
    view.trial_began(runs(1, 1.0), virtual_time=True)
    view.trial_ended()
    view.judging_began()
    view.judging_ended()
    assert file.getvalue() == ""


def test_judging_moves_on_a_terminal_and_is_gone_when_it_is_done() -> None:
    file = Terminal()
    view = ProgressView(Console(file=file, width=40, force_terminal=True), Clock())
    view.trial_began(runs(1, 1.0), virtual_time=True)
    view.trial_ended()
    view.judging_began()
    view.judging_ended()
    assert "judging" in file.getvalue()
    assert file.getvalue().endswith("\x1b[2K")


def test_what_follows_a_run_tells_its_share_and_the_time_left_to_the_end() -> None:
    from wiregauge.measures.progress import reached

    now = [0.0]
    out = io.StringIO()
    whole = Whole({"explaining": 3.0, "drawing": 1.0}, lambda: now[0])
    with Work(Console(file=out), whole, lambda: now[0], last=True, beat_s=0):
        for second in range(0, 120, 5):
            now[0] = float(second)
            if second < 90:
                reached("explaining", second / 90)
            reached("something else", 0.5)
            if second >= 90:
                reached("drawing", (second - 90) / 30)
    lines = out.getvalue().splitlines()
    assert lines[0] == "explaining: 8 % done, 1:50 left"
    assert any(line.startswith("drawing: ") and line.endswith(" left") for line in lines)
    shares = [int(line.split(": ")[1].split(" %")[0]) for line in lines]
    assert shares == sorted(shares)
    reached("explaining", 1.0)
    assert out.getvalue().splitlines() == lines


# -- one share for the whole command --------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(
    stages=st.lists(st.tuples(st.floats(0.01, 100), st.floats(0.1, 400)), min_size=1, max_size=4),
    rounds=st.integers(1, 3),
    fixed=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_the_share_of_a_command_only_grows_and_ends_with_all_of_it(
    stages: list[tuple[float, float]], rounds: int, seed: int, *, fixed: bool
) -> None:
    """Whatever part of the work a stage is taken for, however long it takes, and however seldom it tells."""
    rng, clock, out = random.Random(seed), Clock(), io.StringIO()
    names = [f"stage {k}" for k in range(len(stages))]
    parts = {name: part for name, (part, _) in zip(names, stages, strict=True)}
    whole = Whole(parts, clock, rounds=rounds, fixed=names[0] if fixed else "")
    long: list[str] = []
    with Work(Console(file=out, width=200), whole, clock, last=True, beat_s=0) as work:
        for _ in range(rounds):
            for name, (_, lasts_s) in zip(names, stages, strict=True):
                begun = clock.now
                tells = sorted(rng.random() for _ in range(rng.randrange(4)))
                work.at(name, 0.0)
                while clock.now < begun + lasts_s:
                    clock.now += 1.0
                    share = (clock.now - begun) / lasts_s
                    while tells and tells[0] <= share:
                        work.at(name, tells.pop(0))
                    work.tell()
                work.at(name, 1.0)
                # Silence is ten seconds at least, and a part of the time so far when that is longer.
                if lasts_s > 2 * max(EVERY_S, (clock.now - 1000.0) / 60) + 2:
                    long.append(name)
    lines = out.getvalue().splitlines()
    shares = [int(line.split(": ")[1].split(" %")[0]) for line in lines]
    assert shares == sorted(shares)
    assert all(0 <= share <= 100 for share in shares)
    assert {line.split(":")[0] for line in lines} >= set(long)
    if lines:
        assert shares[-1] == 100
        assert all(share < 100 for share in shares[:-1])


def test_a_command_tells_one_share_from_its_begin_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs, judging, explaining and drawing together: every stage has lines, none goes back, the last says 100 %."""
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    monkeypatch.setattr(progress, "_SELDOM", 10**9)
    example = Path(__file__).resolve().parents[2] / "examples" / "two-switches.xml"
    out = tmp_path / "r"
    for words, stages in (
        (["run", str(example), "--out", str(out)], {"judging", "explaining", "drawing"}),
        (["report", str(out), "--svg", str(tmp_path / "svg")], {"judging", "explaining", "drawing"}),
        (["show", str(out), "--explain"], {"judging", "explaining"}),
        (["show", str(out)], {"judging"}),
    ):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        told = re.findall(r"^([^:\n]*): (\d+) % done", done.stderr, re.MULTILINE)
        shares = [int(share) for _, share in told]
        assert shares == sorted(shares), words
        assert shares[-1] == 100, words
        assert {stage for stage, _ in told} >= stages, words
        assert done.stderr.rstrip().endswith("100 % done"), words


def test_what_follows_the_runs_is_what_the_work_tells() -> None:
    """A stage that nobody tells of, or one that is told and is none, would be silent."""
    source = Path(measures.__file__).parents[1]
    told = {
        name
        for path in source.rglob("*.py")
        for name in re.findall(r'\breached\("(\w+)"', path.read_text(encoding="utf-8"))
    }
    assert told == set(AFTER_RUNS)

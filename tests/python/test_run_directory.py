"""Nothing that another process made is deleted or overwritten, and one process at a time writes a run directory."""

from __future__ import annotations

import contextlib
import copy
import errno
import io
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import stored
from typer.testing import CliRunner

import wiregauge as wg
from wiregauge import results
from wiregauge._native import PLAN_SCHEMA
from wiregauge.cli.program import app, main
from wiregauge.files import ForeignFileError, whole, write_whole
from wiregauge.records import DamagedError, RunDirectory, RunDirectoryError, recover
from wiregauge.records.lock import Lock
from wiregauge.records.verifying import State, verify

EMPTY: dict[str, Any] = {
    "schema": PLAN_SCHEMA, "name": "t", "seed": 1, "network": {"nodes": [], "links": []},
    "axes": [], "repeats": 1, "runs": [], "limits": [], "warnings": [],
}  # fmt: skip
MANIFEST: dict[str, Any] = {
    "schema": 3, "test": {}, "plan": EMPTY, "runs": [], "state": "running", "reason": None,
}  # fmt: skip
COMMAND = [sys.executable, "-m", "wiregauge"]


def manifest() -> dict[str, Any]:
    return copy.deepcopy(MANIFEST)


def listing(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*")}


# -- two commands into one directory -----------------------------------------------------------------------


def test_the_loser_of_a_race_leaves_the_winner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the second had looked before the first began: it finds the lock, and touches nothing."""
    winner = RunDirectory.create(tmp_path / "r", manifest(), b"<test/>")
    before = listing(tmp_path / "r")
    monkeypatch.setattr(RunDirectory, "check_free", lambda root: None)
    with pytest.raises(RunDirectoryError, match="another command is making a run directory there"):
        RunDirectory.create(tmp_path / "r", manifest(), b"<other/>")
    assert listing(tmp_path / "r") == before
    assert (tmp_path / "r" / "test.xml").read_bytes() == b"<test/>"
    # Also once it has let the lock go: what is there is somebody's.
    winner.close()
    with pytest.raises(RunDirectoryError, match="another process put files there"):
        RunDirectory.create(tmp_path / "r", manifest(), b"<other/>")
    assert listing(tmp_path / "r") == before - {".lock", ".reserve"}


def _creating(place: Path, gate: Any, won: Any) -> None:
    gate.wait()
    try:
        directory = RunDirectory.create(place, manifest(), str(os.getpid()).encode())
    except RunDirectoryError:
        return
    won.put(os.getpid())
    gate.wait()
    directory.close()


def test_of_many_who_create_one_directory_at_once_one_does(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    for attempt in range(10):
        place = tmp_path / f"r{attempt}"
        gate, won = context.Barrier(4), context.SimpleQueue()
        racers = [context.Process(target=_creating, args=(place, gate, won), daemon=True) for _ in range(4)]
        for racer in racers:
            racer.start()
        winner = won.get()
        # The losers have gone; the winner waits at the gate for them, so it is opened for good.
        for racer in racers:
            if racer.pid != winner:
                racer.join(20)
        assert won.empty()
        assert (place / "test.xml").read_bytes() == str(winner).encode()
        assert "manifest.json" in listing(place)
        gate.abort()
        for racer in racers:
            racer.join(20)


def test_two_commands_into_one_directory(tmp_path: Path) -> None:
    (tmp_path / "t.xml").write_text(stored.TEXT.format(seed=1, count=300))
    command = [*COMMAND, "run", "t.xml", "--out", "r", "--bench", "sim"]
    both = [
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    told = [(one.communicate(timeout=120), one.returncode) for one in both]
    codes = sorted(code for _, code in told)
    assert codes == [0, 2], told
    (loser,) = [err for (_, err), code in told if code == 2]
    *notes, problem = loser.splitlines()
    assert all(note.startswith("note: ") for note in notes)
    assert problem.startswith("wiregauge: r: ")
    assert verify(tmp_path / "r").state is State.WHOLE


def test_what_somebody_else_put_there_outlives_a_run_that_measured_nothing(tmp_path: Path) -> None:
    for root in (tmp_path / "new", tmp_path / "old"):
        if root.name == "old":
            root.mkdir()
        directory = RunDirectory.create(root, manifest(), b"<test/>")
        (root / "records" / "mine.parquet").write_text("mine")
        (root / "notes.txt").write_text("mine")
        directory.discard()
        assert listing(root) == {"records", "records/mine.parquet", "notes.txt"}
        shutil.rmtree(root)
    # Without anything of others all is gone, but for a directory that was there before.
    RunDirectory.create(tmp_path / "new", manifest(), b"<test/>").discard()
    assert not (tmp_path / "new").exists()
    (tmp_path / "old").mkdir()
    RunDirectory.create(tmp_path / "old", manifest(), b"<test/>").discard()
    assert listing(tmp_path / "old") == set()


def test_who_does_not_hold_the_lock_discards_nothing(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "r", manifest(), b"<test/>")
    directory.close()
    before = listing(tmp_path / "r")
    directory.discard()
    assert listing(tmp_path / "r") == before


# -- recovering ---------------------------------------------------------------------------------------------


def test_a_killed_campaign_is_recovered_by_one_process_at_a_time(tmp_path: Path) -> None:
    place = stored.make(tmp_path / "r")
    directory = RunDirectory.open(place)
    directory.manifest["state"] = "running"
    directory.save()
    holder, second = RunDirectory.open(place), RunDirectory.open(place)
    holder.hold()
    assert not recover(second), "it is being written"
    holder.close()
    assert recover(second)
    assert not recover(RunDirectory.open(place)), "it is done"
    found = verify(place)
    assert {finding.state for finding in found.findings} <= {State.STALE}, found.findings
    assert results.judge(place).state == "interrupted"
    assert verify(place).state is State.WHOLE


def test_tracking_again_that_was_killed_is_done_again(tmp_path: Path) -> None:
    """The tables that were to be replaced are off the list; whoever reads next makes them from the records."""
    place = stored.make(tmp_path / "r")
    judged = (place / "measures.json").read_bytes() if (place / "measures.json").exists() else None
    expected = results.show_json(results.judge(place))
    directory = RunDirectory.open(place)
    directory.strike_files(["tracking.json", *map(directory.name_of, directory.tables(1))])
    directory.save()
    directory.messages(1).write_bytes(b"half a ta")
    assert verify(place).state is State.FOREIGN
    assert recover(RunDirectory.open(place))
    assert results.show_json(results.judge(place)) == expected
    assert verify(place).state is State.WHOLE
    assert judged is None or judged != b""


def test_a_lock_that_vanishes_between_opening_and_locking_is_not_taken(tmp_path: Path) -> None:
    """The file that was opened is no longer the lock of the directory, so holding it would mean nothing."""
    one = RunDirectory.create(tmp_path / "r", manifest(), b"<test/>")
    handle = os.open(tmp_path / "r" / ".lock", os.O_RDWR)
    one.close()
    other = RunDirectory.open(tmp_path / "r")
    other.hold()
    assert not os.path.samestat(os.fstat(handle), (tmp_path / "r" / ".lock").stat())
    os.close(handle)
    assert RunDirectory.open(tmp_path / "r").is_being_written()
    other.close()


# -- files, whole or not at all ------------------------------------------------------------------------------


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    write_whole(path, "old")
    with contextlib.suppress(RuntimeError), whole(path) as beside:
        beside.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert listing(tmp_path) == {path.name}


def test_only_what_may_be_replaced_is(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("somebody's")
    for replacing in (None, b"ours"):
        with pytest.raises(ForeignFileError, match="did not make"):
            write_whole(page, "new", replacing=replacing)
    assert page.read_text() == "somebody's"
    page.write_text("<!-- ours -->")
    write_whole(page, "ours again", replacing=b"ours")
    assert page.read_text() == "ours again"
    with pytest.raises(ForeignFileError, match="is a directory; name a file"):
        write_whole(tmp_path, "new", replacing=b"ours")
    # Taken while it was written: found when it gets its name.
    late = tmp_path / "late"
    refused = False
    try:
        with whole(late, replacing=None) as beside:
            beside.write_text("new")
            late.write_text("somebody's")
    except ForeignFileError:
        refused = True
    assert refused
    assert (tmp_path / "late").read_text() == "somebody's"
    assert listing(tmp_path) == {"page.html", "late"}


def test_pages_and_figures_do_not_overwrite_what_is_not_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    place = stored.make(tmp_path / "r", count=40)
    page = tmp_path / "page.html"
    page.write_text("somebody's")

    def command(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["wiregauge", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), capsys.readouterr().err

    code, told = command("compare", str(place), str(place), "--out", "page.html")
    assert (code, page.read_text()) == (2, "somebody's")
    assert "did not make" in told
    for _ in range(2):  # its own page it replaces
        assert command("compare", str(place), str(place), "--out", "own.html")[0] in (0, 1)
    assert command("report", str(place), "--svg", "figures")[0] == 0
    assert command("report", str(place), "--svg", "figures")[0] == 0
    figure = next((tmp_path / "figures").glob("*.svg"))
    figure.write_text("somebody's")
    code, told = command("report", str(place), "--svg", "figures")
    assert (code, figure.read_text()) == (2, "somebody's")
    assert "did not make" in told


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest["runs"][0].update(index=1000),
        lambda manifest: manifest["runs"][0].update(index=-1),
        lambda manifest: manifest["runs"][0].update(index="0"),
        lambda manifest: manifest["runs"].append(manifest["runs"][0]),
        lambda manifest: manifest.update(runs=7),
        lambda manifest: manifest.update(plan=None),
    ],
)
def test_runs_that_are_not_of_the_plan_are_damage(tmp_path: Path, change: Callable[[Any], None]) -> None:
    """In a directory of before there are hashes no digest tells that its manifest was altered."""
    place = stored.unsealed(stored.make(tmp_path / "r", count=40), tmp_path / "before")
    manifest = json.loads((place / "manifest.json").read_text())
    change(manifest)
    (place / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DamagedError, match=r"its runs are not those of its plan|plan: Expected `object`"):
        RunDirectory.open(place)


def test_a_plan_of_another_schema_is_no_damage(tmp_path: Path) -> None:
    place = stored.unsealed(stored.make(tmp_path / "r", count=40), tmp_path / "before")
    manifest = json.loads((place / "manifest.json").read_text())
    manifest["plan"]["schema"] += 1
    (place / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(RunDirectoryError, match="is unknown to this wiregauge, which reads") as refused:
        RunDirectory.open(place)
    assert not isinstance(refused.value, DamagedError)


# -- places that cannot be written -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("report", "r"),
        ("compare", "r", "r"),
        ("trend", "r", "whole"),
    ],
)
@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_killed_run_in_an_archive_that_cannot_be_written_ends_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: tuple[str, ...]
) -> None:
    directory = RunDirectory.open(stored.make(tmp_path / "r", count=40))
    shutil.copytree(tmp_path / "r", tmp_path / "whole")
    directory.manifest["state"] = "running"
    directory.save()

    def refused(root: Path) -> Lock:
        raise OSError(number, os.strerror(number), str(root / ".lock"))

    monkeypatch.setattr(Lock, "take", refused)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["wiregauge", *words])
    monkeypatch.setattr(sys, "stderr", said := io.StringIO())
    monkeypatch.setattr(sys, "stdout", answered := io.StringIO())
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, answered.getvalue()) == (4, "")
    assert said.getvalue() == (
        f"wiregauge: r: its testmaster was killed, and what it left can only be made readable where it can be written "
        f"({os.strerror(number)}); copy the directory to such a place and name the copy\n"
    )
    with pytest.raises(wg.WiregaugeError, match="copy the directory to such a place"):
        wg.open(tmp_path / "r")


@pytest.mark.parametrize("words", [("show", "r"), ("export", "r", "--to", "csv", "--out", "x.csv")])
def test_a_killed_run_in_an_archive_is_looked_at_in_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    directory = RunDirectory.open(stored.make(tmp_path / "r", count=40))
    directory.manifest["state"] = "running"
    directory.save()
    before = {path: path.read_bytes() for path in (tmp_path / "r").rglob("*") if path.is_file()}
    taken = Lock.take

    def refused(root: Path) -> Lock:
        if not root.is_absolute():
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(root / ".lock"))
        return taken(root)

    monkeypatch.setattr(Lock, "take", refused)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["wiregauge", *words])
    monkeypatch.setattr(sys, "stderr", said := io.StringIO())
    monkeypatch.setattr(sys, "stdout", answered := io.StringIO())
    with pytest.raises(SystemExit) as ended:
        main()
    assert "this is of a copy, which is not kept" in said.getvalue()
    if words[0] == "show":
        assert (ended.value.code, "verdict" in answered.getvalue()) == (4, True)
    else:
        assert (ended.value.code, (tmp_path / "x.csv").exists()) == (0, True)
    assert before == {path: path.read_bytes() for path in (tmp_path / "r").rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", ["compare", "trend"])
@pytest.mark.parametrize("out", ["none/page.html", "taken.html", "r"])
def test_a_page_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, out: str
) -> None:
    for name in ("r", "s"):
        stored.make(tmp_path / name, count=40)
    (tmp_path / "taken.html").write_text("somebody's")
    before = listing(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(results, "judge", lambda *_, **__: pytest.fail("the work has begun"))
    with pytest.raises(RunDirectoryError, match=r"cannot be written|did not make|is a directory"):
        CliRunner().invoke(app, [command, "r", "s", "--out", out], catch_exceptions=False)
    assert listing(tmp_path) == before


@pytest.mark.parametrize("command", ["compare", "trend"])
def test_a_disk_that_fills_under_a_page_is_no_wrong_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    for name in ("r", "s"):
        stored.make(tmp_path / name, count=40)
    monkeypatch.chdir(tmp_path)

    def full(path: Path, *_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(sys.modules["wiregauge.report.write"], "write_whole", full)
    done = CliRunner().invoke(app, [command, "r", "s", "--out", "page.html"])
    assert done.exit_code == 4, done.output
    assert done.stdout, "it has answered"
    assert "page.html: cannot be written (No space left on device); make room" in done.stderr
    assert len(done.stderr.splitlines()) == 1

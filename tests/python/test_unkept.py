"""A judgement that cannot be kept in its run directory is still given, and every command says so in one sentence."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import stored
from typer.testing import CliRunner

import wiregauge as wg
from wiregauge import results
from wiregauge.cli import app

SAID = "measures.json: the judgement is not kept ("


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = stored.make(tmp_path_factory.mktemp("unkept") / "r")
    results.judge(made)
    return made


@pytest.fixture
def here(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two run directories and the test they are of."""
    for name in ("r", "other"):
        shutil.copytree(place, tmp_path / name)
    (tmp_path / "t.xml").write_text(stored.TEXT.format(seed=1, count=200))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """No room for judgements, and room for everything else."""

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(sys.modules["wiregauge.results.judging"], "write_sealed", refused)


@pytest.fixture
def short_files() -> Iterator[None]:
    """No file of this process may grow beyond 1000 bytes: the system refuses in the middle of one."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    ("words", "places", "code"),
    [
        (("show", "r"), 1, 0),
        (("show", "r", "--json"), 1, 0),
        (("show", "r", "--explain"), 1, 0),
        (("report", "r", "other"), 2, 0),
        (("report", "r", "--png", "p", "--svg", "s"), 1, 0),
        (("compare", "r", "other"), 2, 0),
        (("compare", "r", "r"), 1, 0),
        (("trend", "r", "other"), 2, 0),
        (("export", "r", "--to", "csv", "--out", "t"), 1, 0),
        (("export", "r", "--to", "junit", "--out", "-"), 1, 0),
        # What these were to make is the directory, and it is not whole.
        (("track", "r"), 1, 4),
        (("track", "r", "--json"), 1, 4),
        (("run", "t.xml", "--bench", "sim", "--out", "new"), 1, 4),
        (("import", "r/captures/run-0000/b.pcapng", "--out", "new"), 1, 4),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_every_command_says_once_for_each_directory_that_its_judgement_is_not_kept(
    here: Path, full: None, words: tuple[str, ...], places: int, code: int
) -> None:
    done = CliRunner().invoke(app, words)
    told = [line for line in done.stderr.splitlines() if SAID in line]
    assert len(told) == places, done.stderr
    assert all("No space left on device); make room, then `wiregauge show " in line for line in told)
    assert (done.exit_code, bool(done.stdout) or "--out" in words) == (code, True), done.output


def test_commands_that_judge_nothing_say_nothing(here: Path, full: None) -> None:
    for words in (("verify", "r"), ("export", "r", "--to", "csv", "--what", "records", "--out", "t")):
        done = CliRunner().invoke(app, words)
        assert (done.exit_code, done.stderr) == (0, "")


def test_a_file_that_the_disk_refuses_half_way_leaves_the_older_one(here: Path, short_files: None) -> None:
    before = {path.name: path.read_bytes() for path in (here / "r").iterdir() if path.is_file()}
    assert len(before["measures.json"]) > 1000
    done = CliRunner().invoke(app, ["show", "r", "--json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["complete"]
    assert (done.stderr.count("\n"), SAID in done.stderr, os.strerror(errno.EFBIG) in done.stderr) == (
        1,
        True,
        True,
    )
    assert {path.name: path.read_bytes() for path in (here / "r").iterdir() if path.is_file()} == before


def test_a_place_that_is_taken_is_not_kept_either(here: Path) -> None:
    (here / "r" / "measures.json").unlink()
    (here / "r" / "measures.json").mkdir()
    done = CliRunner().invoke(app, ["show", "r"])
    assert (done.exit_code, done.stderr.count("\n"), SAID in done.stderr) == (0, 1, True)
    assert "make the directory writable or copy it to one that is" in done.stderr
    assert "verdict PASS" in done.stdout


def test_a_notebook_is_warned(here: Path, full: None) -> None:
    with pytest.warns(UserWarning, match=r"measures\.json: the judgement is not kept"):
        assert wg.open("r").validity == "VALID"


def test_a_calibration_of_run_directories_says_so(here: Path, full: None) -> None:
    words = ("calibrate", "cable", "1m=r", "2m=other", "--no-save")
    done = CliRunner().invoke(app, words)
    assert SAID in done.stderr, done.output

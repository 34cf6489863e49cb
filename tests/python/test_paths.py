"""Places and numbers that cannot be used: one sentence, the right exit code, nothing left behind, no internal error."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

import pytest
import stored
from campaigns import damage

from wiregauge.measures.comparing import ThresholdError, read_threshold

LONG = "x" * 300
NO_TEXT = os.fsdecode(b"a\xffb")


def run(here: Path, *words: str) -> tuple[int, str]:
    with contextlib.chdir(here):
        answer = damage.run(words)
    assert not damage.UNCLEAN.search(answer.out + answer.err), answer
    assert answer.code in (0, 1, 2, 3, 4), answer
    return answer.code, answer.err


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a test, a run directory, a file and a link that leads to itself."""
    folder = tmp_path_factory.mktemp("paths")
    stored.make(folder / "r", count=40)
    text = stored.TEXT.format(seed=1, count=40)
    assert "</limits>" in text
    # Without it a note precedes what is wrong.
    (folder / "t.xml").write_text(text.replace("</limits>", '<limit measure="lost" at-most="0"/></limits>'))
    (folder / "file").write_text("mine")
    (folder / "loop").symlink_to("loop")
    return folder


@pytest.mark.parametrize(
    ("place", "says"),
    [
        (LONG, "too long"),
        (f"new/{LONG}/r", "too long"),
        ("/".join(["y" * 200] * 25), "too long"),
        ("file", "is a file"),
        ("file/r", "is a file or lies below one"),
        ("loop", "circle"),
        ("/proc/r", "cannot be written"),
        ("r", "never overwritten"),
        ("../nowhere/../" + "r" * 256, "too long"),
        (NO_TEXT, "not UTF-8"),
    ],
)
def test_where_no_run_directory_can_be_made(here: Path, place: str, says: str) -> None:
    before = {path.name for path in here.iterdir()}
    code, told = run(here, "run", "t.xml", "--bench", "sim", "--out", place)
    assert (code, told.count("\n")) == (2, 1), told
    assert says in told
    assert {path.name for path in here.iterdir()} - {"new"} == before - {"new"}


@pytest.mark.parametrize("place", [LONG, "file", "file/r", "loop", "nowhere", NO_TEXT, "two\nlines", ""])
@pytest.mark.parametrize(
    "words",
    [
        ("show", ""),
        ("verify", ""),
        ("report", ""),
        ("track", ""),
        ("export", "", "--to", "csv", "--out", "t"),
    ],
)
def test_what_is_no_run_directory(here: Path, words: tuple[str, ...], place: str) -> None:
    if words[0] != "show" and place not in (LONG, NO_TEXT):
        place = "two\nlines"
    code, told = run(here, *(word or place for word in words))
    assert (code, told.count("\n")) == (2, 1), told


@pytest.mark.parametrize("out", [LONG, "file", "nowhere/x", "r", "/proc/x"])
def test_where_no_page_or_export_can_be_written(here: Path, out: str) -> None:
    for words in (("export", "r", "--to", "csv", "--out"), ("compare", "r", "r", "--out")):
        code, told = run(here, *words, out)
        assert (code, told.count("\n")) in ((2, 1), (3, 1)), told
    assert (here / "file").read_text() == "mine"


def test_a_disk_without_room_to_begin(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(path.name for path in here.iterdir())
    writing = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        if path.name == ".reserve":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return writing(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    code, told = run(here, "run", "t.xml", "--bench", "sim", "--out", "full")
    assert (code, told.count("\n")) == (3, 1), told
    assert "No space left on device; free space there" in told
    assert sorted(path.name for path in here.iterdir()) == before


@pytest.mark.parametrize(
    "words",
    [
        ("calibrate", "clocks", "--seconds", "nan"),
        ("calibrate", "clocks", "--seconds", "inf"),
        ("calibrate", "cable", "--simulate", "--per-metre", "nan"),
        ("calibrate", "cable", "--simulate", "--overhead", "nan"),
        ("calibrate", "cable", "--simulate", "--overhead", "-1"),
        ("show", "r", "--explain", "--worst", "99999999999999999999999"),
        ("run", "t.xml", "--out", "s", "--jobs", "nan"),
        ("run", "t.xml", "--out", "s", "--jobs", "-1"),
        ("track", "r", "--run", "99999999999999999999999"),
        ("compare", "r", "r", "-t", "latency.p99=nan"),
        ("compare", "r", "r", "-t", "latency.p99=1e308s"),
        ("export", "r", "--to", "csv", "--out", "t", "--run", "-1"),
    ],
)
def test_numbers_that_are_none(here: Path, words: tuple[str, ...]) -> None:
    assert run(here, *words)[0] == 2


@pytest.mark.parametrize("value", ["nan", "inf", "-1us", "1e308s", "1e999us", "1e400%"])
def test_thresholds_beyond_all_numbers_are_none(value: str) -> None:
    with pytest.raises(ThresholdError):
        read_threshold(f"latency.p99={value}")

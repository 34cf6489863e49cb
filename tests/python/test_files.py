"""A file takes its place as a whole, and is on the disk before it has it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from wiregauge.files import cure_for, put_in_place


def test_a_file_is_synced_before_it_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, path = tmp_path / "made", tmp_path / "file"
    made.write_text("new")
    path.write_text("old")
    seen = []
    syncing = os.fsync

    def sync(handle: int) -> None:
        seen.append((os.fstat(handle).st_ino, path.read_text()))
        syncing(handle)

    monkeypatch.setattr(os, "fsync", sync)
    inode = made.stat().st_ino
    put_in_place(made, path)
    assert seen == [(inode, "old"), (tmp_path.stat().st_ino, "new")]
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_what_cannot_be_synced_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, path = tmp_path / "made", tmp_path / "file"
    made.write_text("new")
    path.write_text("old")

    def refused(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refused)
    with pytest.raises(OSError, match="No space left") as caught:
        put_in_place(made, path)
    assert (made.read_text(), path.read_text()) == ("new", "old")
    assert cure_for(caught.value) == "make room"

"""A file takes its place as a whole, and is on the disk before it has it."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiregauge.files import cure_for, indented, put_in_place


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


NUMBERS = (
    st.integers() | st.floats(min_value=1e-4, max_value=1e15) | st.floats(min_value=-1e15, max_value=-1e-4)
)
TREES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(TREES)
def test_json_is_indented_as_the_standard_library_does(content: Any) -> None:
    assert indented(content) == json.dumps(content, indent=1, ensure_ascii=False) + "\n"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_no_number_changes(value: float) -> None:
    assert json.loads(indented([value, np.float64(value)])) == [value, value]


def test_what_json_has_no_form_for() -> None:
    assert json.loads(indented([np.int64(3), float("nan"), float("inf")])) == [3, None, None]
    with pytest.raises(TypeError, match="object has no form in JSON"):
        indented({"a": object()})

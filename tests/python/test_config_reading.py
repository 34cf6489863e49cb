"""Files that are no tests at all, and files made to hurt: one sentence each, at once, and never a traceback."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiregauge.config import Diagnostic, TestError, load
from wiregauge.config.reading import LARGEST_FILE, parse

EXAMPLE = (Path(__file__).resolve().parents[2] / "examples" / "first.xml").read_bytes()


def refused(path: Path | str) -> str:
    with pytest.raises(TestError) as caught:
        load(path)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_a_gigabyte_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "huge.xml"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    tracemalloc.start()
    try:
        text = refused(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert text == (
        f"{path}: the file has 1073741824 B (limit: 64 MiB); "
        "split the test, or sweep values instead of listing them"
    )
    assert peak < 1 << 20


def test_one_byte_too_many(tmp_path: Path) -> None:
    path = tmp_path / "t.xml"
    comment = b"<!--" + b"-x" * 4000 + b"-->"
    whole, rest = divmod(LARGEST_FILE - len(EXAMPLE), len(comment))
    full = EXAMPLE + comment * whole + b" " * rest
    path.write_bytes(full)
    assert load(path).campaign.name == "first"
    path.write_bytes(full + b" ")
    assert "(limit: 64 MiB)" in refused(path)


def test_one_piece_beyond_what_libxml2_holds(tmp_path: Path) -> None:
    path = tmp_path / "t.xml"
    path.write_bytes(EXAMPLE.replace(b'name="first"', b'name="' + b"a" * 11_000_000 + b'"'))
    assert "is too long for libxml2 (limit: 10 MB)" in refused(path)


def test_an_entity_bomb_of_attributes(tmp_path: Path) -> None:
    """Entities in attribute values are what `resolve_entities=False` does not stop."""
    path = tmp_path / "bomb.xml"
    layers = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 100}">' for i in range(30))
    path.write_text(f'<!DOCTYPE test [<!ENTITY e0 "ha">{layers}]><test name="&e30;"/>')
    assert refused(path) == (
        f"{path}:1: a document type with its entities is not allowed; "
        "remove <!DOCTYPE …>; the schema is part of the program"
    )


def test_a_parameter_entity_does_not_reach_the_network(tmp_path: Path) -> None:
    path = tmp_path / "t.xml"
    path.write_text('<!DOCTYPE t [<!ENTITY % x SYSTEM "http://198.51.100.1/x"> %x;]><t/>')
    assert "document type" in refused(path)


def test_deep_nesting(tmp_path: Path) -> None:
    path = tmp_path / "t.xml"
    path.write_text("<a>" * 1_000_000)
    assert refused(path).endswith("elements are nested too deeply (limit: 16); a test has four levels")


def test_many_elements(tmp_path: Path) -> None:
    path = tmp_path / "t.xml"
    path.write_text("<a>" + "<b/>" * 600_000 + "</a>")
    assert "too many elements (limit: 500000)" in refused(path)


def test_a_directory(tmp_path: Path) -> None:
    assert refused(tmp_path) == f"{tmp_path}: this is a directory; name a test file in it"


def test_a_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "none.xml"
    assert refused(path) == f"{path}: there is no such file; check the path"
    assert "not a directory" in refused(Path(__file__) / "t.xml")


def test_a_pipe_does_not_wait(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert refused(path) == f"{path}: this is not a regular file; name a file on disk"


def test_a_device_is_not_read() -> None:
    assert "not a regular file" in refused("/dev/zero")


def test_a_circle_of_links(tmp_path: Path) -> None:
    path = tmp_path / "circle"
    path.symlink_to(path)
    assert "loop of symbolic links" in refused(path)


def test_odd_paths() -> None:
    assert "too long" in refused("x" * 5000)
    assert "cannot be read" in refused("a\0b")


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the refusal comes from a stand-in."""

    def deny(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", deny)
    assert refused(tmp_path / "t.xml").endswith("you may not read this file; change its permissions")


def test_a_byte_order_mark_is_welcome(tmp_path: Path) -> None:
    path = tmp_path / "t.xml"
    path.write_bytes(b"\xef\xbb\xbf" + EXAMPLE)
    assert load(path).campaign.name == "first"


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_refused_in_one_sentence(data: bytes) -> None:
    said = ""
    try:
        parse(data, "t.xml")
    except TestError as error:
        said = str(error)
    assert "\n" not in said


@given(st.data())
def test_a_damaged_test_is_read_or_refused(data: st.DataObject) -> None:
    """Cut, doubled and overwritten pieces of a good file: whatever comes out, it is no other exception."""
    path = Path(f"/proc/self/fd/{os.memfd_create('damaged')}")
    handle = int(path.name)
    try:
        start = data.draw(st.integers(0, len(EXAMPLE)))
        end = data.draw(st.integers(start, min(len(EXAMPLE), start + 60)))
        piece = data.draw(
            st.sampled_from([b"", EXAMPLE[start:end] * 2, b"\xff", b"9", b"-", b"<", b'"', b"&"])
        )
        os.write(handle, EXAMPLE[:start] + piece + EXAMPLE[end:])
        diagnostics: tuple[Diagnostic, ...] = ()
        try:
            load(path)
        except TestError as error:
            diagnostics = error.diagnostics
            assert diagnostics
        assert all(diagnostic.message and diagnostic.cure for diagnostic in diagnostics)
    finally:
        os.close(handle)

"""Every broken test of `tests/broken` is refused with exactly the messages of `expected.txt`.

Two judges: the whole text of every message, reviewed by hand, and the lines marked `<!-- wrong -->` in the files
themselves, which nobody can renew by accident. Run this file as a program to write `expected.txt` anew, then read
the difference. A merge of two branches may leave a line twice, which says nothing new (no message is said twice, as is
checked below): it counts once.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lxml import etree

from wiregauge.config import TestError, load
from wiregauge.config.diagnostics import Diagnostic
from wiregauge.config.loading import load_bytes

BROKEN = Path(__file__).resolve().parents[1] / "broken"
FILES = sorted(BROKEN.glob("*.xml"))
EXPECTED = BROKEN / "expected.txt"
CURE = "if that is meant, `python tests/python/test_config_broken.py` writes expected.txt anew; read the difference"
MARK = "<!-- wrong -->"
GROUPED = {"flow", "send", "receive", "relay"}
"""Elements of which `4-7` makes four."""


def refusal(path: Path) -> TestError:
    with pytest.raises(TestError) as caught:
        load(path)
    return caught.value


def said(path: Path) -> list[str]:
    """The messages with the file's name alone, as a reader of the table sees them."""
    return [line.replace(str(path), path.name, 1) for line in str(refusal(path)).split("\n")]


def test_there_are_enough() -> None:
    assert len(FILES) >= 190


def expected_by_file(text: str) -> dict[str, list[str]]:
    """By the name of a file the lines about it, each once, in the order of their first appearance."""
    found: dict[str, list[str]] = {}
    for line in dict.fromkeys(text.splitlines()):
        found.setdefault(line.partition(":")[0], []).append(line)
    return found


EXPECTATIONS = expected_by_file(EXPECTED.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_says_exactly_this(path: Path) -> None:
    assert said(path) == EXPECTATIONS.get(path.name), CURE


def test_nothing_is_expected_of_a_file_that_is_not_there() -> None:
    assert EXPECTATIONS.keys() <= {path.name for path in FILES}, CURE


def test_a_line_doubled_by_a_merge_counts_once_and_another_counts() -> None:
    merged = "a.xml:1: one\na.xml:2: two\na.xml:1: one\na.xml:2: two\nb.xml:1: one\n"
    assert expected_by_file(merged) == {"a.xml": ["a.xml:1: one", "a.xml:2: two"], "b.xml": ["b.xml:1: one"]}
    assert expected_by_file("a.xml:1: one\na.xml:1: otherwise\n")["a.xml"] != ["a.xml:1: one"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_names_every_marked_line_and_no_other(path: Path) -> None:
    lines = path.read_bytes().split(b"\n")
    marked = {number for number, line in enumerate(lines, 1) if MARK.encode() in line}
    diagnostics = refusal(path).diagnostics
    if marked:
        assert {diagnostic.line for diagnostic in diagnostics} == marked
    else:  # not a tree, so it cannot carry a mark that means anything
        assert len({diagnostic.line for diagnostic in diagnostics}) in (1, 3)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_message_is_whole(path: Path) -> None:
    diagnostics = refusal(path).diagnostics
    assert list(diagnostics) == sorted(diagnostics, key=lambda diagnostic: diagnostic.line)
    assert len(set(diagnostics)) == len(diagnostics)
    for diagnostic in diagnostics:
        text = str(diagnostic)
        assert diagnostic.file == str(path)
        assert diagnostic.message
        assert diagnostic.cure
        assert "\n" not in text
        assert "urn:" not in diagnostic.element
        assert not re.search(r"facet|SCHEMAV|atomic type|\{urn|None|Err\(", text), text


def faults(text: bytes, path: Path) -> tuple[Diagnostic, ...]:
    """What is wrong with a test; nothing where it is none."""
    try:
        load_bytes(text, path)
    except TestError as error:
        return error.diagnostics
    return ()


def test_a_wrong_value_is_told_once() -> None:
    """Of every attribute in the examples, a value that none may have: plan and schema name it together once.

    What does not fit any more because the value is missing may be named as well, in words of its own.
    """
    tried: set[tuple[str, str]] = set()
    for path in sorted((BROKEN.parents[1] / "examples").glob("*.xml")):
        root = etree.fromstring(path.read_bytes())
        for node in root.iter(etree.Element):
            tag = etree.QName(node).localname
            for name in sorted(
                {str(name) for name in node.attrib} - {name for of, name in tried if of == tag}
            ):
                right = node.attrib[name]
                node.set(name, "4-7")
                heads = [
                    (one.line, one.element.partition(" ")[0])
                    for one in faults(etree.tostring(root), path)
                    if one.message.startswith(f'{name} "')
                ]
                if heads:
                    tried.add((tag, name))
                # A range of numbers names several elements, of which each has one.
                assert len(heads) <= (1 if tag not in GROUPED else 4), (path, tag, name)
                node.set(name, right)
    assert len(tried) > 150


if __name__ == "__main__":
    EXPECTED.write_text("".join(f"{line}\n" for path in FILES for line in said(path)))

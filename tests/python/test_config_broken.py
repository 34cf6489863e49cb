"""Every fault of `tests/broken` is refused with exactly the messages of its table.

Two judges: the whole text of every message, reviewed by hand, and the lines that are wrong (`tests/broken_tests.py`
says which they are), which nobody can renew by accident. Run this file as a program to write the messages of the
tables anew, then read the difference.
"""

from __future__ import annotations

import re
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from lxml import etree

from wiregauge.config import TestError, load
from wiregauge.config.diagnostics import Diagnostic
from wiregauge.config.loading import load_bytes

sys.path.insert(0, str(Path(__file__).parents[1]))
from broken_tests import FOLDER, TABLES, VALID, Fault, faults, replaced, without_file, wrong_lines

EXAMPLES = FOLDER.parents[1] / "examples"
CURE = "if that is meant, `python tests/python/test_config_broken.py` writes the tables anew; read the difference"


def refusal(path: Path) -> TestError:
    with pytest.raises(TestError) as caught:
        load(path)
    return caught.value


def said(error: TestError, path: Path) -> list[str]:
    """The messages as the tables have them."""
    return [without_file(line, path) for line in str(error).split("\n")]


def test_there_are_enough() -> None:
    assert len(faults()) >= 518
    assert len({fault.name for fault in faults()}) == len(faults())


def test_every_valid_test_is_valid() -> None:
    """So it is what was replaced that is wrong."""
    assert {path.stem for path in VALID} == {path.stem for path in TABLES} - {"whole-files"}
    for path in VALID:
        assert load(path).warnings == ()


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_is_refused(fault: Fault, tmp_path: Path) -> None:
    """With exactly its messages, which name every wrong line and no other, and each of which is whole."""
    path = fault.write(tmp_path)
    error = refusal(path)
    assert said(error, path) == list(fault.says), CURE
    diagnostics = error.diagnostics
    assert {diagnostic.line for diagnostic in diagnostics if diagnostic.line} == fault.wrong
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


def test_a_replacement_is_of_one_place() -> None:
    valid = "<a/>\n<b/>\n<b/>\n"
    assert replaced(valid, [["<a/>", "<c/>"]]) == "<c/>\n<b/>\n<b/>\n"
    for pairs in ([["<b/>", ""]], [["<c/>", ""]], [["<a/>\n<b/>", ""], ["/>\n<b/>\n<b", ""]]):
        with pytest.raises(ValueError, match=r"not once|overlaps"):
            replaced(valid, pairs)


def test_wrong_are_the_marked_lines_or_else_the_new_ones() -> None:
    valid = "<a>\n  <b/>\n</a>\n"
    assert wrong_lines("<a>\n  <c/>\n\n</a>\n", valid) == {2}
    assert wrong_lines("<a> <!-- wrong -->\n  <c/>\n</a>\n", valid) == {1}


def quoted(messages: Sequence[str]) -> str:
    """Messages as a table has them: one on the line of its key, several each on its own."""
    if len(messages) > 1:
        return "\n".join(("'''", *messages, "'''"))
    quote = "'''" if "'" in messages[0] else "'"
    return f"{quote}{messages[0]}{quote}"


def renewed(table: str, says: Mapping[str, Sequence[str]]) -> str:
    """The table with these messages by the name of the fault; all else stays as it is, byte for byte."""
    names = iter(tomllib.loads(table))
    new = re.sub(
        r"^says = (?:'''.*?'''|'[^'\n]*')$",
        lambda found: f"says = {quoted(says[next(names)])}",
        table,
        flags=re.M | re.S,
    )
    expected = tomllib.loads(table)
    for fault, messages in says.items():
        expected[fault]["says"] = "\n".join(messages)
    rows = {key: {**row, "says": row["says"].rstrip("\n")} for key, row in tomllib.loads(new).items()}
    assert rows == expected, "the table is not laid out as this program writes it"
    return new


def renew(table: Path) -> None:
    """Writes the messages of a table anew."""
    says = {}
    with tempfile.TemporaryDirectory() as folder:
        for fault in faults():
            if fault.table == table:
                path = fault.write(Path(folder))
                says[fault.name] = said(refusal(path), path)
    table.write_text(renewed(table.read_text(encoding="utf-8"), says), encoding="utf-8")


def test_messages_are_written_anew_and_nothing_else() -> None:
    kept = "# Why.\n[one]\nreplace = [['a', 'b']]\n{}\n\n[two]\ntext = '''\n[x]\n'''\n{}\n"
    table = kept.format("says = '1: old'", "says = '''\n1: old\n2: old\n'''")
    new = kept.format("says = '''1: it's'''", "says = '2: new'")
    assert renewed(table, {"one": ["1: it's"], "two": ["2: new"]}) == new


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_a_table_is_laid_out_as_the_program_writes_it(table: Path) -> None:
    text = table.read_text(encoding="utf-8")
    assert renewed(text, {fault.name: fault.says for fault in faults() if fault.table == table}) == text


def faults_of(text: bytes, path: Path) -> tuple[Diagnostic, ...]:
    """What is wrong with a test; nothing where it is none."""
    try:
        load_bytes(text, path)
    except TestError as error:
        return error.diagnostics
    return ()


def test_a_wrong_value_is_told_once(thorough: bool) -> None:
    """An invalid value of every attribute in the examples gives one message that names it, and no other.

    What does not fit any more because the value is missing is no mistake of its own. Each attribute is tried once;
    with `--all`, in every example.
    """
    tried: set[tuple[str, str]] = set()
    for path in sorted(EXAMPLES.glob("*.xml")):
        if thorough:
            tried.clear()
        root = etree.fromstring(path.read_bytes())
        for node in root.iter(etree.Element):
            tag = etree.QName(node).localname
            for name in sorted(
                {str(name) for name in node.attrib if not str(name).startswith("{")}
                - {name for of, name in tried if of == tag}
            ):
                right = node.attrib[name]
                node.set(name, "?!")
                said = [one.message for one in faults_of(etree.tostring(root), path)]
                assert len(said) == 1, (path, tag, name, said)
                # Values of an axis are those of what it is of.
                named = node.get("of", "") if name == "values" else name
                assert said[0].startswith(f'{named} "?!"'), (path, tag, name, said)
                tried.add((tag, name))
                node.set(name, right)
    assert len(tried) > 150


if __name__ == "__main__":
    for each in TABLES:
        renew(each)

"""What follows from the declaration of the language is as it is declared, and nobody declares a thing again."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from wiregauge.config import parts
from wiregauge.config.schema import declarations, value_types

ROOT = Path(__file__).resolve().parents[2]
PLAN = ROOT / "crates" / "plan" / "src"
READERS = sorted([*(PLAN / "statements").glob("*.rs"), *(PLAN / "network").glob("*.rs")])


@pytest.fixture(scope="module")
def tool() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import language

        yield language
    finally:
        sys.path.pop(0)


def test_what_is_made_from_the_declaration_is_up_to_date(tool: ModuleType) -> None:
    for path, text in tool.files().items():
        assert path.read_text(encoding="utf-8") == text, f"run `make language`: {path.relative_to(ROOT)}"


@pytest.mark.parametrize("reader", READERS, ids=lambda path: str(path.name))
def test_readers_take_attributes_from_their_declaration(reader: Path) -> None:
    """None is looked up by a word, and none has a form, a range, a default or a choice beside the declared ones."""
    code = reader.read_text(encoding="utf-8")
    assert re.findall(r"\.get\(\s*\"[^)]*", code) == []
    assert re.findall(r"\b(?:required|optional|usual)\(\s*\"[^)]*", code) == []
    assert re.findall(r"&str, [A-Z]\w+\); \d+\]", code) == []


def test_a_part_of_the_builder_has_every_attribute_of_its_element() -> None:
    kept = {"class", "protocol"}
    for name in parts.__all__:
        part = getattr(parts, name)
        fields = {field.rstrip("_").replace("_", "-") for field in part.__struct_fields__}
        declared = set(declarations()[part.TAG].attributes) - (kept & {part.KEY})
        assert declared <= fields, part.TAG


def test_documentation_says_the_range_that_is_read() -> None:
    """Where a comment has a place for the range it is the one that messages show."""
    said = declarations()["end-system"].attributes["interframe-gap"].documentation
    assert "5B to 12B" in said
    assert "1 to 64" in value_types()["sending-threads"].documentation

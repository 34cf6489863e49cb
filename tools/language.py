"""Writes what follows from Rust: from the declaration of the test language in `crates/plan/src/language` the schema for
editors, the builder for Python and the tables of the reference page, and from the types of the plan those in Python.
`make language` runs it.

All are committed: editors and readers have no compiled module. A test makes them again and compares.
"""

from __future__ import annotations

from pathlib import Path

import builder_of_language
import plan_types
import schema_of_language

from wiregauge.config.reference import renewed

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / "python" / "wiregauge" / "config"
PAGE = ROOT / "docs" / "reference" / "test-language.md"


def files() -> dict[Path, str]:
    """What each file is to hold; the page has the tables of the schema that is installed."""
    return {**_made(), PAGE: _page()}


def _made() -> dict[Path, str]:
    return {
        CONFIG / "wiregauge-test-2.xsd": schema_of_language.schema(),
        CONFIG / "parts.py": builder_of_language.parts(),
        CONFIG / "elements.py": builder_of_language.elements(),
        **plan_types.files(),
    }


def _page() -> str:
    return renewed(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for path, text in _made().items():
        path.write_text(text, encoding="utf-8")
    # A process reads the schema once: not before it is written.
    PAGE.write_text(_page(), encoding="utf-8")

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


def made() -> dict[Path, str]:
    """What each file is to hold that is made from Rust alone."""
    return {
        CONFIG / "wiregauge-test-2.xsd": schema_of_language.schema(),
        CONFIG / "parts.py": builder_of_language.parts(),
        CONFIG / "elements.py": builder_of_language.elements(),
        **plan_types.files(),
    }


def page() -> str:
    """The reference page, whose tables of values are those of the schema that is installed."""
    return renewed(PAGE.read_text(encoding="utf-8"))


def files() -> dict[Path, str]:
    """What each file is to hold."""
    return {**made(), PAGE: page()}


if __name__ == "__main__":
    for path, text in made().items():
        path.write_text(text, encoding="utf-8")
    # Only now: the schema is read once in a process.
    PAGE.write_text(page(), encoding="utf-8")

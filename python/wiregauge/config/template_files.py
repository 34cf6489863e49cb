"""Tests that `wiregauge new` writes: templates and examples.

Every template runs as it is, to a verdict. Two of them are examples as well, and are stored there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from msgspec import Struct

from wiregauge.config.schema import schema_path
from wiregauge.files import shipped

__all__ = ["TEMPLATES", "Template", "examples", "templates"]

TEMPLATES: Final = ("two-hosts", "switch-comparison", "afdx", "robot", "tsn")
"""Names of the templates, the one to begin with first."""
_SCHEMA: Final = re.compile(r"\S*wiregauge-test-2\.xsd")


class Template(Struct, frozen=True):
    """A test file with comments for who reads one for the first time."""

    name: str
    path: Path

    @property
    def text(self) -> str:
        """The text of the file, with the path of this installation's schema, so that editors find it."""
        return _SCHEMA.sub(schema_path().as_uri(), self.path.read_text(encoding="utf-8"))

    @property
    def summary(self) -> str:
        """The purpose of the template, from the first sentence of its first comment."""
        comment = self.path.read_text(encoding="utf-8").partition("<!--")[2].partition("-->")[0]
        return " ".join(comment.split()).partition(". ")[0].removesuffix(".")


def templates() -> list[Template]:
    """All templates, in the order of `TEMPLATES`."""
    own = Path(__file__).with_name("templates")
    found = ((name, own / f"{name}.xml") for name in TEMPLATES)
    return [
        Template(name, path if path.is_file() else shipped("examples") / path.name) for name, path in found
    ]


def examples() -> list[Template]:
    """The examples that are no templates, by name."""
    paths = sorted(shipped("examples").glob("*.xml"))
    return [Template(path.stem, path) for path in paths if path.stem not in TEMPLATES]

"""Tests to begin with: `wiregauge new` writes them, and every one of them runs as it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wiregauge.config.schema import schema_path

__all__ = ["TEMPLATES", "Template", "templates"]

TEMPLATES: Final = ("two-hosts", "switch-comparison", "afdx", "robot", "tsn")
"""Their names, the one to begin with first."""
_SCHEMA: Final = "../wiregauge-test-2.xsd"


@dataclass(frozen=True, slots=True)
class Template:
    """A test file with comments for who reads one for the first time."""

    name: str
    path: Path

    @property
    def text(self) -> str:
        """The file as it is to be written: it names the schema of this installation, so that editors find it."""
        return self.path.read_text(encoding="utf-8").replace(_SCHEMA, schema_path().as_uri())

    @property
    def summary(self) -> str:
        """What it shows, from the first sentence of its first comment."""
        comment = self.path.read_text(encoding="utf-8").partition("<!--")[2].partition("-->")[0]
        return " ".join(comment.split()).partition(". ")[0].removesuffix(".")


def templates() -> list[Template]:
    """All of them, in the order of `TEMPLATES`."""
    folder = Path(__file__).with_name("templates")
    return [Template(name, folder / f"{name}.xml") for name in TEMPLATES]

"""The JSON output of commands, validated against the schema published for each."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema_rs import Draft202012Validator, meta
from typer.testing import CliRunner

from wiregauge.cli.program import app
from wiregauge.cli.schemas import schema_of

__all__ = ["asked", "held", "validator"]

_HELD: set[tuple[Path, bytes]] = set()
"""Validated content: schemas, and digests of what conforms to them."""


@cache
def validator(file: Path) -> Draft202012Validator:
    schema = json.loads(file.read_text(encoding="utf-8"))
    meta.validate(schema)
    return Draft202012Validator(schema)


def asked(command: str, *arguments: object, codes: tuple[int, ...] = (0, 1, 4)) -> Any:
    """The JSON of a command, validated against its schema."""
    result = CliRunner().invoke(app, [*command.split(), *map(str, arguments), "--json"])
    assert result.exit_code in codes, (command, result.output, result.exception)
    return held(command, result.stdout)


def held(command: str, printed: str) -> Any:
    """The output of a command, validated against its schema."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{command}: {constant} is no JSON")

    tree = json.loads(printed, parse_constant=refuse)
    # `show` prints the output of `run` again, with the same schema: it is validated once.
    seen = schema_of(command), hashlib.sha256(printed.encode()).digest()
    if seen not in _HELD:
        validator(seen[0]).validate(tree)
        _HELD.add(seen)
    return tree

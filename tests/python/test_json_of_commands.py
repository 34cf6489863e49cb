"""What every command prints as JSON keeps the schema that is published for it; `test_reference.py` has the examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from command_json import asked, validator
from wiregauge.cli.program import app
from wiregauge.cli.schemas import COMMANDS, schema_of


def test_tests_that_cannot_run_are_described(tmp_path: Path) -> None:
    file = tmp_path / "bad.xml"
    file.write_text('<test xmlns="urn:wiregauge:test:2" name="x"><network/></test>')
    assert not asked("check", file, codes=(2,))["tests"][0]["ok"]


def test_what_the_machine_grants_and_what_is_kept(tmp_path: Path) -> None:
    assert asked("doctor", codes=(0,))["benches"][0]["name"] == "sim"
    store = tmp_path / "kept"
    assert asked("calibrate list", "--store", store, codes=(0,))["calibrations"] == []


def test_every_command_that_prints_json_has_a_schema() -> None:
    def commands(group: Any, before: str = "") -> set[str]:
        found = set()
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                found |= commands(command, f"{before}{name} ")
            elif any("--json" in option.opts for option in command.params):
                found.add(before + name)
        return found

    assert commands(typer.main.get_command(app)) == set(COMMANDS)
    for command in COMMANDS:
        validator(schema_of(command))

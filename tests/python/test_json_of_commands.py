"""What every command prints as JSON keeps the schema that is published for it, for every example."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from jsonschema import Draft202012Validator
from lxml import etree
from typer.testing import CliRunner

from wiregauge import measures, report
from wiregauge.cli.program import app
from wiregauge.cli.schemas import COMMANDS, schema_of
from wiregauge.measures.explaining import explain_schema_path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.xml"))
NAMESPACE = "{urn:wiregauge:test:2}"


@cache
def validator(file: Path) -> Draft202012Validator:
    schema = json.loads(file.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def asked(command: str, *arguments: object, codes: tuple[int, ...] = (0, 1, 4)) -> Any:
    """The JSON of a command, held against its schema."""
    result = CliRunner().invoke(app, [*command.split(), *map(str, arguments), "--json"])
    assert result.exit_code in codes, (command, result.output, result.exception)

    def refuse(constant: str) -> None:
        raise ValueError(f"{command}: {constant} is no JSON")

    tree = json.loads(result.stdout, parse_constant=refuse)
    validator(schema_of(command)).validate(tree)
    return tree


def shortened(name: str, place: Path) -> Path:
    """An example with the last value of each swept axis, two where one alone is swept, and no repeats."""
    tree = etree.parse(EXAMPLES / f"{name}.xml")
    axes = list(tree.iter(f"{NAMESPACE}axis"))
    for axis in axes:
        axis.set("values", " ".join(axis.get("values", "").split()[-2 if len(axes) == 1 else -1 :]))
    for repeat in tree.iter(f"{NAMESPACE}repeat"):
        repeat.set("times", "1")
    file = place / f"{name}.xml"
    tree.write(file)
    return file


@pytest.fixture
def judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run directory, and its copy, are judged once for all commands; the report is not what is looked at here."""
    judge, known = measures.judge, {}

    def once(directory: Path, *arguments: Any, **options: Any) -> measures.Judgement:
        if "run" not in known:
            known["run"] = judge(directory, *arguments, **options)
        return replace(known["run"], directory=directory)

    monkeypatch.setattr(measures, "judge", once)
    monkeypatch.setattr(report, "write", lambda directory, *_: directory / "report.html")


@pytest.mark.usefixtures("judged_once")
@pytest.mark.parametrize("name", NAMES)
def test_every_command_keeps_its_schema_for_every_example(name: str, tmp_path: Path) -> None:
    file, run, twin = shortened(name, tmp_path), tmp_path / "run", tmp_path / "twin"
    assert asked("check", EXAMPLES / f"{name}.xml", codes=(0,))["tests"][0]["ok"]
    first = asked("run", file, "--bench", "sim", "--out", run)
    shown = asked("show", run)
    assert shown["points"] == first["points"]
    explained = asked("show", run, "--explain", "--worst", 1)["explained"]
    validator(explain_schema_path()).validate(explained)
    assert asked("verify", run, codes=(0,))["state"] == "whole"
    shutil.copytree(run, twin)
    found = asked("compare", run, twin)
    assert found["verdict"] == ("undecided" if found["unfit"] else "same")
    asked("trend", run, twin)


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

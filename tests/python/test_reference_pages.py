"""The generated reference pages are those that the program generates now, and leave nothing out."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main

import wiregauge
from command_json import held
from wiregauge.cli import app
from wiregauge.examining import CHECKS
from wiregauge.runner.agent_program import agent_program

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
reference_pages: Any = importlib.import_module("reference_pages")
sys.path.pop(0)


def test_the_page_of_the_command_line_is_current() -> None:
    assert reference_pages.COMMAND_LINE.read_text(encoding="utf-8") == reference_pages.command_line(), (
        "run `make reference`"
    )


def test_the_page_of_the_python_api_is_current() -> None:
    assert reference_pages.PYTHON.read_text(encoding="utf-8") == reference_pages.python(), (
        "run `make reference`"
    )


def test_the_page_of_figures_and_columns_is_current() -> None:
    assert reference_pages.FIGURES_PAGE.read_text(encoding="utf-8") == reference_pages.figures(), (
        "run `make reference`"
    )


def test_the_page_of_checks_is_current_and_has_every_fix() -> None:
    page = reference_pages.doctor()
    assert reference_pages.DOCTOR.read_text(encoding="utf-8") == page, "run `make reference`"
    refused = subprocess.run(
        [str(agent_program()), "mend", "--interface", "lo", "sysctl"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2
    known = refused.stderr.strip().rpartition("there are ")[2].split(", ")
    assert known == [
        line.split("`")[1] for line in page.rpartition("## Fixes")[2].splitlines() if "`" in line[:3]
    ]
    assert {check.fix for check in CHECKS} - {""} == set(known)


def test_the_page_of_cards_is_current_and_its_reports_keep_the_schema() -> None:
    assert reference_pages.CARDS.read_text(encoding="utf-8") == reference_pages.cards(), (
        "run `make reference`"
    )
    reports = list((reference_pages.FOLDER / "cards").iterdir())
    assert reports
    for path in reports:
        held("doctor", path.read_text(encoding="utf-8"))


def test_every_command_and_option_is_on_the_page() -> None:
    page = reference_pages.command_line()
    waiting: list[tuple[str, Any]] = [("wiregauge", typer.main.get_command(app))]
    while waiting:
        name, command = waiting.pop()
        if hasattr(command, "commands"):
            waiting += [(f"{name} {part}", one) for part, one in command.commands.items()]
            continue
        section = page.split(f" {name}\n", 1)[1].split("\n##", 1)[0]
        for parameter in command.params:
            for option in (*parameter.opts, *parameter.secondary_opts):
                if option.startswith("--") and option != "--help":
                    assert f"`{option}`" in section, f"{name} {option}"


@pytest.mark.parametrize("name", [name for name in wiregauge.__all__ if not name.startswith("_")])
def test_everything_public_is_on_the_page_and_has_a_docstring(name: str) -> None:
    page, public = reference_pages.python(), getattr(wiregauge, name)
    assert f" wg.{name}\n" in page
    members = vars(public).items() if inspect.isclass(public) else ()
    for key, member in members:
        if inspect.isfunction(member) and not key.startswith("_"):
            assert member.__doc__, f"{name}.{key}"
            assert f"# {key}\n" in page

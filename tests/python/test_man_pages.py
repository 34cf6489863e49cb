"""Manual pages: every command and option is in them, and man reads them without a warning."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main

from test_deployment import need
from test_named_commands import agent_commands, agent_options
from wiregauge.cli import app

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import man_pages

PAGES = man_pages.pages()
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]  # a group is that


def words(page: str) -> set[str]:
    """Options and other words of a page, as a reader sees them."""
    plain = page.replace("\\-", "-").replace("\\fB", " ").replace("\\fI", " ").replace("\\fP", " ")
    return set(re.findall(r"--?[\w-]+|[\w.-]+", plain))


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "agent"])
def test_every_command_has_a_page_with_its_options(name: str) -> None:
    found = words(PAGES[f"wiregauge-{name}.1"])
    for command in [COMMANDS[name], *getattr(COMMANDS[name], "commands", {}).values()]:
        shown = [one for one in command.params if not getattr(one, "hidden", False)]
        options = {option for one in shown for option in (*one.opts, *one.secondary_opts) if option[0] == "-"}
        assert options - {"--help"} <= found
    assert words(PAGES["wiregauge.1"]) >= {f"wiregauge-{name}"}


def test_the_page_of_the_agent_has_every_command_and_their_options() -> None:
    found = words(PAGES["wiregauge-agent.8"])
    assert len(agent_commands()) > 5
    assert set(agent_commands()) <= found
    assert agent_options("serve") | agent_options("generate") | agent_options("capture") <= found


def said(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"LC_ALL": "C.UTF-8"})
    return done.stderr


@pytest.mark.parametrize("name", PAGES)
def test_man_reads_it_without_a_warning(name: str, tmp_path: Path) -> None:
    page = tmp_path / name
    page.write_text(PAGES[name], encoding="utf-8")
    assert said(need("man"), "--warnings", "-E", "UTF-8", "-l", str(page)) == ""
    page.write_text(PAGES[name] + ".XY nothing\n", encoding="utf-8")
    assert "XY" in said(need("man"), "--warnings=mac", "-E", "UTF-8", "-l", str(page))


def test_text_is_not_taken_for_requests() -> None:
    assert man_pages._running("'a' is --out C:\\d, `--set=x` and **b** [c](d.md)") == (
        r"\&'a' is \-\-out C:\ed, \fB\-\-set=x\fP and \fBb\fP c"
    )
    assert man_pages._running(".so /etc/passwd") == r"\&.so /etc/passwd"

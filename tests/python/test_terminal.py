"""What every command does on a terminal: it stops when it is asked to, and its tables fit."""

from __future__ import annotations

import io
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from wiregauge.examining.programs import programs_here
from wiregauge.terminal import print_table

HURRIED = """
import builtins, os, signal
real = builtins.__import__
def hook(name, *rest, **more):
    if name == "{module}":
        os.kill(os.getpid(), signal.SIGINT)
    return real(name, *rest, **more)
from wiregauge.cli import main
builtins.__import__ = hook
main()
"""


def test_ctrl_c_before_anything_has_begun_is_one_line_and_incomplete() -> None:
    for module in ("wiregauge.cli.program", "typer", "wiregauge.config"):
        done = subprocess.run(
            [sys.executable, "-c", HURRIED.format(module=module), "check", "t.xml"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (4, "\nwiregauge: stopped by Ctrl-C\n"), module


@given(
    st.integers(1, 8).flatmap(
        lambda columns: st.tuples(
            st.lists(st.text("abc", min_size=1, max_size=9), min_size=columns, max_size=columns),
            st.lists(
                st.lists(
                    st.text("0123456789[]", min_size=1, max_size=12), min_size=columns, max_size=columns
                ),
                min_size=1,
                max_size=4,
            ),
        )
    ),
    st.integers(30, 120),
    st.integers(1, 2),
)
def test_no_table_loses_a_figure_or_is_wider_than_the_terminal(
    table: tuple[list[str], list[list[str]]], width: int, leading: int
) -> None:
    heads, rows = table
    leading = min(leading, len(heads))
    out = io.StringIO()
    print_table(heads, rows, Console(file=out, width=width), leading=leading)
    text = out.getvalue()
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    words = text.split()
    assert all(words.count(cell) >= 1 for row in rows for cell in row)


def test_programs_that_are_not_here_come_with_their_cure() -> None:
    nothing, all_of_them = programs_here(lambda _: None), programs_here(lambda name: f"/bin/{name}")
    missing = {item["name"]: item["cure"] for item in nothing if item["name"] != "AF_XDP"}
    assert missing == {
        "ptp4l": "apt install linuxptp",
        "phc2sys": "apt install linuxptp",
        "chronyc": "apt install chrony",
        "tshark": "apt install tshark",
    }
    assert all(item["found"] and not item["cure"] for item in all_of_them if item["name"] != "AF_XDP")
    assert all(bool(item["cure"]) != item["found"] for item in (*nothing, *all_of_them))

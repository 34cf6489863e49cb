"""Exit codes, and errors as one line."""

from __future__ import annotations

import sys
from typing import NoReturn

import typer

__all__ = ["BAD_INPUT", "INCOMPLETE", "NO_ENVIRONMENT", "fail", "say"]

BAD_INPUT, NO_ENVIRONMENT, INCOMPLETE = 2, 3, 4


def say(text: str) -> None:
    """One line for the user, on standard error."""
    print(f"wiregauge: {text}", file=sys.stderr)


def fail(text: str, code: int) -> NoReturn:
    """Says why, and ends the command with `code`."""
    say(text)
    raise typer.Exit(code)

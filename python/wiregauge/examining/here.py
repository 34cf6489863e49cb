"""Fixes and restores this machine by its own agent program."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

from wiregauge.examining.changes import Change
from wiregauge.runner import BenchError
from wiregauge.runner.agent_program import agent_program

__all__ = ["mend_here", "restore_here"]

_SECONDS: Final = 60.0
_NAME: Final = "this host"


def mend_here(fixes: Mapping[str, Sequence[str]]) -> list[Change]:
    """Applies fixes, by interface; returns the changes. Raises BenchError."""
    return [
        change
        for interface, names in fixes.items()
        for change in _changes("mend", "--interface", interface, *names)
    ]


def restore_here() -> list[Change]:
    """Restores what fixes have changed here; returns the changes. Raises BenchError."""
    return _changes("restore")


def _changes(*arguments: str) -> list[Change]:
    try:
        answer = subprocess.run(
            [str(agent_program()), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BenchError(f"the agent program cannot be run: {error}") from error
    if answer.returncode != 0:
        raise BenchError(answer.stderr.strip().removeprefix("wiregauge-agent: "))
    return [Change(_NAME, **one) for one in json.loads(answer.stdout)]

"""Restarts the present command inside namespaces that end with it."""

from __future__ import annotations

import os
import sys
from typing import Final, NoReturn

from wiregauge.runner.agent_program import agent_program

__all__ = ["ENCLOSED", "enclose", "is_enclosed"]

ENCLOSED: Final = "WIREGAUGE_ENCLOSED"
"""Environment variable that is set inside the enclosure."""


def is_enclosed() -> bool:
    """Whether this process is already inside an enclosure, where a netns bench can be opened."""
    return ENCLOSED in os.environ


def enclose(*, rootless: bool) -> NoReturn:
    """Replaces this process by the same command in an enclosure. Raises BenchError without the agent program."""
    program = str(agent_program())
    command = [program, "enclose", *(["--rootless"] if rootless else [])]
    os.environ[ENCLOSED] = "1"
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(program, [*command, "--", sys.executable, "-m", "wiregauge", *sys.argv[1:]])

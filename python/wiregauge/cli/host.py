"""`agent`: the program that serves a host."""

from __future__ import annotations

import os

import typer

from wiregauge.terminal import NO_ENVIRONMENT, fail


def agent(context: typer.Context) -> None:
    from wiregauge.runner import BenchError
    from wiregauge.runner.agent_program import agent_program

    try:
        program = str(agent_program())
    except BenchError as error:
        fail(str(error), NO_ENVIRONMENT)
    os.execv(program, [program, *context.args])

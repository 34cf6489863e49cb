"""Runs the measuring loops of the agent program and reads their output line by line.

Facts printed before Ctrl-C are used: the loops print each fact as soon as it is known.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wiregauge.calibrate.errors import BenchMissingError
from wiregauge.runner import BenchError
from wiregauge.runner.agent_program import agent_program
from wiregauge.runner.stopping import Interrupted, stoppable

Floats = NDArray[np.float64]


def listen(arguments: Sequence[str], heard: Callable[[Any], None]) -> bool:
    """Runs the agent program and passes on each line it prints; returns whether it ran to its end.

    Raises BenchMissingError when it cannot run or fails.
    """
    try:
        program = str(agent_program())
    except BenchError as error:
        raise BenchMissingError(str(error)) from None
    process = subprocess.Popen(
        [program, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # the terminal's Ctrl-C is ours to handle
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        with stoppable():
            for line in process.stdout:
                heard(json.loads(line))
    except Interrupted:
        process.send_signal(signal.SIGTERM)
        return False
    finally:
        process.stdout.close()
        said = process.stderr.read().decode(errors="replace").strip().splitlines()
        process.stderr.close()
        code = process.wait()
    if code != 0:
        # After wrong usage the first line has the reason; the last one only points to the help.
        wrong = [line.removeprefix("error:").strip() for line in said if line.startswith("error:")]
        why = wrong[0] if wrong else said[-1] if said else f"it ended with code {code}"
        cure = f"; {program} seems to be of another version: install wiregauge again" if wrong else ""
        raise BenchMissingError(f"wiregauge-agent {arguments[0]} failed: {why}{cure}")
    return True


def tick(
    period_ns: int, count: int, *, core: int, priority: int, progress: Callable[[float], None]
) -> tuple[Floats, list[str], bool]:
    """A plain timer loop: lateness of its ticks, ns, what the host refused it, and whether it ran to its end."""
    late: list[int] = []
    refused: list[str] = []

    def heard(fact: Any) -> None:
        if isinstance(fact, list):
            late.extend(fact)
            progress(len(late) / count)
        else:
            refused.extend(fact["refused"])

    whole = listen(
        [
            "ticks",
            f"--period-ns={period_ns}",
            f"--count={count}",
            f"--core={core}",
            f"--priority={priority}",
        ],
        heard,
    )
    return np.array(late, dtype=np.float64), refused, whole

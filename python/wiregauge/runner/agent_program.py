"""The agent program of this machine, and what it finds of the machine."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from wiregauge.runner.bench import BenchError, Findings

__all__ = ["agent_program", "examine", "namespaces_here"]

_SECONDS = 30.0


def agent_program() -> Path:
    """The agent program that was installed with this package."""
    for scripts in (Path(sysconfig.get_path("scripts")), Path(sys.executable).parent):
        candidate = scripts / "wiregauge-agent"
        if candidate.is_file():
            return candidate
    found = shutil.which("wiregauge-agent")
    if found is None:
        raise BenchError("the program wiregauge-agent was not found; install wiregauge with `pip install .`")
    return Path(found)


def examine() -> Findings:
    """The capabilities of this machine; `problem` has the reason where the agent program finds none."""
    empty: Findings = {"schema": 1, "host": {}, "findings": []}
    try:
        program = agent_program()
        answer = subprocess.run(
            [str(program), "doctor", "--json"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
        found: Findings = json.loads(answer.stdout)
    except (BenchError, OSError, subprocess.TimeoutExpired) as error:
        return {**empty, "problem": str(error)}
    except json.JSONDecodeError:
        said = answer.stderr.strip() or f"it ended with code {answer.returncode}"
        return {**empty, "problem": f"{program} doctor failed: {said}"}
    return found


def namespaces_here(found: Findings) -> tuple[bool, str, str]:
    """Whether namespaces are available, the wording, and the cure where they are not."""
    granted = {item["name"]: item for item in found["findings"]}
    ways = [way for name in ("network-namespaces", "user-namespaces") if (way := granted.get(name))]
    if any(way["granted"] for way in ways):
        return True, "real frames between namespaces of this machine", ""
    if "problem" in found:
        return False, found["problem"], "install wiregauge again"
    return False, "this machine grants no namespaces", " or ".join(dict.fromkeys(way["cure"] for way in ways))

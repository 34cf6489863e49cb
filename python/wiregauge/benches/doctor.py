"""What this machine grants to a bench, as its agent program finds it."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from wiregauge.benches.base import BenchError, agent_program

__all__ = ["Findings", "examine", "namespaces_here"]

Findings = dict[str, Any]
"""What `wiregauge-agent doctor --json` says: `host`, `findings`, `interfaces` and `facts`."""

_SECONDS = 30.0


def examine() -> Findings:
    """What this machine grants; `problem` says why where the agent program cannot tell."""
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
    """Whether there are namespaces, in which words, and the cure where there are none."""
    granted = {item["name"]: item for item in found["findings"]}
    ways = [way for name in ("network-namespaces", "user-namespaces") if (way := granted.get(name))]
    if any(way["granted"] for way in ways):
        return True, "real frames between namespaces of this machine", ""
    if "problem" in found:
        return False, found["problem"], "install wiregauge again"
    return False, "this machine grants no namespaces", " or ".join(dict.fromkeys(way["cure"] for way in ways))

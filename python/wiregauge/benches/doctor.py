"""Which benches work on this machine, from what its agent program found it to grant."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from wiregauge.benches.base import BenchError, agent_program

__all__ = ["Findings", "benches_here", "examine"]

Findings = dict[str, Any]
"""What `wiregauge-agent doctor --json` says: `host` and `findings`."""

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


def benches_here(found: Findings) -> list[dict[str, Any]]:
    """Every bench, whether it works here, and the cure where it does not."""
    granted = {item["name"]: item for item in found["findings"]}
    ways = [granted.get(name) for name in ("network-namespaces", "user-namespaces")]
    works = any(way is not None and way["granted"] for way in ways)
    if works:
        detail, cure = "real frames between namespaces of this machine", ""
    elif "problem" in found:
        detail, cure = found["problem"], "install wiregauge again"
    else:
        detail = "this machine grants no namespaces"
        cure = " or ".join(dict.fromkeys(way["cure"] for way in ways if way is not None))
    return [
        {"name": "sim", "works": True, "detail": "virtual time; needs no privilege", "cure": ""},
        {"name": "netns", "works": works, "detail": detail, "cure": cure},
    ]

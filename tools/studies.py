"""Runs every study that comes with the program in its quick form, in the simulator.

It prints a line for each; the exit code is 1 unless all of them PASS.

`python tools/studies.py [NAME …]` runs only these.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from wiregauge import studies


def quick(name: str, place: Path) -> tuple[str, str]:
    """Runs a study; returns its verdict and a remark."""
    began = time.monotonic()
    command = [
        sys.executable,
        "-m",
        "wiregauge",
        "study",
        name,
        "--quick",
        "--json",
        "--out",
        str(place / name),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = f"{time.monotonic() - began:.1f} s"
    try:
        tree = json.loads(done.stdout)
    except json.JSONDecodeError:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return "FAIL", f"{seconds}  {last}"
    results = [cell["result"] for item in tree["items"] for cell in item["cells"]]
    counts = ", ".join(
        f"{results.count(word)} {word}"
        for word in ("holds", "fails", "undecided", "not compared")
        if results.count(word)
    )
    return tree["verdict"], f"{seconds}  {counts}"


def main(names: list[str]) -> int:
    """Returns the exit code: 0 if every verdict is PASS."""
    passed = True
    with tempfile.TemporaryDirectory(prefix="wiregauge-studies-") as place:
        for name in names or studies.names():
            verdict, beside = quick(name, Path(place))
            sys.stdout.write(f"{name:<20} {verdict:<10} {beside}\n")
            sys.stdout.flush()
            passed &= verdict == "PASS"
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

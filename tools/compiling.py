"""Compiles the agent, and with it what the module of Python is linked of, which is one way to keep all cores busy.

`compiling.py PROFILE` needs nothing but Python and cargo: `make setup` begins with it, before it has a package.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

AGENT = "wiregauge-agent"
LIBRARIES = ("wg-bound", "wg-capture", "wg-sim", "wg-track")
"""What the module is linked of."""


def compiled(root: Path, profile: str) -> Path:
    """The agent, as the sources in `root` are now, by a profile of `Cargo.toml`."""
    packages = [f"--package={name}" for name in ("wg-agent", *LIBRARIES)]
    command = [
        "cargo",
        "build",
        "--quiet",
        "--profile",
        profile,
        "--locked",
        *packages,
        "--lib",
        "--bin",
        AGENT,
    ]
    subprocess.run(command, cwd=root, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", root / "target")) / profile / AGENT


if __name__ == "__main__":
    try:
        compiled(Path(__file__).resolve().parent.parent, sys.argv[1])
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)

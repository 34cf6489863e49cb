"""Compiles the agent together with the Python module, or the libraries of it, to keep all cores busy.

`compiling.py PROFILE` needs nothing but Python and cargo: `make setup` begins with it, before it has a package.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

AGENT = "wiregauge-agent"
LIBRARIES = ("wg-bound", "wg-capture", "wg-sim", "wg-stats", "wg-track")
"""The libraries of the module."""
MODULE = "wg-py"


def artefact(root: Path, profile: str, name: str) -> Path:
    """What a profile of `Cargo.toml` built of the sources in `root`."""
    return Path(os.environ.get("CARGO_TARGET_DIR", root / "target")) / profile / name


def compiled(root: Path, profile: str, *libraries: str) -> Path:
    """Compiles agent and libraries of the sources in `root` with a profile; returns the agent program."""
    packages = [f"--package={name}" for name in ("wg-agent", *libraries)]
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
    return artefact(root, profile, AGENT)


if __name__ == "__main__":
    try:
        compiled(Path(__file__).resolve().parent.parent, sys.argv[1], MODULE)
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)

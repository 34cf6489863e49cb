"""Prints what `pip install .` installs besides wiregauge itself, as input for pip; with `dev`, what `'.[dev]'` adds."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads(
    (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text(encoding="utf-8")
)["project"]

if __name__ == "__main__":
    extras = PROJECT["optional-dependencies"]
    wanted = [package for extra in sys.argv[1:] for package in extras[extra]] or PROJECT["dependencies"]
    sys.stdout.write("\n".join([*wanted, ""]))
